//! Random schemas, of few words, so that their parts meet.

use serde_json::{Map, Value, json};

use super::choices::Choices;

pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "xa", "xb"];
const PATTERNS: [&str; 3] = ["^x", "a$", "^[a-c]$"];
const FORMATS: [&str; 2] = ["date", "ipv4"];
const TYPES: [&str; 7] = ["object", "integer", "string", "array", "number", "null", "boolean"];
const DEFS: [&str; 2] = ["one", "two"];

/// A schema with definitions.
pub(super) fn root(choices: &mut Choices) -> Value {
    let mut schema = node(choices, 3, false);
    if let (Value::Object(map), true) = (&mut schema, choices.chance(60)) {
        let defs: Map<String, Value> =
            DEFS.iter().map(|name| ((*name).to_owned(), node(choices, 2, false))).collect();
        map.insert("$defs".into(), Value::Object(defs));
    } else {
        without_references(&mut schema);
    }
    schema
}

/// The same, of every draft and with everything that is hard to compare.
pub(super) fn wild(choices: &mut Choices) -> Value {
    let mut schema = root(choices);
    if let Value::Object(map) = &mut schema {
        if choices.chance(20) {
            map.insert("$schema".into(), json!("https://json-schema.org/draft/2019-09/schema"));
            if choices.chance(50) && !map.contains_key("prefixItems") {
                let items = vec![node(choices, 1, false), node(choices, 1, false)];
                map.insert("items".into(), Value::Array(items));
                map.insert("additionalItems".into(), node(choices, 1, false));
            }
        }
        if choices.chance(20) {
            let word = *choices.one_of(&["unevaluatedProperties", "unevaluatedItems"]);
            map.insert(word.into(), json!(choices.chance(30)));
        }
        if choices.chance(10) {
            map.insert("dependencies".into(), json!({"a": ["b"], "b": node(choices, 1, false)}));
        }
        if choices.chance(20) {
            map.insert("title".into(), json!(*choices.one_of(&NAMES)));
        }
    }
    schema
}

/// A subschema. References are guarded by a property or an item, or they could lead back to themselves.
pub(super) fn node(choices: &mut Choices, depth: usize, guarded: bool) -> Value {
    match choices.below(24) {
        0 => return json!(true),
        1 if depth < 3 => return json!(false),
        2..=4 if guarded => return json!({"$ref": format!("#/$defs/{}", choices.one_of(&DEFS))}),
        5 if depth > 0 => {
            let word = *choices.one_of(&["anyOf", "oneOf", "allOf"]);
            return json!({word: branches(choices, depth - 1, guarded)});
        }
        6 => return json!({"const": constant(choices)}),
        7 => return json!({"enum": constants(choices)}),
        _ => {}
    }
    let mut map = Map::new();
    let kind = *choices.one_of(&TYPES);
    if choices.chance(80) {
        let types = if choices.chance(20) { json!([kind, "null"]) } else { json!(kind) };
        let types = if types == json!(["null", "null"]) { json!("null") } else { types };
        map.insert("type".into(), types);
    }
    keywords_of(kind, choices, depth, &mut map);
    if choices.chance(15) {
        let kind = *choices.one_of(&TYPES);
        keywords_of(kind, choices, depth, &mut map);
    }
    if depth > 0 && choices.chance(20) {
        combined(choices, depth - 1, guarded, &mut map);
    }
    Value::Object(map)
}

/// Keywords about one type.
pub(super) fn keywords_of(kind: &str, choices: &mut Choices, depth: usize, map: &mut Map<String, Value>) {
    match kind {
        "object" => object(choices, depth, map),
        "array" => array(choices, depth, map),
        "integer" | "number" => {
            for word in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
                if choices.chance(25) {
                    map.insert(word.into(), number(choices));
                }
            }
            if choices.chance(20) {
                map.insert(
                    "multipleOf".into(),
                    choices.one_of(&[json!(1), json!(2), json!(3), json!(6), json!(0.5), json!(2.0)]).clone(),
                );
            }
        }
        "string" => {
            for word in ["minLength", "maxLength"] {
                if choices.chance(30) {
                    map.insert(word.into(), json!(choices.below(4)));
                }
            }
            if choices.chance(20) {
                map.insert("pattern".into(), json!(choices.one_of(&PATTERNS)));
            }
            if choices.chance(10) {
                map.insert("format".into(), json!(choices.one_of(&FORMATS)));
            }
        }
        _ => {}
    }
}

