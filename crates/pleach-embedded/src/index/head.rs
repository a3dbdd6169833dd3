use bytes::{BufMut, Bytes};
use pleach_engine::{Op, Revision, Timestamp};

use crate::log::{FLAG_EXPIRES, Fields, Payload, Position, SegmentId};

/// Values whose payload is up to this are kept in the index itself; larger ones are read from the log.
pub(crate) const INLINE_BYTES_MAX: usize = 512;

/// An older record of a key that is kept as history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) revision: Revision,
    pub(crate) position: Position,
}

/// What the index holds about a key: its newest record, and where the older ones are.
///
/// The list of older records stands in the same value instead of in a tree of its own: a history is short,
/// so writing it again costs less than the tombstones that trimming a tree would leave behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) op: Op,
    pub(crate) revision: Revision,
    pub(crate) time: Timestamp,
    /// The entry's own expiry, without regard to its bucket's TTL.
    pub(crate) expires: Option<Timestamp>,
    pub(crate) position: Position,
    /// The headers, and the value if it is small.
    pub(crate) payload: Payload,
    /// Whether the value is in the payload; else it is to be read from the log.
    pub(crate) inline: bool,
    /// Older records, newest first.
    pub(crate) past: Vec<Past>,
}

// Bits of the first byte above those of a payload.
const FLAG_INLINE: u8 = 8;
const FLAG_PAST: u8 = 16;
const OP_SHIFT: u32 = 6;

impl Head {
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(48 + self.past.len() * 16 + self.payload.encoded_len());
        self.encode_to(&mut bytes);
        bytes.into()
    }

    /// Appends what [`Head::encode`] makes.
    pub(crate) fn encode_to(&self, bytes: &mut Vec<u8>) {
        let op = match self.op {
            Op::Put => 0_u8,
            Op::Delete => 1,
            Op::Purge => 2,
            Op::Expire => 3,
        };
        let mut flags = op << OP_SHIFT;
        flags |= if self.expires.is_some() { FLAG_EXPIRES } else { 0 };
        flags |= if self.inline { FLAG_INLINE } else { 0 };
        flags |= self.payload.flags();
        flags |= if self.past.is_empty() { 0 } else { FLAG_PAST };
        bytes.put_u8(flags);
        put_varint(bytes, self.revision.get());
        bytes.put_u64_le(self.time.as_micros());
        if let Some(expires) = self.expires {
            bytes.put_u64_le(expires.as_micros());
        }
        put_position(bytes, self.revision, self.position);
        if !self.past.is_empty() {
            put_varint(bytes, self.past.len() as u64);
            for past in &self.past {
                put_varint(bytes, past.revision.get());
                put_position(bytes, past.revision, past.position);
            }
        }
        self.payload.encode(bytes);
    }

    /// Reads what [`Head::encode`] wrote; an inline value shares memory with `bytes`. None means damage.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Self> {
        Self::parse(bytes, |value| bytes.slice_ref(value))
    }

    /// Reads what [`Head::encode`] wrote; an inline value is copied.
    pub(crate) fn decode_copy(bytes: &[u8]) -> Option<Self> {
        Self::parse(bytes, Bytes::copy_from_slice)
    }

    fn parse<'a>(bytes: &'a [u8], value: impl FnOnce(&'a [u8]) -> Bytes) -> Option<Self> {
        let mut fields = Fields(bytes);
        let flags = fields.u8()?;
        let op = match flags >> OP_SHIFT {
            0 => Op::Put,
            1 => Op::Delete,
            2 => Op::Purge,
            _ => Op::Expire,
        };
        let revision = Revision::new(fields.varint()?);
        let time = Timestamp::from_micros(fields.u64()?);
        let expires = if flags & FLAG_EXPIRES == 0 { None } else { Some(fields.u64()?) };
        let position = take_position(&mut fields, revision)?;
        let mut past = Vec::new();
        if flags & FLAG_PAST != 0 {
            let count = fields.varint()?;
            if count > pleach_engine::HISTORY_MAX.into() {
                return None;
            }
            for _ in 0..count {
                let revision = Revision::new(fields.varint()?);
                past.push(Past { revision, position: take_position(&mut fields, revision)? });
            }
        }
        let expires = expires.map(Timestamp::from_micros);
        let (payload, inline) = (Payload::decode(fields, flags, value)?, flags & FLAG_INLINE != 0);
        Some(Self { op, revision, time, expires, position, payload, inline, past })
    }

    /// The record itself as one that has been followed by another.
    pub(crate) fn as_past(&self) -> Past {
        Past { revision: self.revision, position: self.position }
    }
}

/// A record is near the beginning of its segment, so the distance is a smaller number than the revision.
fn put_position(to: &mut Vec<u8>, revision: Revision, position: Position) {
    put_varint(to, revision.get() - position.segment.first.get().min(revision.get()));
    put_varint(to, position.segment.generation.into());
    put_varint(to, position.offset);
    put_varint(to, position.len.into());
}

fn take_position(fields: &mut Fields<'_>, revision: Revision) -> Option<Position> {
    let first = Revision::new(revision.get().checked_sub(fields.varint()?)?);
    let generation = u32::try_from(fields.varint()?).ok()?;
    let offset = fields.varint()?;
    let len = u32::try_from(fields.varint()?).ok()?;
    Some(Position { segment: SegmentId { first, generation }, offset, len })
}

/// Seven bits a byte, the lowest first, the eighth bit set on all but the last.
fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return to.put_u8(low);
        }
        to.put_u8(low | 0x80);
    }
}
