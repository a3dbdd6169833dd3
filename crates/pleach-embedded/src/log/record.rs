use bytes::{BufMut, Bytes};
use pleach_engine::{Entry, Headers, Key, Op, Revision, Timestamp};

use crate::fields::Fields;

/// What a record does. The codes are on disk: they are only ever added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// Gives a key a value.
    Put = 1,
    /// Marks a key as deleted.
    Delete = 2,
    /// Marks a key as deleted and forgets its history.
    Purge = 3,
    /// Marks a key's value as expired.
    Expire = 4,
    /// Forgets the older records of a key; the value is one byte, how many to keep. With none, the key itself
    /// is forgotten.
    Compact = 5,
    /// Creates the bucket named by the key; the value is its configuration.
    CreateBucket = 6,
    /// Gives the bucket named by the key the configuration in the value.
    UpdateBucket = 7,
    /// Deletes the bucket named by the key.
    DeleteBucket = 8,
    /// Creates or moves the consumer named by the key; the value is where it is.
    SetConsumer = 9,
    /// Deletes the consumer named by the key.
    DeleteConsumer = 10,
}

impl RecordKind {
    /// Whether it says that older records are forgotten, and so must stay as long as one of those is left.
    pub(crate) fn is_shadow(self) -> bool {
        matches!(self, Self::Purge | Self::Compact | Self::DeleteBucket | Self::DeleteConsumer)
    }

    /// Whether it is a change that watches see.
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Put | Self::Delete | Self::Purge | Self::Expire)
    }

    /// What it does to its key, if it is about a key.
    pub(crate) fn op(self) -> Option<Op> {
        match self {
            Self::Put => Some(Op::Put),
            Self::Delete => Some(Op::Delete),
            Self::Purge => Some(Op::Purge),
            Self::Expire => Some(Op::Expire),
            Self::Compact
            | Self::CreateBucket
            | Self::UpdateBucket
            | Self::DeleteBucket
            | Self::SetConsumer
            | Self::DeleteConsumer => None,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [
            Self::Put,
            Self::Delete,
            Self::Purge,
            Self::Expire,
            Self::Compact,
            Self::CreateBucket,
            Self::UpdateBucket,
            Self::DeleteBucket,
            Self::SetConsumer,
            Self::DeleteConsumer,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == code)
    }
}

/// The part of a record that a reader of the entry needs besides its place in time: headers and value, as
/// they are stored. The index keeps small ones in this very form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) headers: Headers,
    /// The value as stored: compressed, if `raw_len` is set.
    pub(crate) value: Bytes,
    /// How long the value is when it is no longer compressed.
    pub(crate) raw_len: Option<u32>,
}

/// Bits that say what a payload holds, shared by log records and the index.
pub(crate) const FLAG_EXPIRES: u8 = 1;
pub(crate) const FLAG_HEADERS: u8 = 2;
pub(crate) const FLAG_LZ4: u8 = 4;

/// Says that a record is kept for the feed alone.
const FLAG_FADED: u8 = 8;

/// Values shorter than this are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 64;

impl Payload {
    /// A payload that stores `value` as it is.
    pub(crate) fn plain(headers: Headers, value: Bytes) -> Self {
        Self { headers, value, raw_len: None }
    }

    /// A payload that stores `value` with LZ4, if that makes it smaller.
    pub(crate) fn compressed(headers: Headers, value: Bytes) -> Self {
        if value.len() >= COMPRESS_BYTES_MIN
            && let Ok(raw_len) = u32::try_from(value.len())
        {
            let smaller = lz4_flex::block::compress(&value);
            if smaller.len() < value.len() {
                return Self { headers, value: smaller.into(), raw_len: Some(raw_len) };
            }
        }
        Self::plain(headers, value)
    }

    /// The headers alone.
    pub(crate) fn without_value(&self) -> Self {
        Self::plain(self.headers.clone(), Bytes::new())
    }

    /// The value itself, or none if the stored bytes do not decompress to what they say.
    pub(crate) fn into_value(self) -> Option<(Headers, Bytes)> {
        let Some(raw_len) = self.raw_len else { return Some((self.headers, self.value)) };
        Some((self.headers, decompress(&self.value, raw_len)?))
    }

    pub(crate) fn flags(&self) -> u8 {
        let headers = if self.headers.is_empty() { 0 } else { FLAG_HEADERS };
        let lz4 = if self.raw_len.is_some() { FLAG_LZ4 } else { 0 };
        headers | lz4
    }

    /// How many bytes [`Payload::encode`] writes.
    pub(crate) fn encoded_len(&self) -> usize {
        let headers = if self.headers.is_empty() { 0 } else { 2 + self.headers_len() };
        headers + if self.raw_len.is_some() { 4 } else { 0 } + self.value.len()
    }

