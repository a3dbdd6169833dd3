use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use hashbrown::HashTable;
use pleach_engine::Direction;

use super::Hash;
use super::arena::{Arena, Place};

/// Readers of different keys seldom meet.
const SHARDS: usize = 16;

/// What a key takes beside its bytes, in the table and in the order.
const KEY_BYTES: usize = 88;

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
    slots: Vec<Slot>,
    /// The numbers of the slots by the hashes of their keys.
    table: HashTable<u32>,
    arena: Arena,
}

/// A key with what was written to it.
#[derive(Debug)]
struct Slot {
    hash: Hash,
    key: Place,
    newest: Written,
    /// Older versions, oldest first; most keys have none.
    #[allow(clippy::box_collection, reason = "most are empty, and then this is small")]
    older: Option<Box<Vec<Written>>>,
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
    sorted: BTreeMap<Arc<[u8]>, SlotId>,
    /// Those that are not in `sorted`.
    unsorted: Vec<SlotId>,
    /// Whether someone has scanned them: then new ones are put in order at once.
    scanned: bool,
}

/// Where a slot is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotId {
    shard: u32,
    number: u32,
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
        let shard_number = shard_of(hash);
        let mut guard = self.shards[shard_number].write().unwrap_or_else(PoisonError::into_inner);
        let Shard { slots, table, arena } = &mut *guard;
        let mut taken = value.map_or(0, <[u8]>::len);
        let written = Written { revision, value: value.map(|value| arena.add(value)) };
        let found = table.find(hash.0, |number| arena.get(slots[*number as usize].key) == key).copied();
        if let Some(slot) = found.and_then(|number| slots.get_mut(number as usize)) {
            let before = std::mem::replace(&mut slot.newest, written);
            // The same revision may be written twice; the second time counts.
            if before.revision != revision {
                slot.older.get_or_insert_default().push(before);
                taken += size_of::<Written>();
            }
            return self.grow(taken);
        }
        let place = arena.add(key);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let slot = SlotId { shard: small(shard_number), number: small(slots.len()) };
        slots.push(Slot { hash, key: place, newest: written, older: None });
        table.insert_unique(hash.0, slot.number, |number| slots[*number as usize].hash.0);
        drop(guard);
        self.grow(taken + key.len() + KEY_BYTES);
        // After the version: whoever finds the key in the order finds the version too.
        let mut order = self.order.write().unwrap_or_else(PoisonError::into_inner);
        let keys = order.entry(kind_of(key)).or_default();
        if keys.scanned {
            keys.sorted.insert(key.into(), slot);
        } else {
            keys.unsorted.push(slot);
        }
    }

    fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// The newest version of a key that was written up to revision `at`.
    pub(super) fn get(&self, hash: Hash, key: &[u8], at: u64) -> Option<Version> {
        let shard = self.shard(shard_of(hash));
        let slots = &shard.slots;
        let number =
            shard.table.find(hash.0, |number| shard.arena.get(slots[*number as usize].key) == key)?;
        shard.version(*number, at)
    }

    /// The newest version of the key of a slot that was written up to revision `at`.
    pub(super) fn version(&self, slot: SlotId, at: u64) -> Option<Version> {
        self.shard(slot.shard as usize).version(slot.number, at)
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// The first up to `limit` keys in the range, in the direction.
    pub(super) fn chunk(
        &self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        limit: usize,
    ) -> Vec<(Arc<[u8]>, SlotId)> {
        let kind = |bound: Bound<&[u8]>, open: u8| match bound {
            Bound::Included(key) | Bound::Excluded(key) => kind_of(key),
            Bound::Unbounded => open,
        };
        let kinds = kind(range.0, u8::MIN)..=kind(range.1, u8::MAX);
        let mut order = self.order.read().unwrap_or_else(PoisonError::into_inner);
        if !order.range(kinds.clone()).all(|(_, keys)| keys.scanned) {
            drop(order);
            let mut unsorted = self.order.write().unwrap_or_else(PoisonError::into_inner);
            unsorted.range_mut(kinds.clone()).for_each(|(_, keys)| self.sort(keys));
            drop(unsorted);
            order = self.order.read().unwrap_or_else(PoisonError::into_inner);
        }
        let keys = order.range(kinds).map(|(_, keys)| &keys.sorted);
        let copy = |(key, slot): (&Arc<[u8]>, &SlotId)| (Arc::clone(key), *slot);
        match direction {
            Direction::Forward => {
                keys.flat_map(|keys| keys.range::<[u8], _>(range)).take(limit).map(copy).collect()
            }
            Direction::Backward => {
                let keys = keys.rev().flat_map(|keys| keys.range::<[u8], _>(range).rev());
                keys.take(limit).map(copy).collect()
            }
        }
    }

    /// Puts keys in order, from now on for good.
    fn sort(&self, keys: &mut Keys) {
        keys.scanned = true;
        let named = |slot: SlotId| {
            let shard = self.shard(slot.shard as usize);
            let key = shard.slots.get(slot.number as usize).map(|slot| shard.arena.get(slot.key));
            (Arc::from(key.unwrap_or_default()), slot)
        };
        let mut unsorted: Vec<(Arc<[u8]>, _)> =
            std::mem::take(&mut keys.unsorted).into_iter().map(named).collect();
        unsorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        keys.sorted.extend(unsorted);
    }

    /// Calls `each` with every version: keys upwards, the versions of a key from the newest to the oldest.
    pub(super) fn each<E>(
        &self,
        mut each: impl FnMut(Hash, &[u8], u64, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Copied, so that no scan that is the first to put them in order waits for the disk.
        let order: Vec<(bool, Vec<SlotId>)> = {
            let order = self.order.read().unwrap_or_else(PoisonError::into_inner);
            let copy =
                |keys: &Keys| (keys.scanned, keys.sorted.values().chain(&keys.unsorted).copied().collect());
            order.values().map(copy).collect()
        };
        // Nobody writes any more, so holding these locks keeps nobody waiting.
        let shards: [_; SHARDS] = std::array::from_fn(|number| self.shard(number));
        for (is_sorted, slots) in order {
            let found = slots.into_iter().filter_map(|slot| {
                let shard = &shards[slot.shard as usize];
                let found = shard.slots.get(slot.number as usize)?;
                Some((shard.arena.get(found.key), found, shard))
            });
            let mut slots: Vec<_> = found.collect();
            if !is_sorted {
                slots.sort_unstable_by_key(|(key, _, _)| *key);
            }
            for (key, slot, shard) in slots {
                for Written { revision, value } in slot.versions() {
                    each(slot.hash, key, *revision, value.map(|place| shard.arena.get(place)))?;
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
    fn version(&self, slot: u32, at: u64) -> Option<Version> {
        let written = self.slots.get(slot as usize)?.version(at)?;
        let value = written.value.map(|place| Bytes::copy_from_slice(self.arena.get(place)));
        Some(Version { revision: written.revision, value })
    }
}

impl Slot {
    /// Its versions, from the newest to the oldest.
    fn versions(&self) -> impl Iterator<Item = &Written> {
        let older = self.older.iter().flat_map(|older| older.iter().rev());
        std::iter::once(&self.newest).chain(older)
    }

    fn version(&self, at: u64) -> Option<Written> {
        self.versions().find(|version| version.revision <= at).copied()
    }
}
