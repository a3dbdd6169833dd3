use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use smol_str::SmolStr;

use crate::InvalidName;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;

/// Keys that start so are the stores' own.
pub const RESERVED_PREFIX: &str = "_kv";

/// What the keys of fences begin with. On engines that other processes write to as well, a fence refuses the commits of
/// writers that judged by an older contract. Those engines read and check fences by their keys, and show them in no scan,
/// count or watch.
pub const FENCE_PREFIX: &str = "_kv.guard.";

/// The header of a fence that names the newest revision of its bucket before it, so that the engine can tell which revision
/// is the newest that it shows.
pub const FENCE_AFTER: &str = "fence-after";

/// The name of an entry in a bucket: tokens of `[-/_=a-zA-Z0-9]` joined by `.`, 1 to 1024 bytes.
///
/// Every engine stores it as it is, and the bytes of keys sort the same everywhere. Other strings go
/// through a key codec. A clone is cheap, and a key of up to 23 bytes takes no memory of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(SmolStr);

impl Key {
    /// Checks `text`.
    ///
    /// # Errors
    /// Says which rule `text` breaks, and where.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let key = Self::parse_reserved(text)?;
        if key.is_reserved() {
            return Err(InvalidName::Reserved { text: excerpt(key.as_str()) });
        }
        Ok(key)
    }

    /// Checks `text`, which may start with [`RESERVED_PREFIX`]: for the stores' own records.
    ///
    /// # Errors
    /// Says which rule `text` breaks, and where.
    pub fn parse_reserved(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check_tokens(text, is_token_byte)?;
        Ok(Self(text.into()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its bytes, by which keys are ordered.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Its `.`-separated parts; there is at least one.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether it is one of the stores' own.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED_PREFIX)
    }

    /// Whether it starts with [`FENCE_PREFIX`].
    pub fn is_fence(&self) -> bool {
        self.0.starts_with(FENCE_PREFIX)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for Key {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Key {
    type Error = InvalidName;

    fn try_from(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Lets a map by keys be asked with a string.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[usize::from(byte)]
}

const TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'_' | b'=');
        byte += 1;
    }
    table
};

/// Checks what keys and filters have in common: length, no empty token, and `allowed` bytes between dots.
pub(crate) fn check_tokens(text: &str, allowed: impl Fn(u8) -> bool) -> Result<(), InvalidName> {
    // One pass over the bytes tells almost always that all is well; what is wrong is worth a closer look.
    let mut after_dot = true;
    let is_sound = text.bytes().all(|byte| {
        let is_dot = byte == b'.';
        let fits = if is_dot { !after_dot } else { allowed(byte) };
        after_dot = is_dot;
        fits
    });
    if is_sound && !after_dot && text.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let what = || excerpt(text);
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > KEY_BYTES_MAX {
        return Err(InvalidName::TooLong { text: what(), bytes: text.len(), limit: KEY_BYTES_MAX });
    }
    if let Some((at, character)) =
        text.char_indices().find(|(_, c)| *c != '.' && !u8::try_from(*c).is_ok_and(&allowed))
    {
        return Err(InvalidName::Character { text: what(), character, at });
    }
    let mut at = 0;
    for token in text.split('.') {
        if token.is_empty() {
            return Err(InvalidName::EmptyToken { text: what(), at });
        }
        at += token.len() + 1;
    }
    Ok(())
}

/// Enough of `text` to recognise it in a message.
pub(crate) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 64;
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
