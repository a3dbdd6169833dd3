use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use pleach_engine::{Direction, EngineError};

use super::source::Source;
use crate::index::Pair;

/// Reads several sources as one. The newest comes first: where two have the same revision of a key, it counts.
pub(super) struct Merged {
    sources: Vec<Source>,
    /// The sources that are not at their end, by their current version.
    order: Vec<usize>,
    direction: Direction,
}

impl Merged {
    pub(super) fn new(sources: Vec<Source>, direction: Direction) -> Self {
        let order = (0..sources.len()).filter(|number| sources[*number].key().is_some()).collect();
        let mut merged = Self { sources, order, direction };
        let Self { sources, order, .. } = &mut merged;
        order.sort_by(|a, b| compare(sources, direction, *a, *b));
        merged
    }

    /// The source with the current version; none at the end.
    pub(super) fn current(&self) -> Option<&Source> {
        self.order.first().map(|number| &self.sources[*number])
    }

    /// Goes to the next version.
    pub(super) fn advance(&mut self) -> Result<(), EngineError> {
        let Some(number) = self.order.first().copied() else { return Ok(()) };
        self.sources[number].advance()?;
        if self.sources[number].key().is_none() {
            self.order.remove(0);
            return Ok(());
        }
        // Most often it stays first, or comes second.
        let mut at = 0;
        while at + 1 < self.order.len()
            && compare(&self.sources, self.direction, self.order[at + 1], number) == Ordering::Less
        {
            self.order.swap(at, at + 1);
            at += 1;
        }
        Ok(())
    }
}

/// Which of two sources comes first.
fn compare(sources: &[Source], direction: Direction, a: usize, b: usize) -> Ordering {
    let (left, right) = (&sources[a], &sources[b]);
    match direction {
        Direction::Forward => left
            .key()
            .cmp(&right.key())
            .then_with(|| right.revision().cmp(&left.revision()))
            .then_with(|| a.cmp(&b)),
        Direction::Backward => right
            .key()
            .cmp(&left.key())
            .then_with(|| left.revision().cmp(&right.revision()))
            .then_with(|| b.cmp(&a)),
    }
}

/// Reads what is visible at a revision, in one direction, up to an end.
pub(super) struct VisibleCursor {
    merged: Merged,
    at: u64,
    direction: Direction,
    /// Where to stop, in the direction.
    end: Bound<Bytes>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Whether the current version was handed out.
    used: bool,
}

impl VisibleCursor {
    pub(super) fn new(merged: Merged, at: u64, direction: Direction, end: Bound<Bytes>) -> Self {
        Self { merged, at, direction, end, key: Vec::new(), value: Vec::new(), used: false }
    }

    /// The next key and its value; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Pair<'_>>, EngineError> {
        match self.direction {
            Direction::Forward => self.next_forward(),
            Direction::Backward => self.next_backward(),
        }
    }

    fn next_forward(&mut self) -> Result<Option<Pair<'_>>, EngineError> {
        if self.used {
            self.used = false;
            self.pass_key()?;
        }
        loop {
            let Some(source) = self.merged.current() else { return Ok(None) };
            let key = source.key().unwrap_or_default();
            if self.is_past_end(key) {
                return Ok(None);
            }
            if source.revision() > self.at {
                self.merged.advance()?;
                continue;
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            if source.value().is_some() {
                break;
            }
            self.pass_key()?;
        }
        self.used = true;
        let value = self.merged.current().and_then(Source::value);
        Ok(value.map(|value| (&self.key[..], value)))
    }

    /// Goes past all versions of the current key.
    fn pass_key(&mut self) -> Result<(), EngineError> {
        while self.merged.current().and_then(Source::key).is_some_and(|key| key == self.key) {
            self.merged.advance()?;
        }
        Ok(())
    }

    fn next_backward(&mut self) -> Result<Option<Pair<'_>>, EngineError> {
        loop {
            let Some(source) = self.merged.current() else { return Ok(None) };
            let key = source.key().unwrap_or_default();
            if self.is_past_end(key) {
                return Ok(None);
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            // Versions come from the oldest to the newest: the last one that is visible counts.
            let mut found = false;
            while let Some(source) = self.merged.current().filter(|source| source.key() == Some(&self.key)) {
                if source.revision() <= self.at {
                    found = source.value().is_some();
                    self.value.clear();
                    self.value.extend_from_slice(source.value().unwrap_or_default());
                }
                self.merged.advance()?;
            }
            if found {
                return Ok(Some((&self.key, &self.value)));
            }
        }
    }

    fn is_past_end(&self, key: &[u8]) -> bool {
        match (&self.end, self.direction) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(end), Direction::Forward) => key > end,
            (Bound::Excluded(end), Direction::Forward) => key >= end,
            (Bound::Included(end), Direction::Backward) => key < end,
            (Bound::Excluded(end), Direction::Backward) => key <= end,
        }
    }
}
