//! How peers lay out entries and changes when they make the same promises as Pleach.
//!
//! An entry is `revision (8) time (8) value`, a change `operation (1) time (8) key length (2) key value` under its
//! revision, big endian, so that the feed is in order. Revisions come from a counter that writers share without a
//! lock: two that commit at once may become visible in the other order, which is more than fair to the peer.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::time_of_day;

const PUT: u8 = 1;
const ENTRY_HEAD: usize = 16;
const CHANGE_HEAD: usize = 11;

/// The next revision of a store.
#[derive(Debug, Default)]
pub(super) struct Revisions(AtomicU64);

impl Revisions {
    /// Revisions after `last`.
    pub(super) fn after(last: u64) -> Self {
        Self(AtomicU64::new(last))
    }

    pub(super) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The oldest of the newest `keep`.
    pub(super) fn floor(&self, keep: u64) -> u64 {
        (self.0.load(Ordering::Relaxed) + 1).saturating_sub(keep)
    }
}

/// An entry and a change, as bytes that are used again and again.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    pub(super) revision: [u8; 8],
    pub(super) entry: Vec<u8>,
    pub(super) change: Vec<u8>,
}

impl Encoded {
    pub(super) fn fill(&mut self, revision: u64, key: &[u8], value: &[u8]) {
        let time = time_of_day().to_be_bytes();
        self.revision = revision.to_be_bytes();
        self.entry.clear();
        self.entry.extend_from_slice(&self.revision);
        self.entry.extend_from_slice(&time);
        self.entry.extend_from_slice(value);
        self.change.clear();
        self.change.push(PUT);
        self.change.extend_from_slice(&time);
        self.change.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.change.extend_from_slice(key);
        self.change.extend_from_slice(value);
    }
}

/// The revision and the value of an entry.
pub(super) fn entry(bytes: &[u8]) -> Option<(u64, &[u8])> {
    Some((number(bytes.get(..8)?)?, bytes.get(ENTRY_HEAD..)?))
}

/// The key and the value of a change.
pub(super) fn change(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u16::from_be_bytes(bytes.get(9..CHANGE_HEAD)?.try_into().ok()?);
    bytes.get(CHANGE_HEAD..)?.split_at_checked(usize::from(length))
}

/// A revision as a key of the feed has it.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