    fn headers_len(&self) -> usize {
        self.headers.iter().map(|(name, value)| 4 + name.len() + value.len()).sum()
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        if !self.headers.is_empty() {
            to.put_u16_le(small(self.headers_len()));
            for (name, value) in self.headers.iter() {
                to.put_u16_le(small(name.len()));
                to.put_u16_le(small(value.len()));
                to.put_slice(name.as_bytes());
                to.put_slice(value.as_bytes());
            }
        }
        if let Some(raw_len) = self.raw_len {
            to.put_u32_le(raw_len);
        }
        to.put_slice(&self.value);
    }

    /// The same with a value of its own, which keeps nothing else in memory.
    pub(crate) fn detached(&self) -> Self {
        Self {
            headers: self.headers.clone(),
            value: Bytes::copy_from_slice(&self.value),
            raw_len: self.raw_len,
        }
    }

    /// Reads what [`Payload::encode`] wrote, which is all that is left of `fields`; `value` makes the value.
    pub(crate) fn decode<'a>(
        fields: Fields<'a>,
        flags: u8,
        value: impl FnOnce(&'a [u8]) -> Bytes,
    ) -> Option<Self> {
        let (headers, raw_len, bytes) = Self::parse(fields, flags)?;
        Some(Self { headers, value: value(bytes), raw_len })
    }

    /// The headers, how long the value is if it is compressed, and the value as stored.
    fn parse(mut fields: Fields<'_>, flags: u8) -> Option<(Headers, Option<u32>, &[u8])> {
        let mut headers = Headers::new();
        if flags & FLAG_HEADERS != 0 {
            let len = usize::from(fields.u16()?);
            let mut block = Fields(fields.take(len)?);
            while !block.0.is_empty() {
                let (name_len, value_len) = (block.u16()?, block.u16()?);
                let name = block.take(name_len.into())?;
                let value = block.take(value_len.into())?;
                headers.set(std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?).ok()?;
            }
        }
        let raw_len = if flags & FLAG_LZ4 != 0 { Some(fields.u32()?) } else { None };
        // A damaged length must not make a reader allocate what no value can need.
        if raw_len.is_some_and(|len| len > super::VALUE_BYTES_MAX) {
            return None;
        }
        Some((headers, raw_len, fields.0))
    }
}

/// The value of so many bytes that `stored` is, or none if it is not.
fn decompress(stored: &[u8], raw_len: u32) -> Option<Bytes> {
    let raw = lz4_flex::block::decompress(stored, raw_len as usize).ok()?;
    (raw.len() == raw_len as usize).then(|| raw.into())
}

/// A record of the log, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// A key of a bucket, or for the kinds about buckets the name of one.
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) time: Timestamp,
    /// The entry's own expiry, without regard to its bucket's TTL.
    pub(crate) expires: Option<Timestamp>,
    pub(crate) payload: Payload,
    /// How many records of its batch come before it.
    pub(crate) index: u16,
    /// Whether it is kept for the feed alone: its key has forgotten it.
    pub(crate) faded: bool,
}

/// Bytes before the key: checksum, length, time, index, kind, flags, length of the key.
const FIXED_BYTES: usize = 4 + 4 + 8 + 2 + 1 + 1 + 2;

impl Record {
    /// Whether it forgets a key with all its records.
    pub(crate) fn forgets_its_key(&self) -> bool {
        self.kind == RecordKind::Compact && self.payload.value.first() == Some(&0)
    }

    /// How many bytes [`Record::encode`] writes.
    pub(crate) fn encoded_len(&self) -> usize {
        let expires = if self.expires.is_some() { 8 } else { 0 };
        FIXED_BYTES + expires + self.key.as_bytes().len() + self.payload.encoded_len()
    }

