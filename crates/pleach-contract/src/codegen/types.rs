use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::names::{Names, PRELUDE, pascal, snake};
use super::shape::Shape;
use super::source::Source;
use crate::document::Contract;

const JSON: &str = "serde_json::Value";
const MAP: &str = "std::collections::BTreeMap";

/// Makes a type of every schema that a contract uses.
#[derive(Debug)]
pub(super) struct Types<'c> {
    contract: &'c Contract,
    /// The names of types.
    pub(super) names: Names,
    pub(super) source: Source,
    /// The type of each schema, by its name.
    pub(super) named: BTreeMap<String, String>,
    /// The type of each place in a schema that something refers to.
    places: BTreeMap<(&'c str, String), String>,
    /// The places whose types are being made: what refers to one of them would have no end without a box.
    open: Vec<(&'c str, String)>,
    needs_present: bool,
}

impl<'c> Types<'c> {
    pub(super) fn new(contract: &'c Contract) -> Self {
        let mut names = Names::with(&PRELUDE);
        // Schemas come first, so that they keep the names that people gave them.
        let used = contract.used_schemas();
        let named = used.iter().map(|name| ((*name).to_owned(), names.take(pascal(name)))).collect();
        Self {
            contract,
            names,
            source: Source::default(),
            named,
            places: BTreeMap::new(),
            open: Vec::new(),
            needs_present: false,
        }
    }

    pub(super) fn define_all(&mut self) {
        for name in self.contract.used_schemas() {
            let (Some(schema), Some(typed)) = (self.contract.schemas.get(name), self.named.get(name)) else {
                continue;
            };
            let typed = typed.clone();
            self.places.insert((name, String::new()), typed.clone());
            self.define(name, String::new(), schema, &typed);
        }
        if self.needs_present {
            self.define_present();
        }
    }

    /// Makes the type called `name` of what stands at a place.
    fn define(&mut self, root: &'c str, pointer: String, schema: &'c Value, name: &str) {
        self.open.push((root, pointer));
        match Shape::of(schema) {
            Shape::Record(fields) => self.define_record(root, fields, name),
            Shape::Choice(texts) => self.define_choice(schema, &texts, name),
            shape => {
                let typed = self.typed(root, schema, &shape, &format!("{name}Value"));
                self.source.line("");
                self.source.doc(&description(schema, name));
                self.source.line(&format!("pub type {name} = {typed};"));
            }
        }
        self.open.pop();
    }

    /// The type of a schema within another; `hint` is its name, if it needs one.
    fn type_of(&mut self, root: &'c str, schema: &'c Value, hint: &str) -> String {
        self.typed(root, schema, &Shape::of(schema), hint)
    }

    fn typed(&mut self, root: &'c str, schema: &'c Value, shape: &Shape<'c>, hint: &str) -> String {
        match shape {
            Shape::Any => JSON.into(),
            Shape::Null => "()".into(),
            Shape::Bool => "bool".into(),
            Shape::Integer { signed: true } => "i64".into(),
            Shape::Integer { signed: false } => "u64".into(),
            Shape::Number => "f64".into(),
            Shape::Text => "String".into(),
            Shape::Object => format!("serde_json::Map<String, {JSON}>"),
            Shape::List(items) => format!("Vec<{}>", self.type_of(root, items, &format!("{hint}Item"))),
            Shape::Table(values) => {
                format!("{MAP}<String, {}>", self.type_of(root, values, &format!("{hint}Value")))
            }
            Shape::Record(fields) => {
                let name = self.names.take(hint.to_owned());
                self.define_record(root, fields, &name);
                name
            }
            Shape::Choice(texts) => {
                let name = self.names.take(hint.to_owned());
                self.define_choice(schema, texts, &name);
                name
            }
            Shape::Nullable(inner) => format!("Option<{}>", self.typed(root, schema, inner, hint)),
            Shape::Reference(pointer) => self.reference(root, pointer),
        }
    }

    /// The type of what stands at another place of the same schema.
    fn reference(&mut self, root: &'c str, pointer: &str) -> String {
        let place = (root, pointer.to_owned());
        let Some(schema) = self.contract.schemas.get(root).and_then(|schema| schema.pointer(pointer)) else {
            return JSON.into();
        };
        if self.open.contains(&place) {
            // Only a type with a name of its own can contain itself.
            let is_record = matches!(Shape::of(schema), Shape::Record(_));
            let named = self.places.get(&place).filter(|_| is_record);
            return named.map_or(JSON.into(), |name| format!("Box<{name}>"));
        }
        if let Some(name) = self.places.get(&place) {
            return name.clone();
        }
        let root_name = self.named.get(root).map_or("", String::as_str);
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let name = self.names.take(format!("{root_name}{}", pascal(last)));
        self.places.insert(place, name.clone());
        self.define(root, pointer.to_owned(), schema, &name);
        name
    }

    fn define_record(&mut self, root: &'c str, schema: &'c Map<String, Value>, name: &str) {
        let required: BTreeSet<&str> = match schema.get("required") {
            Some(Value::Array(required)) => required.iter().filter_map(Value::as_str).collect(),
            _ => BTreeSet::new(),
        };
        let mut names = Names::default();
        let mut fields: Vec<Field<'c>> = Vec::new();
        for (json, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let typed = self.type_of(root, schema, &format!("{name}{}", pascal(json)));
            let field = Field {
                name: names.take(snake(json)),
                json,
                typed,
                is_required: required.contains(json.as_str()),
                about: description(schema, json),
            };
            self.needs_present |= !field.is_required;
            fields.push(field);
        }
        let rest = self.rest(root, schema, name).map(|typed| (names.take("other".into()), typed));
        let is_default = fields.iter().all(|field| !field.is_required);
        let source = &mut self.source;
        source.line("");
        source.doc(&description_of(schema, name));
        let default = if is_default { "Default, " } else { "" };
        source.line(&format!(
            "#[derive(Clone, Debug, {default}PartialEq, serde::Serialize, serde::Deserialize)]"
        ));
        source.open(&format!("pub struct {name} {{"));
        fields.iter().for_each(|field| field.write(source));
        if let Some((rest, typed)) = &rest {
            source.doc("Fields that the schema allows without naming them.");
            source.line("#[serde(flatten)]");
            source.line(&format!("pub {rest}: {typed},"));
        }
        source.close("}");
        if !is_default {
            let rest = rest.as_ref().map(|(rest, _)| rest.as_str());
            write_new(source, name, &fields, rest);
        }
    }

    /// The type of the fields that a schema does not name, if it allows any.
    fn rest(&mut self, root: &'c str, schema: &'c Map<String, Value>, name: &str) -> Option<String> {
        let has_patterns = schema.contains_key("patternProperties");
        let typed = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !has_patterns => return None,
            Some(values @ Value::Object(_)) if !has_patterns => {
                self.type_of(root, values, &format!("{name}Other"))
            }
            _ => JSON.into(),
        };
        Some(format!("{MAP}<String, {typed}>"))
    }

    fn define_choice(&mut self, schema: &Value, texts: &[&str], name: &str) {
        let mut names = Names::default();
        let source = &mut self.source;
        source.line("");
        source.doc(&description(schema, name));
        source.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]");
        source.open(&format!("pub enum {name} {{"));
        for text in texts {
            source.doc(&quoted(text));
            source.line(&format!("#[serde(rename = {text:?})]"));
            source.line(&format!("{},", names.take(pascal(text))));
        }
        source.close("}");
    }

    fn define_present(&mut self) {
        let source = &mut self.source;
        source.line("");
        source.line("/// Tells a field that is null from one that is missing.");
        source.open("fn present<'de, T: serde::Deserialize<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {");
        source.line("T::deserialize(from).map(Some)");
        source.close("}");
    }
}

