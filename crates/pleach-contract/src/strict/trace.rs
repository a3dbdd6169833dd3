use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::{JSON_DEPTH_MAX, JsonError};
use crate::text::child;

/// How a repeated field is marked on its way through the errors of the parser.
pub(super) const DUPLICATE: &str = "duplicate field";

/// Says why a text was refused, and where: reads it again and keeps the path.
pub(super) fn explain(text: &[u8], error: &serde_json::Error) -> JsonError {
    let trace = Trace { path: RefCell::new(Vec::new()) };
    let again = (&trace).deserialize(&mut serde_json::Deserializer::from_slice(text));
    // After an error, the path is still the one to the place of the error.
    let path = trace.path.borrow().iter().fold(String::new(), |path, token| child(&path, token));
    let is_repeated = again.is_err_and(|error| error.to_string().starts_with(DUPLICATE));
    // The parser refuses to enter one level more, so the path ends at the deepest level that is allowed.
    let is_too_deep =
        trace.path.borrow().len() >= JSON_DEPTH_MAX && error.to_string().starts_with("recursion limit");
    match (is_repeated, is_too_deep) {
        (true, _) => JsonError::Duplicate { path },
        (_, true) => JsonError::TooDeep { path },
        _ => JsonError::Syntax { reason: error.to_string() },
    }
}

/// Reads a value without keeping it, and knows where it is.
struct Trace {
    path: RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for &Trace {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Trace {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0_usize.. {
            self.path.borrow_mut().push(index.to_string());
            let item = items.next_element_seed(self)?;
            self.path.borrow_mut().pop();
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            self.path.borrow_mut().push(name.clone());
            fields.next_value_seed(self)?;
            // The path is that of the second field: what is inside it was in order.
            if !seen.insert(name) {
                return Err(A::Error::custom(DUPLICATE));
            }
            self.path.borrow_mut().pop();
        }
        Ok(())
    }
}
