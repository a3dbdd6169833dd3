use std::fmt;

use bytes::Bytes;

use super::CodecError;

/// The most bytes that a codec decodes a value into unless told otherwise: the largest value of any engine.
pub const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Makes bytes of bytes, smaller ones for example, and reads them back.
///
/// `decode` is given whatever is stored: it must not panic, nor take memory without bound.
pub trait BytesCodec: fmt::Debug + Send + Sync {
    /// The stored bytes.
    ///
    /// # Errors
    /// If `bytes` has none, or if what it has could not be decoded for its size.
    fn encode(&self, bytes: &Bytes) -> Result<Bytes, CodecError>;

    /// What the stored bytes stand for.
    ///
    /// # Errors
    /// If they are not of this codec, or too large.
    fn decode(&self, stored: &Bytes) -> Result<Bytes, CodecError>;
}

/// LZ4: very fast, moderately small. An LZ4 block after its decoded length, four bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lz4 {
    /// The most bytes it decodes a value into, and so also the most it encodes.
    pub decoded_bytes_max: usize,
}

impl Lz4 {
    const NAME: &str = "LZ4";
    /// No byte of an LZ4 block stands for more decoded ones, so no longer length is believed.
    const EXPANSION_MAX: usize = 255;
}

impl Default for Lz4 {
    fn default() -> Self {
        Self { decoded_bytes_max: DECODED_BYTES_MAX }
    }
}

impl BytesCodec for Lz4 {
    fn encode(&self, bytes: &Bytes) -> Result<Bytes, CodecError> {
        check_size(Self::NAME, bytes.len() as u64, self.decoded_bytes_max)?;
        Ok(lz4_flex::block::compress_prepend_size(bytes).into())
    }

    fn decode(&self, stored: &Bytes) -> Result<Bytes, CodecError> {
        let malformed = |reason: &dyn fmt::Display| CodecError::malformed(Self::NAME, reason);
        let (length, block) =
            lz4_flex::block::uncompressed_size(stored).map_err(|error| malformed(&error))?;
        check_size(Self::NAME, length as u64, self.decoded_bytes_max)?;
        if length > block.len().saturating_mul(Self::EXPANSION_MAX) {
            return Err(malformed(&"it cannot be as long as it says"));
        }
        let mut bytes = vec![0; length];
        let decoded =
            lz4_flex::block::decompress_into(block, &mut bytes).map_err(|error| malformed(&error))?;
        if decoded != length {
            return Err(malformed(&"it is not as long as it says"));
        }
        Ok(bytes.into())
    }
}

/// zstd: smaller than [`Lz4`], and slower. A frame that states its content size.
#[cfg(feature = "zstd")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zstd {
    /// How hard it tries: 1 to 22, or 0 for its default, which is 3.
    pub level: i32,
    /// The most bytes it decodes a value into, and so also the most it encodes.
    pub decoded_bytes_max: usize,
}

#[cfg(feature = "zstd")]
impl Zstd {
    const NAME: &str = "zstd";
}

#[cfg(feature = "zstd")]
impl Default for Zstd {
    fn default() -> Self {
        Self { level: 0, decoded_bytes_max: DECODED_BYTES_MAX }
    }
}

#[cfg(feature = "zstd")]
impl BytesCodec for Zstd {
    fn encode(&self, bytes: &Bytes) -> Result<Bytes, CodecError> {
        check_size(Self::NAME, bytes.len() as u64, self.decoded_bytes_max)?;
        let stored = zstd::bulk::compress(bytes, self.level);
        Ok(stored.map_err(|error| CodecError::refused(Self::NAME, error))?.into())
    }

    fn decode(&self, stored: &Bytes) -> Result<Bytes, CodecError> {
        let malformed = |reason: &dyn fmt::Display| CodecError::malformed(Self::NAME, reason);
        let Ok(Some(length)) = zstd::zstd_safe::get_frame_content_size(stored) else {
            return Err(malformed(&"it does not say how long it is"));
        };
        check_size(Self::NAME, length, self.decoded_bytes_max)?;
        let capacity = usize::try_from(length).map_err(|error| malformed(&error))?;
        let mut bytes = Vec::new();
        // A frame may say any length; where no limit was set, that must not end the process.
        bytes.try_reserve_exact(capacity).map_err(|error| malformed(&error))?;
        let mut frame = zstd::bulk::Decompressor::new().map_err(|error| malformed(&error))?;
        frame.decompress_to_buffer(stored, &mut bytes).map_err(|error| malformed(&error))?;
        if bytes.len() != capacity {
            return Err(malformed(&"it is not as long as it says"));
        }
        Ok(bytes.into())
    }
}

fn check_size(codec: &'static str, bytes: u64, limit: usize) -> Result<(), CodecError> {
    if bytes > limit as u64 {
        return Err(CodecError::TooLarge { codec, bytes, limit });
    }
    Ok(())
}
