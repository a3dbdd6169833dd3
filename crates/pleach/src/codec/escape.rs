//! The escaping under [`Escape`](super::Escape) and [`Path`](super::Path): any bytes as a legal key, in the
//! same order.
//!
//! A byte stands for itself or is written as a lead and two hexadecimal digits. There are four leads, each
//! placed in the alphabet of keys where the bytes it leads belong, so that keys sort as what they encode:
//!
//! ```text
//! bytes    00–2f   0–9   3a–40   A–Z   5b–60   a–y   7a–ff
//! written  -hh     as is  =hh    as is  _hh    as is  zhh
//! ```
//!
//! A separator between two tokens is written `.`. Where a token would be left empty, a separator is escaped
//! like any other byte, and at the end a single `-` stands for nothing at all: `a..` is `a.-2e`, `a.` is `a.-`,
//! and the empty text is `-`. What a byte is written as depends only on those before it, and at every place
//! no code begins with another, which is why order survives.

/// What may differ between codecs that escape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alphabet {
    /// The byte that ends a token.
    pub(super) separator: u8,
    /// Whether `/` stands for itself.
    pub(super) slash: bool,
}

impl Alphabet {
    /// Writes `bytes` as the text of a key, which may be too long for one.
    pub(super) fn encode(self, bytes: &[u8]) -> String {
        let (mut text, in_token) = self.encode_start(bytes);
        if !in_token {
            text.push('-');
        }
        text
    }

    /// What the encoding of everything that starts with `bytes` starts with, and nothing else's does; and
    /// whether it ends inside a token.
    pub(super) fn encode_start(self, bytes: &[u8]) -> (String, bool) {
        let mut text = String::with_capacity(bytes.len());
        let mut in_token = false;
        for &byte in bytes {
            if byte == self.separator && in_token {
                text.push('.');
                in_token = false;
                continue;
            }
            match self.lead(byte) {
                None => text.push(char::from(byte)),
                Some(lead) => {
                    text.push(char::from(lead));
                    text.push(char::from(HEX[usize::from(byte >> 4)]));
                    text.push(char::from(HEX[usize::from(byte & 15)]));
                }
            }
            in_token = true;
        }
        (text, in_token)
    }

    /// Reads what [`Alphabet::encode`] wrote, and nothing else.
    pub(super) fn decode(self, text: &str) -> Result<Vec<u8>, &'static str> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            if first == b'.' {
                bytes.push(self.separator);
            } else if !matches!(first, b'-' | b'=' | b'_' | b'z') {
                bytes.push(first);
            } else if let [high, low, after @ ..] = after {
                let digits =
                    digit(*high).zip(digit(*low)).ok_or("an escape has no two hexadecimal digits")?;
                bytes.push(digits.0 << 4 | digits.1);
                rest = after;
            } else if first != b'-' || !after.is_empty() {
                return Err("an escape is cut off");
            }
        }
        // One text has one encoding: whatever else would decode to the same bytes is refused.
        if self.encode(&bytes) == text { Ok(bytes) } else { Err("it is escaped in another way") }
    }

    fn lead(self, byte: u8) -> Option<u8> {
        match byte {
            b'/' if self.slash => None,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'y' => None,
            0..=b'/' => Some(b'-'),
            b':'..=b'@' => Some(b'='),
            b'['..=b'`' => Some(b'_'),
            b'z'..=0xff => Some(b'z'),
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}
