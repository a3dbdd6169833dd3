use std::collections::BTreeMap;

use bytes::{BufMut, Bytes};
use pleach_engine::{EngineError, Revision, Timestamp};

use super::frame::{Frame, FrameHeader, FrameKind};
use super::record::{Record, take, take_u32, take_u64};
use super::segment::Segment;
use super::{Binding, BucketId};

/// How many bytes of frames may lie between two places that a footer remembers.
const STRIDE_BYTES: u64 = 64 * 1024;

const TRAILER_MAGIC: u32 = u32::from_le_bytes(*b"PLft");

/// What a finished segment holds, so that whoever looks for one bucket or one revision need not read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The last revision that belongs to the segment, in it or cleaned out of it.
    pub(crate) last: Revision,
    /// Whatever had been forgotten at this revision is no longer in it; zero if it was never cleaned.
    pub(crate) cleaned_at: Revision,
    /// An index that ends before this revision cannot be brought up to the log any more: what it would have to
    /// be told may be cleaned away. Zero if nothing was.
    pub(crate) index_at: Revision,
    /// The newest time of its records, in it or cleaned out of it: the store's clock never goes back behind it.
    pub(crate) time: Timestamp,
    /// Higher than the number of any bucket that was created in it.
    pub(crate) next_bucket: BucketId,
    /// Bytes of records that are there only to say that older ones are forgotten.
    pub(crate) shadow_bytes: u64,
    /// What there is of each bucket.
    pub(crate) buckets: BTreeMap<BucketId, BucketSummary>,
    /// The first revision and the place of some of its frames, in order.
    pub(crate) strides: Vec<(Revision, u64)>,
}

/// What a segment holds of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BucketSummary {
    pub(crate) records: u64,
    /// What its frames take.
    pub(crate) bytes: u64,
    /// Its newest change, in it or cleaned out of it; zero if there was none.
    pub(crate) last: Revision,
    /// The newest time of its records.
    pub(crate) time: Timestamp,
    /// The newest of its changes that was cleaned out; zero if none was.
    pub(crate) dropped: Revision,
    /// The newest revision that forgets a key with all its records; zero if none does.
    pub(crate) forgotten: Revision,
}

impl BucketSummary {
    /// Takes account of what another segment held of the bucket and has given up.
    pub(crate) fn inherit(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
        self.dropped = self.dropped.max(other.dropped);
        self.forgotten = self.forgotten.max(other.forgotten);
    }
}

impl Footer {
    /// How many bytes at the end of a finished segment tell where its footer begins.
    pub(crate) const TRAILER_BYTES: u64 = 16;

    /// That of a segment with nothing in it.
    pub(crate) fn empty(first: Revision) -> Self {
        Self { last: Revision::new(first.get().saturating_sub(1)), ..Self::default() }
    }

    /// Takes account of a frame.
    pub(crate) fn add(&mut self, frame: &FrameSummary) {
        let FrameSummary { header, offset, time, shadow_bytes, newest, forgotten } = frame;
        self.last = self.last.max(header.last());
        self.time = self.time.max(*time);
        if self.strides.last().is_none_or(|(_, before)| offset - before >= STRIDE_BYTES) {
            self.strides.push((header.first, *offset));
        }
        if matches!(header.kind, FrameKind::Mark | FrameKind::Footer | FrameKind::Upkeep) {
            return;
        }
        if header.kind == FrameKind::Bucket {
            self.next_bucket = self.next_bucket.max(BucketId(header.bucket.0.saturating_add(1)));
        }
        self.shadow_bytes += shadow_bytes;
        let bucket = self.buckets.entry(header.bucket).or_default();
        bucket.records += u64::from(header.records);
        bucket.bytes += header.frame_len();
        bucket.last = bucket.last.max(*newest);
        bucket.time = bucket.time.max(*time);
        bucket.forgotten = bucket.forgotten.max(*forgotten);
    }

