use std::fmt;
use std::str::FromStr;

use crate::key::{check_tokens, excerpt, is_token_byte};
use crate::{InvalidName, Key, KeyRange};

/// A pattern of keys: `*` stands for one whole token, `>` at the end for one or more.
///
/// `user.*.cart` matches `user.42.cart`; `user.>` matches that and `user.42`, but not `user`. A filter
/// without either matches one key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyFilter {
    text: Box<str>,
}

impl KeyFilter {
    /// The filter that every key passes.
    pub fn all() -> Self {
        Self { text: ">".into() }
    }

    /// Checks `text`.
    ///
    /// # Errors
    /// Says which rule `text` breaks, and where.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check_tokens(text, |byte| is_token_byte(byte) || matches!(byte, b'*' | b'>'))?;
        let mut at = 0;
        let last = text.split('.').count() - 1;
        for (index, token) in text.split('.').enumerate() {
            let wild = token.contains(['*', '>']);
            let whole = token == "*" || (token == ">" && index == last);
            if wild && !whole {
                return Err(InvalidName::Wildcard { text: excerpt(text), at });
            }
            at += token.len() + 1;
        }
        Ok(Self { text: text.into() })
    }

    /// The filter that only `key` passes.
    pub fn exactly(key: &Key) -> Self {
        Self { text: key.as_str().into() }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `key` passes.
    pub fn matches(&self, key: &Key) -> bool {
        self.matches_text(key.as_str())
    }

    /// Whether a key with this text passes.
    pub fn matches_text(&self, key: &str) -> bool {
        let mut tokens = key.split('.');
        for pattern in self.text.split('.') {
            match (pattern, tokens.next()) {
                (">", Some(_)) => return true,
                ("*", Some(_)) => {}
                (pattern, Some(token)) if pattern == token => {}
                _ => return false,
            }
        }
        tokens.next().is_none()
    }

    /// The keys among which all that pass are found.
    pub fn range(&self) -> KeyRange {
        match self.text.find(['*', '>']) {
            Some(wild) => KeyRange::prefix(&self.text[..wild]),
            None => KeyRange::only(&*self.text),
        }
    }
}

impl fmt::Display for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl FromStr for KeyFilter {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
