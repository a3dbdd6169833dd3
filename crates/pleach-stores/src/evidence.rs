use std::collections::BTreeMap;
use std::fmt;

use pleach_engine::Revision;
use serde::{Deserialize, Serialize};

use crate::state::StatePlace;

/// The most entries that a finding shows.
pub const SAMPLES_MAX: usize = 10;

/// What the stored data says to a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// How many live entries stand against the change.
    pub count: u64,
    /// How many live entries were looked at for it.
    pub of: u64,
    /// The first of those that stand against it.
    pub samples: Vec<Sample>,
    /// The kept records that stand against it, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptAnswer>,
    /// When the entries would expire, if a shorter time to live is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiring: Option<Expiring>,
}

/// Older records of keys, which a revert and a read at a revision find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeptAnswer {
    /// How many records stand against the change.
    pub records: u64,
    /// How many keys they belong to; of very many, at least this many.
    pub keys: u64,
}

/// How many entries a shorter time to live ends sooner, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expiring {
    /// As soon as it is applied.
    pub at_once: u64,
    /// Within an hour after that.
    pub within_hour: u64,
    /// Within a day, and not within an hour.
    pub within_day: u64,
    /// Later, and still sooner than without the change.
    pub later: u64,
}

/// An entry that stands against a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sample {
    /// Its key.
    pub key: String,
    /// Its revision.
    pub revision: Revision,
    /// The version that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where in its value, as a JSON Pointer; empty for the value as a whole, or for the key.
    pub path: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// Whose it is and in which store, for what a user or a device has stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StatePlace>,
    /// Whether it is an older record of its key, and not the live entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// A bucket that was read for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scanned {
    /// Its name.
    pub bucket: String,
    /// The snapshot that was read.
    pub revision: Revision,
    /// How many entries it has.
    pub entries: u64,
    /// How many bytes their values have.
    pub bytes: u64,
    /// How many of them have each version; those without one are under an empty name.
    pub versions: BTreeMap<String, u64>,
    /// The newest record with a value that was read; zero if there was none.
    #[serde(default, skip_serializing_if = "is_before_all")]
    pub newest: Revision,
    /// How many older records with a value were read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_before_all(revision: &Revision) -> bool {
    *revision == Revision::ZERO
}

impl Scanned {
    /// Whether another reading found the same records. The snapshots may differ, since others write elsewhere.
    pub(crate) fn found_the_same(&self, other: &Self) -> bool {
        *self == Self { revision: self.revision, ..other.clone() }
    }
}

impl Answer {
    /// Whether nothing stands against the change.
    pub fn is_clear(&self) -> bool {
        self.count == 0 && self.kept.is_none()
    }
}

/// One line for people: "3 of 40 entries stand against it, and 5 kept records of 2 keys".
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, of, kept, expiring, .. } = self;
        match expiring {
            Some(expiring) if *count > 0 => {
                write!(f, "{} would expire sooner: {expiring}", share(*count, *of))?;
            }
            Some(_) => write!(f, "none of {of} {} would expire sooner", plural(*of, "entry", "entries"))?,
            None if *count == 0 => {
                write!(f, "none of {of} {} stands against it", plural(*of, "entry", "entries"))?;
            }
            None => {
                let stand = if *count == 1 { "stands" } else { "stand" };
                write!(f, "{} {stand} against it", share(*count, *of))?;
            }
        }
        kept.map_or(Ok(()), |kept| {
            let word = if *count == 0 { "but" } else { "and" };
            let stand = if *count > 0 {
                ""
            } else if kept.records == 1 {
                " stands against it"
            } else {
                " stand against it"
            };
            write!(f, ", {word} {kept}{stand}")
        })
    }
}

impl fmt::Display for KeptAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, keys } = self;
        let (record, key) = (plural(*records, "record", "records"), plural(*keys, "key", "keys"));
        write!(f, "{records} kept {record} of {keys} {key}")
    }
}

impl fmt::Display for Expiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_once, within_hour, within_day, later } = self;
        write!(f, "{at_once} at once, {within_hour} within an hour, {within_day} within a day, {later} later")
    }
}

fn share(count: u64, of: u64) -> String {
    format!("{count} of {of} {}", plural(of, "entry", "entries"))
}

pub(crate) fn plural<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}
