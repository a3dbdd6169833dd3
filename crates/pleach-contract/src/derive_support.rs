//! What the code of the derives calls, and nobody else.

use schemars::JsonSchema;
use serde_json::json;

pub use serde_json::Value;

/// An object of these fields.
#[must_use]
pub fn object<const COUNT: usize>(fields: [(&str, Value); COUNT]) -> Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A list of texts.
#[must_use]
pub fn texts(texts: &[&str]) -> Value {
    texts.iter().copied().collect()
}

/// A reference to the schema of a type.
#[must_use]
pub fn reference<T: JsonSchema>() -> Value {
    json!({"schema": crate::schema_name::<T>()})
}
