use std::ops::Deref;

use crate::random::{Random, mix};
use crate::zipf::Zipf;

/// How many items a tenant has; with it, the order of keys is the order of their indices.
const TENANT_ITEMS: u64 = 1000;

/// The most keys there can be before their numbers run out of digits.
pub(crate) const KEYS_MAX: u64 = 10_000_000;

const TEMPLATE: &[u8; 21] = b"t.0000.item.00000000x";

/// The bytes of a key such as `t.0042.item.00042123`.
pub(crate) const KEY_BYTES: usize = 20;

/// The text of a key, made without allocating.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyText {
    bytes: [u8; 21],
    length: usize,
}

impl KeyText {
    /// The key with this index.
    pub(crate) fn of(index: u64) -> Self {
        let mut bytes = *TEMPLATE;
        digits(&mut bytes[2..6], index / TENANT_ITEMS);
        digits(&mut bytes[12..20], index);
        Self { bytes, length: KEY_BYTES }
    }

    /// A key that nobody wrote, right after the one with this index.
    pub(crate) fn missing(index: u64) -> Self {
        Self { length: KEY_BYTES + 1, ..Self::of(index) }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self).unwrap_or_default()
    }
}

impl Deref for KeyText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The index of a key that [`KeyText::of`] made.
pub(crate) fn index_of(key: &[u8]) -> Option<u64> {
    let digits = key.get(12..KEY_BYTES).filter(|_| key.len() == KEY_BYTES)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn digits(field: &mut [u8], mut number: u64) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Puts the numbers below `count` into a random order, without a table of them: a Feistel cipher on the next
/// power of four, walked until it is back below `count`.
#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `number`, which is below the count, goes.
    pub(crate) fn place(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let mut place = number;
        loop {
            let (mut left, mut right) = (place >> self.half_bits, place & mask);
            for round in 0..4 {
                (left, right) = (right, left ^ (mix(right ^ self.seed.wrapping_add(round << 56)) & mask));
            }
            place = left << self.half_bits | right;
            if place < self.count {
                return place;
            }
        }
    }
}

/// How keys are picked out of all that there are.
#[derive(Clone, Debug)]
pub(crate) enum Spread {
    Uniform(u64),
    /// By rank, with the ranks strewn over the keys.
    Zipf(Zipf, Shuffle),
}

impl Spread {
    pub(crate) fn zipf(count: u64, skew: f64) -> Self {
        Self::Zipf(Zipf::new(count, skew), Shuffle::new(count, 0x0005_eed0))
    }

    pub(crate) fn pick(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform(count) => random.below(*count),
            Self::Zipf(zipf, shuffle) => shuffle.place(zipf.pick(random)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_index_and_missing_ones_sort_between() {
        let indices = [0, 1, 999, 1000, 42_123, KEYS_MAX - 1];
        for pair in indices.windows(2) {
            assert!(*KeyText::of(pair[0]) < *KeyText::missing(pair[0]));
            assert!(*KeyText::missing(pair[0]) < *KeyText::of(pair[1]));
        }
        assert_eq!(KeyText::of(42_123).as_str(), "t.0042.item.00042123");
    }

    #[test]
    fn a_key_tells_its_index() {
        assert_eq!(index_of(&KeyText::of(1_234_567)), Some(1_234_567));
        assert_eq!(index_of(&KeyText::missing(7)), None);
        assert_eq!(index_of(b"short"), None);
    }

    #[test]
    fn a_shuffle_has_every_number_once() {
        for count in [1, 2, 3, 1000, 1024, 1025] {
            let shuffle = Shuffle::new(count, 9);
            let mut places: Vec<_> = (0..count).map(|number| shuffle.place(number)).collect();
            assert!(count < 1000 || !places.is_sorted());
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }
}
