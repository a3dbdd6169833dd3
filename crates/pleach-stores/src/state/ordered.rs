//! Any bytes as a token of a key, in the same order: six bits a character, so that 512 bytes take 683.
//!
//! The alphabet is that of base64url in the order of its bytes. A shorter text comes before a longer one that begins
//! with it, because its last character is filled with zeros; that is why order survives without padding.

const ALPHABET: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Writes `bytes` as a token; nothing for no bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(encoded_len(bytes.len()));
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [first, second, third] = group;
        let sextets = [
            first >> 2,
            (first & 0b11) << 4 | second >> 4,
            (second & 0b1111) << 2 | third >> 6,
            third & 0b11_1111,
        ];
        for sextet in &sextets[..=chunk.len()] {
            text.push(char::from(ALPHABET[usize::from(*sextet)]));
        }
    }
    text
}

/// Reads what [`encode`] wrote, and nothing else.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0);
    for character in text.bytes() {
        let sextet = ALPHABET.binary_search(&character).ok()?;
        held = held << 6 | u32::try_from(sextet).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    // One text has one encoding: whatever else would decode to the same bytes is refused.
    (encode(&bytes) == text).then_some(bytes)
}

/// How long the encoding of so many bytes is.
pub(super) const fn encoded_len(bytes: usize) -> usize {
    (bytes * 8).div_ceil(6)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_alphabet_is_in_the_order_of_its_bytes() {
        assert!(ALPHABET.is_sorted());
    }

    #[test]
    fn only_what_was_encoded_is_decoded() {
        for stray in ["a", "0z", "=", "a.b", "-01", "ü"] {
            assert_eq!(decode(stray), None, "{stray}");
        }
        assert_eq!(decode(""), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn bytes_come_back_and_keep_their_order(one in vec(any::<u8>(), 0..12), other in vec(any::<u8>(), 0..12)) {
            let (first, second) = (encode(&one), encode(&other));
            prop_assert_eq!(decode(&first), Some(one.clone()));
            prop_assert_eq!(first.len(), encoded_len(one.len()));
            prop_assert_eq!(one.cmp(&other), first.cmp(&second));
        }

        #[test]
        fn a_longer_text_comes_after_what_it_begins_with(start in vec(any::<u8>(), 0..9), rest in vec(any::<u8>(), 1..9)) {
            let whole = [start.clone(), rest].concat();
            prop_assert!(encode(&start) < encode(&whole));
        }
    }
}
