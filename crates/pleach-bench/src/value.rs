use anyhow::{Context as _, Result, ensure};

use crate::keys::index_of;
use crate::random::{Random, mix};

/// The shortest value that can be told from others.
pub(crate) const VALUE_BYTES_MIN: usize = 16;

/// Fills `value` with bytes that belong to this version of this key and cannot be compressed. The version stands
/// first, so that whoever reads the value can tell whether it is the one that was written.
pub(crate) fn fill(value: &mut [u8], index: u64, version: u64) {
    let mut random = Random::new(mix(index) ^ version);
    let (first, rest) = value.split_at_mut(8.min(value.len()));
    first.copy_from_slice(&version.to_le_bytes()[..first.len()]);
    let (words, tail) = rest.as_chunks_mut::<8>();
    for word in words {
        *word = random.next().to_le_bytes();
    }
    let last = random.next().to_le_bytes();
    let length = tail.len();
    tail.copy_from_slice(&last[..length]);
}

/// Checks that `value` is some version of the value of `key`, and tells which.
pub(crate) fn check(key: &[u8], value: &[u8], value_bytes: usize) -> Result<u64> {
    let shown = String::from_utf8_lossy(key);
    let index = index_of(key).with_context(|| format!("nobody wrote the key {shown}"))?;
    ensure!(value.len() == value_bytes, "{shown} has {} bytes instead of {value_bytes}", value.len());
    let first = value.first_chunk().with_context(|| format!("the value of {shown} is too short"))?;
    let version = u64::from_le_bytes(*first);
    let mut expected = vec![0; value_bytes];
    fill(&mut expected, index, version);
    ensure!(expected == value, "the value of {shown} is not the one that was written");
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyText;

    #[test]
    fn a_value_is_known_again_and_a_wrong_one_is_found() {
        for length in [16, 100, 1024] {
            let mut value = vec![0; length];
            fill(&mut value, 5, 77);
            assert_eq!(check(&KeyText::of(5), &value, length).unwrap(), 77);
            assert!(check(&KeyText::of(6), &value, length).is_err());
            value[length - 1] ^= 1;
            assert!(check(&KeyText::of(5), &value, length).is_err());
        }
    }
}
