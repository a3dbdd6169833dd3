use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::canonical::canonical;

/// A set of types. Whole numbers and others are two, so that `integer` is a part of `number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Types(u8);

impl Types {
    const NULL: Self = Self(1);
    const BOOLEAN: Self = Self(2);
    const INTEGER: Self = Self(4);
    const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    /// The words, the wider first, so that a `number` is not an `integer` and something.
    const WORDS: [(&'static str, Self); 7] = [
        ("null", Self::NULL),
        ("boolean", Self::BOOLEAN),
        ("number", Self::NUMBER),
        ("integer", Self::INTEGER),
        ("string", Self::STRING),
        ("array", Self::ARRAY),
        ("object", Self::OBJECT),
    ];

    /// What `type` says.
    pub(super) fn declared(schema: &Map<String, Value>) -> Self {
        let word = |word: &Value| {
            let known = Self::WORDS.iter().find(|(text, _)| word.as_str() == Some(text));
            known.map_or(Self::ALL, |(_, types)| *types)
        };
        match schema.get("type") {
            None => Self::ALL,
            Some(Value::Array(words)) => words.iter().map(word).fold(Self(0), Self::or),
            Some(one) => word(one),
        }
    }

    /// What `type`, `enum` and `const` leave.
    pub(super) fn effective(schema: &Map<String, Value>) -> Self {
        let mut types = Self::declared(schema);
        if let Some(Value::Array(values)) = schema.get("enum") {
            types = types.and(values.iter().map(Self::of).fold(Self(0), Self::or));
        }
        if let Some(value) = schema.get("const") {
            types = types.and(Self::of(value));
        }
        types
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Self::FRACTION,
                _ => Self::INTEGER,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("any type");
        }
        let mut left = *self;
        let mut words = Vec::new();
        for (word, types) in Self::WORDS {
            if types.within(left) {
                words.push(word);
                left = Self(left.0 & !types.0);
            }
        }
        f.write_str(&if words.is_empty() { "nothing".into() } else { words.join(" or ") })
    }
}

/// The values that `enum` and `const` leave, in their canonical form; none if neither is there.
pub(super) fn choices(schema: &Map<String, Value>) -> Option<BTreeSet<String>> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let listed = listed.map(|values| values.iter().map(canonical).collect::<BTreeSet<String>>());
    let fixed = schema.get("const").map(canonical);
    match (listed, fixed) {
        (Some(listed), Some(fixed)) => Some(listed.into_iter().filter(|value| *value == fixed).collect()),
        (None, Some(fixed)) => Some(BTreeSet::from([fixed])),
        (listed, None) => listed,
    }
}

/// The same, only if values are certainly different where their forms are: a large number has two forms.
pub(super) fn plain_choices(schema: &Map<String, Value>) -> Option<BTreeSet<String>> {
    let plain = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Array(_) | Value::Object(_) => false,
    };
    let listed = schema.get("enum").and_then(Value::as_array);
    let all_plain = listed.is_none_or(|values| values.iter().all(plain));
    (all_plain && schema.get("const").is_none_or(plain)).then(|| choices(schema)).flatten()
}
