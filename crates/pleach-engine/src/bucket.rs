use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::batch::{TTL_MAX, TTL_MIN};
use crate::key::excerpt;
use crate::{Capabilities, EngineError, Entry, InvalidName, Revision, Timestamp};

/// The most records of one key that a bucket can keep.
pub const HISTORY_MAX: u8 = 64;

/// The largest value that a bucket takes unless its configuration says otherwise.
pub const VALUE_BYTES_DEFAULT: u32 = 1024 * 1024;

/// The most bytes of names and values in a bucket's metadata.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;

/// The most buckets in one store.
pub const BUCKETS_MAX: usize = 10_000;

/// How long the marker of a deleted or expired key is kept unless the configuration says otherwise.
pub const MARKER_TTL_DEFAULT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The longest name of a bucket or a consumer, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// The name of a bucket: `[a-zA-Z0-9_-]+`, at most 128 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Box<str>);

impl BucketName {
    /// Checks `text`.
    ///
    /// # Errors
    /// Says which rule `text` breaks, and where.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        checked_name(text.as_ref()).map(Self)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for BucketName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

/// The text of a name that keeps the rules of buckets and consumers.
pub(crate) fn checked_name(text: &str) -> Result<Box<str>, InvalidName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(InvalidName::TooLong { text: excerpt(text), bytes: text.len(), limit: NAME_BYTES_MAX });
    }
    if let Some((at, character)) = text.char_indices().find(|(_, c)| !allowed(*c)) {
        return Err(InvalidName::Character { text: excerpt(text), character, at });
    }
    Ok(text.into())
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Durability {
    /// Once it is on stable storage, as far as the engine can know.
    #[default]
    Synced,
    /// Once the operating system has it: a killed process loses nothing, a power cut the last moments.
    Buffered,
}

/// How an engine stores values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// With LZ4, where that makes them smaller.
    Lz4,
}

/// What a bucket promises about its entries. Stored with the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketConfig {
    /// How many records of a key are kept, markers included: 1 to 64.
    pub history: NonZeroU8,
    /// How long after it was written an entry expires; an entry's own TTL can only make it earlier.
    #[serde(with = "duration_text", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// The largest value it takes, in bytes.
    pub value_bytes_max: u32,
    /// When its commits are acknowledged.
    pub durability: Durability,
    /// How its values are stored.
    pub compression: Compression,
    /// How long the marker of a deleted or expired key is kept at least; after that a key of which nothing
    /// else is kept may be forgotten. None keeps markers for ever.
    #[serde(with = "duration_text")]
    pub marker_ttl: Option<Duration>,
    /// How long its feed keeps changes at least, for watches that resume and for consumers. It may let go of
    /// those past either this or `feed_bytes`; none leaves that to the store.
    #[serde(with = "duration_text", skip_serializing_if = "Option::is_none")]
    pub feed_time: Option<Duration>,
    /// How many bytes of changes its feed keeps at least; none leaves that to the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_bytes: Option<u64>,
    /// Whatever its owner wants to remember about it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Default for BucketConfig {
    fn default() -> Self {
        Self {
            history: NonZeroU8::MIN,
            ttl: None,
            value_bytes_max: VALUE_BYTES_DEFAULT,
            durability: Durability::default(),
            compression: Compression::default(),
            marker_ttl: Some(MARKER_TTL_DEFAULT),
            feed_time: None,
            feed_bytes: None,
            metadata: BTreeMap::new(),
        }
    }
}

impl BucketConfig {
    /// The configuration of a bucket of which nothing special is asked: the default, as far as an engine with
    /// `capabilities` can keep it.
    pub fn plain(capabilities: &Capabilities) -> Self {
        let durability = if capabilities.synced_commits { Durability::Synced } else { Durability::Buffered };
        let value_bytes_max = VALUE_BYTES_DEFAULT.min(capabilities.value_bytes_max);
        Self { durability, value_bytes_max, ..Self::default() }
    }

