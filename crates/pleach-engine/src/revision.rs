use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A point in the history of a bucket: grows with every record committed to it, is never reused and
/// never goes back. Gaps are normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(u64);

impl Revision {
    /// Before the first record of any bucket.
    pub const ZERO: Self = Self(0);

    /// The revision with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision `steps` after this one.
    ///
    /// # Panics
    /// If there is none, which takes a bug: a bucket that commits a million records a second reaches
    /// the end in half a million years.
    #[must_use]
    pub const fn plus(self, steps: u64) -> Self {
        Self(self.0.checked_add(steps).expect("revisions do not run out"))
    }

    /// The revision after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Revision {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}
