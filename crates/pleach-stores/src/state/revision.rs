use std::fmt;
use std::str::FromStr;

use pleach_engine::Revision;
use serde::{Serialize, Serializer};

use super::StateError;

/// Which write an entry is of. Opaque: compare it, keep it, hand it back, and read nothing into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateRevision(pub(super) Revision);

impl fmt::Display for StateRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl FromStr for StateRevision {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        let number = text.strip_prefix('r').and_then(|number| number.parse::<Revision>().ok());
        // One revision has one text: signs and leading zeros are refused.
        let found = number.map(Self).filter(|found| found.to_string() == text);
        found.ok_or_else(|| StateError::InvalidRevision { text: super::error::excerpt(text) })
    }
}

impl Serialize for StateRevision {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
