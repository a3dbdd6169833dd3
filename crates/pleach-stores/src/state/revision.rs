use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use pleach_engine::Revision;
use serde::{Serialize, Serializer};

/// Which write an entry is of. Opaque: compare it, keep it, hand it back, and read nothing into it.
///
/// Every text can be read as a revision. A text that no reply ever gave is a revision that no entry has: a write that
/// expects it has lost the race, as with any other wrong revision.
///
/// ```
/// use pleach_stores::state::StateRevision;
///
/// let revision: StateRevision = "r12".parse()?;
/// assert_eq!(revision.to_string(), "r12");
/// let garbage: StateRevision = "twelve".parse()?;
/// assert!(garbage.is_unknown());
/// # Ok::<_, std::convert::Infallible>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateRevision(pub(super) Revision);

impl StateRevision {
    /// No write has this revision: engines count from one.
    const UNKNOWN: Self = Self(Revision::ZERO);

    /// Whether no entry can have it, because no reply ever gave it.
    pub fn is_unknown(self) -> bool {
        self == Self::UNKNOWN
    }
}

impl fmt::Display for StateRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl FromStr for StateRevision {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let number = text.strip_prefix('r').and_then(|number| number.parse::<Revision>().ok());
        // One revision has one text: with a sign or a leading zero it is another.
        let found = number.map(Self).filter(|found| found.to_string() == text);
        Ok(found.unwrap_or(Self::UNKNOWN))
    }
}

impl Serialize for StateRevision {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
