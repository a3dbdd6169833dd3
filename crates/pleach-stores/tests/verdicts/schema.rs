//! Random JSON Schemas: small, nested, with shared and recursive definitions.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The names of properties: few, so that values meet the borders of schemas.
pub(crate) const NAMES: [&str; 6] = ["a", "b", "c", "line2", "x_1", "x_2"];

/// Patterns of names, each with a name that matches.
pub(crate) const NAME_PATTERNS: [(&str, &str); 4] =
    [("^x_", "x_1"), ("[0-9]$", "line2"), ("^[ab]$", "a"), ("^c", "c")];

/// Patterns of texts, each with texts that match.
pub(crate) const PATTERNS: [(&str, [&str; 2]); 5] = [
    ("^x", ["x", "xy"]),
    ("^[a-z]{2,4}$", ["ab", "long"]),
    ("[0-9]$", ["a1", "2"]),
    ("^(x|long)$", ["x", "long"]),
    ("y", ["y", "xy"]),
];

/// Formats that every implementation checks alike, each with a text that has it.
pub(crate) const FORMATS: [(&str, &str); 5] = [
    ("date", "2026-01-02"),
    ("date-time", "2026-01-02T03:04:05Z"),
    ("uuid", "6fa459ea-ee8a-3ca4-894e-db77e160355e"),
    ("ipv4", "192.0.2.1"),
    ("email", "ann@example.com"),
];

/// Values of no particular schema.
pub(crate) fn loose(random: &mut Random) -> Value {
    random
        .pick(&[
            json!("x"),
            json!("xy"),
            json!("long"),
            json!(""),
            json!("a1"),
            json!("2026-01-02"),
            json!(0),
            json!(1),
            json!(2),
            json!(3),
            json!(-1),
            json!(1.5),
            json!(null),
            json!(true),
            json!([]),
            json!([1, 1]),
            json!([1, "x"]),
            json!({}),
            json!({"a": 1}),
            json!({"line2": "x"}),
        ])
        .clone()
}

/// Draws schemas that belong to one root.
pub(crate) struct Maker<'r> {
    pub(crate) random: &'r mut Random,
    /// How many definitions the root has: `D0`, `D1`, …
    pub(crate) definitions: usize,
    /// Whether the root is of draft 2019-09.
    pub(crate) is_old_draft: bool,
}

/// Where a subschema stands, which decides what it may refer to without a loop.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) depth: usize,
    /// In place, only definitions from this one on may be referred to.
    pub(crate) floor: usize,
    /// Whether the way here led through a field or an item: then any reference ends.
    pub(crate) is_below: bool,
}

impl Spot {
    /// A field or an item of what is here.
    fn child(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), floor: 0, is_below: true }
    }

    /// Another schema for the same value.
    fn beside(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }
}

/// A schema of its own.
pub(crate) fn root(random: &mut Random) -> Value {
    let definitions = *random.pick(&[0, 0, 1, 1, 2, 3]);
    let is_old_draft = random.percent(5);
    let mut maker = Maker { random, definitions, is_old_draft };
    let spot = Spot { depth: 3, floor: 0, is_below: false };
    let mut schema = if maker.random.percent(80) { maker.object(spot) } else { maker.node(spot) };
    if let Value::Object(map) = &mut schema {
        if definitions > 0 {
            map.insert("$defs".into(), maker.definitions());
        }
        if is_old_draft {
            map.insert("$schema".into(), json!("https://json-schema.org/draft/2019-09/schema"));
        }
    }
    schema
}

