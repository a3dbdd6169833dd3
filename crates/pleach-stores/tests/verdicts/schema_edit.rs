//! Random changes of a schema: everything that people do to one between two versions.

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::schema::{FORMATS, Maker, NAMES, PATTERNS, Spot, loose};

type Schema = Map<String, Value>;

/// How often an edit is tried that may not apply.
const TRIES: usize = 12;

/// Changes one subschema somewhere in a schema.
pub(crate) fn edit(root: &mut Value, random: &mut Random) {
    for _ in 0..TRIES {
        let mut all = Vec::new();
        places(root, String::new(), &mut all);
        let place = random.pick(&all).clone();
        let mut changed = root.clone();
        let mut maker = Maker::of(random, root);
        let spot = spot_of(&place);
        let Some(node) = changed.pointer_mut(&place) else { continue };
        match node {
            Value::Object(map) if maker.random.percent(94) => {
                let edit = *maker.random.pick(&EDITS);
                edit(map, &mut maker, spot);
            }
            // What a root has besides its schema stays.
            Value::Object(map) if place.is_empty() => {
                let Value::Object(new) = maker.object(spot) else { continue };
                map.retain(|keyword, _| keyword.starts_with('$') && keyword != "$ref");
                map.extend(new);
            }
            other => *other = maker.node(spot),
        }
        if changed != *root {
            *root = changed;
            return;
        }
    }
}

/// Where all subschemas are, as JSON Pointers.
pub(crate) fn places(schema: &Value, at: String, all: &mut Vec<String>) {
    all.push(at.clone());
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map {
        let below = format!("{at}/{keyword}");
        match keyword.as_str() {
            "properties" | "patternProperties" | "dependentSchemas" | "$defs" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    places(schema, format!("{below}/{}", name.replace('~', "~0").replace('/', "~1")), all);
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                    places(schema, format!("{below}/{index}"), all);
                }
            }
            "additionalProperties"
            | "propertyNames"
            | "unevaluatedProperties"
            | "items"
            | "contains"
            | "unevaluatedItems"
            | "not"
            | "if"
            | "then"
            | "else"
                if !value.is_array() =>
            {
                places(value, below, all);
            }
            _ => {}
        }
    }
}

/// What may be referred to at a place: in doubt nothing, as a loop is no contract.
fn spot_of(place: &str) -> Spot {
    let inner =
        ["properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains"];
    let is_below = place.split('/').any(|token| inner.contains(&token) || token.starts_with("unevaluated"));
    let definition =
        place.strip_prefix("/$defs/D").and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    Spot { depth: 2, floor: definition.map_or(0, |index| index + 1), is_below }
}

type Edit = fn(&mut Schema, &mut Maker<'_>, Spot);

const EDITS: [Edit; 30] = [
    add_property,
    add_property,
    drop_property,
    drop_property,
    drop_property,
    rename_property,
    change_property,
    additional,
    additional,
    required,
    required,
    about_objects,
    about_objects,
    about_arrays,
    about_arrays,
    enumerate,
    enumerate,
    bounds,
    bounds,
    bounds,
    types,
    types,
    texts,
    wrap,
    branches,
    branches,
    condition,
    refer,
    drop_keyword,
    annotate,
];

fn names(map: &Schema, keyword: &str) -> Vec<String> {
    map.get(keyword).and_then(Value::as_object).map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

fn object<'m>(map: &'m mut Schema, keyword: &str) -> Option<&'m mut Schema> {
    map.get_mut(keyword).and_then(Value::as_object_mut)
}

fn add_property(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let (name, schema) = (maker.name(), maker.node(Spot { depth: 1, is_below: true, ..spot }));
    if !map.contains_key("properties") && map.contains_key("type") && map["type"] != json!("object") {
        return;
    }
    map.entry("properties").or_insert_with(|| json!({}));
    if let Some(fields) = object(map, "properties") {
        fields.insert(name.to_owned(), schema);
    }
}

