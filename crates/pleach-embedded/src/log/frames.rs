use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader, FromBody};
use super::segment::Segment;

/// How much of a segment is read at a time.
const WINDOW_BYTES: usize = 256 * 1024;

/// Reads the frames of one segment, whatever has taken its place.
#[derive(Debug)]
pub(crate) struct SegmentFrames {
    segment: Arc<Segment>,
    offset: u64,
    window: Bytes,
    window_offset: u64,
    window_bytes: usize,
    /// How much was read of it.
    read: u64,
}

impl SegmentFrames {
    /// Reads from its first frame on.
    pub(crate) fn of(segment: &Arc<Segment>) -> Self {
        Self::at(segment, segment.header.len(), WINDOW_BYTES)
    }

    /// Reads from the frame of `revision` on, or a little before.
    pub(crate) fn from(segment: &Arc<Segment>, revision: Revision) -> Self {
        Self::at(segment, segment.offset_for(revision), WINDOW_BYTES)
    }

    /// Reads from the frame at `offset` on, `window_bytes` at a time.
    pub(crate) fn at(segment: &Arc<Segment>, offset: u64, window_bytes: usize) -> Self {
        let (window, window_offset) = (Bytes::new(), 0);
        Self { segment: Arc::clone(segment), offset, window, window_offset, window_bytes, read: 0 }
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// How many bytes it has read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Whether everything that has been written so far was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.offset >= self.segment.len()
    }

    /// The next frame and where it begins; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Frame)>, EngineError> {
        Ok(self.next_if(|_| true)?.and_then(|(offset, _, frame)| Some((offset, frame?))))
    }

    /// Where the next frame begins, its header, and the frame itself if it is `wanted`; none at the end.
    #[allow(clippy::type_complexity, reason = "three things about one frame, taken apart at once")]
    pub(crate) fn next_if<T: FromBody>(
        &mut self,
        wanted: impl FnOnce(&FrameHeader) -> bool,
    ) -> Result<Option<(u64, FrameHeader, Option<T>)>, EngineError> {
        if self.is_at_end() {
            return Ok(None);
        }
        let (segment, offset) = (Arc::clone(&self.segment), self.offset);
        let unreadable = || segment.damaged(offset, "the frame is unreadable");
        let bytes = self.bytes(FrameHeader::BYTES)?;
        let header = FrameHeader::decode(&bytes, segment.binding().of(offset, Revision::ZERO));
        let whole = header.filter(|header| offset + header.frame_len() <= segment.len());
        let header = whole.ok_or_else(unreadable)?;
        let frame = if wanted(&header) {
            let bytes = self.bytes(usize::try_from(header.frame_len()).unwrap_or(usize::MAX))?;
            Some(segment.frame_in(&bytes, offset).ok_or_else(unreadable)?)
        } else {
            None
        };
        self.offset += header.frame_len();
        Ok(Some((offset, header, frame)))
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
        self.read += self.window.len() as u64;
        Ok(self.window.clone())
    }
}
