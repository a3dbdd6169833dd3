use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::core::Core;
use crate::pressure::{StallCause, delay};

/// How an open store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The log.
    pub log: LogStatus,
    /// The index.
    pub index: IndexStatus,
    /// What has slowed commits down since the store was opened, and whether it does now.
    pub stalls: Vec<Stall>,
    /// Why no more writes are taken, if none are.
    pub read_only: Option<String>,
}

/// How the log of an open store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStatus {
    /// How many segments it has.
    pub segments: usize,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many bytes of them could be cleaned away, as far as samples tell.
    pub garbage_bytes: u64,
    /// How many bytes are in old segments that wait to be removed.
    pub replaced_bytes: u64,
    /// How many bytes were written to it since the store was opened, without what cleaning wrote.
    pub written_bytes: u64,
    /// How many bytes cleaning has read since then.
    pub cleaned_bytes: u64,
    /// How many bytes cleaning has written since then.
    pub rewritten_bytes: u64,
    /// Why it cannot be cleaned just now, if it cannot.
    pub trouble: Option<String>,
}

/// How the index of an open store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStatus {
    /// How many bytes of it are in memory and still grow.
    pub unsealed_bytes: u64,
    /// How many parts in memory wait to be written out.
    pub waiting_flushes: usize,
    /// How many parts on the disk wait to be merged.
    pub waiting_merges: usize,
    /// How many bytes of the log would have to be read again after a crash.
    pub replay_bytes: u64,
}

/// Something that slows commits down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// What it is.
    pub cause: StallCause,
    /// How long commits have waited for it since the store was opened.
    pub time: Duration,
    /// How long each group of commits waits for it now.
    pub now: Option<Duration>,
}

impl Status {
    pub(crate) fn of(core: &Core) -> Self {
        let segments = core.log.segments();
        let (cleaned_bytes, rewritten_bytes) = core.cleaned.bytes();
        let (_, garbage_bytes) = core.cleaned.estimate();
        let log = LogStatus {
            segments: segments.len(),
            bytes: segments.iter().map(|segment| segment.len()).sum(),
            garbage_bytes,
            replaced_bytes: core.log.replaced().iter().map(|segment| segment.len()).sum(),
            written_bytes: core.written_log.load(Ordering::Acquire),
            cleaned_bytes,
            rewritten_bytes,
            trouble: core.health.cleaning_trouble(),
        };
        let backlog = core.index.backlog();
        let index = IndexStatus {
            unsealed_bytes: core.index.unsealed_bytes(),
            waiting_flushes: backlog.sealed,
            waiting_merges: backlog.runs,
            replay_bytes: core.unsealed_log.load(Ordering::Acquire),
        };
        let current = delay(core);
        let stall = |cause: StallCause| Stall {
            cause,
            time: core.pressure.time(cause),
            now: current.filter(|(slowest, _)| *slowest == cause).map(|(_, delay)| delay),
        };
        let read_only = core.health.check_writable().err().map(|error| error.to_string());
        Self { log, index, stalls: StallCause::ALL.map(stall).into(), read_only }
    }
}
