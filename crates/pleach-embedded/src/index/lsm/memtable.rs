use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use hashbrown::HashTable;
use pleach_engine::Direction;

use super::Hash;

/// Readers of different keys seldom meet, and never wait for the order of the keys.
const SHARDS: usize = 16;

/// What a key and a version take beside their bytes: places in the table and in the order, counters, allocation.
const KEY_BYTES: u64 = 160;
const VERSION_BYTES: u64 = 48;

/// The part of the index in memory: a hash table for look-ups, and beside it the order of the keys for scans.
/// One thread writes, any number read.
#[derive(Debug)]
pub(super) struct Memtable {
    shards: [RwLock<HashTable<Slot>>; SHARDS],
    keys: RwLock<BTreeSet<Bytes>>,
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    hash: Hash,
    key: Bytes,
    newest: Version,
    /// Older versions, oldest first.
    older: Vec<Version>,
}

/// What was written to a key; no value if it was removed.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) revision: u64,
    pub(super) value: Option<Bytes>,
}

impl Default for Memtable {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            keys: RwLock::default(),
            bytes: AtomicU64::new(0),
        }
    }
}

impl Memtable {
    /// Writes a version, which is not older than any before.
    pub(super) fn write(&self, hash: Hash, key: Bytes, version: Version) {
        let mut bytes = VERSION_BYTES + version.value.as_ref().map_or(0, Bytes::len) as u64;
        let mut shard = self.shard(hash).write().unwrap_or_else(PoisonError::into_inner);
        match shard.find_mut(hash.0, |slot| slot.key == key) {
            Some(slot) => {
                let before = std::mem::replace(&mut slot.newest, version);
                // The same revision may be written twice; the second time counts.
                if before.revision != slot.newest.revision {
                    slot.older.push(before);
                }
            }
            None => {
                bytes += KEY_BYTES + key.len() as u64;
                let slot = Slot { hash, key: key.clone(), newest: version, older: Vec::new() };
                shard.insert_unique(hash.0, slot, |slot| slot.hash.0);
                drop(shard);
                // After the version: whoever finds the key in the order finds the version too.
                self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(key);
            }
        }
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The newest version of a key that was written up to revision `at`.
    pub(super) fn get(&self, hash: Hash, key: &[u8], at: u64) -> Option<Version> {
        let shard = self.shard(hash).read().unwrap_or_else(PoisonError::into_inner);
        shard.find(hash.0, |slot| slot.key == key)?.version(at).cloned()
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// The first up to `limit` keys in the range, in the direction, that had a version at revision `at`, with it.
    /// `from` is the last key that was looked at.
    pub(super) fn chunk(
        &self,
        hash: impl Fn(&[u8]) -> Hash,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        at: u64,
        limit: usize,
    ) -> Chunk {
        let keys: Vec<Bytes> = {
            let keys = self.keys();
            let range = keys.range::<[u8], _>(range);
            match direction {
                Direction::Forward => range.take(limit).cloned().collect(),
                Direction::Backward => range.rev().take(limit).cloned().collect(),
            }
        };
        let more = keys.len() == limit;
        let last = keys.last().cloned();
        let versions = keys.into_iter().filter_map(|key| {
            let version = self.get(hash(&key), &key, at)?;
            Some((key, version))
        });
        Chunk { versions: versions.collect::<Vec<_>>().into_iter(), last, more }
    }

    /// Calls `each` with every version: keys upwards, the versions of a key from the newest to the oldest.
    pub(super) fn each<E>(
        &self,
        hash: impl Fn(&[u8]) -> Hash,
        mut each: impl FnMut(Hash, &[u8], &Version) -> Result<(), E>,
    ) -> Result<(), E> {
        // Nobody writes any more, so holding the locks keeps nobody waiting.
        for key in &*self.keys() {
            let hash = hash(key);
            let shard = self.shard(hash).read().unwrap_or_else(PoisonError::into_inner);
            let Some(slot) = shard.find(hash.0, |slot| slot.key == *key) else { continue };
            each(hash, key, &slot.newest)?;
            slot.older.iter().rev().try_for_each(|version| each(hash, key, version))?;
        }
        Ok(())
    }

    fn keys(&self) -> RwLockReadGuard<'_, BTreeSet<Bytes>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, hash: Hash) -> &RwLock<HashTable<Slot>> {
        // The table uses the other bits.
        &self.shards[usize::try_from(hash.0 >> 32).unwrap_or_default() % SHARDS]
    }
}

impl Slot {
    fn version(&self, at: u64) -> Option<&Version> {
        if self.newest.revision <= at {
            return Some(&self.newest);
        }
        self.older.iter().rev().find(|version| version.revision <= at)
    }
}

/// Some keys of a memtable in order, each with the version that was asked for.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) versions: std::vec::IntoIter<(Bytes, Version)>,
    /// The last key that was looked at.
    pub(super) last: Option<Bytes>,
    /// Whether there may be more after it.
    pub(super) more: bool,
}
