use std::cell::Cell;

use bytes::{BufMut, Bytes, BytesMut};
use pleach_engine::{BucketName, Key, Revision, Timestamp};

use crate::log::{BucketId, StoreId, take, take_u64};

const META: u8 = 0;
const BUCKET: u8 = 1;
const HEAD: u8 = 2;
const EXPIRY: u8 = 3;
const CONSUMER: u8 = 4;
const DELETED: u8 = 5;

/// The keys of the index: one tree holds everything, so that it is flushed at one revision.
pub(crate) struct IndexKey;

impl IndexKey {
    /// Where [`Meta`] is.
    pub(crate) fn meta() -> Bytes {
        Bytes::from_static(&[META])
    }

    /// Where the state of a bucket is.
    pub(crate) fn bucket(name: &BucketName) -> Bytes {
        [&[BUCKET], name.as_str().as_bytes()].concat().into()
    }

    /// What the keys of all buckets' states start with.
    pub(crate) fn buckets() -> Bytes {
        Bytes::from_static(&[BUCKET])
    }

    /// Where the head of a key is: the newest record and where the older ones are.
    pub(crate) fn head(bucket: BucketId, key: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEAD_PREFIX_BYTES + key.len());
        bytes.put_u8(HEAD);
        bytes.put_u32(bucket.0);
        bytes.put_slice(key);
        bytes.freeze()
    }

    /// Where it is noted that a key's value expires.
    pub(crate) fn expiry(at: Timestamp, bucket: BucketId, key: &Key) -> Bytes {
        let mut bytes = BytesMut::with_capacity(13 + key.as_bytes().len());
        bytes.put_u8(EXPIRY);
        bytes.put_u64(at.as_micros());
        bytes.put_u32(bucket.0);
        bytes.put_slice(key.as_bytes());
        bytes.freeze()
    }

    /// The first of the keys made by [`IndexKey::expiry`] for moments from `at` on.
    pub(crate) fn expiries_from(at: Timestamp) -> Bytes {
        let mut bytes = BytesMut::with_capacity(9);
        bytes.put_u8(EXPIRY);
        bytes.put_u64(at.as_micros());
        bytes.freeze()
    }

    /// Where the state of a consumer is.
    pub(crate) fn consumer(bucket: BucketId, name: &str) -> Bytes {
        [&[CONSUMER][..], &bucket.0.to_be_bytes(), name.as_bytes()].concat().into()
    }

    /// What the keys of all consumers start with.
    pub(crate) fn consumers() -> Bytes {
        Bytes::from_static(&[CONSUMER])
    }

    /// Where it is noted that a bucket was deleted and has left something behind in the index.
    pub(crate) fn deleted(bucket: BucketId) -> Bytes {
        [&[DELETED][..], &bucket.0.to_be_bytes()].concat().into()
    }

    /// What the keys of all such notes start with.
    pub(crate) fn all_deleted() -> Bytes {
        Bytes::from_static(&[DELETED])
    }

    /// The first key after all that start with `prefix`, which does not end in the highest byte.
    pub(crate) fn after(prefix: &[u8]) -> Bytes {
        let mut bytes = prefix.to_vec();
        while let Some(byte) = bytes.pop() {
            if byte < u8::MAX {
                bytes.push(byte + 1);
                break;
            }
        }
        bytes.into()
    }
}

const HEAD_PREFIX_BYTES: usize = 5;

/// Calls `with` with the key that [`IndexKey::head`] makes, without making it anew every time.
pub(crate) fn with_head_key<T>(bucket: BucketId, key: &[u8], with: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    // Taken, so that whoever is called may do the same.
    let mut buffer = BUFFER.take();
    buffer.clear();
    buffer.put_u8(HEAD);
    buffer.put_u32(bucket.0);
    buffer.put_slice(key);
    let result = with(&buffer);
    BUFFER.set(buffer);
    result
}

/// Whether an index key is one of those that [`IndexKey::head`] makes.
pub(crate) fn is_head(index_key: &[u8]) -> bool {
    index_key.first() == Some(&HEAD)
}

/// The bucket's key inside a key made by [`IndexKey::head`], as text.
pub(crate) fn text_of_head(index_key: &[u8]) -> Option<&str> {
    std::str::from_utf8(index_key.get(HEAD_PREFIX_BYTES..)?).ok()
}

/// The bucket's key inside a key made by [`IndexKey::head`].
pub(crate) fn key_of_head(index_key: &[u8]) -> Option<Key> {
    Key::parse_reserved(text_of_head(index_key)?).ok()
}

/// The bucket, and the rest, of a key made by [`IndexKey::consumer`], [`IndexKey::deleted`] or
/// [`IndexKey::head`].
pub(crate) fn bucket_of(index_key: &[u8]) -> Option<(BucketId, &[u8])> {
    let number = u32::from_be_bytes(index_key.get(1..5)?.try_into().ok()?);
    Some((BucketId(number), &index_key[5..]))
}

/// Takes a key made by [`IndexKey::expiry`] apart.
pub(crate) fn decode_expiry_key(index_key: &[u8]) -> Option<(Timestamp, BucketId, Key)> {
    let at = u64::from_be_bytes(index_key.get(1..9)?.try_into().ok()?);
    let bucket = u32::from_be_bytes(index_key.get(9..13)?.try_into().ok()?);
    let key = Key::parse_reserved(std::str::from_utf8(index_key.get(13..)?).ok()?).ok()?;
    Some((Timestamp::from_micros(at), BucketId(bucket), key))
}

/// What the index knows about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The store it belongs to.
    pub(crate) store: StoreId,
    /// It contains the log up to here, and nothing after.
    pub(crate) applied: Revision,
    /// The time when it was sealed there, which no later record may go before.
    pub(crate) time: Timestamp,
    /// The next bucket gets this number.
    pub(crate) next_bucket: BucketId,
    /// When it was begun empty, no footer of the log had a later `index_at`: what those say does not concern it.
    pub(crate) built_over: Revision,
}

impl Meta {
    const FORMAT: u8 = 2;

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(49);
        bytes.put_u8(Self::FORMAT);
        bytes.put_slice(&self.store.0);
        bytes.put_u64_le(self.applied.get());
        bytes.put_u64_le(self.time.as_micros());
        bytes.put_u64_le(self.next_bucket.0.into());
        bytes.put_u64_le(self.built_over.get());
        bytes.freeze()
    }

    /// Reads what [`Meta::encode`] wrote; none for anything else.
    pub(crate) fn decode(mut bytes: Bytes) -> Option<Self> {
        if take(&mut bytes, 1)?[0] != Self::FORMAT {
            return None;
        }
        let store = StoreId(take(&mut bytes, 16)?.as_ref().try_into().ok()?);
        let applied = Revision::new(take_u64(&mut bytes)?);
        let time = Timestamp::from_micros(take_u64(&mut bytes)?);
        let next_bucket = BucketId(u32::try_from(take_u64(&mut bytes)?).ok()?);
        let built_over = Revision::new(take_u64(&mut bytes)?);
        bytes.is_empty().then_some(Self { store, applied, time, next_bucket, built_over })
    }
}
