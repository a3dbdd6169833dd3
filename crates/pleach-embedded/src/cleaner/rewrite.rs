use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_engine::{EngineError, Revision};

use super::judge::{Judge, Verdict};
use super::pace::Pace;
use crate::core::Core;
use crate::disk::io_error;
use crate::log::{
    BucketId, BucketSummary, Footer, Frame, FrameHeader, FrameSummary, Log, Record, Segment, SegmentFrames,
    SegmentHeader, SegmentId, WriteError,
};

/// How much is collected before it is written.
const BUFFER_BYTES: usize = 1024 * 1024;

/// A segment that is being made from a run of others, without what nobody needs.
pub(super) struct Rewrite<'a> {
    core: &'a Core,
    log: &'a Log,
    judge: &'a Judge,
    new: Arc<Segment>,
    footer: Footer,
    buffer: Vec<u8>,
    /// How many bytes of records are left out.
    pub(super) freed: u64,
    /// How many bytes of records have faded just now.
    pub(super) faded: u64,
    /// By bucket, the newest change that is left out.
    dropped: BTreeMap<BucketId, Revision>,
}

impl<'a> Rewrite<'a> {
    /// Prepares the segment that will take the place of `run`, which is not empty.
    pub(super) fn prepare(
        core: &'a Core,
        judge: &'a Judge,
        run: &[Arc<Segment>],
    ) -> Result<Self, EngineError> {
        let (log, first) = (&*core.log, &run[0]);
        let generation = run.iter().map(|segment| segment.id().generation).max().unwrap_or_default() + 1;
        let header = SegmentHeader {
            format: SegmentHeader::FORMAT,
            store: log.store,
            id: SegmentId { first: first.first(), generation },
            salt: crate::random::word()?,
            previous: first.header.previous,
        };
        let new = Arc::new(Segment::prepare(&*log.disk, &log.directory, header)?);
        let footer = Footer { index_at: core.flushed(), ..Footer::empty(first.first()) };
        let (buffer, dropped) = (Vec::new(), BTreeMap::new());
        Ok(Self { core, log, judge, new, footer, buffer, freed: 0, faded: 0, dropped })
    }

    /// Copies what is needed of a segment.
    pub(super) fn copy(&mut self, segment: &Arc<Segment>, pace: &mut Pace) -> Result<(), EngineError> {
        let mut frames = SegmentFrames::of(segment);
        while let Some((_, frame)) = frames.next()? {
            self.core.health.check_open()?;
            let len = frame.header.frame_len();
            self.copy_frame(segment.id(), frame)?;
            if self.buffer.len() >= BUFFER_BYTES {
                self.write()?;
            }
            pace.did(self.core, len);
        }
        self.inherit(segment);
        Ok(())
    }

    fn copy_frame(&mut self, segment: SegmentId, frame: Frame) -> Result<(), EngineError> {
        let header = frame.header;
        let mut records: Vec<Record> = Vec::with_capacity(frame.records.len());
        for (_, mut record) in frame.records {
            match self.judge.judge(segment, &header, &record)? {
                Verdict::Keep => records.push(record),
                Verdict::Fade => {
                    self.faded += if record.faded { 0 } else { record.encoded_len() as u64 };
                    record.faded = true;
                    records.push(record);
                }
                Verdict::Drop => {
                    self.freed += record.encoded_len() as u64;
                    if record.kind.is_change() {
                        let dropped = self.dropped.entry(header.bucket).or_default();
                        *dropped = (*dropped).max(record.revision);
                    }
                }
            }
        }
        if !records.is_empty() {
            self.append(header, &records);
        }
        Ok(())
    }

    fn append(&mut self, header: FrameHeader, records: &[Record]) {
        let offset = self.new.len() + self.buffer.len() as u64;
        let (header, _) = Frame::encode(header, records, &mut self.buffer, self.new.binding(), offset);
        self.footer.add(&FrameSummary::new(header, offset, records));
    }

    /// Takes over what a segment knew of its buckets, though the records are gone.
    fn inherit(&mut self, segment: &Segment) {
        let Some(old) = segment.footer() else { return };
        self.footer.last = self.footer.last.max(old.last);
        self.footer.index_at = self.footer.index_at.max(old.index_at);
        self.footer.time = self.footer.time.max(old.time);
        self.footer.next_bucket = self.footer.next_bucket.max(old.next_bucket);
        for (id, summary) in &old.buckets {
            if self.core.catalog.by_id(*id).is_some() {
                self.footer.buckets.entry(*id).or_default().inherit(summary);
            }
        }
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let offset = self.new.len();
        let written = self.new.file.write_at(&self.buffer, offset);
        written.map_err(io_error("write", &self.new.path))?;
        self.new.set_len(offset + self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }

    /// Finishes the segment, makes it durable and gives it its name.
    pub(super) fn publish(mut self) -> Result<Arc<Segment>, EngineError> {
        if let Err(error) = self.finish() {
            self.abandon();
            return Err(error);
        }
        // Before it can be there: a watch or a consumer that begins from now on must not count on what it leaves
        // out, and after a failure here nobody knows which segment the next open will find.
        for (id, summary) in &self.footer.buckets {
            if let Some(bucket) = self.core.catalog.by_id(*id) {
                bucket.raise_floor(summary.dropped);
            }
        }
        self.new.finish(self.footer);
        self.new.publish(&*self.log.disk).map_err(|error| match error {
            WriteError::Refused(error) => error,
            WriteError::Poisoned(error) => {
                // If it is there after all, it takes the place of others, which nobody here would know.
                let what = format!("a cleaned segment of its log could not be put in place: {error}");
                self.core.health.poison(what);
                error
            }
        })?;
        Ok(self.new)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.footer.cleaned_at = self.judge.revision();
        for (id, revision) in std::mem::take(&mut self.dropped) {
            if self.core.catalog.by_id(id).is_some() {
                let summary: &mut BucketSummary = self.footer.buckets.entry(id).or_default();
                summary.dropped = summary.dropped.max(revision);
            }
        }
        self.write()?;
        let offset = self.new.len();
        let footer = self.footer.encode(self.new.binding(), offset);
        self.new.file.write_at(&footer, offset).map_err(io_error("write", &self.new.path))?;
        self.new.set_len(offset + footer.len() as u64);
        self.new.sync()?;
        // What takes the place of others must have been seen to be readable.
        let mut frames = SegmentFrames::of(&self.new);
        while frames.next()?.is_some() {}
        // What let records die must not be lost when they are gone.
        self.core.sync_log()
    }

    /// Gives the segment up.
    pub(super) fn abandon(self) {
        self.new.abandon(&*self.log.disk);
    }
}
