use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader, FrameKind};
use super::record::Record;
use super::segment::{Segment, SegmentHeader};
use super::{BucketId, Log, Position, Tail};
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
    segment_bytes: u64,
    /// The frames of the group that is not yet written.
    buffer: Vec<u8>,
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
    pub(crate) fn after(log: &Arc<Log>, tail: Option<Tail>, segment_bytes: u64) -> Result<Self, EngineError> {
        let last = tail.map_or(Revision::ZERO, |tail| tail.last);
        let segment = match (log.last_segment(), tail) {
            (Some(segment), Some(tail)) if tail.clean => segment,
            // A segment without records gives its name and place in the chain to a new one.
            (Some(segment), Some(tail)) if tail.empty => new_segment(log, last, segment.header.previous)?,
            (Some(segment), _) => new_segment(log, last, Some((segment.header.first, segment.len())))?,
            (None, _) => new_segment(log, last, None)?,
        };
        Ok(Self {
            log: Arc::clone(log),
            segment,
            segment_bytes,
            buffer: Vec::new(),
            last,
            written: last,
            durable: Arc::new(AtomicU64::new(last.get())),
            poisoned: false,
            marked: tail.is_some_and(|tail| tail.clean),
        })
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
        debug_assert!(records.first().is_some_and(|record| record.revision == self.last.next()));
        let size = u16::try_from(records.len()).unwrap_or(u16::MAX);
        let first = self.last.next();
        self.last = self.last.plus(size.into());
        self.frame(kind, bucket, first, size, records)
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
        let segment = self.segment.header.first;
        Frame::encode(header, records, &mut self.buffer, self.segment.binding(), offset)
            .into_iter()
            .map(|(offset, len)| Position { segment, offset, len: u32::try_from(len).unwrap_or(u32::MAX) })
            .collect()
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
        self.marked = false;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.written = self.last;
        if sync { self.sync() } else { Ok(()) }
    }

    /// Forgets the group that was not written.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
        self.last = self.written;
    }

    /// Syncs what was written.
    pub(crate) fn sync(&mut self) -> Result<(), WriteError> {
        self.check_sound()?;
        if self.durable.load(Ordering::Acquire) >= self.written.get() {
            return Ok(());
        }
        self.segment.sync().map_err(|error| self.poison(error))?;
        self.durable.fetch_max(self.written.get(), Ordering::AcqRel);
        Ok(())
    }

    /// Starts a new segment if the current one is full. Call it between groups.
    pub(crate) fn roll_if_full(&mut self) -> Result<(), WriteError> {
        // A file with a mark is longer than the next segment would say that it is.
        if self.segment.len() < self.segment_bytes || self.marked {
            return Ok(());
        }
        self.sync()?;
        let previous = Some((self.segment.header.first, self.segment.len()));
        match new_segment(&self.log, self.last, previous) {
            Ok(segment) => self.segment = segment,
            Err(WriteError::Poisoned(error)) => return Err(self.poison(error)),
            Err(refused) => return Err(refused),
        }
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
    let salt = crate::random::word().map_err(WriteError::Refused)?;
    let header = SegmentHeader { store: log.store, first: last.next(), salt, previous };
    let segment = Arc::new(Segment::create(&*log.disk, &log.directory, header)?);
    log.add(Arc::clone(&segment));
    Ok(segment)
}
