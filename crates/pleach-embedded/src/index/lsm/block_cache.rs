use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;

/// A table, and the number of a block in it.
pub(super) type BlockKey = (u64, u32);

/// The blocks that were read lately.
pub(super) type BlockCache = Cache<BlockKey, Block, BlockWeight>;

/// What a block takes beside its bytes.
const BLOCK_OVERHEAD_BYTES: u64 = 128;

/// Blocks are weighed by the memory they take.
#[derive(Clone, Debug)]
pub(super) struct BlockWeight;

impl Weighter<BlockKey, Block> for BlockWeight {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        block.len() as u64 + BLOCK_OVERHEAD_BYTES
    }
}

/// A cache of so many bytes.
pub(super) fn block_cache(bytes: u64) -> BlockCache {
    let blocks = usize::try_from(bytes / 4096).unwrap_or(usize::MAX).max(16);
    Cache::with_weighter(blocks, bytes, BlockWeight)
}
