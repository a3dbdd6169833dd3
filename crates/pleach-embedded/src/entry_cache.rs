use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_engine::EngineError;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::index::Head;
use crate::random;

/// Entries larger than this are not kept.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// How many stamps there are. Keys share them: a write makes the cache forget also the few others with its stamp.
const STAMPS: usize = 64 * 1024;

/// What an entry takes beside its key and value.
const ENTRY_OVERHEAD_BYTES: u64 = 256;

/// The entries that were read lately, with their values.
///
/// Nobody waits for anybody to keep it right. Each key has a stamp, a counter that goes up after every write to the
/// index and before the write becomes visible. A reader takes the stamp, reads the index, and leaves what it found
/// here under that stamp; whoever comes later believes it only if the stamp is still the same.
#[derive(Debug)]
pub(crate) struct EntryCache {
    seed: u64,
    stamps: Box<[AtomicU64]>,
    entries: Cache<Vec<u8>, Stamped, EntryWeight, KeyHash, Lifecycle>,
}

type Lifecycle = DefaultLifecycle<Vec<u8>, Stamped>;

/// What was read while a stamp was current. The head has its whole payload, however large.
#[derive(Clone, Debug)]
struct Stamped {
    stamp: u64,
    head: Head,
}

/// The stamp of a key before it was looked for in the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp(u64);

impl EntryCache {
    /// A cache of so many bytes.
    pub(crate) fn new(bytes: u64) -> Result<Self, EngineError> {
        let seed = random::word()?;
        let entries = usize::try_from(bytes / 512).unwrap_or(usize::MAX).max(16);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(bytes)
            .build()
            .map_err(|error| EngineError::Bug { what: error.to_string() })?;
        let stamps = (0..STAMPS).map(|_| AtomicU64::new(0)).collect();
        let (hash, lifecycle) = (KeyHash(seed), Lifecycle::default());
        Ok(Self { seed, stamps, entries: Cache::with_options(options, EntryWeight, hash, lifecycle) })
    }

    /// What is known of an index key, or the stamp under which to leave what will be found.
    pub(crate) fn get(&self, index_key: &[u8]) -> Result<Head, Stamp> {
        let stamp = self.stamp(index_key).load(Ordering::Acquire);
        match self.entries.get(index_key) {
            Some(found) if found.stamp == stamp => Ok(found.head),
            _ => Err(Stamp(stamp)),
        }
    }

    /// Leaves what was found after `stamp` was taken.
    pub(crate) fn leave(&self, index_key: &[u8], stamp: Stamp, head: Head) {
        if head.payload.value.len() <= ENTRY_BYTES_MAX {
            self.entries.insert(index_key.to_vec(), Stamped { stamp: stamp.0, head });
        }
    }

    /// Says that an index key was written: what was found before is no longer believed.
    pub(crate) fn written(&self, index_key: &[u8]) -> Stamp {
        Stamp(self.stamp(index_key).fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether the entry is among those read lately, so that what was written to it is likely to be read.
    pub(crate) fn is_wanted(&self, index_key: &[u8]) -> bool {
        self.entries.contains_key(index_key)
    }

    fn stamp(&self, index_key: &[u8]) -> &AtomicU64 {
        let hash = xxh3_64_with_seed(index_key, !self.seed);
        &self.stamps[usize::try_from(hash >> 32).unwrap_or_default() % STAMPS]
    }
}

/// Entries are weighed by the memory they take.
#[derive(Clone, Debug)]
struct EntryWeight;

impl Weighter<Vec<u8>, Stamped> for EntryWeight {
    fn weight(&self, key: &Vec<u8>, stamped: &Stamped) -> u64 {
        let head = &stamped.head;
        (key.len() + head.payload.encoded_len() + head.past.len() * 32) as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Hashes keys as the index does.
#[derive(Clone, Debug)]
struct KeyHash(u64);

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

#[derive(Debug)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = self.0.rotate_left(5) ^ number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
