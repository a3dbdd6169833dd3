use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::weight::Weight;
use crate::document::fields::nearest;
use crate::problem::{Code, Problem};
use crate::text::{child, unescaped};

/// The most subschemas of a schema.
pub const SCHEMA_NODES_MAX: usize = 20_000;

/// The most references of a schema.
pub const SCHEMA_REFERENCES_MAX: usize = 1_000;

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The drafts that a schema may name.
const DRAFTS: [&str; 2] =
    ["https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"];

/// A subschema, and the subschemas that are evaluated because of it.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Where it is in the schema.
    pub(super) path: String,
    /// Those that look at the same value.
    pub(super) in_place: Vec<usize>,
    /// Of those that look at a field, one for each field: only one of them looks at the same one.
    pub(super) named: Vec<usize>,
    /// Those that may look at any field.
    pub(super) fields: Vec<usize>,
    /// Of those that look at an item, one for each place.
    pub(super) placed: Vec<usize>,
    /// Those that may look at any item.
    pub(super) items: Vec<usize>,
    /// Whether it must know what others have looked at, for which they are evaluated again.
    pub(super) unevaluated: bool,
    /// What its other keywords cost.
    pub(super) weight: Weight,
}

/// A schema as its subschemas and what they lead to. The first node is the schema itself.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

/// How the subschemas under a keyword are evaluated.
enum Applies {
    InPlace,
    Named,
    Fields,
    Placed,
    Items,
    /// Only if something refers to them.
    Never,
}

impl Graph {
    /// Finds all subschemas, and every reference that may not be there.
    pub(super) fn of(schema: &Value) -> Result<Self, Vec<Problem>> {
        let mut walk = Walk {
            root: schema,
            seen: BTreeMap::new(),
            waiting: Vec::new(),
            problems: Vec::new(),
            references: 0,
        };
        let mut nodes = Vec::new();
        walk.node(String::new());
        // `waiting` grows while it is worked through; every subschema is in it once.
        while let Some(path) = walk.waiting.get(nodes.len()).cloned() {
            if walk.waiting.len() > SCHEMA_NODES_MAX {
                let message = format!("the schema has more than {SCHEMA_NODES_MAX} subschemas");
                return Err(vec![Problem::new(
                    Code::SchemaBudget,
                    "",
                    message,
                    "cut it into smaller schemas",
                )]);
            }
            nodes.push(walk.look(path));
        }
        if walk.references > SCHEMA_REFERENCES_MAX {
            let message = format!("the schema has more than {SCHEMA_REFERENCES_MAX} references");
            walk.problems.push(Problem::new(Code::SchemaBudget, "", message, "cut it into smaller schemas"));
        }
        if walk.problems.is_empty() { Ok(Self { nodes }) } else { Err(walk.problems) }
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// The nodes so far, by where they are.
    seen: BTreeMap<String, usize>,
    waiting: Vec<String>,
    problems: Vec<Problem>,
    references: usize,
}

impl Walk<'_> {
    /// The node at a place, which is looked at later if it is new.
    fn node(&mut self, path: String) -> usize {
        let next = self.waiting.len();
        if let Some(known) = self.seen.get(&path) {
            return *known;
        }
        self.seen.insert(path.clone(), next);
        self.waiting.push(path);
        next
    }

    fn look(&mut self, path: String) -> Node {
        let mut node = Node { path: path.clone(), ..Node::default() };
        let Some(Value::Object(schema)) = self.root.pointer(&path) else {
            node.weight = Weight::of(&Map::new());
            return node;
        };
        node.weight = Weight::of(schema);
        for (keyword, value) in schema {
            self.keyword(keyword, value, &path, &mut node);
        }
        node
    }

    fn keyword(&mut self, keyword: &str, value: &Value, path: &str, node: &mut Node) {
        let place = child(path, keyword);
        match keyword {
            "$ref" => {
                if let Some(target) = value.as_str().and_then(|reference| self.reference(reference, &place)) {
                    node.in_place.push(target);
                }
            }
            "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" | "$anchor" | "$id" => {
                let message = format!("`{keyword}` has no place in a contract");
                let fix = "refer by `$ref: \"#/$defs/Name\"`";
                self.problems.push(Problem::new(Code::SchemaReference, place, message, fix));
            }
            "$schema" => self.draft(value, path, &place),
            "type" => self.types(value, &place),
            _ => {
                node.unevaluated |= keyword.starts_with("unevaluated");
                let Some(applies) = applies(keyword) else { return };
                let into = match applies {
                    Applies::InPlace => &mut node.in_place,
                    Applies::Named => &mut node.named,
                    Applies::Fields => &mut node.fields,
                    Applies::Placed => &mut node.placed,
                    Applies::Items => &mut node.items,
                    Applies::Never => &mut Vec::new(),
                };
                for place in places(keyword, value, &place) {
                    into.push(self.node(place));
                }
            }
        }
    }

