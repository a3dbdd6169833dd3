use bytes::{BufMut, Bytes};
use pleach_engine::{Op, Revision, Timestamp};

use crate::fields::{Fields, put_varint};
use crate::log::{FLAG_EXPIRES, Payload, Position, SegmentId};

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
        Self::parse(HeadView::parse(bytes)?, |value| bytes.slice_ref(value))
    }

    fn parse<'a>(view: HeadView<'a>, value: impl FnOnce(&'a [u8]) -> Bytes) -> Option<Self> {
        let HeadView { flags, op, revision, time, expires, mut rest, .. } = view;
        let position = take_position(&mut rest, revision)?;
        let past = take_past(&mut rest, flags)?;
        let payload = Payload::decode(rest, flags, value)?;
        Some(Self { op, revision, time, expires, position, payload, inline: view.is_inline(), past })
    }

    /// The record itself as one that has been followed by another.
    pub(crate) fn as_past(&self) -> Past {
        Past { revision: self.revision, position: self.position }
    }
}

/// A head that is still in its bytes, for those who want little of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadView<'a> {
    flags: u8,
    pub(crate) op: Op,
    pub(crate) revision: Revision,
    pub(crate) time: Timestamp,
    /// The entry's own expiry, without regard to its bucket's TTL.
    pub(crate) expires: Option<Timestamp>,
    /// The position, and what follows it.
    rest: Fields<'a>,
}

impl<'a> HeadView<'a> {
    /// Looks at what [`Head::encode`] wrote. None means damage.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Fields(bytes);
        let flags = rest.u8()?;
        let op = match flags >> OP_SHIFT {
            0 => Op::Put,
            1 => Op::Delete,
            2 => Op::Purge,
            _ => Op::Expire,
        };
        let revision = Revision::new(rest.varint()?);
        let time = Timestamp::from_micros(rest.u64()?);
        let expires = if flags & FLAG_EXPIRES == 0 { None } else { Some(rest.u64()?) };
        let expires = expires.map(Timestamp::from_micros);
        Some(Self { flags, op, revision, time, expires, rest })
    }

    /// Whether the value is in it.
    pub(crate) fn is_inline(&self) -> bool {
        self.flags & FLAG_INLINE != 0
    }

    pub(crate) fn position(&self) -> Option<Position> {
        let mut fields = self.rest;
        take_position(&mut fields, self.revision)
    }

    /// The headers, and the value if it is inline and `with_value`.
    pub(crate) fn payload(&self, with_value: bool) -> Option<Payload> {
        let mut fields = self.rest;
        take_position(&mut fields, self.revision)?;
        take_past(&mut fields, self.flags)?;
        let copy = |value: &[u8]| if with_value { Bytes::copy_from_slice(value) } else { Bytes::new() };
        let payload = Payload::decode(fields, self.flags, copy)?;
        Some(if with_value { payload } else { payload.without_value() })
    }

    /// All of it.
    pub(crate) fn to_head(self) -> Option<Head> {
        Head::parse(self, Bytes::copy_from_slice)
    }
}

fn take_past(fields: &mut Fields<'_>, flags: u8) -> Option<Vec<Past>> {
    let mut past = Vec::new();
    if flags & FLAG_PAST != 0 {
        let count = fields.varint()?;
        if count > pleach_engine::HISTORY_MAX.into() {
            return None;
        }
        for _ in 0..count {
            let revision = Revision::new(fields.varint()?);
            past.push(Past { revision, position: take_position(fields, revision)? });
        }
    }
    Some(past)
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