    /// Appends its bytes; `binding` ties them to their place, see [`super::Binding`].
    pub(crate) fn encode(&self, to: &mut Vec<u8>, binding: u32) {
        let start = to.len();
        let expires = if self.expires.is_some() { FLAG_EXPIRES } else { 0 };
        to.put_u32_le(0);
        to.put_u32_le(u32::try_from(self.encoded_len()).unwrap_or(u32::MAX));
        to.put_u64_le(self.time.as_micros());
        to.put_u16_le(self.index);
        to.put_u8(self.kind as u8);
        let faded = if self.faded { FLAG_FADED } else { 0 };
        to.put_u8(expires | faded | self.payload.flags());
        to.put_u16_le(small(self.key.as_bytes().len()));
        if let Some(expires) = self.expires {
            to.put_u64_le(expires.as_micros());
        }
        to.put_slice(self.key.as_bytes());
        self.payload.encode(to);
        let checksum = crc32fast::hash(&to[start + 4..]) ^ binding;
        to[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The length that the record at the start of `bytes` says it has, unchecked.
    pub(crate) fn peek_len(bytes: &[u8]) -> Option<usize> {
        let len = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
        (len >= FIXED_BYTES).then_some(len)
    }

    /// The place in its batch that the record at the start of `bytes` says it has, unchecked.
    pub(crate) fn peek_index(bytes: &[u8]) -> Option<u16> {
        Some(u16::from_le_bytes(bytes.get(16..18)?.try_into().ok()?))
    }

    /// The key that the record at the start of `bytes` says it has, unchecked.
    pub(crate) fn peek_key(bytes: &[u8]) -> Option<Key> {
        let flags = *bytes.get(19)?;
        let len = u16::from_le_bytes(bytes.get(20..22)?.try_into().ok()?);
        let start = FIXED_BYTES + if flags & FLAG_EXPIRES == 0 { 0 } else { 8 };
        let key = bytes.get(start..start + usize::from(len))?;
        Key::parse_reserved(std::str::from_utf8(key).ok()?).ok()
    }

    /// Reads a record that fills `bytes`. None means that the bytes are damaged.
    pub(crate) fn decode(bytes: &Bytes, revision: Revision, binding: u32) -> Option<Self> {
        Self::decode_in(bytes, bytes, revision, binding)
    }

    /// Reads a record that fills `bytes`, a part of `owner`, with which the value shares memory.
    pub(crate) fn decode_in(owner: &Bytes, bytes: &[u8], revision: Revision, binding: u32) -> Option<Self> {
        RecordFields::check(bytes, binding)?;
        RecordFields::parse(bytes)?.record(owner, revision)
    }

    /// Reads the payload alone of a record that fills `bytes` and must be of `key`. None means damage.
    pub(crate) fn decode_payload(bytes: &Bytes, key: &Key, binding: u32) -> Option<Payload> {
        RecordFields::check(bytes, binding)?;
        let fields = RecordFields::parse(bytes)?;
        if fields.key != key.as_bytes() {
            return None;
        }
        Payload::decode(fields.payload, fields.flags, |value| bytes.slice_ref(value))
    }
}

/// The parts of a record, still in its bytes.
pub(crate) struct RecordFields<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) key: &'a [u8],
    time: Timestamp,
    index: u16,
    flags: u8,
    expires: Option<Timestamp>,
    payload: Fields<'a>,
}

impl<'a> RecordFields<'a> {
    /// Whether a record that fills `bytes` has the right length and checksum.
    pub(crate) fn check(bytes: &[u8], binding: u32) -> Option<()> {
        if Record::peek_len(bytes)? != bytes.len() {
            return None;
        }
        let mut fields = Fields(bytes);
        let checksum = fields.u32()?;
        (checksum == crc32fast::hash(fields.0) ^ binding).then_some(())
    }

    /// Takes apart the bytes of a record that were checked.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        fields.take(4 + 4)?;
        let time = Timestamp::from_micros(fields.u64()?);
        let index = fields.u16()?;
        let kind = RecordKind::from_code(fields.u8()?)?;
        let flags = fields.u8()?;
        let key_len = fields.u16()?;
        let expires = if flags & FLAG_EXPIRES == 0 { None } else { Some(fields.u64()?) };
        let key = fields.take(key_len.into())?;
        let expires = expires.map(Timestamp::from_micros);
        Some(Self { kind, key, time, index, flags, expires, payload: fields })
    }

    /// The entry that it is about, with the expiry that it has itself, and its place in its batch. The value shares
    /// memory with `owner`, of which its bytes are a part.
    pub(crate) fn entry(self, owner: &Bytes, revision: Revision) -> Option<(Entry, u16)> {
        let Self { kind, key, time, index, flags, expires, payload } = self;
        let op = kind.op()?;
        let key = Key::parse_reserved(std::str::from_utf8(key).ok()?).ok()?;
        let (headers, raw_len, stored) = Payload::parse(payload, flags)?;
        let value = match raw_len {
            None => owner.slice_ref(stored),
            Some(raw_len) => decompress(stored, raw_len)?,
        };
        let expires = expires.filter(|_| op.is_put());
        Some((Entry { key, value, revision, time, expires, op, headers }, index))
    }

    /// The record; its value shares memory with `owner`, of which its bytes are a part.
    pub(crate) fn record(self, owner: &Bytes, revision: Revision) -> Option<Record> {
        let key = Key::parse_reserved(std::str::from_utf8(self.key).ok()?).ok()?;
        let payload = Payload::decode(self.payload, self.flags, |value| owner.slice_ref(value))?;
        let Self { kind, time, index, flags, expires, .. } = self;
        let faded = flags & FLAG_FADED != 0;
        Some(Record { kind, key, revision, time, expires, payload, index, faded })
    }
}

/// Lengths that the vocabulary keeps below 64 KiB.
fn small(len: usize) -> u16 {
    debug_assert!(u16::try_from(len).is_ok());
    u16::try_from(len).unwrap_or(u16::MAX)
}

pub(crate) fn take(bytes: &mut Bytes, len: usize) -> Option<Bytes> {
    (len <= bytes.len()).then(|| bytes.split_to(len))
}

pub(crate) fn take_u32(bytes: &mut Bytes) -> Option<u32> {
    Some(u32::from_le_bytes(take(bytes, 4)?.as_ref().try_into().ok()?))
}

pub(crate) fn take_u64(bytes: &mut Bytes) -> Option<u64> {
    Some(u64::from_le_bytes(take(bytes, 8)?.as_ref().try_into().ok()?))
}
