//! What a new version of a contract does to the values of the old ones.
//!
//! [`diff`] compares two versions of a contract and [`diff_over`] all that were ever accepted with a new one. Each
//! [`Finding`] says what has changed, what that does in both directions, and what to do. If no finding stands against
//! it backward, the new contract accepts every value that the old one did, and forward the other way round; what
//! cannot be judged is never called safe. `docs/evolution.md` has the rules and all codes.

mod advice;
mod code;
mod contract;
mod finding;
mod history;
mod schema;
mod steps;
#[cfg(test)]
mod tests;

use crate::document::Contract;
use contract::Comparison;
use steps::Steps;

pub use code::FindingCode;
pub use finding::{Diff, Effect, FINDINGS_MAX, Finding, Question, Subject, Verdict};
pub use history::diff_over;
pub use steps::DIFF_STEPS_MAX;

/// Compares two versions of a contract: over the current version of every store and every older one that it accepts.
#[must_use]
pub fn diff(old: &Contract, new: &Contract) -> Diff {
    let found = Comparison::of(old, new);
    Diff::of(found.findings, found.more)
}
