use super::super::{Effect, FindingCode, Question, Verdict};

/// Whether what the one schema accepts, the other accepts as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum Holds {
    /// All of it.
    Yes,
    /// Nobody can say.
    Unknown,
    /// Perhaps not all of it.
    Partly,
    /// Nothing of it.
    No,
}

impl Holds {
    /// As an effect on stored values, which can be looked at.
    pub(in super::super) fn backward(self) -> Effect {
        match self {
            Self::Yes => Effect::Ok,
            Self::Unknown => Effect::Unknown,
            Self::Partly => Effect::Scan,
            Self::No => Effect::Breaks,
        }
    }

    /// As an effect on what will be written, which nobody can look at.
    pub(in super::super) fn forward(self) -> Effect {
        match self {
            Self::Yes => Effect::Ok,
            Self::Unknown => Effect::Unknown,
            Self::Partly | Self::No => Effect::Breaks,
        }
    }
}

/// What a change of a part means for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sense {
    /// The whole accepts more if the part does.
    Same,
    /// The whole accepts less if the part accepts more, as under `not`.
    Flipped,
    /// Either: the whole stays the same only if the part does.
    Either,
}

impl Sense {
    /// The sense of a part of a part.
    pub(super) fn then(self, inner: Self) -> Self {
        match (self, inner) {
            (Self::Either, _) | (_, Self::Either) => Self::Either,
            (Self::Same, inner) => inner,
            (Self::Flipped, Self::Same) => Self::Flipped,
            (Self::Flipped, Self::Flipped) => Self::Same,
        }
    }
}

/// A difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Change {
    pub(in super::super) code: FindingCode,
    /// Where it is, in the contract that has it.
    pub(in super::super) path: String,
    /// Which place of a value it is about; none if that is too deep to say.
    pub(in super::super) instance: Option<String>,
    pub(in super::super) backward: Holds,
    pub(in super::super) forward: Holds,
    /// What it is at least, whatever the directions say.
    pub(in super::super) at_least: Verdict,
    pub(in super::super) message: String,
    pub(in super::super) question: Option<Question>,
}

impl Change {
    /// A change that does nothing to values; its place is filled in when it is told.
    pub(super) fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self {
            code,
            path: String::new(),
            instance: None,
            backward: Holds::Yes,
            forward: Holds::Yes,
            at_least: Verdict::Safe,
            message: message.into(),
            question: None,
        }
    }

    /// Less is accepted than before.
    pub(super) fn tightened(code: FindingCode, message: impl Into<String>) -> Self {
        Self::new(code, message).with(Holds::Partly, Holds::Yes)
    }

    /// More is accepted than before.
    pub(super) fn loosened(code: FindingCode, message: impl Into<String>) -> Self {
        Self::new(code, message).with(Holds::Yes, Holds::Partly)
    }

    pub(super) fn with(self, backward: Holds, forward: Holds) -> Self {
        Self { backward, forward, ..self }
    }

    pub(super) fn at_least(self, at_least: Verdict) -> Self {
        Self { at_least, ..self }
    }

    pub(super) fn asking(self, question: Option<Question>) -> Self {
        Self { question, ..self }
    }

    pub(in super::super) fn is_idle(&self) -> bool {
        (self.backward, self.forward) == (Holds::Yes, Holds::Yes)
    }

    /// The same change of a part, as a change of the whole.
    pub(super) fn seen(self, sense: Sense) -> Self {
        match sense {
            Sense::Same => self,
            // Nothing is done to values either way.
            _ if self.is_idle() && self.at_least == Verdict::Safe => self,
            Sense::Flipped => Self {
                code: FindingCode::NotChanged,
                backward: self.forward,
                forward: self.backward,
                at_least: Verdict::Safe,
                message: format!("under `not`, {}", self.message),
                question: None,
                ..self
            },
            Sense::Either => Self {
                code: FindingCode::SchemaUndecided,
                backward: Holds::Unknown,
                forward: Holds::Unknown,
                at_least: Verdict::Safe,
                message: format!("in a part that decides which other parts apply, {}", self.message),
                question: None,
                ..self
            },
        }
    }

    pub(in super::super) fn verdict(&self) -> Verdict {
        let by_values = match self.backward {
            Holds::Yes => Verdict::Safe,
            Holds::Unknown | Holds::Partly => Verdict::Scan,
            Holds::No => Verdict::Dangerous,
        };
        by_values.max(self.at_least)
    }
}
