use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pleach_engine::{Key, KeyRange, RESERVED_PREFIX};

use super::CodecError;
use super::escape::Alphabet;

/// Makes stored keys of keys of the type `K`, and reads them back.
///
/// `decode` returns what `encode` was given, and refuses every key that `encode` would not have made.
pub trait KeyCodec<K: ToOwned + ?Sized>: fmt::Debug + Send + Sync {
    /// The stored key.
    ///
    /// # Errors
    /// If `key` has none, as when it would be too long.
    fn encode(&self, key: &K) -> Result<Key, CodecError>;

    /// What the stored key stands for.
    ///
    /// # Errors
    /// `Malformed` if this codec did not make it.
    fn decode(&self, key: &Key) -> Result<K::Owned, CodecError>;
}

/// Keys as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain;

impl KeyCodec<str> for Plain {
    fn encode(&self, key: &str) -> Result<Key, CodecError> {
        Key::parse(key).map_err(CodecError::Key)
    }

    fn decode(&self, key: &Key) -> Result<String, CodecError> {
        Ok(key.to_string())
    }
}

impl KeyCodec<Key> for Plain {
    fn encode(&self, key: &Key) -> Result<Key, CodecError> {
        Ok(key.clone())
    }

    fn decode(&self, key: &Key) -> Result<Key, CodecError> {
        Ok(key.clone())
    }
}

/// Any text or bytes, in the same order, with `.` between tokens kept, so that filters work.
///
/// Digits, the letters but `z`, and `/` stand for themselves; every other byte takes three, `z` too.
///
/// ```
/// use pleach::codec::{Escape, KeyCodec};
///
/// let key = Escape.encode("user.Ann Lee")?;
/// assert_eq!(key.as_str(), "user.Ann-20Lee");
/// assert_eq!(KeyCodec::<str>::decode(&Escape, &key)?, "user.Ann Lee");
/// # Ok::<_, pleach::codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escape;

impl Escape {
    const NAME: &str = "an escaped key";
    const ALPHABET: Alphabet = Alphabet { separator: b'.', slash: true };

    /// The stored keys of whatever starts with `start`.
    pub fn prefix(&self, start: impl AsRef<[u8]>) -> KeyRange {
        KeyRange::prefix(Self::ALPHABET.encode_start(start.as_ref()).0)
    }
}

impl KeyCodec<[u8]> for Escape {
    fn encode(&self, key: &[u8]) -> Result<Key, CodecError> {
        Key::parse(Self::ALPHABET.encode(key)).map_err(CodecError::Key)
    }

    fn decode(&self, key: &Key) -> Result<Vec<u8>, CodecError> {
        Self::ALPHABET.decode(key.as_str()).map_err(|reason| CodecError::malformed(Self::NAME, reason))
    }
}

impl KeyCodec<str> for Escape {
    fn encode(&self, key: &str) -> Result<Key, CodecError> {
        self.encode(key.as_bytes())
    }

    fn decode(&self, key: &Key) -> Result<String, CodecError> {
        text(Self::NAME, KeyCodec::<[u8]>::decode(self, key)?)
    }
}

/// Absolute paths such as `/srv/www data/`, in the same order, with a token for each segment, so that the
/// filter `srv.>` is everything below `/srv/`.
///
/// ```
/// use pleach::codec::{KeyCodec, Path};
///
/// assert_eq!(Path.encode("/srv/www data/index.html")?.as_str(), "srv.www-20data.index-2ehtml");
/// assert!(Path.encode("srv").is_err());
/// # Ok::<_, pleach::codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path;

impl Path {
    const NAME: &str = "an absolute path";
    const ALPHABET: Alphabet = Alphabet { separator: b'/', slash: false };

    /// The stored keys of the paths that start with `start`.
    ///
    /// # Errors
    /// If `start` does not begin with `/`.
    pub fn prefix(&self, start: &str) -> Result<KeyRange, CodecError> {
        Ok(KeyRange::prefix(Self::ALPHABET.encode_start(Self::below_root(start)?).0))
    }

    fn below_root(path: &str) -> Result<&[u8], CodecError> {
        let below = path.strip_prefix('/').map(str::as_bytes);
        below.ok_or_else(|| CodecError::refused(Self::NAME, "it does not begin with `/`"))
    }
}

impl KeyCodec<str> for Path {
    fn encode(&self, key: &str) -> Result<Key, CodecError> {
        Key::parse(Self::ALPHABET.encode(Self::below_root(key)?)).map_err(CodecError::Key)
    }

    fn decode(&self, key: &Key) -> Result<String, CodecError> {
        let below = Self::ALPHABET.decode(key.as_str());
        let below = below.map_err(|reason| CodecError::malformed(Self::NAME, reason))?;
        Ok(format!("/{}", text(Self::NAME, below)?))
    }
}

/// Any text or bytes as one token of base64url, a third longer. The order is lost.
///
/// Where base64url would be empty or begin as a reserved key does, a `=` is put in front of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base64Url;

impl Base64Url {
    const NAME: &str = "a base64url key";
}

impl KeyCodec<[u8]> for Base64Url {
    fn encode(&self, key: &[u8]) -> Result<Key, CodecError> {
        let mut text = URL_SAFE_NO_PAD.encode(key);
        if text.is_empty() || text.starts_with(RESERVED_PREFIX) {
            text.insert(0, '=');
        }
        Key::parse(text).map_err(CodecError::Key)
    }

    fn decode(&self, key: &Key) -> Result<Vec<u8>, CodecError> {
        let text = key.as_str();
        let decoded = URL_SAFE_NO_PAD.decode(text.strip_prefix('=').unwrap_or(text));
        let bytes = decoded.map_err(|error| CodecError::malformed(Self::NAME, error))?;
        if self.encode(bytes.as_slice())? != *key {
            return Err(CodecError::malformed(Self::NAME, "it is encoded in another way"));
        }
        Ok(bytes)
    }
}

impl KeyCodec<str> for Base64Url {
    fn encode(&self, key: &str) -> Result<Key, CodecError> {
        self.encode(key.as_bytes())
    }

    fn decode(&self, key: &Key) -> Result<String, CodecError> {
        text(Self::NAME, KeyCodec::<[u8]>::decode(self, key)?)
    }
}

fn text(codec: &'static str, bytes: Vec<u8>) -> Result<String, CodecError> {
    String::from_utf8(bytes).map_err(|error| CodecError::malformed(codec, error.utf8_error()))
}