    /// Checks it against what an engine can do.
    ///
    /// # Errors
    /// `InvalidConfig` or `TtlOutOfRange`, naming the field.
    pub fn check(&self, capabilities: &Capabilities) -> Result<(), EngineError> {
        let invalid = |field, reason: String| Err(EngineError::InvalidConfig { field, reason });
        if self.history.get() > capabilities.history_max {
            return invalid("history", format!("{} is more than {}", self.history, capabilities.history_max));
        }
        if let Some(ttl) = self.ttl {
            check_ttl(ttl, capabilities)?;
        }
        if self.value_bytes_max == 0 {
            return invalid("value_bytes_max", "a bucket must take at least one byte".into());
        }
        if self.value_bytes_max > capabilities.value_bytes_max {
            let (asked, limit) = (self.value_bytes_max, capabilities.value_bytes_max);
            return invalid("value_bytes_max", format!("{asked} is more than this engine's {limit}"));
        }
        if self.durability == Durability::Synced && !capabilities.synced_commits {
            return Err(EngineError::Unsupported {
                what: "commits that are synced before they are acknowledged",
            });
        }
        for (field, kept) in [("marker_ttl", self.marker_ttl), ("feed_time", self.feed_time)] {
            if kept.is_some_and(|kept| kept.is_zero() || kept > TTL_MAX) {
                let days = TTL_MAX.as_secs() / 86_400;
                return invalid(field, format!("it must be longer than nothing and at most {days} days"));
            }
        }
        let metadata_bytes: usize = self.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        if metadata_bytes > METADATA_BYTES_MAX {
            return invalid("metadata", format!("{metadata_bytes} bytes are more than {METADATA_BYTES_MAX}"));
        }
        Ok(())
    }

    /// When an entry written at `time` with its own expiry `expires` is gone: the earlier of that and
    /// the bucket's TTL.
    pub fn expiry(&self, time: Timestamp, expires: Option<Timestamp>) -> Option<Timestamp> {
        let by_bucket = self.ttl.map(|ttl| time.saturating_add(ttl));
        match (expires, by_bucket) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether `entry`, a record of this bucket, is a live value at `now`.
    pub fn is_live(&self, entry: &Entry, now: Timestamp) -> bool {
        entry.op.is_put() && self.expiry(entry.time, entry.expires).is_none_or(|expires| now < expires)
    }

    /// The names of the fields in which `other` differs.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        [
            ("history", self.history != other.history),
            ("ttl", self.ttl != other.ttl),
            ("value_bytes_max", self.value_bytes_max != other.value_bytes_max),
            ("durability", self.durability != other.durability),
            ("compression", self.compression != other.compression),
            ("marker_ttl", self.marker_ttl != other.marker_ttl),
            ("feed_time", self.feed_time != other.feed_time),
            ("feed_bytes", self.feed_bytes != other.feed_bytes),
            ("metadata", self.metadata != other.metadata),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }
}

pub(crate) fn check_ttl(ttl: Duration, capabilities: &Capabilities) -> Result<(), EngineError> {
    let min = TTL_MIN.max(capabilities.ttl_resolution);
    if ttl < min || ttl > TTL_MAX {
        return Err(EngineError::TtlOutOfRange { ttl, min, max: TTL_MAX });
    }
    Ok(())
}

/// A bucket as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: BucketName,
    /// Its configuration.
    pub config: BucketConfig,
    /// When it was created.
    pub created: Timestamp,
    /// Its newest record; before the first, the revision at which it was created.
    pub last_revision: Revision,
    /// The oldest revision a watch can start from.
    pub feed_floor: Revision,
    /// How many watches are open on it, as far as this handle knows.
    pub watches: usize,
}

mod duration_text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(ttl: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        ttl.map(|ttl| humantime::format_duration(ttl).to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| humantime::parse_duration(&text).map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests;
