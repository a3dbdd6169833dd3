use std::fmt;
use std::ops::Bound;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::{EngineError, Entry, Key, KeyFilter, KeyRange, Revision, Selection, Timestamp};

/// The most entries in one page.
pub const PAGE_ENTRIES_MAX: usize = 10_000;

/// A page ends before the values in it take more than this, unless it would be empty.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long after its page was read a token is good for, at least, unless too many are open.
pub const PAGE_LEASE: Duration = Duration::from_secs(60);

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the first key on.
    #[default]
    Forward,
    /// From the last key back.
    Backward,
}

/// Which live entries to read, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanQuery {
    /// Which keys.
    pub selection: Selection,
    /// In which order.
    pub direction: Direction,
    /// How many at most: 1 to [`PAGE_ENTRIES_MAX`]. A page of large values may hold fewer.
    pub limit: usize,
    /// Leaves the values out.
    pub keys_only: bool,
    /// Goes on where the page that returned this token ended, on the same snapshot.
    pub page: Option<PageToken>,
}

impl Default for ScanQuery {
    fn default() -> Self {
        let (selection, direction) = (Selection::all(), Direction::Forward);
        Self { selection, direction, limit: 100, keys_only: false, page: None }
    }
}

impl ScanQuery {
    /// Checks the limit.
    ///
    /// # Errors
    /// `PageLimit`.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.limit == 0 || self.limit > PAGE_ENTRIES_MAX {
            return Err(EngineError::PageLimit { limit: self.limit, max: PAGE_ENTRIES_MAX });
        }
        Ok(())
    }

    /// The keys still to be read by a page that goes on after `last`.
    pub fn range_after(&self, last: Option<&Key>) -> KeyRange {
        let mut range = self.selection.covering_range();
        if let Some(last) = last {
            let bound = Bound::Excluded(last.as_bytes().to_vec());
            let rest = match self.direction {
                Direction::Forward => KeyRange { start: bound, end: Bound::Unbounded },
                Direction::Backward => KeyRange { start: Bound::Unbounded, end: bound },
            };
            range = range.intersect(&rest);
        }
        range
    }

    /// Tells queries apart, so that a token is not used with another one. The limit may change.
    pub fn digest(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for bound in [&self.selection.range.start, &self.selection.range.end] {
            let (kind, key) = match bound {
                Bound::Unbounded => (0, &[][..]),
                Bound::Included(key) => (1, &key[..]),
                Bound::Excluded(key) => (2, &key[..]),
            };
            hasher.update(&[kind]);
            hasher.update(&(key.len() as u64).to_le_bytes());
            hasher.update(key);
        }
        let backward = self.direction == Direction::Backward;
        let filter = self.selection.filter.as_ref().map_or("", KeyFilter::as_str);
        hasher.update(&[u8::from(backward), u8::from(self.keys_only)]);
        hasher.update(filter.as_bytes());
        hasher.finalize()
    }
}

/// Some of the entries a query asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the order of the query.
    pub entries: Vec<Entry>,
    /// The snapshot they were read from.
    pub revision: Revision,
    /// What to ask with for the rest; none if this was all.
    pub next: Option<PageToken>,
}

/// Where a page ended, for its reader to hand back. Opaque: only the engine that made it can read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageToken(String);

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PageToken {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let token = Self(text.to_owned());
        PageCursor::decode(&token)?;
        Ok(token)
    }
}

/// What engines put into a page token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// Tells stores apart.
    pub store: u64,
    /// Tells buckets apart, also one from its namesake before it.
    pub bucket: u64,
    /// Names the snapshot.
    pub snapshot: u64,
    /// The time that decides what has expired in it.
    pub time: Timestamp,
    /// [`ScanQuery::digest`] of the query.
    pub query: u32,
    /// The last key of the page.
    pub last: Key,
}

impl PageCursor {
    const VERSION: u8 = 1;
    const FIXED_BYTES: usize = 1 + 4 * 8 + 4;
    const CHECKSUM_BYTES: usize = 4;
    /// No token is longer, so no longer one is looked at.
    const TOKEN_CHARS_MAX: usize = 2048;

    /// Checks that it continues `query` on this bucket of this store.
    ///
    /// # Errors
    /// `InvalidPageToken` if it is from another.
    pub fn check(&self, store: u64, bucket: u64, query: &ScanQuery) -> Result<(), EngineError> {
        let from_another = |reason| Err(EngineError::InvalidPageToken { reason });
        if self.store != store {
            return from_another("it is from another store");
        }
        if self.bucket != bucket {
            return from_another("it is from another bucket");
        }
        if self.query != query.digest() {
            return from_another("it is from another query");
        }
        Ok(())
    }

    /// Makes the token.
    pub fn encode(&self) -> PageToken {
        let mut bytes = vec![Self::VERSION];
        for number in [self.store, self.bucket, self.snapshot, self.time.as_micros()] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.query.to_le_bytes());
        bytes.extend(self.last.as_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_le_bytes());
        PageToken(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a token, which may be anything.
    ///
    /// # Errors
    /// `InvalidPageToken` for whatever [`PageCursor::encode`] did not make.
    pub fn decode(token: &PageToken) -> Result<Self, EngineError> {
        let invalid = |reason| EngineError::InvalidPageToken { reason };
        if token.0.len() > Self::TOKEN_CHARS_MAX {
            return Err(invalid("it is too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(&token.0).map_err(|_| invalid("it is not base64url"))?;
        let body_bytes = bytes.len().saturating_sub(Self::CHECKSUM_BYTES);
        let (body, checksum) = bytes.split_at(body_bytes);
        if body.len() <= Self::FIXED_BYTES || checksum != crc32fast::hash(body).to_le_bytes() {
            return Err(invalid("it was cut or changed"));
        }
        if body[0] != Self::VERSION {
            return Err(invalid("it is of another version"));
        }
        let number = |index: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&body[1 + index * 8..9 + index * 8]);
            u64::from_le_bytes(number)
        };
        let mut query = [0; 4];
        query.copy_from_slice(&body[Self::FIXED_BYTES - 4..Self::FIXED_BYTES]);
        let last = std::str::from_utf8(&body[Self::FIXED_BYTES..]).ok();
        Ok(Self {
            store: number(0),
            bucket: number(1),
            snapshot: number(2),
            time: Timestamp::from_micros(number(3)),
            query: u32::from_le_bytes(query),
            last: last.and_then(|last| Key::parse_reserved(last).ok()).ok_or(invalid("its key is no key"))?,
        })
    }
}

#[cfg(test)]
mod tests;