fn object(choices: &mut Choices, depth: usize, map: &mut Map<String, Value>) {
    if depth > 0 {
        let inner = |choices: &mut Choices| node(choices, depth - 1, true);
        if choices.chance(80) {
            let count = choices.below(4);
            let properties: Map<String, Value> =
                (0..count).map(|_| ((*choices.one_of(&NAMES)).to_owned(), inner(choices))).collect();
            map.insert("properties".into(), Value::Object(properties));
        }
        if choices.chance(40) {
            let others = if choices.chance(50) { json!(false) } else { inner(choices) };
            map.insert("additionalProperties".into(), others);
        }
        if choices.chance(15) {
            let pattern = *choices.one_of(&PATTERNS);
            map.insert("patternProperties".into(), json!({pattern: inner(choices)}));
        }
        if choices.chance(8) {
            map.insert(
                "dependentSchemas".into(),
                json!({*choices.one_of(&NAMES): node(choices, depth - 1, false)}),
            );
        }
        if choices.chance(8) {
            map.insert("propertyNames".into(), node(choices, depth - 1, true));
        }
    }
    if choices.chance(30) {
        map.insert("required".into(), json!([choices.one_of(&NAMES)]));
    }
    if choices.chance(8) {
        map.insert("dependentRequired".into(), json!({*choices.one_of(&NAMES): [choices.one_of(&NAMES)]}));
    }
    for word in ["minProperties", "maxProperties"] {
        if choices.chance(10) {
            map.insert(word.into(), json!(choices.below(4)));
        }
    }
}

fn array(choices: &mut Choices, depth: usize, map: &mut Map<String, Value>) {
    if depth > 0 {
        if choices.chance(60) {
            map.insert("items".into(), node(choices, depth - 1, true));
        }
        if choices.chance(20) {
            let first = vec![node(choices, depth - 1, true); 1 + choices.below(2)];
            map.insert("prefixItems".into(), Value::Array(first));
        }
        if choices.chance(20) {
            map.insert("contains".into(), node(choices, depth - 1, true));
            for word in ["minContains", "maxContains"] {
                if choices.chance(30) {
                    map.insert(word.into(), json!(choices.below(3)));
                }
            }
        }
    }
    for word in ["minItems", "maxItems"] {
        if choices.chance(20) {
            map.insert(word.into(), json!(choices.below(4)));
        }
    }
    if choices.chance(15) {
        map.insert("uniqueItems".into(), json!(choices.chance(70)));
    }
}

/// Keywords that put schemas together.
fn combined(choices: &mut Choices, depth: usize, guarded: bool, map: &mut Map<String, Value>) {
    match choices.below(6) {
        0 => {
            map.insert("not".into(), node(choices, depth, guarded));
        }
        1 => {
            for word in ["if", "then", "else"] {
                if choices.chance(80) {
                    map.insert(word.into(), node(choices, depth, guarded));
                }
            }
        }
        2 if guarded => {
            map.insert("$ref".into(), json!(format!("#/$defs/{}", choices.one_of(&DEFS))));
        }
        other => {
            let word = ["allOf", "anyOf", "oneOf"][other % 3];
            map.insert(word.into(), branches(choices, depth, guarded));
        }
    }
}

fn branches(choices: &mut Choices, depth: usize, guarded: bool) -> Value {
    let count = 1 + choices.below(3);
    (0..count).map(|_| node(choices, depth, guarded)).collect()
}

pub(super) fn number(choices: &mut Choices) -> Value {
    choices
        .one_of(&[
            json!(0),
            json!(1),
            json!(2),
            json!(3),
            json!(-1),
            json!(1.5),
            json!(2.0),
            json!(6),
            json!(-0.5),
        ])
        .clone()
}

pub(super) fn constant(choices: &mut Choices) -> Value {
    match choices.below(6) {
        0 => json!("a"),
        1 => number(choices),
        2 => json!(null),
        3 => json!(choices.one_of(&["", "ab", "xa", "abc"])),
        4 => json!(choices.chance(50)),
        _ => {
            let large = [json!(1e20), json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0)];
            let whole = [json!([]), json!({}), json!([1]), json!({"a": 1}), json!([1.0])];
            choices.one_of(&[whole.as_slice(), &large].concat()).clone()
        }
    }
}

fn constants(choices: &mut Choices) -> Vec<Value> {
    let mut list: Vec<Value> = Vec::new();
    for _ in 0..1 + choices.below(4) {
        let next = constant(choices);
        if !list.contains(&next) {
            list.push(next);
        }
    }
    list
}

/// Takes references to definitions away that are not there.
fn without_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("$ref");
            map.values_mut().for_each(without_references);
        }
        Value::Array(list) => list.iter_mut().for_each(without_references),
        _ => {}
    }
}
