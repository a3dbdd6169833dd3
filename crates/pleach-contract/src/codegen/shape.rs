use serde_json::{Map, Value};

/// What a schema says that a Rust type can say, too. A type takes all that the schema does, and often more.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape<'s> {
    Any,
    Null,
    Bool,
    /// A whole number, and whether it can be below zero.
    Integer {
        signed: bool,
    },
    Number,
    Text,
    /// One of some texts.
    Choice(Vec<&'s str>),
    List(&'s Value),
    /// An object whose fields all have values of one schema.
    Table(&'s Value),
    /// An object of which nothing is said.
    Object,
    Record(&'s Map<String, Value>),
    Nullable(Box<Shape<'s>>),
    /// What stands elsewhere in the same schema, as a JSON Pointer.
    Reference(String),
}

impl<'s> Shape<'s> {
    pub(super) fn of(schema: &'s Value) -> Self {
        let Value::Object(schema) = schema else { return Self::Any };
        if let Some(reference) = schema.get("$ref") {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
            return pointer.map_or(Self::Any, |pointer| Self::Reference(decoded(pointer)));
        }
        if let Some(choice) = choice(schema) {
            return choice;
        }
        match schema.get("type") {
            Some(Value::String(word)) => of_type(word, schema),
            Some(Value::Array(words)) => of_types(words, schema),
            _ => combined(schema),
        }
    }

    fn nullable(self) -> Self {
        match self {
            Self::Any | Self::Null | Self::Nullable(_) => self,
            other => Self::Nullable(Box::new(other)),
        }
    }
}

fn of_type<'s>(word: &str, schema: &'s Map<String, Value>) -> Shape<'s> {
    match word {
        "null" => Shape::Null,
        "boolean" => Shape::Bool,
        "integer" => Shape::Integer { signed: schema.get("minimum").and_then(Value::as_u64).is_none() },
        "number" => Shape::Number,
        "string" => Shape::Text,
        "array" => list(schema),
        "object" => object(schema),
        _ => Shape::Any,
    }
}

fn of_types<'s>(words: &'s [Value], schema: &'s Map<String, Value>) -> Shape<'s> {
    let is_null = |word: &&Value| word.as_str() == Some("null");
    let mut others = words.iter().filter(|word| !is_null(word));
    match (others.next().and_then(Value::as_str), others.next()) {
        (Some(word), None) => {
            let shape = of_type(word, schema);
            if words.iter().any(|word| is_null(&word)) { shape.nullable() } else { shape }
        }
        _ => Shape::Any,
    }
}

fn list(schema: &Map<String, Value>) -> Shape<'_> {
    const ANY: &Value = &Value::Bool(true);
    match schema.get("items") {
        Some(items) if !schema.contains_key("prefixItems") && !items.is_array() => Shape::List(items),
        _ => Shape::List(ANY),
    }
}

fn object(schema: &Map<String, Value>) -> Shape<'_> {
    let has_fields =
        schema.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
    if has_fields {
        return Shape::Record(schema);
    }
    match schema.get("additionalProperties") {
        Some(values @ Value::Object(_)) if !schema.contains_key("patternProperties") => Shape::Table(values),
        _ => Shape::Object,
    }
}

/// Texts, with null or without, and nothing else.
fn choice(schema: &Map<String, Value>) -> Option<Shape<'_>> {
    if let Some(Value::String(only)) = schema.get("const") {
        return Some(Shape::Choice(vec![only]));
    }
    let options = schema.get("enum")?.as_array()?;
    let mut texts: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
    let nulls = options.iter().filter(|option| option.is_null()).count();
    if texts.is_empty() || texts.len() + nulls < options.len() {
        return None;
    }
    let mut seen = std::collections::BTreeSet::new();
    texts.retain(|text| seen.insert(*text));
    let choice = Shape::Choice(texts);
    Some(if nulls > 0 { choice.nullable() } else { choice })
}

/// Something or null, or all of one thing.
fn combined(schema: &Map<String, Value>) -> Shape<'_> {
    if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return Shape::of(only);
    }
    let any = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    let Some([first, second]) = any.map(Vec::as_slice) else { return Shape::Any };
    match (Shape::of(first), Shape::of(second)) {
        (Shape::Null, other) | (other, Shape::Null) => other.nullable(),
        _ => Shape::Any,
    }
}

/// A pointer out of a URI: `%25` stands for `%`.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut left = pointer.as_bytes();
    while let [first, rest @ ..] = left {
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        left = if escaped.is_some() { &rest[2..] } else { rest };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
