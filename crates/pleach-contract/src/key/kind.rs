use std::borrow::Cow;
use std::fmt;

use super::coding::{
    ULID_BYTES, UUID_BYTES, is_slug_byte, is_token_byte, largest, push_digits, push_hexadecimal, push_int,
    push_sixty_four, push_ulid, push_uuid, read_digits, read_hexadecimal, read_int, read_sixty_four,
    read_ulid, read_uuid, sixty_four_bytes,
};
use super::grammar::{BYTES_DEFAULT, HASH_BYTES_DEFAULT, REST_BYTES_DEFAULT, TEXT_BYTES_DEFAULT};
use super::problem::Code;
use super::time::time_bytes;
use super::{Date, Time, Value};

pub(super) const UINT_DIGITS_MAX: u8 = 20;
pub(super) const INT_DIGITS_MAX: u8 = 19;
pub(super) const FRACTION_DIGITS_MAX: u8 = 9;

/// What a segment holds, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The same token in every key.
    Literal(Box<str>),
    /// Letters, digits and `_`.
    Slug {
        /// The longest.
        bytes_max: usize,
    },
    /// Anything that a token can be. Where more follows, keys are not in the order of the text, because of `-`.
    Token {
        /// The longest.
        bytes_max: usize,
    },
    /// 128 bits as 26 digits, the first 48 of them a time.
    Ulid,
    /// 128 bits as a UUID in lower case.
    Uuid,
    /// A number from zero.
    Uint {
        /// How many decimal digits it has.
        digits: u8,
    },
    /// A number, also below zero.
    Int {
        /// How many decimal digits it has.
        digits: u8,
    },
    /// A moment in UTC.
    Time {
        /// How many digits the fraction of a second has.
        fraction_digits: u8,
    },
    /// A day.
    Date,
    /// So many bytes, as hexadecimal digits.
    Hash {
        /// How many.
        bytes: usize,
    },
    /// Bytes, at least one.
    Bytes {
        /// At most so many.
        bytes_max: usize,
    },
    /// One of these, which sort as their bytes do, in whatever order they were declared.
    Enum(Box<[Box<str>]>),
    /// All that follows: any tokens, or none.
    Rest {
        /// The longest, with the dots between tokens.
        bytes_max: usize,
    },
}

/// Why a value cannot stand in a segment.
pub(super) type Refusal = (Code, String);

