use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_engine::{EngineError, Revision};

use super::footer::{BucketSummary, Footer, FrameSummary};
use super::frame::{Frame, FrameHeader, FrameKind};
use super::record::Record;
use super::segment::{Segment, SegmentHeader};
use super::{BucketId, Log, Position, SegmentId, Tail};
use crate::disk::io_error;

/// Why a group could not be made durable.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// Nothing of it is in the log, and the next group may succeed.
    Refused(EngineError),
    /// It is not known what is on the disk: nothing more may be written until the log has been read again.
    Poisoned(EngineError),
}

impl From<WriteError> for EngineError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(error) | WriteError::Poisoned(error) => error,
        }
    }
}

/// Appends frames to the log, a group at a time.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Arc<Log>,
    segment: Arc<Segment>,
    /// How large a segment may grow.
    segment_bytes_max: u64,
    /// How large this one does.
    segment_bytes: u64,
    /// The frames of the group that is not yet written.
    buffer: Vec<u8>,
    /// What the segment will say about them.
    group: Vec<FrameSummary>,
    /// What the segment holds so far.
    footer: Footer,
    /// The newest revision in the log or in `buffer`.
    last: Revision,
    /// The newest revision that was written.
    written: Revision,
    /// The newest revision that was synced; shared with whoever syncs beside the writer.
    durable: Arc<AtomicU64>,
    /// Whether a write has ended as `Poisoned`.
    poisoned: bool,
    /// Whether the segment's file ends with a mark, which the next write replaces.
    marked: bool,
}

/// A buffer that grew past this for one large group is given back.
const BUFFER_BYTES_KEPT: usize = 4 * 1024 * 1024;

impl LogWriter {
    /// A writer that goes on after `tail`: in the same segment after a clean close, else in a new one, so
    /// that nothing of an unfinished write can ever be taken for part of it.
    pub(crate) fn after(
        log: &Arc<Log>,
        tail: Option<Tail>,
        segment_bytes_max: u64,
    ) -> Result<Self, EngineError> {
        let last = tail.as_ref().map_or(Revision::ZERO, |tail| tail.last);
        let segment = match (log.last_segment(), &tail) {
            (Some(segment), Some(tail)) if tail.empty && !tail.clean && !tail.finished => {
                // A segment without records gives its name and place in the chain to a new one.
                new_segment(log, last, segment.header.previous)?
            }
            (Some(segment), _) => segment,
            (None, _) => new_segment(log, last, None)?,
        };
        let goes_on = tail.as_ref().is_none_or(|tail| tail.clean || (tail.empty && !tail.finished));
        let finished = tail.as_ref().is_some_and(|tail| tail.finished);
        let mut writer = Self {
            log: Arc::clone(log),
            footer: tail.as_ref().map_or_else(|| Footer::empty(segment.first()), |tail| tail.footer.clone()),
            segment,
            segment_bytes_max,
            segment_bytes: log.segment_bytes(segment_bytes_max),
            buffer: Vec::new(),
            group: Vec::new(),
            last,
            written: last,
            durable: Arc::new(AtomicU64::new(last.get())),
            poisoned: false,
            marked: tail.is_some_and(|tail| tail.clean),
        };
        if finished {
            writer.segment = new_segment(log, last, Some((writer.segment.first(), writer.segment.len())))?;
            writer.footer = Footer::empty(writer.segment.first());
        } else if !goes_on {
            writer.roll()?;
        }
        log.unfinished().extend(&writer.footer.buckets);
        Ok(writer)
    }

    /// The newest revision, written or about to be.
    pub(crate) fn last(&self) -> Revision {
        self.last
    }

