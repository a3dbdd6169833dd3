//! Small changes of a schema, as people make them.

use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::schema::{NAMES, constant, keywords_of, node, number, plain};
use crate::text::child;

/// The schema with one to three changes.
pub(super) fn changed(schema: &Value, choices: &mut Choices) -> Value {
    let mut schema = schema.clone();
    for _ in 0..1 + choices.below(3) {
        let mut places = Vec::new();
        collect(&schema, String::new(), false, &mut places);
        let at = if choices.chance(30) { 0 } else { choices.below(places.len()) };
        let (place, guarded) = places[at].clone();
        if let Some(part) = schema.pointer_mut(&place) {
            change(part, guarded, choices);
        }
    }
    schema
}

/// The places of all subschemas, and whether a property or an item leads there.
fn collect(schema: &Value, path: String, guarded: bool, places: &mut Vec<(String, bool)>) {
    places.push((path.clone(), guarded));
    let Value::Object(map) = schema else { return };
    for (word, value) in map {
        let place = child(&path, word);
        let below = matches!(
            word.as_str(),
            "properties"
                | "patternProperties"
                | "additionalProperties"
                | "items"
                | "prefixItems"
                | "contains"
        );
        match (word.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas" | "$defs", Value::Object(all)) => {
                for (name, schema) in all {
                    let guarded = below || guarded && word != "$defs";
                    collect(schema, child(&place, name), guarded, places);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                for (at, schema) in list.iter().enumerate() {
                    collect(schema, child(&place, at), guarded || below, places);
                }
            }
            (
                "additionalProperties"
                | "items"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames",
                schema,
            ) => collect(schema, place, guarded || below, places),
            _ => {}
        }
    }
}

fn change(schema: &mut Value, guarded: bool, choices: &mut Choices) {
    let kind = choices.below(16);
    let is_root = schema.get("$defs").is_some();
    if let (0 | 1, false) = (kind, is_root) {
        let old = schema.clone();
        *schema = match kind {
            0 => json!({"anyOf": [old, {"type": "null"}]}),
            _ if choices.chance(70) => plain(choices),
            _ => node(choices, 1, guarded),
        };
        return;
    }
    let Value::Object(map) = schema else {
        *schema = if *schema == json!(true) { json!({"type": "integer"}) } else { json!(true) };
        return;
    };
    match kind {
        2 | 3 => loosen(map, choices),
        4 | 5 => property(map, choices),
        6 => required(map, choices),
        7 => {
            let others = choices.one_of(&[json!(false), json!(true), json!({"type": "integer"})]).clone();
            map.insert("additionalProperties".into(), others);
        }
        8 => types(map, choices),
        9 | 10 => limit(map, choices),
        11 => branch(map, guarded, choices),
        12 => choice(map, choices),
        13 => {
            let kind = *choices.one_of(&["object", "string", "integer", "array"]);
            keywords_of(kind, choices, 1, map);
        }
        14 => {
            map.insert("title".into(), json!(choices.one_of(&NAMES)));
        }
        _ => drop_word(map, choices),
    }
}

fn drop_word(map: &mut Map<String, Value>, choices: &mut Choices) {
    let words: Vec<String> = map.keys().filter(|word| *word != "$defs").cloned().collect();
    if !words.is_empty() {
        map.remove(choices.one_of(&words));
    }
}

/// Takes away or loosens what limits.
fn loosen(map: &mut Map<String, Value>, choices: &mut Choices) {
    let limits = [
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "required",
        "pattern",
        "format",
        "uniqueItems",
        "multipleOf",
        "not",
        "minProperties",
        "maxProperties",
        "enum",
        "const",
    ];
    let words: Vec<&str> = limits.into_iter().filter(|word| map.contains_key(*word)).collect();
    if words.is_empty() {
        return types(map, choices);
    }
    map.remove(*choices.one_of(&words));
}

fn property(map: &mut Map<String, Value>, choices: &mut Choices) {
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return };
    let name = *choices.one_of(&NAMES);
    if properties.remove(name).is_none() || choices.chance(20) {
        let name = *choices.one_of(&NAMES);
        let schema = if choices.chance(50) { plain(choices) } else { node(choices, 1, true) };
        properties.insert(name.into(), schema);
    }
}

fn required(map: &mut Map<String, Value>, choices: &mut Choices) {
    let list = map.entry("required").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let name = json!(choices.one_of(&NAMES));
    if list.contains(&name) {
        list.retain(|other| *other != name);
    } else {
        list.push(name);
    }
}

fn types(map: &mut Map<String, Value>, choices: &mut Choices) {
    let new = match map.get("type").cloned() {
        Some(Value::String(kind)) if kind == "integer" => json!("number"),
        Some(Value::String(kind)) if kind == "number" && choices.chance(50) => json!("integer"),
        Some(Value::String(kind)) if kind != "null" => json!([kind, "null"]),
        Some(Value::Array(list)) => list.first().cloned().unwrap_or(json!("string")),
        _ => json!(choices.one_of(&["object", "integer", "string", "array"])),
    };
    map.insert("type".into(), new);
}

/// Moves a limit that is there, or adds one.
fn limit(map: &mut Map<String, Value>, choices: &mut Choices) {
    let limits: Vec<String> =
        map.iter().filter(|(_, value)| value.is_number()).map(|(word, _)| word.clone()).collect();
    let counts = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
    if limits.is_empty() {
        if choices.chance(50) {
            map.insert((*choices.one_of(&counts)).into(), json!(choices.below(4)));
        } else {
            map.insert(
                (*choices.one_of(&["minimum", "maximum", "exclusiveMaximum"])).into(),
                number(choices),
            );
        }
        return;
    }
    let word = choices.one_of(&limits).clone();
    let new = match word.as_str() {
        "multipleOf" => choices.one_of(&[json!(1), json!(2), json!(4), json!(0.5), json!(6)]).clone(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => number(choices),
        _ => json!(choices.below(5)),
    };
    map.insert(word, new);
}

fn branch(map: &mut Map<String, Value>, guarded: bool, choices: &mut Choices) {
    let there: Vec<&str> =
        ["anyOf", "oneOf", "allOf"].into_iter().filter(|word| map.contains_key(*word)).collect();
    let word = if there.is_empty() {
        *choices.one_of(&["anyOf", "oneOf", "allOf"])
    } else {
        *choices.one_of(&there)
    };
    let list = map.entry(word).or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    if list.len() > 1 && choices.chance(50) {
        let at = choices.below(list.len());
        list.remove(at);
    } else {
        list.push(node(choices, 1, guarded));
    }
}

fn choice(map: &mut Map<String, Value>, choices: &mut Choices) {
    let list = map.entry("enum").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let value = constant(choices);
    if list.contains(&value) && list.len() > 1 {
        list.retain(|other| *other != value);
    } else if !list.contains(&value) {
        list.push(value);
    }
}