/// A field of a struct.
#[derive(Debug)]
struct Field<'c> {
    name: String,
    json: &'c str,
    typed: String,
    is_required: bool,
    about: String,
}

impl Field<'_> {
    fn write(&self, source: &mut Source) {
        let mut attributes = Vec::new();
        if self.name.trim_start_matches("r#") != self.json {
            attributes.push(format!("rename = {:?}", self.json));
        }
        if !self.is_required {
            let missing =
                "default, skip_serializing_if = \"Option::is_none\", deserialize_with = \"present\"";
            attributes.push(missing.into());
        }
        source.doc(&self.about);
        if !attributes.is_empty() {
            source.line(&format!("#[serde({})]", attributes.join(", ")));
        }
        source.line(&format!("pub {}: {},", self.name, self.declared()));
    }

    fn declared(&self) -> String {
        if self.is_required { self.typed.clone() } else { format!("Option<{}>", self.typed) }
    }
}

/// A constructor that takes what must be there.
fn write_new(source: &mut Source, name: &str, fields: &[Field<'_>], rest: Option<&str>) {
    let required = || fields.iter().filter(|field| field.is_required);
    let arguments: Vec<String> = required().map(|field| format!("{}: {}", field.name, field.typed)).collect();
    let given = required().map(|field| field.name.clone());
    let missing =
        fields.iter().filter(|field| !field.is_required).map(|field| format!("{}: None", field.name));
    let rest = rest.map(|rest| format!("{rest}: {MAP}::new()"));
    let all: Vec<String> = given.chain(missing).chain(rest).collect();
    source.line("");
    source.open(&format!("impl {name} {{"));
    source.doc("With what must be there, and nothing else.");
    if arguments.len() > 7 {
        source.line("#[allow(clippy::too_many_arguments, reason = \"the schema demands them\")]");
    }
    source.open(&format!("pub fn new({}) -> Self {{", arguments.join(", ")));
    source.line(&format!("Self {{ {} }}", all.join(", ")));
    source.close("}");
    source.close("}");
}

fn description(schema: &Value, name: &str) -> String {
    schema.as_object().map_or_else(|| quoted(name), |schema| description_of(schema, name))
}

fn description_of(schema: &Map<String, Value>, name: &str) -> String {
    let texts = ["description", "title"].iter().filter_map(|field| schema.get(*field)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).map_or_else(|| quoted(name), str::to_owned)
}

/// A name in a comment.
fn quoted(name: &str) -> String {
    let shown: String =
        name.chars().map(|letter| if letter == '`' || letter.is_control() { ' ' } else { letter }).collect();
    if shown.trim().is_empty() { "Nothing but spaces.".into() } else { format!("`{}`.", shown.trim()) }
}
