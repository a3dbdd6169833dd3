//! Random values that a schema probably allows, and values that come near.

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::schema::{FORMATS, NAME_PATTERNS, NAMES, PATTERNS, loose};

/// How deep values are nested: recursive schemas end here.
const DEPTH_MAX: usize = 5;

/// A value that aims at being valid.
pub(crate) fn aimed(schema: &Value, random: &mut Random) -> Value {
    Aim { root: schema, random }.value(schema, DEPTH_MAX)
}

/// The same value with one thing changed.
pub(crate) fn near(value: &Value, random: &mut Random) -> Value {
    let mut near = value.clone();
    change(&mut near, random);
    near
}

fn change(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(map) => {
            let names: Vec<String> = map.keys().cloned().collect();
            match (random.below(4), random.any(&names)) {
                (0, Some(name)) => drop(map.remove(name)),
                (1 | 2, Some(name)) => change(&mut map[name], random),
                _ => drop(map.insert((*random.pick(&NAMES)).to_owned(), loose(random))),
            }
        }
        Value::Array(items) => match random.below(4) {
            0 => drop(items.pop()),
            1 if !items.is_empty() => {
                let at = random.below(items.len());
                change(&mut items[at], random);
            }
            2 if !items.is_empty() => items.push(items[0].clone()),
            _ => items.push(loose(random)),
        },
        other => *other = loose(random),
    }
}

struct Aim<'a> {
    root: &'a Value,
    random: &'a mut Random,
}

