use std::fmt;

use serde::Serialize;

/// What kind of change a finding is. Codes are API: they keep their names and meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// Nobody can say from the declarations alone what the change does.
    Undecided,
}

impl FindingCode {
    /// The code as it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "schema.undecided",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
