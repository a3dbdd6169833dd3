use bytes::{BufMut, Bytes};
use pleach_engine::{BatchPart, Change, Op, Revision};

use super::footer::Footer;
use super::record::{Record, RecordFields};
use super::{Binding, BucketId};

/// What a frame holds. The codes are on disk: they are only ever added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// The records of one commit to one bucket.
    Commit = 1,
    /// One record that creates, changes or deletes a bucket.
    Bucket = 2,
    /// No records: says that everything before was synced, as when a store is closed.
    Mark = 3,
    /// No records: a revision that the index was changed under without any change to what it says, as when
    /// records have moved.
    Upkeep = 4,
    /// The end of a finished segment: what it holds.
    Footer = 5,
    /// One record that creates, moves or deletes a consumer.
    Consumer = 6,
}

impl FrameKind {
    fn from_code(code: u8) -> Option<Self> {
        [Self::Commit, Self::Bucket, Self::Mark, Self::Upkeep, Self::Footer, Self::Consumer]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

/// The first bytes of a frame, under a checksum of their own so that the length can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Bytes of records after the header, without padding.
    pub(crate) body_len: u32,
    /// How many records the frame holds.
    pub(crate) records: u16,
    /// The revision of the batch's first record; for a mark or a footer, the last revision before it.
    pub(crate) first: Revision,
    /// The newest revision known to be synced when this frame was written. Whatever comes before it in
    /// the log and is not readable is damage, not the torn end of an unfinished write.
    pub(crate) durable: Revision,
    pub(crate) bucket: BucketId,
    /// How many records the batch had when it was committed.
    pub(crate) size: u16,
}

impl FrameHeader {
    /// How many bytes a header takes.
    pub(crate) const BYTES: usize = 40;
    const MAGIC: u32 = u32::from_le_bytes(*b"PLfr");

    /// The revision of the batch's last record.
    pub(crate) fn last(&self) -> Revision {
        self.first.plus(u64::from(self.size.saturating_sub(1)))
    }

    /// How many bytes the frame takes, padding included.
    pub(crate) fn frame_len(&self) -> u64 {
        padded(Self::BYTES + self.body_len as usize) as u64
    }

    pub(super) fn encode(&self, to: &mut [u8], binding: u32) {
        let mut header = Vec::with_capacity(Self::BYTES);
        header.put_u32_le(Self::MAGIC);
        header.put_u32_le(0);
        header.put_u32_le(self.body_len);
        header.put_u8(self.kind as u8);
        header.put_u8(0);
        header.put_u16_le(self.records);
        header.put_u64_le(self.first.get());
        header.put_u64_le(self.durable.get());
        header.put_u32_le(self.bucket.0);
        header.put_u16_le(self.size);
        header.put_u16_le(0);
        let checksum = crc32fast::hash(&header[8..]) ^ binding;
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        to.copy_from_slice(&header);
    }

    /// Reads the header at the start of `bytes`, which may be anything.
    pub(crate) fn decode(bytes: &[u8], binding: u32) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        if u32_at(0)? != Self::MAGIC || u32_at(4)? != crc32fast::hash(&bytes[8..]) ^ binding {
            return None;
        }
        let (first, size) = (u64_at(16)?, u16_at(36)?);
        // There must be room for its revisions, and for those after it.
        first.checked_add(u64::from(size) + 1)?;
        Some(Self {
            kind: FrameKind::from_code(bytes[12])?,
            body_len: u32_at(8)?,
            records: u16_at(14)?,
            first: Revision::new(first),
            durable: Revision::new(u64_at(24)?),
            bucket: BucketId(u32_at(32)?),
            size,
        })
    }
}

/// A frame with its records, and where in the segment each record begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) records: Vec<(u64, Record)>,
}

impl Frame {
    /// Appends a frame to `to`, whose next byte goes to `offset` of the segment. The header's lengths are
    /// filled in. Returns the header, and where each record begins and how long it is.
    pub(crate) fn encode(
        mut header: FrameHeader,
        records: &[Record],
        to: &mut Vec<u8>,
        binding: Binding,
        offset: u64,
    ) -> (FrameHeader, Vec<(u64, usize)>) {
        let start = to.len();
        to.resize(start + FrameHeader::BYTES, 0);
        let mut places = Vec::with_capacity(records.len());
        for record in records {
            let place = offset + (to.len() - start) as u64;
            let before = to.len();
            record.encode(to, binding.of(place, record.revision));
            places.push((place, to.len() - before));
        }
        let body_len = to.len() - start - FrameHeader::BYTES;
        header.body_len = u32::try_from(body_len).unwrap_or(u32::MAX);
        header.records = u16::try_from(records.len()).unwrap_or(u16::MAX);
        header.encode(&mut to[start..start + FrameHeader::BYTES], binding.of(offset, Revision::ZERO));
        to.resize(start + padded(to.len() - start), 0);
        (header, places)
    }
}

