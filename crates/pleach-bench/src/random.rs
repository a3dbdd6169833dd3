/// Random numbers that are fast and the same in every run: xorshift with a multiplication (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers that belong to `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        // The state must never be zero.
        Self(mix(seed) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which is not zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(limit);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from 0 up to but not including 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Scatters the bits of a number (splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_limit_and_reach_all_of_it() {
        let mut random = Random::new(1);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(10)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn fractions_are_spread_evenly() {
        let mut random = Random::new(2);
        let sum: f64 = (0..10_000).map(|_| random.fraction()).sum();
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02, "{sum}");
    }
}
