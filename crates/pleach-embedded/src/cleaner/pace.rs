use std::time::Duration;

use crate::core::Core;

/// Keeps the cleaner from taking the disk away from everyone else.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: Option<u64>,
    started: Duration,
    bytes: u64,
}

/// How much may be done at once before a rest.
const BURST: Duration = Duration::from_millis(20);

/// A rest ends early if the cleaner is woken this often: a clock that stands still must not hold it for ever.
const WAKES_MAX: usize = 100;

impl Pace {
    /// A pace of so many bytes a second, or none.
    pub(super) fn new(core: &Core, bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, started: core.elapsed(), bytes: 0 }
    }

    /// Takes account of some bytes read and written, and rests if they came too fast.
    pub(super) fn did(&mut self, core: &Core, bytes: u64) {
        self.bytes += bytes;
        let Some(limit) = self.bytes_per_second else { return };
        let due = Duration::from_secs_f64(self.bytes as f64 / limit.max(1) as f64);
        let ahead = || due.saturating_sub(core.elapsed().saturating_sub(self.started));
        // Whoever wakes the cleaner meanwhile does not hurry it.
        for _ in 0..WAKES_MAX {
            if ahead() < BURST || core.health.is_closed() {
                return;
            }
            core.cleaner.wait(ahead());
        }
    }
}
