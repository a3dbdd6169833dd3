use std::ops::Range;

use bytes::{BufMut, Bytes};
use pleach_engine::EngineError;
use xxhash_rust::xxh3::xxh3_64;

use super::damaged;
use crate::fields::{Fields, put_varint};

/// Every block, index and filter of a table is followed by the checksum of its bytes.
pub(super) const CHECKSUM_BYTES: usize = 8;

/// Appends the checksum of `bytes` to them.
pub(super) fn seal(bytes: &mut Vec<u8>) {
    let checksum = xxh3_64(bytes);
    bytes.put_u64_le(checksum);
}

/// Removes the checksum, if it is the right one.
pub(super) fn unseal(mut bytes: Vec<u8>) -> Result<Vec<u8>, EngineError> {
    let sound = bytes
        .split_last_chunk::<CHECKSUM_BYTES>()
        .is_some_and(|(body, checksum)| xxh3_64(body) == u64::from_le_bytes(*checksum));
    if !sound {
        return Err(damaged("the checksum of a block does not match"));
    }
    bytes.truncate(bytes.len() - CHECKSUM_BYTES);
    Ok(bytes)
}

/// Collects versions, which come in order, until there are enough for a block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    keys: Vec<u8>,
    values: Vec<u8>,
    versions: Vec<Staged>,
}

#[derive(Debug)]
struct Staged {
    key_end: usize,
    revision: u64,
    /// None for a removal.
    value_end: Option<usize>,
}

impl BlockBuilder {
    pub(super) fn push(&mut self, key: &[u8], revision: u64, value: Option<&[u8]>) {
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value.unwrap_or_default());
        let value_end = value.map(|_| self.values.len());
        self.versions.push(Staged { key_end: self.keys.len(), revision, value_end });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// About how long the block will be.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.values.len() + self.versions.len() * 8
    }

    /// The last key; empty if there is none.
    pub(super) fn last_key(&self) -> &[u8] {
        let start = self.versions.len().checked_sub(2).map_or(0, |before| self.versions[before].key_end);
        &self.keys[start..]
    }

    /// Encodes the block, without its checksum, and begins the next one.
    ///
    /// `u16 length of the prefix, prefix, versions, u32 offset of each version, u32 number of versions`, and
    /// each version: `length of the rest of the key, revision, length of the value + 1 or 0 for a removal`, as
    /// variable-length numbers, `rest of the key, value`.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let first_end = self.versions.first().map_or(0, |first| first.key_end);
        let prefix = common_prefix(&self.keys[..first_end], self.last_key()).min(usize::from(u16::MAX));
        let mut bytes = Vec::with_capacity(self.len() + 64);
        bytes.put_u16_le(u16::try_from(prefix).unwrap_or(u16::MAX));
        bytes.extend_from_slice(&self.keys[..prefix]);
        let mut offsets = Vec::with_capacity(self.versions.len());
        let (mut key_start, mut value_start) = (0, 0);
        for version in &self.versions {
            offsets.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            let rest = &self.keys[key_start + prefix..version.key_end];
            put_varint(&mut bytes, rest.len() as u64);
            put_varint(&mut bytes, version.revision);
            let value = version.value_end.map(|end| &self.values[value_start..end]);
            put_varint(&mut bytes, value.map_or(0, |value| value.len() as u64 + 1));
            bytes.extend_from_slice(rest);
            bytes.extend_from_slice(value.unwrap_or_default());
            key_start = version.key_end;
            value_start = version.value_end.unwrap_or(value_start);
        }
        for offset in &offsets {
            bytes.put_u32_le(*offset);
        }
        bytes.put_u32_le(u32::try_from(offsets.len()).unwrap_or(u32::MAX));
        self.keys.clear();
        self.values.clear();
        self.versions.clear();
        bytes
    }
}

/// Some versions of keys in order: keys upwards, the versions of a key from the newest to the oldest.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    bytes: Bytes,
    prefix: usize,
    count: usize,
    offsets: usize,
}

/// A version in a block.
#[derive(Debug)]
pub(super) struct BlockEntry<'a> {
    /// The key without the prefix of its block.
    pub(super) rest: &'a [u8],
    pub(super) revision: u64,
    /// Where in the block the value is; none if the key was removed.
    pub(super) value: Option<Range<usize>>,
}

impl Block {
    /// Reads what [`BlockBuilder::finish`] wrote.
    pub(super) fn decode(bytes: Bytes) -> Result<Self, EngineError> {
        Self::parse(bytes).ok_or_else(|| damaged("a block makes no sense"))
    }

    fn parse(bytes: Bytes) -> Option<Self> {
        let (body, count) = bytes.split_last_chunk::<4>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let offsets = body.len().checked_sub(count.checked_mul(4)?)?;
        let prefix = usize::from(u16::from_le_bytes(*body.first_chunk::<2>()?));
        (count > 0 && 2 + prefix <= offsets).then_some(Self { bytes, prefix, count, offsets })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What all its keys begin with.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.bytes[2..2 + self.prefix]
    }

    /// How much memory it takes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn entry(&self, number: usize) -> Result<BlockEntry<'_>, EngineError> {
        self.parse_entry(number).ok_or_else(|| damaged("a block makes no sense"))
    }

    fn parse_entry(&self, number: usize) -> Option<BlockEntry<'_>> {
        let at = self.offsets + number * 4;
        let offset = u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk::<4>()?);
        let bytes = self.bytes.get(..self.offsets)?;
        let mut fields = Fields(bytes.get(usize::try_from(offset).ok()?..)?);
        let (rest_len, revision, value_len) = (fields.len()?, fields.varint()?, fields.len()?);
        let rest = fields.take(rest_len)?;
        let value = match value_len.checked_sub(1) {
            Some(len) => {
                let start = bytes.len() - fields.0.len();
                fields.take(len)?;
                Some(start..start + len)
            }
            None => None,
        };
        Some(BlockEntry { rest, revision, value })
    }

    /// The number of the first version whose key is not before `key`; the count if there is none.
    pub(super) fn lower_bound(&self, key: &[u8]) -> Result<usize, EngineError> {
        let Some(rest) = key.strip_prefix(self.prefix()) else {
            return Ok(if key < self.prefix() { 0 } else { self.count });
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.entry(middle)?.rest < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// How many bytes two keys have in common at their beginning.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