impl Maker<'_> {
    /// For changes of a schema that is there.
    pub(crate) fn of<'r>(random: &'r mut Random, root: &Value) -> Maker<'r> {
        let definitions = root.get("$defs").and_then(Value::as_object).map_or(0, Map::len);
        let is_old_draft = root.get("$schema").is_some();
        Maker { random, definitions, is_old_draft }
    }

    fn definitions(&mut self) -> Value {
        let mut all = Map::new();
        for index in 0..self.definitions {
            let spot = Spot { depth: 2, floor: index + 1, is_below: false };
            let schema = if self.random.percent(70) { self.object(spot) } else { self.node(spot) };
            all.insert(format!("D{index}"), schema);
        }
        Value::Object(all)
    }

    /// A subschema of any kind.
    pub(crate) fn node(&mut self, spot: Spot) -> Value {
        if spot.depth == 0 {
            return match self.random.below(12) {
                0 => self.reference(spot),
                1 => json!(true),
                _ => self.leaf(),
            };
        }
        match self.random.below(20) {
            0..=5 => self.leaf(),
            6..=9 => self.object(spot),
            10..=11 => self.array(spot),
            12..=14 => self.reference(spot),
            15 => json!(!self.random.percent(20)),
            _ => self.combined(spot),
        }
    }

    /// A reference that does not lead back to itself in place, or something else where there is none.
    pub(crate) fn reference(&mut self, spot: Spot) -> Value {
        if spot.is_below && self.random.percent(15) {
            return json!({"$ref": "#"});
        }
        let floor = if spot.is_below { 0 } else { spot.floor };
        if floor >= self.definitions {
            return self.leaf();
        }
        let index = floor + self.random.below(self.definitions - floor);
        json!({"$ref": format!("#/$defs/D{index}")})
    }

    pub(crate) fn leaf(&mut self) -> Value {
        let bound = self.random.below(4);
        match self.random.below(22) {
            0 => json!({}),
            1 => json!({"type": "string"}),
            2 => json!({"type": "string", "maxLength": bound}),
            3 => json!({"type": "string", "minLength": bound}),
            4 => json!({"type": "string", "pattern": self.random.pick(&PATTERNS).0}),
            5 => json!({"type": "string", "format": self.random.pick(&FORMATS).0}),
            6 => json!({"pattern": self.random.pick(&PATTERNS).0}),
            7 => json!({"type": "integer"}),
            8 => json!({"type": "integer", "minimum": bound}),
            9 => json!({"type": "integer", "maximum": bound}),
            10 => json!({"type": "number", "exclusiveMinimum": bound}),
            11 => json!({"type": "number", "exclusiveMaximum": bound}),
            12 => json!({"type": "integer", "multipleOf": bound + 1}),
            13 => json!({"type": ["integer", "null"]}),
            14 => json!({"type": ["string", "integer"]}),
            15 => json!({"type": "boolean"}),
            16 => json!({"enum": ["x", 1]}),
            17 => json!({"enum": ["x", 1, null, "long"]}),
            18 => json!({"enum": [2, 3, "xy", true]}),
            19 => json!({"const": loose(self.random)}),
            20 => json!({"not": {"type": "null"}}),
            _ => json!({"minimum": bound, "maxLength": bound}),
        }
    }

    pub(crate) fn name(&mut self) -> &'static str {
        let name: &&'static str = self.random.pick(&NAMES);
        name
    }

    pub(crate) fn object(&mut self, spot: Spot) -> Value {
        let mut map = Map::new();
        if self.random.percent(85) {
            map.insert("type".into(), json!("object"));
        }
        let mut fields = Map::new();
        for _ in 0..self.random.below(4) {
            fields.insert(self.name().into(), self.node(spot.child()));
        }
        let required: Vec<&String> = fields.keys().filter(|_| self.random.percent(35)).collect();
        if !required.is_empty() {
            map.insert("required".into(), json!(required));
        }
        map.insert("properties".into(), Value::Object(fields));
        match self.random.below(10) {
            0..=2 => drop(map.insert("additionalProperties".into(), json!(false))),
            3 => drop(map.insert("additionalProperties".into(), json!(true))),
            4 => drop(map.insert("additionalProperties".into(), self.node(spot.child()))),
            _ => {}
        }
        for (keyword, chance) in [
            ("patternProperties", 10),
            ("propertyNames", 6),
            ("dependentRequired", 8),
            ("dependentSchemas", 8),
            ("unevaluatedProperties", 10),
            ("minProperties", 4),
            ("maxProperties", 6),
        ] {
            if self.random.percent(chance) {
                map.insert(keyword.into(), self.about_objects(keyword, spot));
            }
        }
        if map.contains_key("unevaluatedProperties") && self.random.percent(70) {
            let beside = self.combined(spot);
            map.extend(beside.as_object().cloned().unwrap_or_default());
        }
        Value::Object(map)
    }

    /// What one of the rarer keywords about objects says.
    pub(crate) fn about_objects(&mut self, keyword: &str, spot: Spot) -> Value {
        match keyword {
            "patternProperties" => json!({self.random.pick(&NAME_PATTERNS).0: self.node(spot.child())}),
            "propertyNames" => match self.random.below(3) {
                0 => json!({"maxLength": self.random.between(1, 3)}),
                1 => json!({"enum": [self.name(), self.name(), "d"]}),
                _ => json!({"pattern": self.random.pick(&NAME_PATTERNS).0}),
            },
            "dependentRequired" => json!({self.name(): [self.name()]}),
            "dependentSchemas" => json!({self.name(): self.beside_object(spot)}),
            "unevaluatedProperties" if self.random.percent(60) => json!(false),
            "unevaluatedProperties" => self.node(spot.child()),
            "minProperties" => json!(self.random.below(3)),
            _ => json!(self.random.between(1, 4)),
        }
    }

    fn beside_object(&mut self, spot: Spot) -> Value {
        if self.random.percent(50) { json!({"required": [self.name()]}) } else { self.object(spot.beside()) }
    }

    pub(crate) fn array(&mut self, spot: Spot) -> Value {
        let mut map = Map::new();
        if self.random.percent(85) {
            map.insert("type".into(), json!("array"));
        }
        for (keyword, chance) in [
            ("items", 60),
            ("prefixItems", 25),
            ("contains", 15),
            ("minContains", 6),
            ("maxContains", 6),
            ("uniqueItems", 20),
            ("minItems", 10),
            ("maxItems", 15),
            ("unevaluatedItems", 10),
        ] {
            if self.random.percent(chance) {
                self.about_arrays(&mut map, keyword, spot);
            }
        }
        Value::Object(map)
    }

    pub(crate) fn about_arrays(&mut self, map: &mut Map<String, Value>, keyword: &str, spot: Spot) {
        let said = match keyword {
            "items" | "contains" | "unevaluatedItems" if self.random.percent(12) => json!(false),
            "items" | "contains" | "unevaluatedItems" => self.node(spot.child()),
            "prefixItems" => {
                let items: Vec<Value> =
                    (0..self.random.between(1, 2)).map(|_| self.node(spot.child())).collect();
                if self.is_old_draft {
                    map.insert("items".into(), json!(items));
                    return;
                }
                json!(items)
            }
            "uniqueItems" => json!(true),
            "minItems" | "minContains" => json!(self.random.below(3)),
            _ => json!(self.random.between(1, 3)),
        };
        map.insert(keyword.into(), said);
    }

    pub(crate) fn combined(&mut self, spot: Spot) -> Value {
        let several = |maker: &mut Self| -> Value {
            let count = maker.random.between(1, 3);
            (0..count).map(|_| maker.node(spot.beside())).collect()
        };
        match self.random.below(6) {
            0 => json!({"anyOf": several(self)}),
            1 => json!({"oneOf": several(self)}),
            2 => json!({"oneOf": self.told_apart(spot)}),
            3 => json!({"allOf": several(self)}),
            4 => json!({"not": self.node(spot.beside())}),
            _ => self.condition(spot),
        }
    }

    /// Branches that a `const` tells apart.
    fn told_apart(&mut self, spot: Spot) -> Value {
        let mut branch = |kind: &str| {
            let mut object = self.object(spot.beside());
            object["properties"]["kind"] = json!({"const": kind});
            object["required"] = json!(["kind"]);
            object
        };
        json!([branch("p"), branch("q")])
    }

    pub(crate) fn condition(&mut self, spot: Spot) -> Value {
        let mut map = Map::new();
        let tested = match self.random.below(3) {
            0 => json!({"required": [self.name()]}),
            1 => json!({"properties": {self.name(): {"const": loose(self.random)}}}),
            _ => self.node(spot.beside()),
        };
        map.insert("if".into(), tested);
        if self.random.percent(80) {
            map.insert("then".into(), self.node(spot.beside()));
        }
        if self.random.percent(50) {
            map.insert("else".into(), self.node(spot.beside()));
        }
        Value::Object(map)
    }
}