/// What can be made of the body of a frame whose header has been read.
pub(crate) trait FromBody: Sized {
    /// None means that the bytes are damaged.
    fn from_body(header: FrameHeader, body: &Bytes, binding: Binding, offset: u64) -> Option<Self>;
}

impl FromBody for Frame {
    fn from_body(header: FrameHeader, body: &Bytes, binding: Binding, offset: u64) -> Option<Self> {
        if header.kind == FrameKind::Footer {
            let place = offset + FrameHeader::BYTES as u64;
            Footer::decode(body, binding.of(place, header.first))?;
            return Some(Self { header, records: Vec::new() });
        }
        let mut records = Vec::with_capacity(header.records.into());
        for part in Parts::of(&header, body, offset) {
            let (place, bytes, revision) = part?;
            records.push((place, Record::decode_in(body, bytes, revision, binding.of(place, revision))?));
        }
        (records.len() == usize::from(header.records)).then_some(Self { header, records })
    }
}

/// A frame of records whose checksums are right, and whose records are made one at a time: for whoever wants few of
/// them, or on another thread than that which read them.
#[derive(Debug)]
pub(crate) struct SoundFrame {
    pub(crate) header: FrameHeader,
    body: Bytes,
    /// How many bytes of the body have been passed.
    passed: usize,
}

impl FromBody for SoundFrame {
    fn from_body(header: FrameHeader, body: &Bytes, binding: Binding, offset: u64) -> Option<Self> {
        let mut count = 0_usize;
        for part in Parts::of(&header, body, offset) {
            let (place, bytes, revision) = part?;
            RecordFields::check(bytes, binding.of(place, revision))?;
            count += 1;
        }
        (count == usize::from(header.records)).then(|| Self { header, body: body.clone(), passed: 0 })
    }
}

impl SoundFrame {
    /// Whether any of its records is `wanted`. One that says what none can counts as well, so that it is not passed over.
    pub(crate) fn has(&self, wanted: impl Fn(&RecordFields<'_>, Revision) -> bool) -> bool {
        Parts::of(&self.header, &self.body, 0).any(|part| {
            let fields = part.and_then(|(_, bytes, revision)| Some((RecordFields::parse(bytes)?, revision)));
            fields.is_none_or(|(fields, revision)| wanted(&fields, revision))
        })
    }

    /// The change that the next record makes that is `wanted`, without the expiry that its bucket gives it; none if
    /// there are no more. An error is a record that says what none can.
    pub(crate) fn next_if(
        &mut self,
        wanted: impl Fn(&RecordFields<'_>, Revision) -> bool,
    ) -> Result<Option<Change>, Revision> {
        let rest = &self.body[self.passed..];
        for part in Parts::of(&self.header, rest, 0) {
            let (_, bytes, revision) = part.ok_or(self.header.first)?;
            self.passed += bytes.len();
            let fields = RecordFields::parse(bytes).ok_or(revision)?;
            if wanted(&fields, revision) {
                let (entry, index) = fields.entry(&self.body, revision).ok_or(revision)?;
                let batch = batch_part(entry.op, index, self.header.size);
                return Ok(Some(Change { entry, batch }));
            }
        }
        Ok(None)
    }
}

/// The place of a change in a batch of `size`.
pub(crate) fn batch_part(op: Op, index: u16, size: u16) -> BatchPart {
    match op {
        // Expiries are logged together for speed; nobody committed them together.
        Op::Expire => BatchPart::SINGLE,
        _ => BatchPart { index, size },
    }
}

/// The bytes of the records of a frame, with the place and the revision of each. None is what no record can be.
struct Parts<'a> {
    first: Revision,
    place: u64,
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(header: &FrameHeader, body: &'a [u8], offset: u64) -> Self {
        Self { first: header.first, place: offset + FrameHeader::BYTES as u64, rest: body }
    }

    fn split(&mut self) -> Option<(u64, &'a [u8], Revision)> {
        let (bytes, after) = self.rest.split_at_checked(Record::peek_len(self.rest)?)?;
        let revision = Revision::new(self.first.get().checked_add(Record::peek_index(bytes)?.into())?);
        let place = self.place;
        self.place += bytes.len() as u64;
        self.rest = after;
        Some((place, bytes, revision))
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Option<(u64, &'a [u8], Revision)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let part = self.split();
        if part.is_none() {
            self.rest = &[];
        }
        Some(part)
    }
}

/// Frames begin at multiples of eight, so that a search for them need not look everywhere.
pub(crate) const FRAME_ALIGNMENT: usize = 8;

fn padded(len: usize) -> usize {
    len.next_multiple_of(FRAME_ALIGNMENT)
}
