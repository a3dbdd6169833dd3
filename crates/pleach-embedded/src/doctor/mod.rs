//! Turns figures into sentences: what is wrong with a store, why, and what to do about it.
//!
//! ```
//! use pleach_embedded::{EmbeddedEngine, doctor};
//!
//! # let directory = tempfile::tempdir()?;
//! let engine = EmbeddedEngine::open(directory.path().join("store"))?;
//! for finding in doctor::examine(&engine.status()) {
//!     println!("{}: {}", finding.severity, finding.what);
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod disk;
mod log;
mod reads;
#[cfg(test)]
mod tests;
mod text;
mod usage;
mod writes;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::status::Status;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// It will cost something if nothing is done.
    Warning,
    /// Something does not work.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that found it, by a name that stays.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it is, in a sentence without a full stop.
    pub what: String,
    /// Why that matters, or where it comes from.
    pub why: String,
    /// What to do.
    pub next: String,
}

/// Everything that the rules find in a status, what matters most first.
pub fn examine(status: &Status) -> Vec<Finding> {
    let findings = RULES.iter().filter_map(|(rule, look)| {
        let Advice { severity, what, why, next } = look(status)?;
        Some(Finding { rule, severity, what, why, next })
    });
    let mut findings: Vec<_> = findings.collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The names of all rules.
pub fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(rule, _)| *rule)
}

/// Looks for one thing that may be wrong.
type Rule = fn(&Status) -> Option<Advice>;

/// Every rule by its name. Each has a test of its name in `tests.rs` that makes it speak, and one where it is silent.
const RULES: &[(&str, Rule)] = &[
    ("read_only", writes::read_only),
    ("index_disk_full", disk::index_disk_full),
    ("disk_nearly_full", disk::nearly_full),
    ("open_files", disk::open_files),
    ("slow_syncs", disk::slow_syncs),
    ("stalled_by_flushes", writes::stalled_by_flushes),
    ("stalled_by_merges", writes::stalled_by_merges),
    ("stalled_by_cleaning", writes::stalled_by_cleaning),
    ("commits_queue_up", writes::commits_queue_up),
    ("write_amplification", writes::amplification),
    ("cleaning_trouble", log::cleaning_trouble),
    ("cleaning_off", log::cleaning_off),
    ("garbage", log::garbage),
    ("old_segments", log::old_segments),
    ("space_amplification", log::amplification),
    ("long_replay", log::long_replay),
    ("merges_behind", reads::merges_behind),
    ("read_amplification", reads::amplification),
    ("filters", reads::filters),
    ("block_cache", reads::block_cache),
    ("tombstones", reads::tombstones),
    ("old_snapshot", usage::old_snapshot),
    ("consumer_lost", usage::consumer_lost),
    ("consumer_behind", usage::consumer_behind),
    ("consumer_idle", usage::consumer_idle),
    ("hot_get_key", usage::hot_get_key),
    ("hot_put_key", usage::hot_put_key),
    ("hot_prefix", usage::hot_prefix),
    ("buffered", usage::buffered),
    ("feed_for_ever", usage::feed_for_ever),
    ("unwritten_reports", disk::unwritten_reports),
];

/// What a rule says.
struct Advice {
    severity: Severity,
    what: String,
    why: String,
    next: String,
}

impl Advice {
    fn new(
        severity: Severity,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { severity, what: what.into(), why: why.into(), next: next.into() }
    }

    /// The severity by how far a figure has gone: none below `note`.
    fn graded(figure: f64, note: f64, warning: f64) -> Option<Severity> {
        match figure {
            figure if figure >= warning => Some(Severity::Warning),
            figure if figure >= note => Some(Severity::Note),
            _ => None,
        }
    }
}
