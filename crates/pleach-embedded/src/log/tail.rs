use std::collections::VecDeque;
use std::path::PathBuf;

use bytes::Bytes;
use pleach_engine::{EngineError, Revision, Timestamp};

use super::Log;
use super::footer::{Footer, FrameSummary};
use super::frame::{FRAME_ALIGNMENT, Frame, FrameHeader, FrameKind};
use super::segment::{Segment, SegmentHeader};
use crate::disk::io_error;

/// The end of the log, as it was found when the store was opened.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// The newest revision in the last segment; if it has none, the one before it.
    pub(crate) last: Revision,
    /// The newest time in the last segment.
    pub(crate) time: Timestamp,
    /// Whether the store was closed after the last commit.
    pub(crate) clean: bool,
    /// Whether the last segment holds no records: perhaps marks, but no revision that a next segment could
    /// be named after.
    pub(crate) empty: bool,
    /// Whether the last segment ends with its footer, so that nothing can follow in it.
    pub(crate) finished: bool,
    /// What the last segment holds.
    pub(crate) footer: Footer,
}

impl Tail {
    /// Finds the end of the last segment, cuts off what an unfinished write left behind it, and makes the
    /// rest durable. What is cut off is kept in a file beside the segment.
    ///
    /// # Errors
    /// `Corrupt`, if what is unreadable had been synced, as that up to `known` has: that is damage, and
    /// nothing is cut.
    pub(crate) fn recover(log: &Log, segment: &Segment, known: Revision) -> Result<Self, EngineError> {
        let (start, len) = (segment.header.len(), segment.len());
        let bytes = segment.read(start, usize::try_from(len.saturating_sub(start)).unwrap_or(usize::MAX))?;
        let (mut tail, unsynced, end) = Self::scan(segment, &bytes);
        if tail.last < known {
            let what =
                format!("the log ends at revision {}, and the index knows revision {known}", tail.last);
            return Err(segment.damaged(end, what));
        }
        if end < len {
            tail.clean = false;
            Self::cut(log, segment, &bytes, tail.last, end)?;
        }
        // A segment of an older format is not written to any more.
        tail.clean &= segment.header.format == SegmentHeader::FORMAT;
        if let (true, Some((_, mark))) = (tail.clean, unsynced.back()) {
            // The mark may not have reached the disk; what is written next takes its place.
            segment.set_len(*mark);
            return Ok(tail);
        }
        // Written again, because after a failed sync the operating system may show what is not on the disk,
        // and hold that there is nothing left to sync.
        let index = |offset: u64| usize::try_from(offset - start).unwrap_or(usize::MAX);
        if let Some((_, start)) = unsynced.front() {
            let rewritten = segment.file.write_at(&bytes[index(*start)..index(end)], *start);
            rewritten.map_err(io_error("write", &segment.path))?;
        }
        segment.sync()?;
        Ok(tail)
    }

    /// Reads frames from the start of `bytes`, which follow the segment's header, as far as they are sound.
    /// Also returns the last revision and the place of each frame that none after it shows to have been
    /// synced, and where the last one ends.
    fn scan(segment: &Segment, bytes: &Bytes) -> (Self, VecDeque<(Revision, u64)>, u64) {
        let footer = Footer::empty(segment.first());
        let mut tail = Self {
            last: footer.last,
            time: Timestamp::default(),
            clean: false,
            empty: true,
            finished: false,
            footer,
        };
        let mut offset = segment.header.len();
        let mut unsynced: VecDeque<(Revision, u64)> = VecDeque::new();
        while let Some(frame) = frame_at(segment, bytes, offset) {
            while unsynced.front().is_some_and(|(last, _)| *last <= frame.header.durable) {
                unsynced.pop_front();
            }
            unsynced.push_back((frame.header.last(), offset));
            tail.clean = frame.header.kind == FrameKind::Mark;
            tail.finished = frame.header.kind == FrameKind::Footer;
            tail.empty &= tail.clean;
            if !tail.clean && !tail.finished {
                tail.footer.add(&FrameSummary::of(&frame, offset));
            }
            tail.last = tail.last.max(frame.header.last());
            tail.time = frame.records.iter().map(|(_, record)| record.time).fold(tail.time, Timestamp::max);
            offset += frame.header.frame_len();
        }
        (tail, unsynced, offset)
    }

    fn cut(log: &Log, segment: &Segment, bytes: &Bytes, last: Revision, end: u64) -> Result<(), EngineError> {
        let start = usize::try_from(end - segment.header.len()).unwrap_or(usize::MAX);
        if let Some(later) = synced_frame_after(segment, bytes, start, last) {
            let what = format!(
                "the frame after revision {last} is unreadable, and the one at byte {later} shows that it had been synced"
            );
            return Err(segment.damaged(end, what));
        }
        let rest = &bytes[start..];
        if rest.iter().any(|byte| *byte != 0) {
            let mut path = segment.path.clone().into_os_string();
            path.push(format!(".cut-{end}"));
            keep(log, &PathBuf::from(path), rest)?;
        }
        segment.file.truncate(end).map_err(io_error("truncate", &segment.path))?;
        segment.set_len(end);
        Ok(())
    }
}

fn frame_at(segment: &Segment, bytes: &Bytes, offset: u64) -> Option<Frame> {
    let start = usize::try_from(offset - segment.header.len()).ok()?;
    let frame: Frame = segment.frame_in(&bytes.slice(start.min(bytes.len())..), offset)?;
    // A frame counts only with its padding, so that the next one begins where it should.
    (start as u64 + frame.header.frame_len() <= bytes.len() as u64).then_some(frame)
}

/// Looks after `start` for a frame that was written when a revision after `last` had been synced.
fn synced_frame_after(segment: &Segment, bytes: &Bytes, start: usize, last: Revision) -> Option<u64> {
    (start + FRAME_ALIGNMENT..bytes.len()).step_by(FRAME_ALIGNMENT).find_map(|at| {
        let offset = segment.header.len() + at as u64;
        let header = FrameHeader::decode(&bytes[at..], segment.binding().of(offset, Revision::ZERO))?;
        (header.durable > last).then_some(offset)
    })
}

/// Writes `bytes` to a file of their own, which may be there from an earlier attempt.
fn keep(log: &Log, path: &std::path::Path, bytes: &[u8]) -> Result<(), EngineError> {
    let write = || {
        let file = match log.disk.create(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => log.disk.open(path)?,
            file => file?,
        };
        file.write_at(bytes, 0)?;
        file.sync()?;
        log.disk.sync_directory(&log.directory)
    };
    write().map_err(io_error("write", path))
}
