use std::borrow::Cow;
use std::fmt;

use super::coding::{push_hexadecimal, push_ulid, push_uuid};
use super::{Date, Time};

/// The value of a segment. Values of one segment sort as keys do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Of a `slug`, a `token`, an enum or the rest.
    Text(Cow<'a, str>),
    /// Of a `ulid`.
    Ulid(u128),
    /// Of a `uuid`.
    Uuid(u128),
    /// Of a `uint`.
    Uint(u64),
    /// Of an `int`.
    Int(i64),
    /// Of a `time`.
    Time(Time),
    /// Of a `date`.
    Date(Date),
    /// Of a `hash` or of `bytes`.
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// The same without a loan.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Ulid(ulid) => Value::Ulid(ulid),
            Self::Uuid(uuid) => Value::Uuid(uuid),
            Self::Uint(number) => Value::Uint(number),
            Self::Int(number) => Value::Int(number),
            Self::Time(time) => Value::Time(time),
            Self::Date(date) => Value::Date(date),
        }
    }

    /// What kind of value it is, in a word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Ulid(_) => "ulid",
            Self::Uuid(_) => "uuid",
            Self::Uint(_) => "uint",
            Self::Int(_) => "int",
            Self::Time(_) => "time",
            Self::Date(_) => "date",
            Self::Bytes(_) => "bytes",
        }
    }
}

/// As people write it: a number, RFC 3339, bytes as hexadecimal digits.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Self::Text(text) => return f.write_str(text),
            Self::Uint(number) => return number.fmt(f),
            Self::Int(number) => return number.fmt(f),
            Self::Time(time) => return time.fmt(f),
            Self::Date(date) => return date.fmt(f),
            Self::Ulid(ulid) => push_ulid(&mut text, *ulid),
            Self::Uuid(uuid) => push_uuid(&mut text, *uuid),
            Self::Bytes(bytes) => push_hexadecimal(&mut text, bytes),
        }
        f.write_str(&text)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Uint(number)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<Time> for Value<'_> {
    fn from(time: Time) -> Self {
        Self::Time(time)
    }
}

impl From<Date> for Value<'_> {
    fn from(date: Date) -> Self {
        Self::Date(date)
    }
}