impl Kind {
    /// The name of the type.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Literal(_) => "literal",
            Self::Slug { .. } => "slug",
            Self::Token { .. } => "token",
            Self::Ulid => "ulid",
            Self::Uuid => "uuid",
            Self::Uint { .. } => "uint",
            Self::Int { .. } => "int",
            Self::Time { .. } => "time",
            Self::Date => "date",
            Self::Hash { .. } => "hash",
            Self::Bytes { .. } => "bytes",
            Self::Enum(_) => "enum",
            Self::Rest { .. } => "rest",
        }
    }

    /// The longest that it can be in a key.
    pub fn key_bytes_max(&self) -> usize {
        match self {
            Self::Literal(text) => text.len(),
            Self::Slug { bytes_max } | Self::Token { bytes_max } | Self::Rest { bytes_max } => *bytes_max,
            Self::Ulid => ULID_BYTES,
            Self::Uuid => UUID_BYTES,
            Self::Uint { digits } => usize::from(*digits),
            Self::Int { digits } => usize::from(*digits) + 1,
            Self::Time { fraction_digits } => time_bytes(*fraction_digits),
            Self::Date => 8,
            Self::Hash { bytes } => bytes * 2,
            Self::Bytes { bytes_max } => sixty_four_bytes(*bytes_max),
            Self::Enum(variants) => variants.iter().map(|variant| variant.len()).max().unwrap_or(0),
        }
    }

    /// Whether keys sort as its values do, if it is the last segment or not.
    pub(super) fn is_ordered(&self, is_last: bool) -> bool {
        !matches!(self, Self::Token { .. }) || is_last
    }

    /// Whether it has values. A literal has none: it is the same in every key.
    pub(super) fn has_value(&self) -> bool {
        !matches!(self, Self::Literal(_))
    }

    /// What it takes, for people.
    pub fn expects(&self) -> String {
        match self {
            Self::Literal(text) => format!("`{text}`"),
            Self::Slug { bytes_max } => format!("1 to {bytes_max} letters, digits or `_`"),
            Self::Token { bytes_max } => format!("1 to {bytes_max} letters, digits or any of -/_="),
            Self::Ulid => {
                "a ULID: 26 digits and capital letters but I, L, O and U, the first at most 7".into()
            }
            Self::Uuid => "a UUID in lower case, such as 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b".into(),
            Self::Uint { digits } => format!("{digits} digits, a number from 0 to {}", largest(*digits)),
            Self::Int { digits } => {
                format!("`0` and {digits} digits, or `-` and {digits} digits for a number below zero")
            }
            Self::Time { fraction_digits } => {
                let example = example(|text| {
                    Time::new(1_783_246_530, 0).iter().for_each(|time| time.push(text, *fraction_digits))
                });
                format!("a time in UTC, such as {example}")
            }
            Self::Date => "a date, such as 20260705".into(),
            Self::Hash { bytes } => format!("{} hexadecimal digits in lower case", bytes * 2),
            Self::Bytes { bytes_max } => {
                format!("1 to {bytes_max} bytes in the digits 0-9 = A-Z _ a-z, six bits each")
            }
            Self::Enum(variants) => format!("one of {}", variants.join(", ")),
            Self::Rest { bytes_max } => format!("tokens of at most {bytes_max} bytes in all, or none"),
        }
    }

    /// Reads a token, or for the rest all tokens that are left.
    pub(crate) fn read<'k>(&self, token: &'k str) -> Option<Value<'k>> {
        let text = |fits: bool| fits.then_some(Value::Text(Cow::Borrowed(token)));
        match self {
            Self::Literal(literal) => text(token == &**literal),
            Self::Slug { bytes_max } => text(is_text(token, *bytes_max, is_slug_byte)),
            Self::Token { bytes_max } => text(is_text(token, *bytes_max, is_token_byte)),
            Self::Rest { bytes_max } => text(is_rest(token, *bytes_max)),
            Self::Enum(variants) => text(variants.iter().any(|variant| **variant == *token)),
            Self::Ulid => read_ulid(token).map(Value::Ulid),
            Self::Uuid => read_uuid(token).map(Value::Uuid),
            Self::Uint { digits } if token.len() == usize::from(*digits) => {
                read_digits(token.as_bytes()).map(Value::Uint)
            }
            Self::Uint { .. } => None,
            Self::Int { digits } => read_int(token, *digits).map(Value::Int),
            Self::Time { fraction_digits } => Time::read(token.as_bytes(), *fraction_digits).map(Value::Time),
            Self::Date => Date::read(token.as_bytes()).map(Value::Date),
            Self::Hash { bytes } if token.len() == bytes * 2 => read_hexadecimal(token).map(bytes_value),
            Self::Hash { .. } => None,
            Self::Bytes { bytes_max } if !token.is_empty() && token.len() <= sixty_four_bytes(*bytes_max) => {
                read_sixty_four(token).map(bytes_value)
            }
            Self::Bytes { .. } => None,
        }
    }

    /// Writes a value, and nothing if it refuses it.
    pub(super) fn write(&self, value: &Value<'_>, into: &mut String) -> Result<(), Refusal> {
        match (self, value) {
            (
                Self::Slug { .. } | Self::Token { .. } | Self::Rest { .. } | Self::Enum(_),
                Value::Text(text),
            ) => {
                if self.read(text).is_none() {
                    return Err(self.malformed(value));
                }
                into.push_str(text);
            }
            (Self::Ulid, Value::Ulid(ulid)) => push_ulid(into, *ulid),
            (Self::Uuid, Value::Uuid(uuid)) => push_uuid(into, *uuid),
            (Self::Uint { digits }, Value::Uint(number)) => {
                if *number > largest(*digits) {
                    return Err(self.malformed(value));
                }
                push_digits(into, *number, usize::from(*digits));
            }
            (Self::Int { digits }, Value::Int(number)) => {
                if number.unsigned_abs() > largest(*digits) {
                    return Err(self.malformed(value));
                }
                push_int(into, *number, *digits);
            }
            (Self::Time { fraction_digits }, Value::Time(time)) => {
                if !time.fits(*fraction_digits) {
                    let what =
                        format!("{time} is finer than the {fraction_digits} digits of a second it takes");
                    return Err((Code::ValueForm, what));
                }
                time.push(into, *fraction_digits);
            }
            (Self::Date, Value::Date(date)) => date.push(into),
            (Self::Hash { bytes: length }, Value::Bytes(bytes)) => {
                if bytes.len() != *length {
                    return Err((Code::ValueForm, format!("{} bytes are not {length}", bytes.len())));
                }
                push_hexadecimal(into, bytes);
            }
            (Self::Bytes { bytes_max }, Value::Bytes(bytes)) => {
                if bytes.is_empty() || bytes.len() > *bytes_max {
                    return Err((Code::ValueForm, format!("{} bytes are not 1 to {bytes_max}", bytes.len())));
                }
                push_sixty_four(into, bytes);
            }
            (_, value) => return Err((Code::ValueType, format!("a {} is no {}", value.word(), self.word()))),
        }
        Ok(())
    }

    fn malformed(&self, value: &Value<'_>) -> Refusal {
        let shown = super::problem::excerpt(&value.to_string());
        let mut what = format!("{shown} is not {}", self.expects());
        if matches!(self, Self::Slug { .. }) && value.to_string().contains('-') {
            what += " (`-` sorts before the dot that ends a slug; the type `token` takes it)";
        }
        (Code::ValueForm, what)
    }
}

