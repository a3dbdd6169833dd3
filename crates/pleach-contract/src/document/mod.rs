//! The document `pleach.contract.v1`, typed. Every field that has a default holds it after reading.

mod check;
mod derived;
pub(crate) mod fields;
mod read;
mod resource;
mod retention;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::problem::Problems;
use crate::schema::Validators;
use crate::text::{self, Node, Notation};

pub use resource::{
    Access, AtomicGroup, Condition, Counter, HISTORY_MAX, Index, Keyspace, KvResource, MAX_VALUE_BYTES_MAX,
    OnDelete, Period, Relationship, Retention, Role, SHARDS_MAX, TTL_MS_MAX, TtlTier,
};

/// The format that this version reads and writes.
pub const FORMAT: &str = "pleach.contract.v1";

/// The most schemas of a contract.
pub const SCHEMAS_MAX: usize = 1000;

/// The most characters of a name.
pub const NAME_CHARS_MAX: usize = 64;

/// What the keys and values of an application mean.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contract {
    /// The format of the document: `pleach.contract.v1`.
    #[schemars(extend("const" = FORMAT))]
    pub format: String,
    /// Who it is, and its lineage: dotted words and a major version, such as `acme.notes@v1`. Two documents with one id are two versions of one contract.
    pub id: ContractId,
    /// What kind of program it belongs to.
    pub kind: ContractKind,
    /// Its name for people. Not part of the digest.
    #[schemars(length(min = 1))]
    pub display_name: String,
    /// What it is for, in a sentence. Not part of the digest.
    #[schemars(length(min = 1))]
    pub description: String,
    /// Anything else people should know, as Markdown. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// JSON Schemas (draft 2019-09 or 2020-12) by name. References stay inside their schema: `#/$defs/…`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, AnySchema>")]
    pub schemas: BTreeMap<String, Value>,
    /// Stores of values that belong to a user or a device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, StateStore>,
    /// What the program needs of the store.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
}

/// An object or a boolean: what JSON Schema takes for a schema.
#[derive(JsonSchema)]
#[schemars(extend("type" = ["object", "boolean"]))]
#[allow(dead_code, reason = "only its schema is used")]
struct AnySchema {}

/// Who a contract is: dotted words, `@v` and a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("pattern" = r"^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*@v[1-9][0-9]{0,5}$", "maxLength" = 128))]
pub struct ContractId(String);

impl ContractId {
    /// The most characters of an id.
    pub const CHARS_MAX: usize = 128;

    /// Reads an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, major) = text.split_once("@v")?;
        let word = |word: &str| {
            word.starts_with(|first: char| first.is_ascii_lowercase())
                && word
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
        };
        let number = major.len() <= 6
            && major.starts_with(|first| ('1'..='9').contains(&first))
            && major.chars().all(|digit| digit.is_ascii_digit());
        (text.len() <= Self::CHARS_MAX && name.split('.').all(word) && number).then(|| Self(text.to_owned()))
    }

    /// The id as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContractId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of program a contract belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContractKind {
    /// A program that serves others.
    Service,
    /// A program that a person uses.
    App,
    /// A program on a device.
    Device,
    /// A program that acts for someone.
    Agent,
}

/// The name of a schema of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchemaReference {
    /// A name in `schemas`.
    pub schema: String,
}

/// A store of values that belong to a user or a device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateStore {
    /// One value, or many under keys.
    pub kind: StoreKind,
    /// What a value must look like.
    pub schema: SchemaReference,
    /// The version that is written with every entry; a new one when old values no longer do.
    #[serde(default = "first_version")]
    pub state_version: String,
    /// Older versions that can still be read, for migration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_versions: BTreeMap<String, SchemaReference>,
    /// What it holds. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn first_version() -> String {
    "v1".into()
}

/// Whether a store holds one value or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// One value.
    Value,
    /// Many values, each under a key.
    Map,
}

/// What a program needs of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Buckets of its own, by alias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kv: BTreeMap<String, KvResource>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.kv.is_empty()
    }
}

