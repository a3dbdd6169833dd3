use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::schema::{SCHEMA_REFERENCES_MAX, is_draft_2019, target};
use crate::text::{child, unescaped};

/// The schema that accepts everything: what stands where a keyword is missing.
static ANYTHING: Value = Value::Bool(true);

pub(super) static NO_KEYWORDS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Keywords that say nothing about which values are accepted, but that a change of them is worth a word.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "contentSchema",
];

/// Every keyword that decides which values are accepted. Any other is an annotation.
const DECIDING: [&str; 41] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// A schema of a contract, as a whole.
#[derive(Clone, Debug)]
pub(in super::super) struct Root<'a> {
    pub(in super::super) schema: &'a Value,
    /// Where it is in the contract.
    pub(in super::super) path: String,
}

impl<'a> Root<'a> {
    pub(super) fn place(&self) -> Place<'a> {
        Place { schema: self.schema, path: self.path.clone() }
    }

    pub(super) fn is_draft_2019(&self) -> bool {
        is_draft_2019(self.schema)
    }

    /// What a reference leads to.
    pub(super) fn target(&self, reference: &str) -> Option<Place<'a>> {
        let (pointer, schema) = target(self.schema, reference)?;
        Some(Place { schema, path: format!("{}{pointer}", self.path) })
    }

    /// The place that says something: what is only a reference, or a list of one condition, is followed.
    pub(super) fn resolved(&self, place: &Place<'a>) -> Option<Place<'a>> {
        let mut place = place.clone();
        // A reference that leads back to itself is refused when a contract is read.
        for _ in 0..=SCHEMA_REFERENCES_MAX {
            let Value::Object(map) = place.schema else { return Some(place) };
            place = match only(map) {
                Some(("$ref", reference)) => self.target(reference.as_str()?)?,
                Some(("allOf", Value::Array(list))) if list.len() == 1 => {
                    Place { schema: &list[0], path: format!("{}/allOf/0", place.path) }
                }
                _ => return Some(place),
            };
        }
        None
    }
}

impl<'a> Root<'a> {
    /// The schema of a place of a value, as far as properties lead there.
    pub(in super::super) fn find(&self, instance: &str) -> Option<&'a Value> {
        let mut place = self.resolved(&self.place())?;
        for token in instance.split('/').skip(1) {
            let name = unescaped(token);
            let schema = place.keywords().get("properties")?.get(&name)?;
            place = self.resolved(&Place { schema, path: String::new() })?;
        }
        Some(place.schema)
    }
}

/// A subschema, and where it is in its contract.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    pub(super) path: String,
}

/// What a schema says at first sight.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    Anything,
    Nothing,
    Says(&'a Map<String, Value>),
}

impl<'a> Place<'a> {
    /// The place of a keyword's schema; one that accepts everything if it is not there.
    pub(super) fn keyword(&self, keyword: &str) -> Self {
        match self.keywords().get(keyword) {
            Some(schema) => Self { schema, path: child(&self.path, keyword) },
            None => Self::missing(),
        }
    }

    /// The place of a schema in a keyword that has several by name; one that accepts everything if it is not there.
    pub(super) fn named(&self, keyword: &str, name: &str) -> Self {
        match self.keywords().get(keyword).and_then(|all| all.get(name)) {
            Some(schema) => Self { schema, path: child(&child(&self.path, keyword), name) },
            None => Self::missing(),
        }
    }

    /// The places of the schemas in a keyword that has a list of them.
    pub(super) fn listed(&self, keyword: &str) -> Vec<Self> {
        let Some(list) = self.keywords().get(keyword).and_then(Value::as_array) else { return Vec::new() };
        let path = child(&self.path, keyword);
        list.iter().enumerate().map(|(at, schema)| Self { schema, path: child(&path, at) }).collect()
    }

    /// Where nothing is written, there is no path either.
    fn missing() -> Self {
        Self { schema: &ANYTHING, path: String::new() }
    }

    pub(super) fn keywords(&self) -> &'a Map<String, Value> {
        self.schema.as_object().unwrap_or(&NO_KEYWORDS)
    }

    pub(super) fn shape(&self) -> Shape<'a> {
        let map = match self.schema {
            Value::Bool(true) => return Shape::Anything,
            Value::Bool(false) => return Shape::Nothing,
            Value::Object(map) => map,
            _ => return Shape::Says(&NO_KEYWORDS),
        };
        let mut deciding = map.iter().filter(|(keyword, _)| decides(keyword));
        match (deciding.next(), deciding.next()) {
            (None, _) => Shape::Anything,
            (Some((keyword, inner)), None) if keyword == "not" => {
                let inner = Self { schema: inner, path: String::new() };
                if inner.is_plainly_anything() { Shape::Nothing } else { Shape::Says(map) }
            }
            _ => Shape::Says(map),
        }
    }

    pub(super) fn is_anything(&self) -> bool {
        matches!(self.shape(), Shape::Anything)
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.shape(), Shape::Nothing)
    }

    fn is_plainly_anything(&self) -> bool {
        match self.schema {
            Value::Bool(anything) => *anything,
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    /// Whether it consists of this keyword and annotations.
    pub(super) fn is_only(&self, keyword: &str) -> bool {
        only(self.keywords()).is_some_and(|(word, _)| word == keyword)
    }

    /// Whether nothing is written there, so that everything is accepted.
    pub(super) fn is_missing(&self) -> bool {
        std::ptr::eq(self.schema, &raw const ANYTHING)
    }

    /// Which node it is, wherever it was come from.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self.schema).addr()
    }
}

pub(super) fn decides(keyword: &str) -> bool {
    DECIDING.contains(&keyword)
}

/// Whether a change of this keyword is worth a word though it decides nothing.
pub(super) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword)
        || !(decides(keyword) || keyword.starts_with('$') || keyword == "definitions")
}

/// The only keyword that decides anything, if there is just one.
fn only(map: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut deciding = map.iter().filter(|(keyword, _)| decides(keyword));
    let (keyword, value) = deciding.next()?;
    deciding.next().is_none().then_some((keyword.as_str(), value))
}
