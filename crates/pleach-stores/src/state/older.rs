use serde::de::DeserializeOwned;
use serde_json::Value;

/// What values of the older versions of a store are for a program: [`NoOlder`] if there are none, JSON for one that learns
/// of them when it runs, and else an enum with a variant for each, as [`state_facade`](crate::state_facade) makes it.
///
/// Whoever matches on an outcome has to say what becomes of each of them: a version that is added to a contract stops the
/// build wherever the program does not handle it yet.
pub trait Older: Sized {
    /// The versions it can be of; none if it can be of any.
    const VERSIONS: Option<&'static [&'static str]>;

    /// Reads a value of this version, which its schema allows.
    ///
    /// # Errors
    /// If it is of another version, or the type does not agree with the schema.
    fn read(version: &str, value: Value) -> Result<Self, String>;
}

/// Values of any version, as JSON.
impl Older for Value {
    const VERSIONS: Option<&'static [&'static str]> = None;

    fn read(_: &str, value: Value) -> Result<Self, String> {
        Ok(value)
    }
}

/// There is none: a store without older versions. Nothing has this type, so that no `match` needs an arm for it.
///
/// ```
/// use pleach_stores::state::{GetOutcome, MapStore, NoOlder, StateError};
///
/// async fn title(drafts: MapStore<String, NoOlder>) -> Result<Option<String>, StateError> {
///     Ok(match drafts.get("first").await? {
///         GetOutcome::Found(entry) => Some(entry.value),
///         GetOutcome::Absent => None,
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOlder {}

impl Older for NoOlder {
    const VERSIONS: Option<&'static [&'static str]> = Some(&[]);

    fn read(version: &str, _: Value) -> Result<Self, String> {
        Err(unknown(version))
    }
}

/// What the code of `state_facade!` calls, and nobody else: reads the value of a variant.
#[doc(hidden)]
pub fn read_variant<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

/// What the code of `state_facade!` calls, and nobody else: that no variant is of this version.
#[doc(hidden)]
pub fn unknown(version: &str) -> String {
    format!("the program does not know the version {version:?}")
}
