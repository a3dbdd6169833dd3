use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BytesCodec, CodecError};

/// Makes stored bytes of values of the type `V`, and reads them back.
///
/// `decode` is given whatever is stored: it must not panic, nor take memory without bound.
pub trait ValueCodec<V>: fmt::Debug + Send + Sync {
    /// The stored bytes.
    ///
    /// # Errors
    /// If `value` has none.
    fn encode(&self, value: &V) -> Result<Bytes, CodecError>;

    /// What the stored bytes stand for.
    ///
    /// # Errors
    /// If they are not of this codec, or too large.
    fn decode(&self, stored: &Bytes) -> Result<V, CodecError>;

    /// Makes sure, before they are written, that the bytes which `encode` returned can be decoded. A codec whose every
    /// value survives has nothing to do here.
    ///
    /// # Errors
    /// Why they cannot be: JSON makes `null` of a NaN, for example, which is no number.
    fn check(&self, stored: &Bytes) -> Result<(), CodecError> {
        self.decode(stored).map(drop)
    }
}

/// Values as JSON, by serde.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

impl<V: Serialize + DeserializeOwned> ValueCodec<V> for Json {
    fn encode(&self, value: &V) -> Result<Bytes, CodecError> {
        let json = serde_json::to_vec(value).map_err(|error| CodecError::refused("JSON", error))?;
        Ok(json.into())
    }

    fn decode(&self, stored: &Bytes) -> Result<V, CodecError> {
        serde_json::from_slice(stored).map_err(|error| CodecError::malformed("the expected JSON", error))
    }
}

/// Text as UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text;

impl ValueCodec<String> for Text {
    fn encode(&self, value: &String) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(value.as_bytes()))
    }

    fn decode(&self, stored: &Bytes) -> Result<String, CodecError> {
        let text = std::str::from_utf8(stored).map_err(|error| CodecError::malformed("UTF-8", error))?;
        Ok(text.to_owned())
    }

    fn check(&self, _stored: &Bytes) -> Result<(), CodecError> {
        Ok(())
    }
}

/// Bytes as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw;

impl ValueCodec<Bytes> for Raw {
    fn encode(&self, value: &Bytes) -> Result<Bytes, CodecError> {
        Ok(value.clone())
    }

    fn decode(&self, stored: &Bytes) -> Result<Bytes, CodecError> {
        Ok(stored.clone())
    }

    fn check(&self, _stored: &Bytes) -> Result<(), CodecError> {
        Ok(())
    }
}

/// A value codec whose bytes go through another codec: `Json.then(Lz4::default())`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Then<C, B> {
    first: C,
    then: B,
}

impl<C, B> Then<C, B> {
    /// The bytes of `first` go through `then`.
    pub const fn new(first: C, then: B) -> Self {
        Self { first, then }
    }

    /// And then through `then`.
    pub fn then<D: BytesCodec>(self, then: D) -> Then<Self, D> {
        Then::new(self, then)
    }
}

impl<V, C: ValueCodec<V>, B: BytesCodec> ValueCodec<V> for Then<C, B> {
    fn encode(&self, value: &V) -> Result<Bytes, CodecError> {
        self.then.encode(&self.first.encode(value)?)
    }

    fn decode(&self, stored: &Bytes) -> Result<V, CodecError> {
        self.first.decode(&self.then.decode(stored)?)
    }
}

macro_rules! chained {
    ($($codec:ident),*) => { $(
        impl $codec {
            /// The codec whose bytes go through `then`.
            pub fn then<B: BytesCodec>(self, then: B) -> Then<Self, B> {
                Then::new(self, then)
            }
        }
    )* };
}

chained!(Json, Text, Raw);
