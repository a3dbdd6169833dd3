use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{SchemaReference, first_version};

/// The most records of a key that a resource may keep.
pub const HISTORY_MAX: u64 = 64;

/// The longest time to live: a hundred years.
pub const TTL_MS_MAX: u64 = 100 * 365 * DAY_MS;

/// The most bytes a value may have on any engine.
pub const MAX_VALUE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The most parts of a counter.
pub const SHARDS_MAX: u64 = 256;

/// The most entries that an access path may ask for at once.
pub(super) const LIMIT_MAX: u64 = 10_000;

/// The most buckets of time that retention may keep.
pub(super) const KEEP_MAX: u64 = 100_000;

const MINUTE_MS: u64 = 60 * 1000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A bucket that the program has for itself, and what its keys mean.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KvResource {
    /// What it is for, in a sentence.
    #[schemars(length(min = 1))]
    pub purpose: String,
    /// What a value must look like, where a keyspace does not say otherwise.
    pub schema: SchemaReference,
    /// The version that is written with every value; a new one when old values no longer do.
    #[serde(default = "first_version")]
    pub version: String,
    /// Older versions whose values are still stored, and what those must look like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_versions: BTreeMap<String, SchemaReference>,
    /// Whether code sees it as always there. It is provisioned either way.
    #[serde(default = "yes")]
    pub required: bool,
    /// How many records of a key are kept.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub history: u64,
    /// How long values live, in a word: gives `ttlMs` its default and its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TtlTier>,
    /// How long values live, in milliseconds; 0 is for ever. By default what the tier says, else 0.
    #[serde(default)]
    #[schemars(range(max = TTL_MS_MAX))]
    pub ttl_ms: u64,
    /// The most bytes of a value; by default what the engine takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_VALUE_BYTES_MAX))]
    pub max_value_bytes: Option<u64>,
    /// The kinds of keys there are, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keyspaces: BTreeMap<String, Keyspace>,
    /// Further ways to find the entries of a keyspace, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, Index>,
    /// Links between two keyspaces that can be followed both ways, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relationships: BTreeMap<String, Relationship>,
    /// Counts of the entries of a keyspace, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, Counter>,
    /// What is committed together or not at all, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub atomic: BTreeMap<String, AtomicGroup>,
}

/// A kind of keys: their form, and what is kept under them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Keyspace {
    /// The form of the keys: a key grammar such as `t.{tenant}.case.{case:ulid}`.
    pub key: String,
    /// What a value must look like; by default what the resource says.
    pub schema: SchemaReference,
    /// The version that is written with every value. By default what the resource says, or `v1` with a schema of its own.
    #[serde(default = "first_version")]
    pub version: String,
    /// Older versions whose values are still stored. By default what the resource says, or none with a schema of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_versions: BTreeMap<String, SchemaReference>,
    /// Whether it is the truth, or can be built anew from it.
    #[serde(default)]
    pub role: Role,
    /// The keyspaces that a derived one is built from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub from: Vec<String>,
    /// How long its values live, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TtlTier>,
    /// How long its values live, in milliseconds; 0 is for ever. By default what the tier says, else what the resource says.
    #[serde(default)]
    #[schemars(range(max = TTL_MS_MAX))]
    pub ttl_ms: u64,
    /// Which buckets of time are removed, a whole range of keys at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How it is read, by name. The order of the key must serve each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub access: BTreeMap<String, Access>,
    /// What it holds. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Whether a keyspace is the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is the truth: it is backed up, and never rebuilt.
    #[default]
    Source,
    /// It can be built anew from the keyspaces it names in `from`.
    Derived,
}

/// How long values live, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TtlTier {
    /// Minutes: 15, or up to an hour.
    Ephemeral,
    /// Hours: 12, or up to 7 days.
    Presence,
    /// For ever.
    Permanent,
}

impl TtlTier {
    /// The time to live where none is given, in milliseconds.
    #[must_use]
    pub fn default_ms(self) -> u64 {
        match self {
            Self::Ephemeral => 15 * MINUTE_MS,
            Self::Presence => 12 * HOUR_MS,
            Self::Permanent => 0,
        }
    }

    /// The shortest and the longest time to live, in milliseconds.
    #[must_use]
    pub fn range_ms(self) -> (u64, u64) {
        match self {
            Self::Ephemeral => (1, HOUR_MS),
            Self::Presence => (1, 7 * DAY_MS),
            Self::Permanent => (0, 0),
        }
    }
}

/// Which buckets of time a keyspace keeps. What lies further back goes a whole range of keys at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// The segment of the key that holds the time or date.
    pub segment: String,
    /// How long a bucket is.
    pub bucket: Period,
    /// How many buckets are kept, the current one included.
    #[schemars(range(min = 1, max = KEEP_MAX))]
    pub keep: u64,
}

/// A length of time in the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week, from Monday.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

/// A way a keyspace is read: some segments are given, and at most one is a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The segments whose values are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// The segment that runs from one value to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// The most entries a page has.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    pub limit: u64,
}

/// A further way to find the entries of a keyspace: keys of their own that are kept in step with it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    /// The keyspace whose entries it finds.
    pub of: String,
    /// The form of its keys. Segments of the keyspace's key keep their names.
    pub key: String,
    /// Where the other segments come from: a JSON Pointer into the value, by segment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Whether only one entry may have a key of it.
    #[serde(default)]
    pub unique: bool,
    /// How far it may be behind, in milliseconds; 0 is in the same commit.
    #[serde(default)]
    #[schemars(range(max = TTL_MS_MAX))]
    pub max_lag_ms: u64,
    /// What it is for. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A link between the entries of two keyspaces that can be followed both ways.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Relationship {
    /// The keyspace it begins at.
    pub from: String,
    /// The keyspace it leads to.
    pub to: String,
    /// The form of the keys that lead from the one to the other.
    pub forward: String,
    /// The form of the keys that lead back.
    pub reverse: String,
    /// What happens when an entry is deleted that has links.
    #[serde(default)]
    pub on_delete: OnDelete,
    /// What it means. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What happens when an entry is deleted that has links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDelete {
    /// The delete is refused.
    #[default]
    Restrict,
    /// The links go with it.
    Unlink,
}

/// A count of the entries of a keyspace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counter {
    /// The keyspace whose entries it counts.
    pub of: String,
    /// The form of its keys: one count for each value of their segments.
    pub key: String,
    /// Which entries count; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// In how many parts it is kept, so that many can count at once.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = SHARDS_MAX))]
    pub shards: u64,
    /// What it is for. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What must be true of a value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A JSON Pointer into the value.
    pub pointer: String,
    /// What must stand there.
    pub equals: Value,
}

/// What is committed together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtomicGroup {
    /// Keyspaces, indexes, relationships and counters of the resource.
    #[schemars(length(min = 2), extend("uniqueItems" = true))]
    pub members: Vec<String>,
    /// Why they belong together. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

fn hundred() -> u64 {
    100
}
