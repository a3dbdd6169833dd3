use crate::random::Random;

/// Picks ranks so that the rank `r` comes up in proportion to `1 / (r + 1)^skew`, as by Gray et al., "Quickly
/// generating billion-record synthetic databases". Skews below 1 only.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: u64,
    skew: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks from 0 up to but not including `count`.
    pub(crate) fn new(count: u64, skew: f64) -> Self {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-skew)).sum::<f64>();
        let zeta = zeta_of(count);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - skew)) / (1.0 - zeta_of(2.min(count)) / zeta);
        Self { count, skew, zeta, alpha: 1.0 / (1.0 - skew), eta }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the result is below `count` and not negative")]
    pub(crate) fn pick(&self, random: &mut Random) -> u64 {
        let fraction = random.fraction();
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.skew) {
            return 1.min(self.count - 1);
        }
        let rank = self.count as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_ranks_come_up_as_often_as_the_law_says() {
        let (zipf, mut random) = (Zipf::new(1000, 0.99), Random::new(3));
        let mut counts = [0_u32; 1000];
        for _ in 0..200_000 {
            counts[usize::try_from(zipf.pick(&mut random)).unwrap()] += 1;
        }
        let zeta: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        let expected = 200_000.0 / zeta;
        assert!((f64::from(counts[0]) / expected - 1.0).abs() < 0.05, "{} of {expected}", counts[0]);
        assert!(counts[0] > counts[10] && counts[10] > counts[500], "{counts:?}");
        assert!(counts[500..].iter().sum::<u32>() > 5_000, "the tail is not empty");
    }

    #[test]
    fn the_smallest_sets_have_ranks_too() {
        let mut random = Random::new(4);
        for count in 1..4 {
            let zipf = Zipf::new(count, 0.9);
            assert!((0..100).all(|_| zipf.pick(&mut random) < count));
        }
    }
}
