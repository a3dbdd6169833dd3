use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{InvalidHeader, Key, Revision, Timestamp};

/// The most bytes that the names and values of an entry's headers take together.
pub const HEADERS_BYTES_MAX: usize = 4 * 1024;

/// The longest name of a header, in bytes.
const HEADER_NAME_BYTES_MAX: usize = 128;

/// What a record did to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Gave it a value.
    Put,
    /// Deleted its value; the records before are kept as history.
    Delete,
    /// Deleted its value and all records before.
    Purge,
    /// Its value's time had come.
    Expire,
}

impl Op {
    /// Its name, the same in every output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Purge => "purge",
            Self::Expire => "expire",
        }
    }

    /// Whether it carries a value; the others are markers.
    pub const fn is_put(self) -> bool {
        matches!(self, Self::Put)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Put, Self::Delete, Self::Purge, Self::Expire]
            .into_iter()
            .find(|op| op.as_str() == text)
            .ok_or_else(|| format!("unknown operation {text:?}"))
    }
}

/// Small facts that travel with an entry, such as its origin or a trace id. Sorted, one value a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers(Vec<(Box<str>, Box<str>)>);

impl Headers {
    /// No headers.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets `name` to `value`.
    ///
    /// # Errors
    /// A name is 1 to 128 of `[a-zA-Z0-9_-]`, a value has no control characters, and all together take
    /// at most [`HEADERS_BYTES_MAX`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidHeader> {
        let name_ok = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        if name.is_empty() || name.len() > HEADER_NAME_BYTES_MAX || !name.bytes().all(name_ok) {
            return Err(InvalidHeader::Name { name: crate::key::excerpt(name) });
        }
        if value.chars().any(char::is_control) {
            return Err(InvalidHeader::Value { name: name.to_owned() });
        }
        let position = self.0.binary_search_by(|(existing, _)| (**existing).cmp(name));
        let replaced = position.map_or(0, |at| name.len() + self.0[at].1.len());
        let bytes = self.bytes() - replaced + name.len() + value.len();
        if bytes > HEADERS_BYTES_MAX {
            return Err(InvalidHeader::TooLarge { bytes, limit: HEADERS_BYTES_MAX });
        }
        match position {
            Ok(at) => self.0[at].1 = value.into(),
            Err(at) => self.0.insert(at, (name.into(), value.into())),
        }
        Ok(())
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        let position = self.0.binary_search_by(|(existing, _)| (**existing).cmp(name)).ok()?;
        Some(&self.0[position].1)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What names and values take together.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

/// A record of a key: a value, or a marker that says how the value went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key it is a record of.
    pub key: Key,
    /// The value; empty for a marker.
    pub value: Bytes,
    /// Its own revision, unlike that of any other record of the bucket.
    pub revision: Revision,
    /// When it was committed.
    pub time: Timestamp,
    /// When its value is gone: the earlier of its own expiry and its bucket's TTL.
    pub expires: Option<Timestamp>,
    /// What it did.
    pub op: Op,
    /// What travels with it.
    pub headers: Headers,
}

/// An entry as a watch delivers it, with its place in the batch that committed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record.
    pub entry: Entry,
    /// Its place in its batch.
    pub batch: BatchPart,
}

/// The place of a record in the batch that committed it. Revisions in a batch are contiguous, so the
/// batch began at `revision - index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchPart {
    /// How many records of the batch come before.
    pub index: u16,
    /// How many records the batch has; a watch with a filter may see fewer.
    pub size: u16,
}

impl BatchPart {
    /// A record committed alone.
    pub const SINGLE: Self = Self { index: 0, size: 1 };

    /// Whether no record of the batch comes after.
    pub const fn is_last(self) -> bool {
        self.index + 1 == self.size
    }
}

#[cfg(test)]
mod tests;