    /// Whether it can be that of a segment whose frames amount to `counted`: it knows them all, and perhaps of
    /// some that are gone.
    pub(crate) fn fits(&self, counted: &Self) -> bool {
        let fits = |(id, bucket): (&BucketId, &BucketSummary)| {
            let counted = counted.buckets.get(id).copied().unwrap_or_default();
            (bucket.records, bucket.bytes, bucket.time) == (counted.records, counted.bytes, counted.time)
                && bucket.last >= counted.last
                && bucket.forgotten >= counted.forgotten
        };
        self.last >= counted.last
            && self.time >= counted.time
            && self.next_bucket >= counted.next_bucket
            && (self.shadow_bytes, &self.strides) == (counted.shadow_bytes, &counted.strides)
            && counted.buckets.keys().all(|id| self.buckets.contains_key(id))
            && self.buckets.iter().all(fits)
    }

    /// Where to begin reading for `revision`.
    pub(crate) fn offset_for(&self, revision: Revision) -> Option<u64> {
        let after = self.strides.partition_point(|(first, _)| *first <= revision);
        after.checked_sub(1).map(|at| self.strides[at].1)
    }

    /// The frame that goes to `offset` of a segment, up to the end of its file.
    pub(crate) fn encode(&self, binding: Binding, offset: u64) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u32_le(0);
        body.put_u32_le(self.next_bucket.0);
        body.put_u64_le(self.cleaned_at.get());
        body.put_u64_le(self.index_at.get());
        body.put_u64_le(self.time.as_micros());
        body.put_u64_le(self.shadow_bytes);
        body.put_u32_le(count(self.buckets.len()));
        body.put_u32_le(count(self.strides.len()));
        for (id, bucket) in &self.buckets {
            body.put_u64_le(id.0.into());
            body.put_u64_le(bucket.records);
            body.put_u64_le(bucket.bytes);
            body.put_u64_le(bucket.last.get());
            body.put_u64_le(bucket.time.as_micros());
            body.put_u64_le(bucket.dropped.get());
            body.put_u64_le(bucket.forgotten.get());
        }
        for (revision, place) in &self.strides {
            body.put_u64_le(revision.get());
            body.put_u64_le(*place);
        }
        body.put_u32_le(TRAILER_MAGIC);
        body.put_u32_le(crc32fast::hash(&offset.to_le_bytes()) ^ binding.of(offset, Revision::ZERO));
        body.put_u64_le(offset);
        let place = offset + FrameHeader::BYTES as u64;
        let checksum = crc32fast::hash(&body[4..]) ^ binding.of(place, self.last);
        body[..4].copy_from_slice(&checksum.to_le_bytes());
        let header = FrameHeader {
            kind: FrameKind::Footer,
            body_len: count(body.len()),
            records: 0,
            first: self.last,
            durable: self.last,
            bucket: BucketId(0),
            size: 0,
        };
        let mut bytes = vec![0; FrameHeader::BYTES];
        header.encode(&mut bytes, binding.of(offset, Revision::ZERO));
        bytes.extend(body);
        bytes
    }

    /// Reads the body of a footer's frame; none means damage. The last revision stands in the frame's header.
    pub(crate) fn decode(body: &Bytes, binding: u32) -> Option<Self> {
        let mut rest = body.clone();
        let checksum = take_u32(&mut rest)?;
        if checksum != crc32fast::hash(&rest) ^ binding {
            return None;
        }
        let next_bucket = BucketId(take_u32(&mut rest)?);
        let cleaned_at = Revision::new(take_u64(&mut rest)?);
        let index_at = Revision::new(take_u64(&mut rest)?);
        let time = Timestamp::from_micros(take_u64(&mut rest)?);
        let shadow_bytes = take_u64(&mut rest)?;
        let (bucket_count, stride_count) = (take_u32(&mut rest)?, take_u32(&mut rest)?);
        let mut footer = Self { cleaned_at, index_at, time, next_bucket, shadow_bytes, ..Self::default() };
        for _ in 0..bucket_count {
            let id = BucketId(u32::try_from(take_u64(&mut rest)?).ok()?);
            let bucket = BucketSummary {
                records: take_u64(&mut rest)?,
                bytes: take_u64(&mut rest)?,
                last: Revision::new(take_u64(&mut rest)?),
                time: Timestamp::from_micros(take_u64(&mut rest)?),
                dropped: Revision::new(take_u64(&mut rest)?),
                forgotten: Revision::new(take_u64(&mut rest)?),
            };
            footer.buckets.insert(id, bucket);
        }
        for _ in 0..stride_count {
            let revision = Revision::new(take_u64(&mut rest)?);
            footer.strides.push((revision, take_u64(&mut rest)?));
        }
        take(&mut rest, 16)?;
        rest.is_empty().then_some(footer)
    }

    /// Reads the footer of a segment; none if it has none, or none that is sound.
    pub(crate) fn read(segment: &Segment) -> Result<Option<Self>, EngineError> {
        let start = segment.header.len();
        let Some(at) = segment.len().checked_sub(Self::TRAILER_BYTES).filter(|at| *at >= start) else {
            return Ok(None);
        };
        if segment.header.format == 1 {
            return Ok(None);
        }
        let trailer = segment.read(at, 16)?;
        let Some(offset) =
            Self::place(trailer, segment.binding()).filter(|offset| (start..at).contains(offset))
        else {
            return Ok(None);
        };
        let bytes = segment.read(offset, usize::try_from(segment.len() - offset).unwrap_or(usize::MAX))?;
        Ok(Self::in_frame(&bytes, segment.binding(), offset))
    }

    /// What a trailer says about where its footer begins.
    pub(crate) fn place(mut trailer: Bytes, binding: Binding) -> Option<u64> {
        let (magic, checksum, offset) =
            (take_u32(&mut trailer)?, take_u32(&mut trailer)?, take_u64(&mut trailer)?);
        let expected = crc32fast::hash(&offset.to_le_bytes()) ^ binding.of(offset, Revision::ZERO);
        (magic == TRAILER_MAGIC && checksum == expected).then_some(offset)
    }

    /// Reads the footer's frame that fills `bytes` and begins at `offset` of its segment.
    pub(crate) fn in_frame(bytes: &Bytes, binding: Binding, offset: u64) -> Option<Self> {
        let header = FrameHeader::decode(bytes, binding.of(offset, Revision::ZERO))?;
        if header.kind != FrameKind::Footer || header.frame_len() != bytes.len() as u64 {
            return None;
        }
        let place = offset + FrameHeader::BYTES as u64;
        let footer = Self::decode(&bytes.slice(FrameHeader::BYTES..), binding.of(place, header.first))?;
        Some(Self { last: header.first, ..footer })
    }
}

