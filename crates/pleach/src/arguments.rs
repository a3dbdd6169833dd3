//! What the methods of this library take for keys, names, values and selections, so that call sites read
//! as sentences: text where text is at hand, a checked type where one is.

use bytes::Bytes;
use pleach_engine::{BucketName, ConsumerName, Key, KeyFilter, KeyRange, Selection};

use crate::{Error, StoreUrl};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A key, or text that is checked to be one. Implemented for strings and [`Key`].
pub trait IntoKey: Sealed + Send {
    /// The key.
    ///
    /// # Errors
    /// [`Error::Key`] if it is not one.
    fn into_key(self) -> Result<Key, Error>;
}

/// The name of a bucket, or text that is checked to be one. Implemented for strings and [`BucketName`].
pub trait IntoBucketName: Sealed + Send {
    /// The name.
    ///
    /// # Errors
    /// [`Error::BucketName`] if it is not one.
    fn into_bucket_name(self) -> Result<BucketName, Error>;
}

/// The name of a consumer or a projection, or text that is checked to be one. Implemented for strings and
/// [`ConsumerName`].
pub trait IntoConsumerName: Sealed + Send {
    /// The name.
    ///
    /// # Errors
    /// [`Error::ConsumerName`] if it is not one.
    fn into_consumer_name(self) -> Result<ConsumerName, Error>;
}

/// A filter, or text that is checked to be one, such as `user.>`. Implemented for strings, [`KeyFilter`]
/// and [`Key`].
pub trait IntoFilter: Sealed + Send {
    /// The filter.
    ///
    /// # Errors
    /// [`Error::Filter`] if it is not one.
    fn into_filter(self) -> Result<KeyFilter, Error>;
}

/// Which keys are meant. Implemented for [`Selection`], [`KeyRange`], and whatever is [a filter](IntoFilter).
pub trait IntoSelection: Sealed + Send {
    /// The selection.
    ///
    /// # Errors
    /// [`Error::Filter`] for text that is no filter.
    fn into_selection(self) -> Result<Selection, Error>;
}

/// The bytes of a value. Implemented for strings, bytes in their usual forms, and [`Bytes`]. A string or vector
/// that is given away is not copied, and [`Bytes`] never are.
pub trait IntoValue: Sealed + Send {
    /// The bytes.
    fn into_value(self) -> Bytes;
}

/// Where a store is, or text that is checked to say so. Implemented for strings and [`StoreUrl`].
pub trait IntoStoreUrl: Sealed + Send {
    /// The URL.
    ///
    /// # Errors
    /// [`Error::Url`] if it is not one.
    fn into_store_url(self) -> Result<StoreUrl, Error>;
}

impl<T: Sealed + ?Sized> Sealed for &T {}
impl Sealed for str {}
impl Sealed for String {}
impl Sealed for Key {}
impl Sealed for BucketName {}
impl Sealed for ConsumerName {}
impl Sealed for KeyFilter {}
impl Sealed for KeyRange {}
impl Sealed for Selection {}
impl Sealed for StoreUrl {}
impl Sealed for Bytes {}
impl Sealed for Vec<u8> {}
impl Sealed for [u8] {}
impl<const N: usize> Sealed for [u8; N] {}

/// Text that is parsed, and the checked type it is parsed into, which passes as it is.
macro_rules! parsed {
    ($($trait:ident, $method:ident, $type:ty, $error:path;)*) => { $(
        impl $trait for &str {
            fn $method(self) -> Result<$type, Error> {
                <$type>::parse(self).map_err($error)
            }
        }
        impl $trait for &String {
            fn $method(self) -> Result<$type, Error> {
                self.as_str().$method()
            }
        }
        impl $trait for String {
            fn $method(self) -> Result<$type, Error> {
                self.as_str().$method()
            }
        }
        impl $trait for $type {
            fn $method(self) -> Result<$type, Error> {
                Ok(self)
            }
        }
        impl $trait for &$type {
            fn $method(self) -> Result<$type, Error> {
                Ok(self.clone())
            }
        }
    )* };
}

parsed! {
    IntoKey, into_key, Key, Error::Key;
    IntoBucketName, into_bucket_name, BucketName, Error::BucketName;
    IntoConsumerName, into_consumer_name, ConsumerName, Error::ConsumerName;
    IntoFilter, into_filter, KeyFilter, Error::Filter;
    IntoStoreUrl, into_store_url, StoreUrl, Error::Url;
}

impl IntoFilter for Key {
    fn into_filter(self) -> Result<KeyFilter, Error> {
        Ok(KeyFilter::exactly(&self))
    }
}

impl IntoFilter for &Key {
    fn into_filter(self) -> Result<KeyFilter, Error> {
        Ok(KeyFilter::exactly(self))
    }
}

macro_rules! selected {
    ($($type:ty => |$from:ident| $selection:expr;)*) => { $(
        impl IntoSelection for $type {
            fn into_selection(self) -> Result<Selection, Error> {
                let $from = self;
                Ok($selection)
            }
        }
    )* };
}

selected! {
    Selection => |selection| selection;
    &Selection => |selection| selection.clone();
    KeyRange => |range| Selection::range(range);
    &KeyRange => |range| Selection::range(range.clone());
    Key => |key| Selection::filter(KeyFilter::exactly(&key));
    &Key => |key| Selection::filter(KeyFilter::exactly(key));
    KeyFilter => |filter| Selection::filter(filter);
    &KeyFilter => |filter| Selection::filter(filter.clone());
    &str => |text| Selection::filter(text.into_filter()?);
    &String => |text| Selection::filter(text.into_filter()?);
    String => |text| Selection::filter(text.into_filter()?);
}

macro_rules! copied {
    ($($type:ty),*) => { $(
        impl IntoValue for $type {
            fn into_value(self) -> Bytes {
                Bytes::copy_from_slice(self.as_ref())
            }
        }
    )* };
}

copied!(&str, &String, &[u8], &Vec<u8>);

impl<const N: usize> IntoValue for &[u8; N] {
    fn into_value(self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

impl<const N: usize> IntoValue for [u8; N] {
    fn into_value(self) -> Bytes {
        Bytes::copy_from_slice(&self)
    }
}

impl IntoValue for String {
    fn into_value(self) -> Bytes {
        self.into()
    }
}

impl IntoValue for Vec<u8> {
    fn into_value(self) -> Bytes {
        self.into()
    }
}

impl IntoValue for Bytes {
    fn into_value(self) -> Bytes {
        self
    }
}

impl IntoValue for &Bytes {
    fn into_value(self) -> Bytes {
        self.clone()
    }
}
