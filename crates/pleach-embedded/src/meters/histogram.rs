use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each power of two is cut into so many buckets, so that a number is known to within an eighth of it.
const PARTS: usize = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();

/// Numbers from two to this power on, in nanoseconds a little more than an hour, share the last bucket.
const POWERS: usize = 42;

const BUCKETS: usize = (POWERS - PARTS_BITS as usize + 1) * PARTS;

/// Counts numbers by their size, such as nanoseconds or how many commits were in a group. Never locks, and never
/// grows.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], max: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts a length of time.
    pub(crate) fn record(&self, time: Duration) {
        self.record_number(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts a number.
    pub(crate) fn record_number(&self, number: u64) {
        self.buckets[bucket_of(number)].fetch_add(1, Ordering::Relaxed);
        // A load is cheaper than the exchange, and hardly any number is a new maximum.
        if number > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// What was counted so far. Counts that come meanwhile may be in it or not.
    pub(crate) fn snapshot(&self) -> Counts {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        Counts { buckets, max: self.max.load(Ordering::Relaxed) }
    }
}

/// What a histogram had counted at some moment, or between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Empty if nothing was counted.
    buckets: Vec<u64>,
    max: u64,
}

impl Counts {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What was counted since `earlier`, a snapshot of the same histogram. The largest number is then known as
    /// well as the others are.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |at: usize| earlier.buckets.get(at).copied().unwrap_or_default();
        let buckets: Vec<_> =
            self.buckets.iter().enumerate().map(|(at, now)| now.saturating_sub(before(at))).collect();
        let max = match buckets.iter().rposition(|count| *count > 0) {
            Some(_) if self.max > earlier.max => self.max,
            Some(last) => upper_bound(last).min(self.max),
            None => 0,
        };
        Self { buckets, max }
    }

    /// The number that so many of a thousand are not above; zero if nothing was counted. It is too large by an eighth
    /// at most.
    pub(crate) fn per_mille(&self, per_mille: u64) -> u64 {
        let wanted = (u128::from(self.count()) * u128::from(per_mille)).div_ceil(1000);
        let mut seen = 0_u128;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if *count > 0 && seen >= wanted {
                return upper_bound(at).min(self.max);
            }
        }
        self.max
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }
}

fn bucket_of(number: u64) -> usize {
    let Some(power) = number.checked_ilog2().filter(|power| *power >= PARTS_BITS) else {
        return usize::try_from(number).unwrap_or_default();
    };
    let part = (number >> (power - PARTS_BITS)) & (PARTS as u64 - 1);
    let at = (power - PARTS_BITS + 1) as usize * PARTS + usize::try_from(part).unwrap_or_default();
    at.min(BUCKETS - 1)
}

/// The largest number that is counted in the bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let (power, part) = (bucket / PARTS - 1, (bucket % PARTS) as u64);
    ((PARTS as u64 + part + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_a_bucket_that_is_at_most_an_eighth_wide() {
        let numbers =
            (0..2000).chain((5..41).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]));
        for number in numbers {
            let bucket = bucket_of(number);
            let (below, above) = (bucket.checked_sub(1).map_or(0, upper_bound), upper_bound(bucket));
            assert!(number <= above && (bucket == 0 || number > below), "{number} is in bucket {bucket}");
            assert!(above - number <= number / 8, "{number} is counted as {above}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_near_the_truth() {
        let histogram = Histogram::default();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        let counts = histogram.snapshot();
        assert_eq!(counts.count(), 10_000);
        for (per_mille, micros) in [(500, 5_000.0), (900, 9_000.0), (990, 9_900.0), (999, 9_990.0)] {
            let found = counts.per_mille(per_mille) as f64 / 1000.0;
            assert!((found / micros - 1.0).abs() < 0.13, "{per_mille}: {found} instead of {micros}");
        }
        assert_eq!(counts.max(), 10_000_000);
        assert!(counts.per_mille(999) <= counts.max());
    }

    #[test]
    fn a_difference_holds_only_what_came_between() {
        let histogram = Histogram::default();
        (0..100).for_each(|_| histogram.record_number(1_000_000));
        let before = histogram.snapshot();
        (0..10).for_each(|_| histogram.record_number(100));
        let between = histogram.snapshot().since(&before);
        assert_eq!(between.count(), 10);
        assert!((100..=103).contains(&between.per_mille(999)) && (100..=103).contains(&between.max()));
        assert_eq!(histogram.snapshot().since(&histogram.snapshot()).max(), 0);
        assert_eq!(Counts::default().per_mille(500), 0);
    }

    #[test]
    fn counts_of_many_threads_are_all_there() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for number in 1..=4 {
                let histogram = &histogram;
                scope.spawn(move || (0..10_000).for_each(|_| histogram.record_number(number * 1000)));
            }
        });
        assert_eq!(histogram.snapshot().count(), 40_000);
    }
}
