//! What is surely a mistake in a schema, though it is a schema.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::graph::Graph;
use crate::canonical::canonical;
use crate::document::fields::nearest;
use crate::problem::{Code, Problem};
use crate::text::child;

/// Every keyword that means something to a validator, an editor or a generator of code.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
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
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "xml",
    "enumNames",
    "markdownDescription",
    "errorMessage",
];

/// The formats that values are checked by.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Formats that describe a type to generators of code. Values are not checked by them, and nobody expects that.
const DESCRIBING: &[&str] = &[
    "base64url",
    "binary",
    "byte",
    "char",
    "commonmark",
    "decimal",
    "decimal128",
    "double",
    "double-int",
    "float",
    "html",
    "http-date",
    "int",
    "int128",
    "int16",
    "int32",
    "int64",
    "int8",
    "ip",
    "media-range",
    "partial-date-time",
    "password",
    "sf-string",
    "uint",
    "uint128",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unixtime",
];

/// The keywords that limit a length or a number of things: the least, the most, and of what.
const LENGTHS: [(&str, &str, &str); 4] = [
    ("minLength", "maxLength", "text has so many characters"),
    ("minItems", "maxItems", "list has so many items"),
    ("minProperties", "maxProperties", "object has so many fields"),
    ("minContains", "maxContains", "list has so many of these items"),
];

/// Warnings about a schema that compiles; paths begin at the schema.
pub(crate) fn warnings(schema: &Value) -> Vec<Problem> {
    let Ok(graph) = Graph::of(schema) else { return Vec::new() };
    let mut lint = Lint { found: Vec::new() };
    for node in &graph.nodes {
        if let Some(Value::Object(map)) = schema.pointer(&node.path) {
            lint.look(map, &node.path);
        }
    }
    lint.found
}

struct Lint {
    found: Vec<Problem>,
}

impl Lint {
    fn warn(&mut self, code: Code, path: String, message: String, fix: impl Into<String>) {
        self.found.push(Problem::new(code, path, message, fix));
    }

    fn look(&mut self, schema: &Map<String, Value>, path: &str) {
        for word in schema.keys() {
            self.keyword(word, path);
        }
        if let Some(Value::String(format)) = schema.get("format") {
            self.format(format, &child(path, "format"));
        }
        self.lengths(schema, path);
        self.range(schema, path);
        self.choices(schema, path);
        self.required(schema, path);
    }

    fn keyword(&mut self, word: &str, path: &str) {
        if KEYWORDS.contains(&word) || word.starts_with("x-") {
            return;
        }
        if let Some(meant) = misspelt(word) {
            let message = format!("`{word}` is no keyword of JSON Schema, and checks nothing");
            let fix = format!("did you mean `{meant}`?");
            self.warn(Code::SchemaKeyword, child(path, word), message, fix);
        }
    }

    fn format(&mut self, format: &str, path: &str) {
        if FORMATS.contains(&format) || DESCRIBING.contains(&format) {
            return;
        }
        let fix = match nearest(format, FORMATS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use `pattern`, or a format that is known".to_owned(),
        };
        let message = format!("the format `{format}` is unknown, so values are not checked by it");
        self.warn(Code::SchemaFormat, path.to_owned(), message, fix);
    }

    fn impossible(&mut self, path: &str, word: &str, message: String, fix: &str) {
        self.warn(Code::SchemaImpossible, child(path, word), message, fix);
    }

    fn lengths(&mut self, schema: &Map<String, Value>, path: &str) {
        for (least, most, what) in LENGTHS {
            let number = |word: &str| schema.get(word).and_then(Value::as_number);
            let (Some(low), Some(high)) = (number(least), number(most)) else { continue };
            if compare(low, high).is_gt() {
                let message = format!("no {what}: `{least}` is {low}, and `{most}` is {high}");
                self.impossible(path, least, message, "lower the one or raise the other");
            }
        }
        let names = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        if most.is_some_and(|most| u64::try_from(names).is_ok_and(|names| names > most)) {
            let message = format!("{names} fields are required, and `maxProperties` allows fewer");
            self.impossible(path, "maxProperties", message, "raise it, or require fewer fields");
        }
    }