/// A contract that can be used, and what is still worth a thought.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The contract.
    pub contract: Contract,
    /// Warnings; there are no errors.
    pub warnings: Problems,
}

impl Contract {
    /// Reads and checks a contract.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, warnings included, in the order of the text.
    pub fn parse(bytes: &[u8], notation: Notation) -> Result<Parsed, Problems> {
        Self::parse_with(bytes, notation, &Validators::default())
    }

    /// The same, with schemas compiled by these validators: whoever checks values by them afterwards finds them ready.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, warnings included, in the order of the text.
    pub fn parse_with(bytes: &[u8], notation: Notation, validators: &Validators) -> Result<Parsed, Problems> {
        let (node, problems) = text::read(bytes, notation);
        let Some(node) = node else { return Err(problems) };
        let parsed = Self::of_node(&node, problems, validators);
        let located = |problems: Problems| problems.located(|path| Some(node.position_of(path)));
        match parsed {
            Ok(Parsed { contract, warnings }) => Ok(Parsed { contract, warnings: located(warnings) }),
            Err(problems) => Err(located(problems)),
        }
    }

    /// Checks a contract that is there as a JSON value. It has the limits of a text, but for the bytes.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, warnings included.
    pub fn from_value(value: &Value) -> Result<Parsed, Problems> {
        Self::from_value_with(value, &Validators::default())
    }

    /// The same, with schemas compiled by these validators: whoever checks values by them afterwards finds them ready.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, warnings included.
    pub fn from_value_with(value: &Value, validators: &Validators) -> Result<Parsed, Problems> {
        Self::of_value(value, Problems::default(), validators)
    }

    /// Reads a contract that a store has kept. Rules that earlier versions did not have do not make it unreadable.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, warnings included.
    pub fn from_stored(value: &Value) -> Result<Self, Problems> {
        text::check_limits(value).map_err(|problem| Problems::from_iter([*problem]))?;
        let mut problems = Problems::default();
        let contract = Self::checked(&Node::of(value), &mut problems, &Validators::default());
        let problems = problems.without_later_rules();
        contract.filter(|_| !problems.has_errors()).ok_or(problems)
    }

    pub(crate) fn of_value(
        value: &Value,
        mut problems: Problems,
        validators: &Validators,
    ) -> Result<Parsed, Problems> {
        if let Err(problem) = text::check_limits(value) {
            problems.push(*problem);
            return Err(problems);
        }
        Self::of_node(&Node::of(value), problems, validators)
    }

    /// The contract as a JSON value, with all defaults written out.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Maps with names for keys and plain fields: there is nothing in it that could not be JSON.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The names of the schemas that something refers to.
    #[must_use]
    pub fn used_schemas(&self) -> std::collections::BTreeSet<&str> {
        let stores = self.state.values();
        let of_state =
            stores.flat_map(|store| std::iter::once(&store.schema).chain(store.accepted_versions.values()));
        let resources = self.resources.kv.values();
        let of_kv = resources.flat_map(|resource| {
            let of_keyspaces = resource.keyspaces.values().flat_map(|keyspace| {
                std::iter::once(&keyspace.schema).chain(keyspace.accepted_versions.values())
            });
            std::iter::once(&resource.schema).chain(resource.accepted_versions.values()).chain(of_keyspaces)
        });
        of_state.chain(of_kv).map(|reference| reference.schema.as_str()).collect()
    }

    fn of_node(node: &Node, mut problems: Problems, validators: &Validators) -> Result<Parsed, Problems> {
        match Self::checked(node, &mut problems, validators) {
            Some(contract) if !problems.has_errors() => Ok(Parsed { contract, warnings: problems }),
            _ => Err(problems),
        }
    }

    /// Reads and checks a document, as far as it can be read.
    fn checked(node: &Node, problems: &mut Problems, validators: &Validators) -> Option<Self> {
        let contract = read::contract(node, problems)?;
        check::contract(&contract, validators, problems);
        Some(contract)
    }
}