fn drop_property(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let Some(name) = maker.random.any(&names(map, "properties")).cloned() else { return };
    if let Some(fields) = object(map, "properties") {
        fields.remove(&name);
    }
    if maker.random.percent(80)
        && let Some(Value::Array(required)) = map.get_mut("required")
    {
        required.retain(|one| *one != json!(name));
    }
}

fn rename_property(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let Some(name) = maker.random.any(&names(map, "properties")).cloned() else { return };
    let new = maker.name();
    if let Some(fields) = object(map, "properties")
        && let Some(schema) = fields.remove(&name)
    {
        fields.insert(new.to_owned(), schema);
    }
}

fn change_property(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let Some(name) = maker.random.any(&names(map, "properties")).cloned() else { return };
    let schema = maker.node(Spot { depth: 1, is_below: true, ..spot });
    if let Some(fields) = object(map, "properties") {
        fields.insert(name, schema);
    }
}

fn additional(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    if !map.contains_key("properties") {
        return;
    }
    match maker.random.below(6) {
        0..=2 => drop(map.insert("additionalProperties".into(), json!(false))),
        3 => drop(map.insert("additionalProperties".into(), json!(true))),
        4 => drop(map.remove("additionalProperties")),
        _ => {
            let schema = maker.node(Spot { depth: 1, is_below: true, ..spot });
            map.insert("additionalProperties".into(), schema);
        }
    }
}

fn required(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let mut candidates = names(map, "properties");
    candidates.push(maker.name().to_owned());
    let name = json!(maker.random.pick(&candidates));
    let Value::Array(list) = map.entry("required").or_insert_with(|| json!([])) else { return };
    match list.iter().position(|one| *one == name) {
        Some(at) => drop(list.remove(at)),
        None => list.push(name),
    }
}

const ABOUT_OBJECTS: [&str; 7] = [
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
];

fn about_objects(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let keyword = *maker.random.pick(&ABOUT_OBJECTS);
    if map.remove(keyword).is_none() || maker.random.percent(50) {
        let said = maker.about_objects(keyword, spot);
        map.insert(keyword.into(), said);
    }
}

const ABOUT_ARRAYS: [&str; 9] = [
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minItems",
    "maxItems",
    "unevaluatedItems",
];

fn about_arrays(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    if map.contains_key("type") && map["type"] != json!("array") {
        return;
    }
    let keyword = *maker.random.pick(&ABOUT_ARRAYS);
    if map.remove(keyword).is_none() || maker.random.percent(50) {
        maker.about_arrays(map, keyword, spot);
    }
}

fn enumerate(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let value = loose(maker.random);
    let has_constant = map.contains_key("const");
    match map.get_mut("enum") {
        Some(Value::Array(list)) if list.len() > 1 && maker.random.percent(60) => {
            list.remove(maker.random.below(list.len()));
        }
        Some(Value::Array(list)) if !list.contains(&value) => list.push(value),
        _ if has_constant => {
            map.remove("const");
            if maker.random.percent(70) {
                map.insert("enum".into(), json!([value, "x"]));
            }
        }
        _ => {}
    }
}

const BOUNDS: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "multipleOf",
];

fn bounds(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let present: Vec<&str> = BOUNDS.into_iter().filter(|bound| map.contains_key(*bound)).collect();
    let keyword = match maker.random.any(&present) {
        Some(keyword) => *keyword,
        None => match map.get("type").and_then(Value::as_str) {
            Some("string") => *maker.random.pick(&["minLength", "maxLength"]),
            Some("integer" | "number") => *maker.random.pick(&BOUNDS[..4]),
            Some("array") => *maker.random.pick(&["minItems", "maxItems"]),
            Some("object") => *maker.random.pick(&["minProperties", "maxProperties"]),
            _ => return,
        },
    };
    let least = usize::from(keyword == "multipleOf");
    if maker.random.percent(20) {
        map.remove(keyword);
    } else {
        map.insert(keyword.into(), json!(least + maker.random.below(4)));
    }
}

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn types(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let new = *maker.random.pick(&TYPES);
    let now: Vec<String> = match map.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    match maker.random.below(4) {
        0 => drop(map.remove("type")),
        1 if now.len() > 1 => drop(map.insert("type".into(), json!(now[0]))),
        1 | 2 if !now.is_empty() && !now.iter().any(|one| one == new) => {
            map.insert("type".into(), json!([now[0], new]));
        }
        3 if map.len() <= 1 => drop(map.insert("type".into(), json!(new))),
        _ if now == ["integer"] => drop(map.insert("type".into(), json!("number"))),
        _ if now == ["number"] => drop(map.insert("type".into(), json!("integer"))),
        _ => {}
    }
}

