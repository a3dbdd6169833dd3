use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::histogram::Counts;

/// So many samples of the counters are kept, about one a second.
pub(crate) const SAMPLES_MAX: usize = 60;

/// Snapshots of the histograms are kept for the last minute, at this distance.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(10);
const SNAPSHOTS_MAX: usize = 6;

/// What happened in the last minute.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    state: Mutex<Minute>,
}

#[derive(Debug, Default)]
struct Minute {
    samples: VecDeque<Sample>,
    snapshots: VecDeque<(Duration, Latencies)>,
}

/// The counters at one moment. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When, by the clock's elapsed time.
    pub(crate) at: Duration,
    pub(crate) gets: u64,
    pub(crate) puts: u64,
    pub(crate) scans: u64,
    pub(crate) commits: u64,
    pub(crate) groups: u64,
    pub(crate) log_bytes: u64,
    pub(crate) flushed_bytes: u64,
    pub(crate) merged_bytes: u64,
    pub(crate) cleaned_bytes: u64,
    /// How long commits were made to wait, of all causes.
    pub(crate) stalled: Duration,
    /// Not a counter: nearly all syncs since the sample before took less than this.
    pub(crate) sync_p99: Duration,
}

/// All histograms of times at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) gets: Counts,
    pub(crate) scans: Counts,
    pub(crate) puts: Counts,
    pub(crate) syncs: Counts,
}

impl Recent {
    /// Adds a sample, and keeps the histograms as they are now if it is time for that.
    pub(crate) fn add(&self, sample: Sample, latencies: impl FnOnce() -> Latencies) {
        let mut minute = self.lock();
        let is_due = minute.snapshots.back().is_none_or(|(at, _)| sample.at >= *at + SNAPSHOT_INTERVAL);
        if is_due {
            minute.snapshots.push_back((sample.at, latencies()));
            while minute.snapshots.len() > SNAPSHOTS_MAX {
                minute.snapshots.pop_front();
            }
        }
        minute.samples.push_back(sample);
        // One more than there are distances between them.
        while minute.samples.len() > SAMPLES_MAX + 1 {
            minute.samples.pop_front();
        }
    }

    /// The samples, oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.lock().samples.iter().copied().collect()
    }

    /// The newest sample.
    pub(crate) fn last(&self) -> Option<Sample> {
        self.lock().samples.back().copied()
    }

    /// The histograms as they were about a minute ago, or when the store was opened.
    pub(crate) fn minute_ago(&self) -> Latencies {
        let minute = self.lock();
        let is_full = minute.snapshots.len() == SNAPSHOTS_MAX;
        minute.snapshots.front().filter(|_| is_full).map(|(_, then)| then.clone()).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Minute> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::Histogram;

    #[test]
    fn a_minute_is_kept_and_no_more() {
        let (recent, histogram) = (Recent::default(), Histogram::default());
        for second in 0..200 {
            histogram.record_number(second);
            let at = Duration::from_secs(second);
            let latencies = || Latencies { gets: histogram.snapshot(), ..Latencies::default() };
            recent.add(Sample { at, gets: second, ..Sample::default() }, latencies);
        }
        let samples = recent.samples();
        assert_eq!((samples[0].gets, samples[samples.len() - 1].gets), (139, 199));
        let lately = histogram.snapshot().since(&recent.minute_ago().gets).count();
        assert!((50..=60).contains(&lately), "{lately}");
    }

    #[test]
    fn in_the_first_minute_everything_is_recent() {
        let (recent, histogram) = (Recent::default(), Histogram::default());
        histogram.record_number(1);
        recent.add(Sample::default(), || Latencies { gets: histogram.snapshot(), ..Latencies::default() });
        assert_eq!(histogram.snapshot().since(&recent.minute_ago().gets).count(), 1);
    }
}
