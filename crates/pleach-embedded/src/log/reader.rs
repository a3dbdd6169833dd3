use std::sync::Arc;

use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader, FrameKind, FromBody, SoundFrame};
use super::frames::SegmentFrames;
use super::segment::Segment;
use super::{BucketId, Log, SegmentId};

/// Reads the frames of a log in order, those of all buckets or of one.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<Log>,
    bucket: Option<BucketId>,
    /// Everything before this revision was read.
    reached: Revision,
    /// Where it is; none in an empty log.
    frames: Option<SegmentFrames>,
    /// How much was read where it was before.
    read_before: u64,
}

impl LogReader {
    /// A reader of every frame with a revision from `revision` on.
    pub(crate) fn from(log: &Arc<Log>, revision: Revision) -> Self {
        Self::new(log, None, revision)
    }

    /// A reader of the frames of one bucket. It does not open the segments that hold nothing of it.
    pub(crate) fn of_bucket(log: &Arc<Log>, bucket: BucketId, revision: Revision) -> Self {
        Self::new(log, Some(bucket), revision)
    }

    fn new(log: &Arc<Log>, bucket: Option<BucketId>, revision: Revision) -> Self {
        let mut reader =
            Self { log: Arc::clone(log), bucket, reached: revision, frames: None, read_before: 0 };
        reader.seek();
        reader
    }

    /// Everything before this revision was read.
    pub(crate) fn reached(&self) -> Revision {
        self.reached
    }

    /// How many bytes it has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read_before + self.frames.as_ref().map_or(0, SegmentFrames::bytes_read)
    }

    /// The next frame with records or a revision of its own, and its segment; none at the end of what has
    /// been written so far: asking again later goes on there.
    pub(crate) fn next(&mut self) -> Result<Option<(SegmentId, Frame)>, EngineError> {
        self.next_as()
    }

    /// The same, of which the records are yet to be made.
    pub(crate) fn next_sound(&mut self) -> Result<Option<SoundFrame>, EngineError> {
        Ok(self.next_as()?.map(|(_, frame)| frame))
    }

    fn next_as<T: FromBody>(&mut self) -> Result<Option<(SegmentId, T)>, EngineError> {
        loop {
            let Some(frames) = &mut self.frames else {
                self.seek();
                if self.frames.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let segment = Arc::clone(frames.segment());
            // What it was replaced by begins at the same revisions; the old file may be gone any moment.
            if segment.is_replaced() {
                self.seek();
                continue;
            }
            if !skips(self.bucket, &segment) && !frames.is_at_end() {
                let (reached, bucket) = (self.reached, self.bucket);
                let found = frames.next_if(|header| is_wanted(header, reached, bucket));
                match found {
                    Err(_) if segment.is_replaced() => continue,
                    found => match self.pass(found?) {
                        Some(frame) => return Ok(Some((segment.id(), frame))),
                        None => continue,
                    },
                }
            }
            let Some(next) = self.log.segment_after(segment.first()) else { return Ok(None) };
            // If it was replaced just now, together with those after it, what was found comes after all of them.
            if segment.is_replaced() {
                continue;
            }
            // The writer adds a segment only after it has finished the one before; look again at its length.
            let at_end = self.frames.as_ref().is_none_or(SegmentFrames::is_at_end);
            if at_end || skips(self.bucket, &segment) {
                self.reached = self.reached.max(next.first());
                self.begin(&next);
            }
        }
    }

    /// Takes account of a frame that was found, and hands it on if it was wanted.
    fn pass<T>(&mut self, found: Option<(u64, FrameHeader, Option<T>)>) -> Option<T> {
        let (_, header, frame) = found?;
        if has_revision(&header) {
            self.reached = self.reached.max(header.last().next());
        }
        frame
    }

    fn seek(&mut self) {
        let first = || self.log.segments().into_iter().next();
        match self.log.segment_of(self.reached).or_else(first) {
            Some(segment) => self.begin(&segment),
            None => (self.read_before, self.frames) = (self.bytes_read(), None),
        }
    }

    fn begin(&mut self, segment: &Arc<Segment>) {
        self.read_before = self.bytes_read();
        self.frames = Some(SegmentFrames::from(segment, self.reached));
    }
}

/// Whether a segment holds nothing of the bucket.
fn skips(bucket: Option<BucketId>, segment: &Segment) -> bool {
    let both = bucket.zip(segment.footer());
    both.is_some_and(|(bucket, footer)| !footer.buckets.contains_key(&bucket))
}

/// Whether a frame is of the bucket, and not from before `reached`.
fn is_wanted(header: &FrameHeader, reached: Revision, bucket: Option<BucketId>) -> bool {
    let is_of_bucket = bucket.is_none_or(|bucket| bucket == header.bucket);
    has_revision(header) && header.last() >= reached && is_of_bucket
}

fn has_revision(header: &FrameHeader) -> bool {
    !matches!(header.kind, FrameKind::Mark | FrameKind::Footer)
}

#[cfg(test)]
mod tests;
