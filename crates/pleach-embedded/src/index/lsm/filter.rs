use super::damaged;
use pleach_engine::EngineError;

/// Bits for each key: about one absent key in a hundred passes.
const BITS_PER_KEY: usize = 10;

/// How many bits each key sets.
const PROBES: u32 = 6;

/// A key's bits are all in one of these many words, so that looking for it costs one miss of the cache.
const BLOCK_WORDS: usize = 8;
const BLOCK_BITS: u32 = 512;

/// Says for most keys that are not in a table that they are not. It never errs the other way.
#[derive(Debug)]
pub(super) struct Filter(Box<[u64]>);

impl Filter {
    /// A filter of keys with these hashes.
    pub(super) fn of(hashes: &[u64]) -> Self {
        let blocks = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BITS as usize).max(1);
        let mut words = vec![0_u64; blocks * BLOCK_WORDS];
        for hash in hashes {
            let block = block_of(*hash, blocks) * BLOCK_WORDS;
            for bit in bits(*hash) {
                words[block + bit / 64] |= 1 << (bit % 64);
            }
        }
        Self(words.into())
    }

    /// Whether a key with this hash may be in the table.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let block = block_of(hash, self.0.len() / BLOCK_WORDS) * BLOCK_WORDS;
        let Some(words) = self.0.get(block..block + BLOCK_WORDS) else { return true };
        bits(hash).all(|bit| words[bit / 64] & (1 << (bit % 64)) != 0)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads what [`Filter::encode`] wrote.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, EngineError> {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.is_empty() || words.len() % BLOCK_WORDS != 0 || !rest.is_empty() {
            return Err(damaged("a filter has the wrong length"));
        }
        Ok(Self(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }
}

/// The upper half of the hash chooses the block.
fn block_of(hash: u64, blocks: usize) -> usize {
    let (upper, blocks) = (hash >> 32, blocks as u64);
    usize::try_from((upper * blocks) >> 32).unwrap_or_default()
}

/// The lower half chooses the bits.
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    let lower = u32::try_from(hash & 0xffff_ffff).unwrap_or_default();
    let step = lower.rotate_right(17) | 1;
    (0..PROBES).map(move |probe| {
        let mixed = lower.wrapping_add(probe.wrapping_mul(step)).wrapping_mul(0x9e37_79b1);
        (mixed >> 23) as usize
    })
}
