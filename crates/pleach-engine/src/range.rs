use std::ops::Bound;

use crate::{Key, KeyFilter};

/// An interval of keys in byte order. Its ends are any bytes, not only keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// Where it begins.
    pub start: Bound<Vec<u8>>,
    /// Where it ends.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// The keys whose bytes start with `prefix`, which may end inside a token.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        let mut end = prefix.to_vec();
        // The first string after all that start with the prefix: its last byte that can grow, grown.
        while let Some(byte) = end.pop() {
            if byte < u8::MAX {
                end.push(byte + 1);
                return Self { start: Bound::Included(prefix.to_vec()), end: Bound::Excluded(end) };
            }
        }
        Self { start: Bound::Included(prefix.to_vec()), end: Bound::Unbounded }
    }

    /// The keys from `start` on, up to but not including `end`.
    pub fn between(start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Self {
        Self { start: Bound::Included(start.as_ref().to_vec()), end: Bound::Excluded(end.as_ref().to_vec()) }
    }

    /// One key.
    pub fn only(key: impl AsRef<[u8]>) -> Self {
        let key = key.as_ref().to_vec();
        Self { start: Bound::Included(key.clone()), end: Bound::Included(key) }
    }

    /// Whether `key` lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Included(start) => key >= start.as_slice(),
            Bound::Excluded(start) => key > start.as_slice(),
            Bound::Unbounded => true,
        };
        let before_end = match &self.end {
            Bound::Included(end) => key <= end.as_slice(),
            Bound::Excluded(end) => key < end.as_slice(),
            Bound::Unbounded => true,
        };
        after_start && before_end
    }

    /// Whether no key can lie in it, as when its end comes before its start.
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }

    /// The keys that lie in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self { start: later_start(&self.start, &other.start), end: earlier_end(&self.end, &other.end) }
    }
}

fn later_start(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    // At the same bytes, the excluding bound begins later.
    let rank = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => None,
        Bound::Included(bytes) => Some((bytes.clone(), false)),
        Bound::Excluded(bytes) => Some((bytes.clone(), true)),
    };
    if rank(a) >= rank(b) { a.clone() } else { b.clone() }
}

fn earlier_end(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => other.clone(),
        // At the same bytes, the excluding bound ends earlier.
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            if (x, matches!(a, Bound::Included(_))) <= (y, matches!(b, Bound::Included(_))) {
                a.clone()
            } else {
                b.clone()
            }
        }
    }
}

/// Which keys a scan or a count is about: those in `range` that pass `filter`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The keys lie in it.
    pub range: KeyRange,
    /// The keys pass it, if there is one.
    pub filter: Option<KeyFilter>,
}

impl Selection {
    /// Every key.
    pub fn all() -> Self {
        Self::range(KeyRange::all())
    }

    /// The keys whose bytes start with `prefix`.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        Self::range(KeyRange::prefix(prefix))
    }

    /// The keys in `range`.
    pub fn range(range: KeyRange) -> Self {
        Self { range, filter: None }
    }

    /// The keys that pass `filter`.
    pub fn filter(filter: KeyFilter) -> Self {
        Self { range: KeyRange::all(), filter: Some(filter) }
    }

    /// Whether `key` is one of them.
    pub fn contains(&self, key: &Key) -> bool {
        self.range.contains(key.as_bytes()) && self.filter.as_ref().is_none_or(|filter| filter.matches(key))
    }

    /// The smallest range that holds them all, for an engine that reads keys in order.
    pub fn covering_range(&self) -> KeyRange {
        match &self.filter {
            Some(filter) => self.range.intersect(&filter.range()),
            None => self.range.clone(),
        }
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::all()
    }
}

impl From<KeyFilter> for Selection {
    fn from(filter: KeyFilter) -> Self {
        Self::filter(filter)
    }
}

impl From<KeyRange> for Selection {
    fn from(range: KeyRange) -> Self {
        Self::range(range)
    }
}

#[cfg(test)]
mod tests;
