use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{EngineError, Revision};

use super::Log;
use super::frame::{Frame, FrameHeader};
use super::segment::{Segment, SegmentHeader};

/// How much of a segment is read at a time.
const WINDOW_BYTES: usize = 256 * 1024;

/// Reads the frames of a log in order.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<Log>,
    segment: Option<Arc<Segment>>,
    offset: u64,
    window: Bytes,
    window_offset: u64,
}

impl LogReader {
    /// A reader that begins with the segment in which `revision` is; the first frames may be older.
    pub(crate) fn from(log: &Arc<Log>, revision: Revision) -> Self {
        let segment = log.segment_of(revision).or_else(|| log.segments().into_iter().next());
        Self {
            log: Arc::clone(log),
            segment,
            offset: SegmentHeader::BYTES,
            window: Bytes::new(),
            window_offset: 0,
        }
    }

    /// The next frame and the first revision of its segment, or none at the end of what has been written so
    /// far: asking again later goes on there.
    pub(crate) fn next(&mut self) -> Result<Option<(Revision, Frame)>, EngineError> {
        loop {
            let Some(segment) = self.segment.clone() else { return Ok(None) };
            if self.offset < segment.len() {
                return Ok(Some((segment.header.first, self.frame(&segment)?)));
            }
            let Some(next) = self.log.segment_after(segment.header.first) else { return Ok(None) };
            // The writer adds a segment only after it has finished the one before; look again at its length.
            if self.offset >= segment.len() {
                (self.segment, self.offset, self.window) = (Some(next), SegmentHeader::BYTES, Bytes::new());
            }
        }
    }

    fn frame(&mut self, segment: &Segment) -> Result<Frame, EngineError> {
        let bytes = self.bytes(segment, FrameHeader::BYTES)?;
        let header = FrameHeader::decode(&bytes, segment.binding().of(self.offset, Revision::ZERO));
        let frame_len = header.map(|header| header.frame_len());
        let frame = match frame_len.and_then(|len| usize::try_from(len).ok()) {
            Some(len) if self.offset + len as u64 <= segment.len() => {
                segment.frame_in(&self.bytes(segment, len)?, self.offset)
            }
            _ => None,
        };
        let frame = frame.ok_or_else(|| segment.damaged(self.offset, "the frame is unreadable"))?;
        self.offset += frame.header.frame_len();
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
