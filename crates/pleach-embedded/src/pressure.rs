use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::upkeep::{RUNS_MAX, SEALED_MAX};

/// Work that has fallen behind and slows commits down, so that it can catch up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StallCause {
    /// Parts of the index in memory wait to be written to the disk.
    IndexFlush,
    /// Parts of the index on the disk wait to be merged.
    IndexMerge,
    /// Old records are overwritten faster than the log is cleaned.
    LogCleaning,
}

impl StallCause {
    /// Every cause there is.
    pub const ALL: [Self; 3] = [Self::IndexFlush, Self::IndexMerge, Self::LogCleaning];
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IndexFlush => "the index is being written out",
            Self::IndexMerge => "the index is being merged",
            Self::LogCleaning => "the log is being cleaned",
        })
    }
}

/// How much commits are and were slowed down, and by what.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    stalled_micros: [AtomicU64; StallCause::ALL.len()],
}

/// How long a group of commits waits just before it would have to wait for good.
const DELAY_MAX: Duration = Duration::from_millis(20);

/// From these on commits are slowed down, more and more up to the limits of the same name.
const SEALED_EASY: usize = 1;
const RUNS_EASY: usize = 12;

/// The same for how much of the log is garbage, in percent; there is no limit to wait for, because cleaning
/// may be impossible while the disk is full.
/// A log smaller than this is left alone.
const GARBAGE_BYTES_EASY: u64 = 64 * 1024 * 1024;
const DEAD_PERCENT_EASY: u64 = 30;
const DEAD_PERCENT_MAX: u64 = 50;

impl Pressure {
    /// Takes account of commits that waited.
    pub(crate) fn stalled(&self, cause: StallCause, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.stalled_micros[cause as usize].fetch_add(micros, Ordering::AcqRel);
    }

    /// How long commits have waited for this since the store was opened.
    pub(crate) fn time(&self, cause: StallCause) -> Duration {
        Duration::from_micros(self.stalled_micros[cause as usize].load(Ordering::Acquire))
    }
}

/// What slows commits down most just now, and how long the next group has to wait for it.
pub(crate) fn delay(core: &Core) -> Option<(StallCause, Duration)> {
    let backlog = core.index.backlog();
    let (log_bytes, dead) = core.cleaned.estimate();
    let dead_percent = if log_bytes < GARBAGE_BYTES_EASY { 0 } else { dead * 100 / log_bytes };
    let shares = [
        (StallCause::IndexFlush, share(backlog.sealed, SEALED_EASY, SEALED_MAX)),
        (StallCause::IndexMerge, share(backlog.runs, RUNS_EASY, RUNS_MAX)),
        (StallCause::LogCleaning, share(dead_percent, DEAD_PERCENT_EASY, DEAD_PERCENT_MAX)),
    ];
    let (cause, thousandths) = shares.into_iter().max_by_key(|(_, share)| *share)?;
    // Squared: it begins gently.
    let delay = DELAY_MAX * thousandths / 1000 * thousandths / 1000;
    (!delay.is_zero()).then_some((cause, delay))
}

/// How far `now` is between `easy` and `limit`, in thousandths.
fn share<T: TryInto<u64>>(now: T, easy: T, limit: T) -> u32 {
    let number = |value: T| value.try_into().unwrap_or(u64::MAX);
    let (now, easy, limit) = (number(now), number(easy), number(limit));
    let thousandths = now.saturating_sub(easy).saturating_mul(1000) / (limit - easy).max(1);
    u32::try_from(thousandths.min(1000)).unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_slowed_down_gradually() {
        let at = |now: usize| share(now, RUNS_EASY, RUNS_MAX);
        assert_eq!((at(0), at(RUNS_EASY), at(RUNS_MAX), at(2 * RUNS_MAX)), (0, 0, 1000, 1000));
        assert!((RUNS_EASY..RUNS_MAX).all(|runs| at(runs) < at(runs + 1)), "each step is felt");
    }

    #[test]
    fn stalls_are_counted_by_cause() {
        let pressure = Pressure::default();
        pressure.stalled(StallCause::IndexMerge, Duration::from_millis(3));
        pressure.stalled(StallCause::IndexMerge, Duration::from_millis(4));
        let times = StallCause::ALL.map(|cause| pressure.time(cause).as_millis());
        assert_eq!(times, [0, 7, 0]);
    }
}