    fn range(&mut self, schema: &Map<String, Value>, path: &str) {
        let number = |word: &'static str| Some((word, schema.get(word)?.as_number()?));
        for low in ["minimum", "exclusiveMinimum"].into_iter().filter_map(number) {
            for high in ["maximum", "exclusiveMaximum"].into_iter().filter_map(number) {
                let excludes = low.0.starts_with('e') || high.0.starts_with('e');
                let order = compare(low.1, high.1);
                if order.is_gt() || order.is_eq() && excludes {
                    let message = format!(
                        "no number lies between: `{}` is {}, and `{}` is {}",
                        low.0, low.1, high.0, high.1
                    );
                    self.impossible(path, low.0, message, "lower the one or raise the other");
                }
            }
        }
    }

    fn choices(&mut self, schema: &Map<String, Value>, path: &str) {
        let choices = schema.get("enum").and_then(Value::as_array);
        if choices.is_some_and(Vec::is_empty) {
            let message = "`enum` is empty, so no value is allowed".to_owned();
            self.impossible(path, "enum", message, "list the values to choose from, or write `false`");
        }
        if let (Some(choices), Some(fixed)) = (choices, schema.get("const")) {
            let fixed_text = canonical(fixed);
            if !choices.is_empty() && !choices.iter().any(|choice| canonical(choice) == fixed_text) {
                let message = format!("`const` is {}, which `enum` does not list", cut(&fixed_text));
                self.impossible(path, "const", message, "add it to `enum`, or remove one of the two");
            }
        }
        let Some(types) = schema.get("type") else { return };
        let is_of_type = |value: &Value| match types {
            Value::String(kind) => is_of(value, kind),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind)),
            _ => true,
        };
        let fix = "correct the value, or add its type to `type`";
        if let Some(fixed) = schema.get("const").filter(|fixed| !is_of_type(fixed)) {
            let message =
                format!("`const` is {}, and `type` allows only {}", cut(&canonical(fixed)), shown(types));
            self.impossible(path, "const", message, fix);
        }
        let wrong = choices.into_iter().flatten().enumerate().find(|(_, choice)| !is_of_type(choice));
        if let Some((index, choice)) = wrong {
            let message =
                format!("`enum` lists {}, and `type` allows only {}", cut(&canonical(choice)), shown(types));
            self.warn(Code::SchemaImpossible, child(&child(path, "enum"), index), message, fix);
        }
    }

    fn required(&mut self, schema: &Map<String, Value>, path: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        // Whether a pattern matches the name is not asked: it might.
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && patterns.is_none_or(Map::is_empty);
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for (index, name) in names.enumerate().filter_map(|(index, name)| Some((index, name.as_str()?))) {
            let declared = properties.and_then(|all| all.get(name));
            let is_refused = declared == Some(&Value::Bool(false)) || declared.is_none() && is_closed;
            if is_refused {
                let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                let fix = match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("declare `{name}` under `properties`, or do not require it"),
                };
                let message = format!("the field `{name}` is required, and the schema does not allow it");
                let place = child(&child(path, "required"), index);
                self.warn(Code::SchemaImpossible, place, message, fix);
            }
        }
    }
}

/// The keyword that was surely meant: one that differs by a slip or two, in a word long enough to tell.
fn misspelt(word: &str) -> Option<&'static str> {
    const CHARS_MIN: usize = 4;
    const LONG: usize = 8;
    const CHARS_MAX: usize = 64;
    if !(CHARS_MIN..=CHARS_MAX).contains(&word.len()) {
        return None;
    }
    let lower = word.to_lowercase();
    let slips = if word.len() < LONG { 1 } else { 2 };
    let known = KEYWORDS.iter().copied().filter(|known| known.len() >= CHARS_MIN);
    let near = known.map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), known));
    near.filter(|(distance, _)| *distance <= slips).min().map(|(_, known)| known)
}

fn compare(one: &Number, two: &Number) -> Ordering {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(one), whole(two)) {
        (Some(one), Some(two)) => one.cmp(&two),
        _ => {
            let (one, two) = (one.as_f64().unwrap_or_default(), two.as_f64().unwrap_or_default());
            one.total_cmp(&two)
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        (Value::Number(number), "integer") => number.as_f64().is_some_and(|float| float.fract() == 0.0),
        _ => false,
    }
}

fn shown(types: &Value) -> String {
    match types {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        one => one.as_str().unwrap_or_default().to_owned(),
    }
}

fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