/// What a footer needs to know of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSummary {
    pub(crate) header: FrameHeader,
    offset: u64,
    time: Timestamp,
    shadow_bytes: u64,
    /// The newest change in it; zero if there is none.
    newest: Revision,
    /// The newest revision in it that forgets a key; zero if none does.
    forgotten: Revision,
}

impl FrameSummary {
    /// That of the frame at `offset` with this header and these records.
    pub(crate) fn new<'a>(
        header: FrameHeader,
        offset: u64,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Self {
        let (time, shadow_bytes) = (Timestamp::default(), 0);
        let (newest, forgotten) = (Revision::ZERO, Revision::ZERO);
        let mut summary = Self { header, offset, time, shadow_bytes, newest, forgotten };
        for record in records {
            summary.time = summary.time.max(record.time);
            if record.kind.is_shadow() {
                summary.shadow_bytes += record.encoded_len() as u64;
            }
            if record.kind.is_change() {
                summary.newest = summary.newest.max(record.revision);
            }
            if record.forgets_its_key() {
                summary.forgotten = summary.forgotten.max(record.revision);
            }
        }
        summary
    }

    /// That of a frame that was read at `offset`.
    pub(crate) fn of(frame: &Frame, offset: u64) -> Self {
        Self::new(frame.header, offset, frame.records.iter().map(|(_, record)| record))
    }
}

/// Counts that are far below four billion: a segment has a hundred megabytes.
fn count(number: usize) -> u32 {
    debug_assert!(u32::try_from(number).is_ok());
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
