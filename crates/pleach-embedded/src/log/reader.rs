use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader, FrameKind};
use super::segment::Segment;
use super::{BucketId, Log, SegmentId};

/// How much of a segment is read at a time.
const WINDOW_BYTES: usize = 256 * 1024;

/// Reads the frames of a log in order, those of all buckets or of one.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<Log>,
    bucket: Option<BucketId>,
    /// Everything before this revision was read.
    reached: Revision,
    segment: Option<Arc<Segment>>,
    offset: u64,
    window: Bytes,
    window_offset: u64,
}

/// What a reader came to.
struct Place {
    header: FrameHeader,
    offset: u64,
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
        let mut reader = Self {
            log: Arc::clone(log),
            bucket,
            reached: revision,
            segment: None,
            offset: 0,
            window: Bytes::new(),
            window_offset: 0,
        };
        reader.seek();
        reader
    }

    /// Everything before this revision was read.
    pub(crate) fn reached(&self) -> Revision {
        self.reached
    }

    /// The next frame with records or a revision of its own, and its segment; none at the end of what has
    /// been written so far: asking again later goes on there.
    pub(crate) fn next(&mut self) -> Result<Option<(SegmentId, Frame)>, EngineError> {
        loop {
            let Some(segment) = self.segment.clone() else {
                self.seek();
                if self.segment.is_none() {
                    return Ok(None);
                }
                continue;
            };
            // What it was replaced by begins at the same revisions; the old file may be gone any moment.
            if segment.is_replaced() {
                self.seek();
                continue;
            }
            if self.offset < segment.len() && !self.skips(&segment) {
                match self.frame(&segment) {
                    Err(_) if segment.is_replaced() => continue,
                    Err(error) => return Err(error),
                    Ok(Some(frame)) => return Ok(Some((segment.id(), frame))),
                    Ok(None) => continue,
                }
            }
            let Some(next) = self.log.segment_after(segment.first()) else { return Ok(None) };
            // If it was replaced just now, together with those after it, what was found comes after all of them.
            if segment.is_replaced() {
                continue;
            }
            // The writer adds a segment only after it has finished the one before; look again at its length.
            if self.offset >= segment.len() || self.skips(&segment) {
                self.reached = self.reached.max(next.first());
                self.begin(next);
            }
        }
    }

    /// Whether a segment holds nothing of the bucket.
    fn skips(&self, segment: &Segment) -> bool {
        let footer = segment.footer();
        let skips = self.bucket.zip(footer).map(|(bucket, footer)| !footer.buckets.contains_key(&bucket));
        skips.unwrap_or(false)
    }

    fn seek(&mut self) {
        let first = || self.log.segments().into_iter().next();
        match self.log.segment_of(self.reached).or_else(first) {
            Some(segment) => self.begin(segment),
            None => self.segment = None,
        }
    }

    fn begin(&mut self, segment: Arc<Segment>) {
        self.offset = segment.offset_for(self.reached);
        (self.segment, self.window) = (Some(segment), Bytes::new());
    }

    /// The frame at the current offset, unless it is not wanted.
    fn frame(&mut self, segment: &Segment) -> Result<Option<Frame>, EngineError> {
        let bytes = self.bytes(segment, FrameHeader::BYTES)?;
        let header = FrameHeader::decode(&bytes, segment.binding().of(self.offset, Revision::ZERO));
        let whole = header.filter(|header| self.offset + header.frame_len() <= segment.len());
        let Some(header) = whole else {
            return Err(segment.damaged(self.offset, "the frame is unreadable"));
        };
        let place = Place { header, offset: self.offset };
        self.offset += header.frame_len();
        let has_revision = !matches!(header.kind, FrameKind::Mark | FrameKind::Footer);
        if !has_revision || header.last() < self.reached {
            return Ok(None);
        }
        if self.bucket.is_some_and(|bucket| bucket != header.bucket) {
            self.reached = header.last().next();
            return Ok(None);
        }
        let frame = self.decode(segment, &place)?;
        self.reached = header.last().next();
        Ok(Some(frame))
    }

    fn decode(&mut self, segment: &Segment, place: &Place) -> Result<Frame, EngineError> {
        let after = std::mem::replace(&mut self.offset, place.offset);
        let len = usize::try_from(place.header.frame_len()).unwrap_or(usize::MAX);
        let frame = self.bytes(segment, len).map(|bytes| segment.frame_in(&bytes, place.offset));
        let frame = frame?.ok_or_else(|| segment.damaged(place.offset, "the frame is unreadable"))?;
        self.offset = after;
        Ok(frame)
    }

    /// At least `len` bytes from the current offset on.
    fn bytes(&mut self, segment: &Segment, len: usize) -> Result<Bytes, EngineError> {
        let within = |offset: u64, window: &Bytes, start: u64| {
            let skip = usize::try_from(offset.checked_sub(start)?).ok()?;
            (skip + len <= window.len()).then(|| window.slice(skip..))
        };
        if let Some(bytes) = within(self.offset, &self.window, self.window_offset) {
            return Ok(bytes);
        }
        let left = usize::try_from(segment.len() - self.offset).unwrap_or(usize::MAX);
        self.window = segment.read(self.offset, left.min(len.max(WINDOW_BYTES)))?;
        self.window_offset = self.offset;
        if self.window.len() < len {
            return Err(segment.damaged(self.offset, "the segment ends inside a frame"));
        }
        Ok(self.window.clone())
    }
}

#[cfg(test)]
mod tests;
