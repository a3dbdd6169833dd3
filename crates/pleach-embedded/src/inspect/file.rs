use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use pleach_engine::{EngineError, Revision};

use crate::disk::{Disk, DiskFile, io_error};
use crate::log::{Binding, FRAME_ALIGNMENT, Footer, FrameHeader, SegmentHeader, SegmentId, StoreId};

/// How much is read at a time.
const WINDOW_BYTES: usize = 1024 * 1024;

/// What a disk that cannot read something is asked for at a time.
const PAGE_BYTES: usize = 4096;

/// A file of the log, read as far as that is possible.
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) len: u64,
    /// What its name says.
    pub(super) id: SegmentId,
    /// Where its first frame begins.
    pub(super) frames_at: u64,
    /// What it says it holds, if it is finished and that can be read.
    pub(super) footer: Option<Footer>,
    /// Its header, or what is wrong with it.
    pub(super) header: Result<SegmentHeader, String>,
    /// What ties checksums to this segment, as far as that can be known.
    pub(super) binding: Option<Binding>,
    file: Box<dyn DiskFile>,
    window: Bytes,
    start: u64,
    /// What the disk said when it could not read something.
    pub(super) refusal: Option<String>,
}

impl SegmentFile {
    /// Opens a segment. Only what keeps it from being opened is an error.
    pub(super) fn open(disk: &dyn Disk, directory: &Path, id: SegmentId) -> Result<Self, EngineError> {
        let path = directory.join(id.file_name());
        let file = disk.open(&path).map_err(io_error("open", &path))?;
        let len = file.len().map_err(io_error("read", &path))?;
        let (window, header) = (Bytes::new(), Err(String::new()));
        let mut segment = Self {
            path,
            len,
            id,
            frames_at: SegmentHeader::BYTES_MAX as u64,
            footer: None,
            header,
            binding: None,
            file,
            window,
            start: 0,
            refusal: None,
        };
        let bytes = segment.at(0, SegmentHeader::BYTES_MAX)?;
        segment.header = match SegmentHeader::decode(&bytes, &segment.path) {
            Ok(header) => Ok(header),
            Err(EngineError::Corrupt { what, .. }) => Err(what),
            Err(other) => Err(other.to_string()),
        };
        segment.binding = match &segment.header {
            Ok(header) => Some(Binding::new(header.salt)),
            Err(_) => segment.guess_binding(&bytes)?,
        };
        if let Ok(header) = &segment.header {
            segment.frames_at = header.len();
        }
        segment.footer = segment.read_footer()?;
        Ok(segment)
    }

    fn read_footer(&mut self) -> Result<Option<Footer>, EngineError> {
        let Some(binding) = self.binding.filter(|_| self.len >= self.frames_at + Footer::TRAILER_BYTES)
        else {
            return Ok(None);
        };
        let trailer = self.at(self.len - Footer::TRAILER_BYTES, usize::MAX)?;
        let place = Footer::place(trailer, binding);
        let Some(offset) = place.filter(|offset| (self.frames_at..self.len).contains(offset)) else {
            return Ok(None);
        };
        let bytes = self.at(offset, usize::try_from(self.len - offset).unwrap_or(usize::MAX))?;
        Ok(Footer::in_frame(&bytes, binding, offset))
    }

    /// Says what is wrong with the header of a segment that should be of `store`.
    pub(super) fn header_fault(&self, store: Option<StoreId>) -> Option<String> {
        match &self.header {
            Err(what) => Some(what.clone()),
            Ok(header) if store.is_some_and(|store| store != header.store) => {
                Some("the segment belongs to another store".into())
            }
            Ok(header) if header.id != self.id => {
                Some(format!("the segment's own name is {}", header.id.file_name()))
            }
            Ok(_) => None,
        }
    }

    /// Up to `len` bytes from `offset` on; fewer at the end of the file. What the disk cannot read is zero, so
    /// that it is found to be damaged.
    pub(super) fn at(&mut self, offset: u64, len: usize) -> Result<Bytes, EngineError> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let skip = offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        if let Some(skip) = skip.filter(|skip| skip.saturating_add(len) <= self.window.len()) {
            return Ok(self.window.slice(skip..skip + len));
        }
        let mut bytes = BytesMut::zeroed(left.min(len.max(WINDOW_BYTES)));
        match self.file.read_at(&mut bytes, offset) {
            Ok(count) => bytes.truncate(count),
            Err(error) => {
                self.refusal = Some(error.to_string());
                for (page, at) in bytes.chunks_mut(PAGE_BYTES).zip((offset..).step_by(PAGE_BYTES)) {
                    if self.file.read_at(page, at).is_err() {
                        page.fill(0);
                    }
                }
            }
        }
        (self.window, self.start) = (bytes.freeze(), offset);
        Ok(self.window.slice(..len.min(self.window.len())))
    }

    /// The sound frame header at `offset`, if there is one.
    pub(super) fn frame_header(
        &mut self,
        binding: Binding,
        offset: u64,
    ) -> Result<Option<FrameHeader>, EngineError> {
        Ok(FrameHeader::decode(&self.at(offset, FrameHeader::BYTES)?, binding.of(offset, Revision::ZERO)))
    }

    /// Looks after `offset` for a sound frame header that `suits`.
    pub(super) fn find_header(
        &mut self,
        binding: Binding,
        offset: u64,
        suits: impl Fn(&FrameHeader) -> bool,
    ) -> Result<Option<u64>, EngineError> {
        let mut at = (offset + 1).next_multiple_of(FRAME_ALIGNMENT as u64);
        while at < self.len {
            if self.frame_header(binding, at)?.is_some_and(|header| suits(&header)) {
                return Ok(Some(at));
            }
            at += FRAME_ALIGNMENT as u64;
        }
        Ok(None)
    }

    /// A damaged header may still hold the number that its frames are tied to, whole or with one bit flipped: if
    /// the first frame is sound with it, it is right.
    fn guess_binding(&mut self, header: &[u8]) -> Result<Option<Binding>, EngineError> {
        let Some(salt) = header.get(40..48).and_then(|salt| salt.try_into().ok()).map(u64::from_le_bytes)
        else {
            return Ok(None);
        };
        let flips = (0..u64::BITS).map(|bit| salt ^ (1 << bit));
        for candidate in std::iter::once(salt).chain(flips).map(Binding::new) {
            // Headers of the first format are shorter.
            for frames_at in [SegmentHeader::BYTES_MAX as u64, 64] {
                if self.frame_header(candidate, frames_at)?.is_some() {
                    self.frames_at = frames_at;
                    return Ok(Some(candidate));
                }
            }
        }
        Ok(None)
    }
}