    fn types(&mut self, value: &Value, place: &str) {
        let words = match value {
            Value::Array(words) => words.as_slice(),
            one => std::slice::from_ref(one),
        };
        for word in words.iter().filter_map(Value::as_str).filter(|word| !TYPES.contains(word)) {
            let fix = match nearest(word, TYPES.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the types are: {}", TYPES.join(", ")),
            };
            let message = format!("there is no type `{word}`");
            self.problems.push(Problem::new(Code::SchemaInvalid, place, message, fix));
        }
    }

    fn draft(&mut self, value: &Value, path: &str, place: &str) {
        let known = value.as_str().is_some_and(|uri| DRAFTS.contains(&uri.trim_end_matches('#')));
        if !known || !path.is_empty() {
            let message = if known {
                "only a schema as a whole names its draft".into()
            } else {
                format!("the draft {value} is not taken")
            };
            let fix = format!("leave `$schema` out, or name {} at the top", DRAFTS[1]);
            self.problems.push(Problem::new(Code::SchemaDraft, place, message, fix));
        }
    }

    fn reference(&mut self, reference: &str, place: &str) -> Option<usize> {
        self.references += 1;
        if !is_local(reference) {
            let message = format!("the reference `{reference}` leaves its schema");
            let fix = "move what it refers to into `$defs` of this schema: nothing is fetched or opened";
            self.problems.push(Problem::new(Code::SchemaReference, place, message, fix));
            return None;
        }
        match target(self.root, reference) {
            Some((path, _)) => Some(self.node(path)),
            None => {
                let message = format!("the reference `{reference}` leads nowhere");
                let fix = "define it in `$defs`, or correct the name";
                self.problems.push(Problem::new(Code::SchemaReference, place, message, fix));
                None
            }
        }
    }
}

fn is_local(reference: &str) -> bool {
    reference.strip_prefix('#').is_some_and(|pointer| pointer.is_empty() || pointer.starts_with('/'))
}

/// What a reference inside a schema leads to, and where that is: one place has one path, however the way to it is written.
pub(crate) fn target<'s>(root: &'s Value, reference: &str) -> Option<(String, &'s Value)> {
    let pointer = decoded(reference.strip_prefix('#').filter(|_| is_local(reference))?)?;
    let found = root.pointer(&pointer).filter(|found| found.is_object() || found.is_boolean())?;
    let tokens = pointer.split('/').skip(1);
    Some((tokens.fold(String::new(), |path, token| child(&path, unescaped(token))), found))
}

/// How the subschemas of a keyword are evaluated, if it has any.
fn applies(keyword: &str) -> Option<Applies> {
    Some(match keyword {
        // `dependencies` is of older drafts, and the validator still follows it.
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
        | "dependencies" => Applies::InPlace,
        "properties" | "additionalProperties" => Applies::Named,
        "patternProperties" | "propertyNames" | "unevaluatedProperties" => Applies::Fields,
        "prefixItems" | "items" | "additionalItems" => Applies::Placed,
        "contains" | "unevaluatedItems" => Applies::Items,
        "$defs" | "definitions" | "contentSchema" => Applies::Never,
        _ => return None,
    })
}

/// Where the subschemas of a keyword are: in a list, by name, or the one itself.
fn places(keyword: &str, value: &Value, place: &str) -> Vec<String> {
    let by_name = matches!(
        keyword,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions"
    );
    match value {
        Value::Array(items) => (0..items.len()).map(|index| child(place, index)).collect(),
        Value::Object(map) if by_name => map.keys().map(|name| child(place, name)).collect(),
        Value::Object(_) | Value::Bool(_) => vec![place.to_owned()],
        Value::Null | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// A fragment of a URI as the pointer it stands for.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