    pub(crate) fn durable(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.durable)
    }

    /// How large the unwritten group is.
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Adds a frame to the group and says where each of its records will be.
    pub(crate) fn append(&mut self, kind: FrameKind, bucket: BucketId, records: &[Record]) -> Vec<Position> {
        debug_assert!(records.first().is_none_or(|record| record.revision == self.last.next()));
        // A frame without records takes a revision of its own.
        let size = u16::try_from(records.len().max(1)).unwrap_or(u16::MAX);
        let first = self.last.next();
        self.last = self.last.plus(size.into());
        self.frame(kind, bucket, first, size, records)
    }

    /// Adds a frame of another log to the group, with the revisions that it has there: those that follow.
    pub(crate) fn append_as(&mut self, header: FrameHeader, records: &[Record]) {
        debug_assert_eq!(header.first, self.last.next());
        self.last = header.last();
        self.frame(header.kind, header.bucket, header.first, header.size, records);
    }

    /// Lets the log say what it would say if the records that are gone from another one had been in it. Ends the
    /// segment for that, so nothing of the group may be unwritten.
    pub(crate) fn inherit(
        &mut self,
        buckets: &BTreeMap<BucketId, BucketSummary>,
        next_bucket: BucketId,
    ) -> Result<(), WriteError> {
        if self.footer.last < self.segment.first()
            || (buckets.is_empty() && next_bucket <= self.footer.next_bucket)
        {
            return Ok(());
        }
        self.footer.next_bucket = self.footer.next_bucket.max(next_bucket);
        for (bucket, summary) in buckets {
            self.footer.buckets.entry(*bucket).or_default().inherit(summary);
        }
        self.roll()
    }

    fn frame(
        &mut self,
        kind: FrameKind,
        bucket: BucketId,
        first: Revision,
        size: u16,
        records: &[Record],
    ) -> Vec<Position> {
        let durable = Revision::new(self.durable.load(Ordering::Acquire));
        let header = FrameHeader { kind, body_len: 0, records: 0, first, durable, bucket, size };
        let offset = self.segment.len() + self.buffer.len() as u64;
        let segment = self.segment.id();
        let (header, places) =
            Frame::encode(header, records, &mut self.buffer, self.segment.binding(), offset);
        if kind != FrameKind::Mark {
            self.group.push(FrameSummary::new(header, offset, records));
        }
        let position = |(offset, len): (u64, usize)| Position {
            segment,
            offset,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        places.into_iter().map(position).collect()
    }

    /// Writes the group, and syncs it if asked to. On an error nothing of the group may be acknowledged.
    pub(crate) fn write(&mut self, sync: bool) -> Result<(), WriteError> {
        self.check_sound()?;
        let (segment, offset) = (&self.segment, self.segment.len());
        if let Err(error) = segment.file.write_at(&self.buffer, offset) {
            let error = io_error("write", &segment.path)(error);
            return Err(self.take_back(error));
        }
        segment.set_len(offset + self.buffer.len() as u64);
        let mut unfinished = self.log.unfinished();
        for frame in self.group.drain(..) {
            self.footer.add(&frame);
            if let Some(summary) = self.footer.buckets.get(&frame.header.bucket) {
                unfinished.insert(frame.header.bucket, *summary);
            }
        }
        drop(unfinished);
        self.marked = false;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.written = self.last;
        if sync { self.sync() } else { Ok(()) }
    }

    /// Forgets the group that was not written.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
        self.group.clear();
        self.last = self.written;
    }

    /// Syncs what was written.
    pub(crate) fn sync(&mut self) -> Result<(), WriteError> {
        self.check_sound()?;
        if self.durable.load(Ordering::Acquire) >= self.written.get() {
            return Ok(());
        }
        let timed = self.log.syncs.start();
        let synced = self.segment.sync();
        drop(timed);
        synced.map_err(|error| self.poison(error))?;
        self.durable.fetch_max(self.written.get(), Ordering::AcqRel);
        Ok(())
    }

    /// Starts a new segment if the current one is full. Call it between groups.
    pub(crate) fn roll_if_full(&mut self) -> Result<(), WriteError> {
        // A file with a mark is longer than the next segment would say that it is.
        if self.segment.len() < self.segment_bytes || self.marked {
            return Ok(());
        }
        self.roll()
    }

    /// Finishes the segment and starts a new one. If there is no space for that, the segment goes on.
    fn roll(&mut self) -> Result<(), WriteError> {
        self.sync()?;
        // One without a revision would have the same name as the next.
        if self.footer.last < self.segment.first() {
            return Ok(());
        }
        let end = self.segment.len();
        let footer = match self.segment.header.format {
            1 => Vec::new(),
            _ => self.footer.encode(self.segment.binding(), end),
        };
        let previous = Some((self.segment.first(), end + footer.len() as u64));
        let header = next_header(&self.log, self.last, previous)?;
        // Prepared before the footer is written: nothing may follow that, so there must be where to go on.
        let next = Segment::prepare(&*self.log.disk, &self.log.directory, header);
        let next = next.map_err(WriteError::Refused)?;
        let finished = self.segment.file.write_at(&footer, end);
        if let Err(error) = finished {
            next.abandon(&*self.log.disk);
            let error = io_error("write", &self.segment.path)(error);
            return Err(self.take_back(error));
        }
        if !footer.is_empty() {
            self.segment.set_len(end + footer.len() as u64);
            self.segment.sync().map_err(|error| self.poison(error))?;
        }
        match next.publish(&*self.log.disk) {
            Ok(()) => {}
            Err(WriteError::Poisoned(error)) => return Err(self.poison(error)),
            Err(WriteError::Refused(error)) => {
                self.segment.set_len(end);
                return Err(self.take_back(error));
            }
        }
        let next = Arc::new(next);
        let footer = std::mem::replace(&mut self.footer, Footer::empty(next.first()));
        self.segment.finish(footer);
        self.log.unfinished().clear();
        self.segment = Arc::clone(&next);
        self.log.add(next);
        self.segment_bytes = self.log.segment_bytes(self.segment_bytes_max);
        Ok(())
    }

    /// Ends the log so that the next open finds it whole.
    pub(crate) fn close(&mut self) -> Result<(), WriteError> {
        self.discard();
        self.sync()?;
        self.frame(FrameKind::Mark, BucketId(0), self.last, 0, &[]);
        self.write(false)?;
        self.segment.sync().map_err(|error| self.poison(error))
    }

    /// Nothing may follow a failed write: it would be acknowledged, and not be found behind a gap.
    fn check_sound(&mut self) -> Result<(), WriteError> {
        if !self.poisoned {
            return Ok(());
        }
        self.discard();
        Err(WriteError::Poisoned(EngineError::ReadOnly { reason: "an earlier write failed".into() }))
    }

    fn poison(&mut self, error: EngineError) -> WriteError {
        self.poisoned = true;
        WriteError::Poisoned(error)
    }

    /// After a failed write: cuts off what may have been written of the group, so that no frame of it is
    /// ever found there.
    fn take_back(&mut self, error: EngineError) -> WriteError {
        let cut = self.segment.file.truncate(self.segment.len()).is_ok();
        self.discard();
        // Synced, or a power cut could bring back a commit that was refused.
        if matches!(error, EngineError::DiskFull { .. }) && cut && self.segment.sync().is_ok() {
            return WriteError::Refused(error);
        }
        self.poison(error)
    }
}

fn new_segment(
    log: &Log,
    last: Revision,
    previous: Option<(Revision, u64)>,
) -> Result<Arc<Segment>, WriteError> {
    let header = next_header(log, last, previous)?;
    let segment = Arc::new(Segment::create(&*log.disk, &log.directory, header)?);
    log.add(Arc::clone(&segment));
    Ok(segment)
}

fn next_header(
    log: &Log,
    last: Revision,
    previous: Option<(Revision, u64)>,
) -> Result<SegmentHeader, WriteError> {
    let salt = crate::random::word().map_err(WriteError::Refused)?;
    let (format, store, id) = (SegmentHeader::FORMAT, log.store, SegmentId::new(last.next()));
    Ok(SegmentHeader { format, store, id, salt, previous })
}

#[cfg(test)]
mod tests;
