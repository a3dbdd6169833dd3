use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader};
use super::segment::Segment;

/// Reads the frames of one segment, whatever has taken its place.
#[derive(Debug)]
pub(crate) struct SegmentFrames {
    segment: Arc<Segment>,
    offset: u64,
    window: Bytes,
    window_offset: u64,
    window_bytes: usize,
}

impl SegmentFrames {
    /// Reads from its first frame on.
    pub(crate) fn of(segment: &Arc<Segment>) -> Self {
        const WINDOW_BYTES: usize = 256 * 1024;
        Self::at(segment, segment.header.len(), WINDOW_BYTES)
    }

    /// Reads from the frame at `offset` on, `window_bytes` at a time.
    pub(crate) fn at(segment: &Arc<Segment>, offset: u64, window_bytes: usize) -> Self {
        let (window, window_offset) = (Bytes::new(), 0);
        Self { segment: Arc::clone(segment), offset, window, window_offset, window_bytes }
    }

    /// The next frame and where it begins; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Frame)>, EngineError> {
        let segment = Arc::clone(&self.segment);
        if self.offset >= segment.len() {
            return Ok(None);
        }
        let unreadable = |offset| segment.damaged(offset, "the frame is unreadable");
        let bytes = self.bytes(FrameHeader::BYTES)?;
        let header = FrameHeader::decode(&bytes, segment.binding().of(self.offset, Revision::ZERO));
        let whole = header.filter(|header| self.offset + header.frame_len() <= segment.len());
        let len = whole.and_then(|header| usize::try_from(header.frame_len()).ok());
        let Some(len) = len else { return Err(unreadable(self.offset)) };
        let bytes = self.bytes(len)?;
        let frame = segment.frame_in(&bytes, self.offset).ok_or_else(|| unreadable(self.offset))?;
        let offset = self.offset;
        self.offset += frame.header.frame_len();
        Ok(Some((offset, frame)))
    }

    /// At least `len` bytes from the current offset on, if the segment has as many.
    fn bytes(&mut self, len: usize) -> Result<Bytes, EngineError> {
        let skip = self.offset.checked_sub(self.window_offset).and_then(|skip| usize::try_from(skip).ok());
        if let Some(skip) = skip.filter(|skip| skip.saturating_add(len) <= self.window.len()) {
            return Ok(self.window.slice(skip..));
        }
        let left = usize::try_from(self.segment.len() - self.offset).unwrap_or(usize::MAX);
        self.window = self.segment.read(self.offset, left.min(len.max(self.window_bytes)))?;
        self.window_offset = self.offset;
        Ok(self.window.clone())
    }
}
