//! `enum` with many choices: found by their hash instead of one after the other.

use std::collections::HashSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

use super::violation;

/// From this many choices on they are hashed, unless all of them are texts, which the validator hashes itself.
const HASHED_MIN: usize = 16;

/// How many comparisons one value takes: lists and objects are compared with each choice that is one, all else is hashed.
pub(super) fn comparisons(choices: &[Value]) -> u64 {
    let compared = match is_needed(choices) {
        true => choices.iter().filter(|choice| choice.is_array() || choice.is_object()).count(),
        false => choices.len(),
    };
    u64::try_from(compared).unwrap_or(u64::MAX).saturating_add(1)
}

/// Whether an `enum` has so many choices that they are better hashed.
pub(super) fn is_needed(choices: &[Value]) -> bool {
    choices.len() >= HASHED_MIN && !choices.iter().all(|choice| choice.is_string() || choice.is_null())
}

/// The keyword `enum` for a validator.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match value {
        Value::Array(choices) => Ok(Box::new(OneOfMany::of(choices))),
        _ => Err(ValidationError::custom("`enum` must be a list")),
    }
}

#[derive(Debug, Default)]
struct OneOfMany {
    has_null: bool,
    /// Whether `false` and `true` are among the choices.
    has_bool: [bool; 2],
    numbers: HashSet<Exact>,
    texts: HashSet<Box<str>>,
    /// Lists and objects.
    composite: Vec<Value>,
    message: String,
}

impl OneOfMany {
    fn of(choices: &[Value]) -> Self {
        let mut all = Self { message: violation::choices(choices), ..Self::default() };
        for choice in choices {
            match choice {
                Value::Null => all.has_null = true,
                Value::Bool(value) => all.has_bool[usize::from(*value)] = true,
                Value::Number(number) => drop(all.numbers.insert(Exact::of(number))),
                Value::String(text) => drop(all.texts.insert(text.as_str().into())),
                Value::Array(_) | Value::Object(_) => all.composite.push(choice.clone()),
            }
        }
        all
    }

    fn has(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.has_null,
            Value::Bool(value) => self.has_bool[usize::from(*value)],
            Value::Number(number) => self.numbers.contains(&Exact::of(number)),
            Value::String(text) => self.texts.contains(text.as_str()),
            Value::Array(_) | Value::Object(_) => self.composite.iter().any(|choice| is_equal(choice, value)),
        }
    }
}

impl<'i> Keyword<'i> for OneOfMany {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.has(value) { Ok(()) } else { Err(ValidationError::custom(self.message.clone())) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.has(value)
    }
}

/// A number by its value, so that `1` and `1.0` are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exact {
    Whole(i128),
    /// The bits of a number that has a fraction or is too large to be counted.
    Float(u64),
}

impl Exact {
    fn of(number: &Number) -> Self {
        const WHOLE_MAX: f64 = 1e30;
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        let float = number.as_f64().unwrap_or_default();
        match whole {
            Some(whole) => Self::Whole(whole),
            #[allow(clippy::cast_possible_truncation, reason = "whole and within an i128")]
            None if float.fract() == 0.0 && float.abs() < WHOLE_MAX => Self::Whole(float as i128),
            None => Self::Float(float.to_bits()),
        }
    }
}

/// Whether two values are the same in the sense of JSON Schema. The depth of both is bounded.
fn is_equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Exact::of(one) == Exact::of(two),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_equal(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            let has = |(name, one): (&String, &Value)| two.get(name).is_some_and(|two| is_equal(one, two));
            one.len() == two.len() && one.iter().all(has)
        }
        (one, two) => one == two,
    }
}
