/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// What kind of failure it is. A case that is made smaller keeps its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A safe plan made something unreadable.
    Unreadable,
    /// A safe plan made something go.
    Lost,
    /// The judge and Pleach disagree about a value.
    Disagreement,
    /// A plan or an apply failed, where nothing stood against it.
    Error,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}