fn texts(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    if map.get("type") != Some(&json!("string")) && !map.contains_key("pattern") {
        return;
    }
    match maker.random.below(4) {
        0 => drop(map.remove("pattern")),
        1 => drop(map.remove("format")),
        2 => drop(map.insert("format".into(), json!(maker.random.pick(&FORMATS).0))),
        _ => drop(map.insert("pattern".into(), json!(maker.random.pick(&PATTERNS).0))),
    }
}

/// Makes the schema a branch of a new one. What belongs to the root stays there.
fn wrap(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let mut inner = Map::new();
    let keywords: Vec<String> =
        map.keys().filter(|keyword| !matches!(keyword.as_str(), "$defs" | "$schema")).cloned().collect();
    for keyword in keywords {
        let said = map.remove(&keyword).unwrap_or_default();
        inner.insert(keyword, said);
    }
    let other = maker.node(Spot { depth: 1, ..spot });
    let (keyword, said) = match maker.random.below(5) {
        0 => ("allOf", json!([inner])),
        1 => ("allOf", json!([inner, other])),
        2 => ("anyOf", json!([inner, other])),
        3 => ("oneOf", json!([inner, other])),
        _ => ("not", json!({"not": inner})),
    };
    map.insert(keyword.into(), said);
}

fn branches(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let other = maker.node(Spot { depth: 1, ..spot });
    let keywords = ["anyOf", "oneOf", "allOf", "prefixItems"];
    let present: Vec<&str> = keywords.into_iter().filter(|keyword| map.contains_key(*keyword)).collect();
    let Some(keyword) = maker.random.any(&present) else {
        if maker.random.percent(20) {
            map.insert((*maker.random.pick(&keywords[..3])).into(), json!([other]));
        }
        return;
    };
    let Some(Value::Array(list)) = map.get_mut(*keyword) else { return };
    match maker.random.below(4) {
        0 => list.push(other),
        1 if list.len() > 1 => list.reverse(),
        2 if list.len() > 1 => drop(list.remove(maker.random.below(list.len()))),
        2 => drop(map.remove(*keyword)),
        _ => {
            let moved = map.remove(*keyword).unwrap_or_default();
            map.insert((*maker.random.pick(&keywords[..3])).into(), moved);
        }
    }
}

fn condition(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let present: Vec<&str> =
        ["if", "then", "else", "not"].into_iter().filter(|word| map.contains_key(*word)).collect();
    match maker.random.any(&present) {
        Some(keyword) if maker.random.percent(50) => drop(map.remove(*keyword)),
        _ => map.extend(maker.condition(Spot { depth: 1, ..spot }).as_object().cloned().unwrap_or_default()),
    }
}

fn refer(map: &mut Schema, maker: &mut Maker<'_>, spot: Spot) {
    let Value::Object(new) = maker.reference(spot) else { return };
    if map.contains_key("$ref") {
        map.remove("$ref");
    } else if maker.random.percent(60) {
        map.retain(|keyword, _| matches!(keyword.as_str(), "$defs" | "$schema"));
    }
    map.extend(new);
}

fn drop_keyword(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    let keywords: Vec<String> =
        map.keys().filter(|keyword| !matches!(keyword.as_str(), "$defs" | "$schema")).cloned().collect();
    if let Some(keyword) = maker.random.any(&keywords) {
        map.remove(keyword);
    }
}

fn annotate(map: &mut Schema, maker: &mut Maker<'_>, _: Spot) {
    map.insert("title".into(), json!(*maker.random.pick(&NAMES)));
}
