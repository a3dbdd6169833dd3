use bytes::Bytes;
use pleach_engine::Revision;

use super::report::{LOST_KEYS_LISTED_MAX, LostKey};
use crate::log::{Binding, BucketId, FrameHeader, Record};

/// The keys in `bytes`, which begin at `offset` with the header of a frame that is damaged. `first` is the
/// revision that the frame should begin with.
pub(super) fn keys_of(bytes: &Bytes, binding: Binding, offset: u64, first: Revision) -> Vec<LostKey> {
    let mut keys = Vec::new();
    let mut at = FrameHeader::BYTES;
    while keys.len() < LOST_KEYS_LISTED_MAX && at < bytes.len() {
        let rest = bytes.slice(at..);
        let Some(len) = Record::peek_len(&rest) else { break };
        let Some(key) = Record::peek_key(&rest) else { break };
        let sound = len <= rest.len() && is_sound(&rest.slice(..len), binding, offset + at as u64, first);
        keys.push(LostKey { key, sound });
        at = at.saturating_add(len);
    }
    keys
}

fn is_sound(record: &Bytes, binding: Binding, offset: u64, first: Revision) -> bool {
    let decode = || {
        let index = Record::peek_index(record)?;
        let revision = Revision::new(first.get().checked_add(index.into())?);
        Record::decode(record, revision, binding.of(offset, revision))
    };
    decode().is_some()
}

/// The bucket that a damaged frame header names; no checksum vouches for it.
pub(super) fn bucket_of(bytes: &[u8]) -> Option<BucketId> {
    let number = bytes.get(32..36)?.try_into().ok()?;
    Some(BucketId(u32::from_le_bytes(number)))
}
