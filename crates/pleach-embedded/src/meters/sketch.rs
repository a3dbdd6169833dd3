use crate::log::BucketId;

/// How many keys, or prefixes, are counted at once.
pub(crate) const COUNTERS: usize = 64;

/// Counts the keys that come most often, in bounded space (the "space-saving" sketch).
///
/// Of `total` keys, one that came more than `total / COUNTERS` times is surely among the counters, and no count is too
/// high by more than that. Each counter knows its own error, so what is reported as certain is.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    /// In the order of `counters`, apart from them so that a look is quick.
    hashes: Vec<u64>,
    counters: Vec<Counter>,
    total: u64,
}

/// How often something came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) bucket: BucketId,
    pub(crate) text: Vec<u8>,
    /// At most this often.
    pub(crate) count: u64,
    /// And at least this much less often.
    pub(crate) error: u64,
}

impl Counter {
    /// How often it came for certain.
    pub(crate) fn certain(&self) -> u64 {
        self.count - self.error
    }
}

impl Sketch {
    /// Counts a key or a prefix.
    pub(crate) fn add(&mut self, bucket: BucketId, text: &[u8]) {
        self.total += 1;
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(text, bucket.0.into());
        let is_same = |counter: &Counter| counter.bucket == bucket && counter.text == text;
        let known = self.hashes.iter().position(|known| *known == hash);
        if let Some(at) = known.filter(|at| is_same(&self.counters[*at])) {
            self.counters[at].count += 1;
            return;
        }
        if self.counters.len() < COUNTERS {
            self.hashes.push(hash);
            self.counters.push(Counter { bucket, text: text.to_vec(), count: 1, error: 0 });
            return;
        }
        let rarest = (0..COUNTERS).min_by_key(|at| self.counters[*at].count).unwrap_or_default();
        self.hashes[rarest] = hash;
        let counter = &mut self.counters[rarest];
        counter.error = counter.count;
        counter.count += 1;
        counter.bucket = bucket;
        counter.text.clear();
        counter.text.extend_from_slice(text);
        // One very long key shall not make its place large for ever.
        counter.text.shrink_to(text.len() * 4);
    }

    /// Lets what has been counted so far weigh half as much as what comes.
    pub(crate) fn halve(&mut self) {
        self.total /= 2;
        for counter in &mut self.counters {
            counter.count /= 2;
            counter.error /= 2;
        }
        let mut hashes = self.hashes.iter();
        let kept: Vec<_> = self
            .counters
            .iter()
            .map(|counter| (counter.count > 0, hashes.next().copied().unwrap_or_default()))
            .filter_map(|(is_kept, hash)| is_kept.then_some(hash))
            .collect();
        self.counters.retain(|counter| counter.count > 0);
        self.hashes = kept;
    }

    /// How many were counted.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Those that certainly came `least` times or more, the most frequent first.
    pub(crate) fn frequent(&self, least: u64) -> Vec<Counter> {
        let mut found: Vec<_> =
            self.counters.iter().filter(|counter| counter.certain() >= least.max(1)).cloned().collect();
        found.sort_by(|a, b| b.certain().cmp(&a.certain()).then_with(|| a.text.cmp(&b.text)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: BucketId = BucketId(1);

    /// Numbers that look random, the same in every run.
    fn dice(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        }
    }

    #[test]
    fn the_top_keys_of_a_zipf_stream_are_found_with_counts_within_the_bound() {
        const KEYS: usize = 10_000;
        let weights: Vec<f64> = (1..=KEYS).map(|rank| 1.0 / rank as f64).collect();
        let sum: f64 = weights.iter().sum();
        let (mut sketch, mut dice, mut truth) = (Sketch::default(), dice(7), vec![0_u64; KEYS]);
        for _ in 0..100_000 {
            let mut at = dice() as f64 / f64::from(1_u32 << 31) * sum;
            let rank = weights.iter().position(|weight| {
                at -= weight;
                at < 0.0
            });
            let rank = rank.unwrap_or(KEYS - 1);
            truth[rank] += 1;
            sketch.add(BUCKET, format!("key.{rank}").as_bytes());
        }
        let found = sketch.frequent(sketch.total() / 50);
        let names: Vec<_> = found.iter().map(|one| String::from_utf8(one.text.clone()).unwrap()).collect();
        assert!(
            ["key.0", "key.1", "key.2", "key.3"].iter().all(|key| names.contains(&key.to_string())),
            "{names:?}"
        );
        for counter in &sketch.counters {
            let name = String::from_utf8(counter.text.clone()).unwrap();
            let rank: usize = name["key.".len()..].parse().unwrap();
            assert!(counter.certain() <= truth[rank] && truth[rank] <= counter.count, "{name}");
            assert!(counter.error <= sketch.total() / COUNTERS as u64, "{name}");
        }
    }

    #[test]
    fn a_uniform_stream_has_nothing_that_is_certainly_frequent() {
        let (mut sketch, mut dice) = (Sketch::default(), dice(3));
        for _ in 0..100_000 {
            sketch.add(BUCKET, format!("key.{}", dice() % 10_000).as_bytes());
        }
        assert_eq!(sketch.frequent(sketch.total() / 100), []);
        assert_eq!((sketch.counters.len(), sketch.hashes.len()), (COUNTERS, COUNTERS));
    }

    #[test]
    fn what_was_frequent_long_ago_is_forgotten() {
        let mut sketch = Sketch::default();
        (0..1000).for_each(|_| sketch.add(BUCKET, b"old"));
        (0..12).for_each(|_| sketch.halve());
        (0..100).for_each(|_| sketch.add(BUCKET, b"new"));
        let found = sketch.frequent(1);
        assert_eq!(found.iter().map(|one| &one.text[..]).collect::<Vec<_>>(), [b"new"]);
        assert_eq!(sketch.total(), 100);
    }

    #[test]
    fn equal_keys_of_two_buckets_are_two() {
        let mut sketch = Sketch::default();
        sketch.add(BucketId(1), b"k");
        sketch.add(BucketId(2), b"k");
        sketch.add(BucketId(2), b"k");
        assert_eq!(sketch.frequent(2).len(), 1);
        assert_eq!(sketch.frequent(1).len(), 2);
    }
}
