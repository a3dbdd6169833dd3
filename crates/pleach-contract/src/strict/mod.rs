//! JSON values as a guard reads them: what two readers could understand differently is refused.

#[cfg(test)]
mod tests;
mod trace;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most objects and lists that may be nested in each other in the text of a value.
pub const JSON_DEPTH_MAX: usize = 127;

/// Why a text is refused as a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not JSON.
    #[error("{reason}")]
    Syntax {
        /// What is wrong, with line and column.
        reason: String,
    },
    /// An object has two fields of one name, after escapes are resolved. Readers disagree about which one counts.
    #[error("the field {path} is there twice, and readers disagree about which one counts")]
    Duplicate {
        /// The second field, as a JSON Pointer.
        path: String,
    },
    /// Objects and lists are nested deeper than [`JSON_DEPTH_MAX`].
    #[error("{path} is nested deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep {
        /// The first place that is too deep, as a JSON Pointer.
        path: String,
    },
}

/// Reads a JSON value. Every guard reads values by this function, so that no two of them disagree.
///
/// # Errors
/// [`JsonError`] if the text is not JSON, an object at any depth has two fields of one name, or the nesting is too deep.
pub fn parse_json_strict(text: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    // Only a refused text is read again, to find the place.
    read.map_err(|error| trace::explain(text, &error))
}

/// Reads one value and all inside it.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(self)?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom(trace::DUPLICATE));
            }
        }
        Ok(Value::Object(map))
    }
}