/// As it is written after the colon; a literal as it is.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        let mut limited = |number: usize, default: usize| {
            if number == default { f.write_str(word) } else { write!(f, "{word}({number})") }
        };
        match self {
            Self::Literal(text) => f.write_str(text),
            Self::Enum(variants) => f.write_str(&variants.join("|")),
            Self::Slug { bytes_max } | Self::Token { bytes_max } => limited(*bytes_max, TEXT_BYTES_DEFAULT),
            Self::Rest { bytes_max } => limited(*bytes_max, REST_BYTES_DEFAULT),
            Self::Bytes { bytes_max } => limited(*bytes_max, BYTES_DEFAULT),
            Self::Hash { bytes } => limited(*bytes, HASH_BYTES_DEFAULT),
            Self::Uint { digits } => limited((*digits).into(), UINT_DIGITS_MAX.into()),
            Self::Int { digits } => limited((*digits).into(), INT_DIGITS_MAX.into()),
            Self::Time { fraction_digits } => limited((*fraction_digits).into(), FRACTION_DIGITS_MAX.into()),
            Self::Ulid | Self::Uuid | Self::Date => f.write_str(word),
        }
    }
}

fn bytes_value<'a>(bytes: Vec<u8>) -> Value<'a> {
    Value::Bytes(Cow::Owned(bytes))
}

fn is_text(token: &str, bytes_max: usize, allowed: impl Fn(u8) -> bool) -> bool {
    !token.is_empty() && token.len() <= bytes_max && token.bytes().all(allowed)
}

fn is_rest(text: &str, bytes_max: usize) -> bool {
    text.is_empty()
        || text.len() <= bytes_max && text.split('.').all(|token| is_text(token, bytes_max, is_token_byte))
}

fn example(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text
}
