//! Codecs: how typed keys and values become the keys and bytes that engines store.
//!
//! A bucket takes keys of a small alphabet and values of plain bytes. A [`KeyCodec`] makes such keys of any
//! text or bytes, a [`ValueCodec`] such bytes of any type; [`Bucket::with_codecs`](crate::Bucket::with_codecs)
//! puts both in front of a bucket. Value codecs compose: [`Json`]`.then(`[`Lz4`]`)`.
//!
//! | keys of | with | stored as | in the same order |
//! |---|---|---|---|
//! | legal text | [`Plain`] | `user.42` | yes |
//! | any text or bytes, tokens at `.` | [`Escape`] | `cafzc3za9` | yes |
//! | absolute paths, tokens at `/` | [`Path`] | `srv.www-20data` | yes |
//! | any text or bytes, one token | [`Base64Url`] | `Y2Fmw6k` | no |
//!
//! Decoding takes whatever is stored: it never panics, and never takes more memory than the codec's named
//! limit. Every key codec accepts only what it would itself have written, so one typed key has one stored key.
//!
//! ```
//! use pleach::codec::{Escape, Json, Lz4};
//! use pleach::{Store, TypedBucket};
//!
//! # pollster::block_on(async {
//! let store = Store::in_memory();
//! let carts: TypedBucket<str, Vec<String>> =
//!     store.create_bucket("carts").await?.with_codecs(Escape, Json.then(Lz4::default()));
//! carts.put("anna maria", &vec!["apples".into()]).await?;
//! assert_eq!(carts.get("anna maria").await?.unwrap().value, ["apples"]);
//! # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod compress;
mod error;
mod escape;
mod key;
#[cfg(test)]
mod tests;
mod value;

#[cfg(feature = "zstd")]
pub use compress::Zstd;
pub use compress::{BytesCodec, DECODED_BYTES_MAX, Lz4};
pub use error::CodecError;
pub use key::{Base64Url, Escape, KeyCodec, Path, Plain};
pub use value::{Json, Raw, Text, Then, ValueCodec};
