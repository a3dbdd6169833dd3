//! Random values that a schema probably accepts.

use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::schema::NAMES;

const TEXTS: [&str; 9] = ["", "a", "ab", "abc", "xa", "b", "2026-07-05", "127.0.0.1", "xaaaa"];

/// A value for this schema, sometimes with something else in it.
pub(super) fn of(root: &Value, choices: &mut Choices) -> Value {
    let mut choices = choices.endless();
    let mut value = for_schema(root, root, &mut choices, 6);
    if choices.chance(50) {
        disturb(&mut value, &mut choices);
    }
    value
}

fn for_schema(schema: &Value, root: &Value, choices: &mut Choices, depth: usize) -> Value {
    let Value::Object(map) = schema else { return anything(choices, depth) };
    if depth == 0 {
        return anything(choices, 0);
    }
    if let Some(fixed) = map.get("const") {
        return fixed.clone();
    }
    if let Some(list) = map.get("enum").and_then(Value::as_array).filter(|list| !list.is_empty()) {
        return choices.one_of(list).clone();
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(&text[1..])) {
        return for_schema(target, root, choices, depth - 1);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        let list = map.get(word).and_then(Value::as_array).filter(|list| !list.is_empty());
        if let Some(list) = list.filter(|_| !map.contains_key("type") || choices.chance(50)) {
            let branch = choices.one_of(list);
            return for_schema(branch, root, choices, depth - 1);
        }
    }
    let kind = match map.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) if !kinds.is_empty() => choices.one_of(kinds).as_str().unwrap_or("null"),
        _ if map.contains_key("properties") || map.contains_key("required") => "object",
        _ if map.contains_key("items") || map.contains_key("contains") => "array",
        _ if map.contains_key("minimum") || map.contains_key("maximum") => "number",
        _ => choices.one_of(&["object", "array", "number", "string", "null", "boolean"]),
    };
    match kind {
        "object" => object(map, root, choices, depth),
        "array" => array(map, root, choices, depth),
        "integer" | "number" => number(map, choices),
        "string" => text(map, choices),
        "boolean" => json!(choices.chance(50)),
        _ => json!(null),
    }
}

fn object(map: &Map<String, Value>, root: &Value, choices: &mut Choices, depth: usize) -> Value {
    let mut made = Map::new();
    let properties = map.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .map_or(Vec::new(), |list| list.iter().filter_map(Value::as_str).collect());
    let others = map.get("additionalProperties");
    for name in NAMES {
        let schema = properties.and_then(|properties| properties.get(name));
        let wanted = match schema {
            _ if required.contains(&name) => true,
            Some(Value::Bool(false)) => false,
            Some(_) => choices.chance(70),
            None => others != Some(&json!(false)) && choices.chance(20),
        };
        if wanted {
            let schema = schema.or(others).unwrap_or(&Value::Bool(true));
            made.insert(name.into(), for_schema(schema, root, choices, depth - 1));
        }
    }
    Value::Object(made)
}

fn array(map: &Map<String, Value>, root: &Value, choices: &mut Choices, depth: usize) -> Value {
    let bound =
        |word: &str| map.get(word).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let least = bound("minItems").unwrap_or(0);
    let most = bound("maxItems").unwrap_or(least + 2).max(least);
    let count = least + choices.below(most - least + 1);
    let first = map.get("prefixItems").and_then(Value::as_array);
    let contained = map.get("contains").filter(|_| choices.chance(60));
    let schema = |at: usize| {
        let placed = first.and_then(|first| first.get(at));
        placed.or(contained).or(map.get("items")).cloned().unwrap_or(Value::Bool(true))
    };
    let schemas: Vec<Value> = (0..count.min(6)).map(schema).collect();
    schemas.iter().map(|schema| for_schema(schema, root, choices, depth - 1)).collect()
}

fn number(map: &Map<String, Value>, choices: &mut Choices) -> Value {
    let words = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    let near: Vec<f64> = words.iter().filter_map(|word| map.get(*word)?.as_f64()).collect();
    if near.is_empty() || choices.chance(30) {
        return super::schema::number(choices);
    }
    let base = *choices.one_of(&near);
    let made = base + *choices.one_of(&[0.0, 1.0, -1.0, 0.5, 2.0, 6.0]);
    crate::text::whole(made).filter(|_| choices.chance(80)).map_or_else(|| json!(made), Value::Number)
}

fn text(map: &Map<String, Value>, choices: &mut Choices) -> Value {
    let bound =
        |word: &str| map.get(word).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let (least, most) = (bound("minLength").unwrap_or(0), bound("maxLength").unwrap_or(usize::MAX));
    let fitting: Vec<&str> = TEXTS.into_iter().filter(|text| (least..=most).contains(&text.len())).collect();
    if fitting.is_empty() { json!("a") } else { json!(choices.one_of(&fitting)) }
}

fn anything(choices: &mut Choices, depth: usize) -> Value {
    match choices.below(if depth == 0 { 5 } else { 7 }) {
        0 => json!(choices.one_of(&TEXTS)),
        1 => super::schema::number(choices),
        2 => json!(null),
        3 => json!(choices.chance(50)),
        4 => json!(choices.one_of(&[1e300, 1e20, 1.0, -3.0])),
        5 => (0..choices.below(3)).map(|_| anything(choices, depth - 1)).collect(),
        _ => {
            let count = choices.below(3);
            let field =
                |choices: &mut Choices| ((*choices.one_of(&NAMES)).to_owned(), anything(choices, depth - 1));
            Value::Object((0..count).map(|_| field(choices)).collect())
        }
    }
}

/// Puts something else somewhere.
fn disturb(value: &mut Value, choices: &mut Choices) {
    match value {
        Value::Array(list) if !list.is_empty() && choices.chance(70) => {
            let at = choices.below(list.len());
            disturb(&mut list[at], choices);
        }
        Value::Object(map) if choices.chance(80) => {
            let name = *choices.one_of(&NAMES);
            match map.get_mut(name) {
                Some(inner) if choices.chance(60) => disturb(inner, choices),
                Some(_) => {
                    map.remove(name);
                }
                None => {
                    map.insert(name.into(), anything(choices, 1));
                }
            }
        }
        other => *other = anything(choices, 1),
    }
}
