use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use hashbrown::HashTable;
use pleach_engine::Direction;

use super::Hash;
use super::arena::{Arena, Place};

/// Readers of different keys seldom meet.
const SHARDS: usize = 16;

/// What a key takes beside its bytes, in the table and in the order.
const KEY_BYTES: usize = 128;

/// The part of the index in memory: a hash table for look-ups, and beside it the keys for scans, which are put in
/// order only when someone scans them. One thread writes, any number read.
#[derive(Debug)]
pub(super) struct Memtable {
    shards: [RwLock<Shard>; SHARDS],
    /// The keys by their first byte, which tells kinds of keys apart: not all kinds are scanned.
    order: RwLock<BTreeMap<u8, Keys>>,
    bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    slots: HashTable<Slot>,
    arena: Arena,
}

/// A key with what was written to it.
#[derive(Debug)]
struct Slot {
    hash: Hash,
    key: Place,
    newest: Written,
    /// Older versions, oldest first.
    older: Vec<Written>,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    revision: u64,
    /// None if the key was removed.
    value: Option<Place>,
}

/// Keys with the same first byte.
#[derive(Debug, Default)]
struct Keys {
    sorted: BTreeSet<Bytes>,
    /// Keys that are not in `sorted`, and the shard that has each.
    unsorted: Vec<(usize, Place)>,
    /// Whether someone has scanned them: then new ones are put in order at once.
    scanned: bool,
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
            order: RwLock::default(),
            bytes: AtomicU64::new(0),
        }
    }
}

impl Memtable {
    /// Writes a version, which is not older than any before.
    pub(super) fn write(&self, hash: Hash, key: &[u8], revision: u64, value: Option<&[u8]>) {
        let number = shard_of(hash);
        let mut guard = self.shards[number].write().unwrap_or_else(PoisonError::into_inner);
        let Shard { slots, arena } = &mut *guard;
        let (value, mut taken) = match value.map(|value| arena.add(value)) {
            Some((place, taken)) => (Some(place), taken),
            None => (None, 0),
        };
        let written = Written { revision, value };
        if let Some(slot) = slots.find_mut(hash.0, |slot| arena.get(slot.key) == key) {
            let before = std::mem::replace(&mut slot.newest, written);
            // The same revision may be written twice; the second time counts.
            if before.revision != revision {
                slot.older.push(before);
                taken += size_of::<Written>();
            }
            self.grow(taken);
            return;
        }
        let (place, key_taken) = arena.add(key);
        let slot = Slot { hash, key: place, newest: written, older: Vec::new() };
        slots.insert_unique(hash.0, slot, |slot| slot.hash.0);
        drop(guard);
        self.grow(taken + key_taken + KEY_BYTES);
        // After the version: whoever finds the key in the order finds the version too.
        let mut order = self.order.write().unwrap_or_else(PoisonError::into_inner);
        let keys = order.entry(kind_of(key)).or_default();
        if keys.scanned {
            keys.sorted.insert(Bytes::copy_from_slice(key));
        } else {
            keys.unsorted.push((number, place));
        }
    }

    fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// The newest version of a key that was written up to revision `at`.
    pub(super) fn get(&self, hash: Hash, key: &[u8], at: u64) -> Option<Version> {
        let shard = self.shard(shard_of(hash));
        let written = shard.find(hash, key)?.version(at)?;
        let value = written.value.map(|place| Bytes::copy_from_slice(shard.arena.get(place)));
        Some(Version { revision: written.revision, value })
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// The first up to `limit` keys in the range, in the direction, that had a version at revision `at`, with it.
    pub(super) fn chunk(
        &self,
        hash: impl Fn(&[u8]) -> Hash,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        at: u64,
        limit: usize,
    ) -> Chunk {
        let keys = self.keys_in(range, direction, limit);
        let (more, last) = (keys.len() == limit, keys.last().cloned());
        let versions = keys.into_iter().filter_map(|key| {
            let version = self.get(hash(&key), &key, at)?;
            Some((key, version))
        });
        Chunk { versions: versions.collect::<Vec<_>>().into_iter(), last, more }
    }

    fn keys_in(&self, range: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction, limit: usize) -> Vec<Bytes> {
        let kind = |bound: Bound<&[u8]>, open: u8| match bound {
            Bound::Included(key) | Bound::Excluded(key) => kind_of(key),
            Bound::Unbounded => open,
        };
        let kinds = kind(range.0, u8::MIN)..=kind(range.1, u8::MAX);
        let order = self.order.read().unwrap_or_else(PoisonError::into_inner);
        let sorted = order.range(kinds.clone()).all(|(_, keys)| keys.scanned);
        let order = if sorted {
            order
        } else {
            drop(order);
            let mut order = self.order.write().unwrap_or_else(PoisonError::into_inner);
            order.range_mut(kinds.clone()).for_each(|(_, keys)| self.sort(keys));
            drop(order);
            self.order.read().unwrap_or_else(PoisonError::into_inner)
        };
        let kinds = order.range(kinds).map(|(_, keys)| &keys.sorted);
        match direction {
            Direction::Forward => {
                kinds.flat_map(|keys| keys.range::<[u8], _>(range)).take(limit).cloned().collect()
            }
            Direction::Backward => {
                let keys = kinds.rev().flat_map(|keys| keys.range::<[u8], _>(range).rev());
                keys.take(limit).cloned().collect()
            }
        }
    }

    /// Puts keys in order, from now on for good.
    fn sort(&self, keys: &mut Keys) {
        keys.scanned = true;
        let copy = |(shard, place)| Bytes::copy_from_slice(self.shard(shard).arena.get(place));
        let mut unsorted: Vec<_> = std::mem::take(&mut keys.unsorted).into_iter().map(copy).collect();
        unsorted.sort_unstable();
        if keys.sorted.is_empty() {
            keys.sorted = unsorted.into_iter().collect();
        } else {
            keys.sorted.extend(unsorted);
        }
    }

    /// Calls `each` with every version: keys upwards, the versions of a key from the newest to the oldest.
    pub(super) fn each<E>(
        &self,
        hash: impl Fn(&[u8]) -> Hash,
        mut each: impl FnMut(Hash, &[u8], u64, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Nobody writes any more, so holding the locks keeps nobody waiting.
        let shards: [_; SHARDS] = std::array::from_fn(|number| self.shard(number));
        let order = self.order.read().unwrap_or_else(PoisonError::into_inner);
        for keys in order.values() {
            let mut unsorted: Vec<&[u8]> =
                keys.unsorted.iter().map(|(shard, place)| shards[*shard].arena.get(*place)).collect();
            unsorted.sort_unstable();
            // One of them is empty: what is scanned is all in order.
            for key in keys.sorted.iter().map(|key| &key[..]).chain(unsorted) {
                let hash = hash(key);
                let shard = &shards[shard_of(hash)];
                let Some(slot) = shard.find(hash, key) else { continue };
                for Written { revision, value } in
                    std::iter::once(&slot.newest).chain(slot.older.iter().rev())
                {
                    each(hash, key, *revision, value.map(|place| shard.arena.get(place)))?;
                }
            }
        }
        Ok(())
    }

    fn shard(&self, number: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[number].read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shard_of(hash: Hash) -> usize {
    // The table uses the other bits.
    usize::try_from(hash.0 >> 32).unwrap_or_default() % SHARDS
}

fn kind_of(key: &[u8]) -> u8 {
    key.first().copied().unwrap_or_default()
}

impl Shard {
    fn find(&self, hash: Hash, key: &[u8]) -> Option<&Slot> {
        self.slots.find(hash.0, |slot| self.arena.get(slot.key) == key)
    }
}

impl Slot {
    fn version(&self, at: u64) -> Option<Written> {
        if self.newest.revision <= at {
            return Some(self.newest);
        }
        self.older.iter().rev().find(|version| version.revision <= at).copied()
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