impl Aim<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let (Value::Object(map), 1..) = (schema, depth) else { return loose(self.random) };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.trim_start_matches('#')).cloned();
            let value = target.map_or(Value::Null, |target| self.value(&target, depth.saturating_sub(1)));
            return self.merged(value, map, depth);
        }
        if let Some(constant) = map.get("const") {
            return constant.clone();
        }
        if let Some(chosen) = map.get("enum").and_then(Value::as_array).and_then(|list| self.random.any(list))
        {
            return chosen.clone();
        }
        let value = self.plain(map, depth);
        self.merged(value, map, depth)
    }

    /// Adds what conditions beside it may ask for.
    fn merged(&mut self, mut value: Value, map: &Map<String, Value>, depth: usize) -> Value {
        for keyword in ["allOf", "anyOf", "oneOf", "if", "then", "else"] {
            let branches: Vec<Value> = match map.get(keyword) {
                Some(Value::Array(all)) if keyword == "allOf" => all.clone(),
                Some(Value::Array(all)) => self.random.any(all).cloned().into_iter().collect(),
                Some(one) if self.random.percent(50) => vec![one.clone()],
                _ => continue,
            };
            for branch in branches {
                let more = self.value(&branch, depth.saturating_sub(1));
                match (&mut value, more) {
                    (Value::Object(into), Value::Object(more)) => into.extend(more),
                    (into, more) if !has_shape(map) || self.random.percent(20) => *into = more,
                    _ => {}
                }
            }
        }
        value
    }

    /// What the keywords about one type say.
    fn plain(&mut self, map: &Map<String, Value>, depth: usize) -> Value {
        let kind = match map.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                (*self.random.any(&kinds).unwrap_or(&"null")).to_owned()
            }
            _ => self.implied(map).to_owned(),
        };
        match kind.as_str() {
            "object" => self.object(map, depth),
            "array" => self.array(map, depth),
            "string" => self.text(map),
            "integer" => json!(self.whole(map)),
            "number" if self.random.percent(30) => json!(self.random.below(8) as f64 / 2.0),
            "number" => json!(self.whole(map)),
            "boolean" => json!(self.random.percent(50)),
            "null" => Value::Null,
            _ => loose(self.random),
        }
    }

    /// The type that keywords speak of where none is named.
    fn implied(&mut self, map: &Map<String, Value>) -> &'static str {
        let has = |words: &[&str]| words.iter().any(|word| map.contains_key(*word));
        if self.random.percent(15) {
            return "any";
        }
        if has(&[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
        ]) {
            "object"
        } else if has(&["items", "prefixItems", "contains", "uniqueItems", "unevaluatedItems", "maxItems"]) {
            "array"
        } else if has(&["pattern", "maxLength", "minLength", "format"]) {
            "string"
        } else {
            "any"
        }
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> Value {
        let mut fields = Map::new();
        let none = Map::new();
        let declared = map.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = strings(map.get("required"));
        for (name, schema) in declared {
            let chance = if depth == 0 { 0 } else { 60 };
            if required.contains(&name.as_str()) || self.random.percent(chance) {
                fields.insert(name.clone(), self.value(schema, depth.saturating_sub(1)));
            }
        }
        for name in required {
            if !fields.contains_key(name) {
                fields.insert(name.to_owned(), loose(self.random));
            }
        }
        let is_open = map.get("additionalProperties") != Some(&json!(false));
        if is_open && depth > 0 && self.random.percent(30) {
            let name = *self.random.pick(&NAMES);
            let schema = map.get("additionalProperties").cloned().unwrap_or(json!(true));
            if !fields.contains_key(name) {
                fields.insert(name.to_owned(), self.value(&schema, depth.saturating_sub(1)));
            }
        }
        for (pattern, schema) in map.get("patternProperties").and_then(Value::as_object).unwrap_or(&none) {
            let known = NAME_PATTERNS.iter().find(|(known, _)| known == pattern);
            if let Some((_, name)) = known.filter(|_| self.random.percent(50)) {
                fields.insert((*name).to_owned(), self.value(schema, depth.saturating_sub(1)));
            }
        }
        for (name, more) in map.get("dependentRequired").and_then(Value::as_object).unwrap_or(&none) {
            for more in
                strings(Some(more)).into_iter().filter(|_| fields.contains_key(name)).collect::<Vec<_>>()
            {
                fields.entry(more).or_insert_with(|| json!("x"));
            }
        }
        Value::Object(fields)
    }

    fn array(&mut self, map: &Map<String, Value>, depth: usize) -> Value {
        let count = |keyword: &str, default: u64| map.get(keyword).and_then(Value::as_u64).unwrap_or(default);
        let least = usize::try_from(count("minItems", 0)).unwrap_or(0);
        let most = usize::try_from(count("maxItems", 3)).unwrap_or(3).max(least);
        let placed: Vec<Value> = ["prefixItems", "items"]
            .iter()
            .find_map(|keyword| map.get(*keyword)?.as_array().cloned())
            .unwrap_or_default();
        let length = if depth == 0 { least } else { self.random.between(least, most.min(4).max(least)) };
        let rest = map.get("items").filter(|items| !items.is_array()).cloned().unwrap_or(json!(true));
        let mut items = Vec::new();
        for index in 0..length {
            let schema = placed.get(index).unwrap_or(&rest);
            items.push(self.value(schema, depth.saturating_sub(1)));
        }
        if let Some(contained) = map.get("contains")
            && self.random.percent(70)
        {
            items.push(self.value(contained, depth.saturating_sub(1)));
        }
        Value::Array(items)
    }

    fn text(&mut self, map: &Map<String, Value>) -> Value {
        if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
            let known = PATTERNS.iter().find(|(known, _)| *known == pattern);
            return known.map_or(json!("x"), |(_, texts)| json!(self.random.pick(texts)));
        }
        if let Some(format) = map.get("format").and_then(Value::as_str) {
            let known = FORMATS.iter().find(|(known, _)| *known == format);
            return known.map_or(json!("x"), |(_, text)| json!(text));
        }
        let count = |keyword: &str, default: u64| {
            usize::try_from(map.get(keyword).and_then(Value::as_u64).unwrap_or(default)).unwrap_or(0)
        };
        let least = count("minLength", 0);
        let length = self.random.between(least, count("maxLength", 4).max(least));
        json!("long_text_"[..length.min(10)])
    }

    fn whole(&mut self, map: &Map<String, Value>) -> i64 {
        let bound = |keyword: &str| map.get(keyword).and_then(Value::as_i64);
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|bound| bound + 1));
        let most = bound("maximum").or(bound("exclusiveMaximum").map(|bound| bound - 1));
        let least = least.unwrap_or_else(|| most.unwrap_or(3) - 3);
        let most = most.unwrap_or(least + 4).max(least);
        let span = usize::try_from(most - least).unwrap_or(0);
        let number = least + i64::try_from(self.random.below(span + 1)).unwrap_or(0);
        let step = bound("multipleOf").unwrap_or(1).max(1);
        number / step * step
    }
}

/// Whether a schema says itself what a value looks like.
fn has_shape(map: &Map<String, Value>) -> bool {
    ["type", "properties", "items", "$ref", "enum", "const"].iter().any(|keyword| map.contains_key(*keyword))
}

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
