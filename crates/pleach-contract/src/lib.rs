//! Contracts: documents that say what the keys and values of a store mean.
//!
//! Everything that makes Pleach more than a place for bytes is derived from a contract: what is provisioned, which
//! values are refused, what an index holds, what may be deleted and rebuilt. So a contract is read strictly. Begin
//! with [`Contract::parse`], which takes JSON or YAML and reports every problem at once, each with a stable code, a
//! place and a fix; [`Contract::digest`] then says in one word which contract it is, however it was written down.
//! `#[derive(Contract)]` and [`ContractBuilder`] make the same document from Rust types. [`Validators`] checks values.
//!
//! ```
//! use pleach_contract::{Contract, Notation};
//!
//! let text = r#"
//! format: pleach.contract.v1
//! id: acme.notes@v1
//! kind: app
//! displayName: Notes
//! description: Notes that follow their author
//! schemas:
//!   Draft: {type: object, properties: {title: {type: string}}, required: [title]}
//! state:
//!   drafts: {kind: map, schema: {schema: Draft}}
//! "#;
//! let parsed = Contract::parse(text.as_bytes(), Notation::Yaml).expect("it has no problems");
//! assert_eq!(parsed.contract.state["drafts"].state_version, "v1"); // a default
//! assert_eq!(parsed.contract.digest().as_str().len(), 43);
//! ```
//!
//! [`key::Grammar`] builds and reads the keys of a keyspace.
//!
//! This crate does no I/O: files, flags and terminals are the business of the doors.

mod builder;
mod canonical;
pub mod codegen;
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derive_support;
mod document;
pub mod evolution;
mod format_schema;
pub mod key;
mod problem;
mod schema;
mod strict;
mod text;
mod types;

pub use builder::{ContractBuilder, schema_name, schema_of};
pub use canonical::{Digest, canonical};
pub use document::{
    Access, AtomicGroup, Condition, Contract, ContractId, ContractKind, Counter, FORMAT, HISTORY_MAX, Index,
    Keyspace, KvResource, MAX_VALUE_BYTES_MAX, NAME_CHARS_MAX, OnDelete, Parsed, Period, Relationship,
    Resources, Retention, Role, SCHEMAS_MAX, SHARDS_MAX, SchemaReference, StateStore, StoreKind, TTL_MS_MAX,
    TtlTier,
};
pub use format_schema::format_schema;
pub use problem::{Code, PROBLEMS_MAX, Position, Problem, Problems, Severity, WARNINGS_MAX};
pub use schema::{
    CompiledSchema, EVALUATIONS_MAX, Refused, SCHEMA_NODES_MAX, SCHEMA_REFERENCES_MAX, VALUE_DEPTH_MAX,
    VIOLATIONS_MAX, Validators, Violation, WORK_MAX,
};
pub use strict::{JSON_DEPTH_MAX, JsonError, parse_json_strict};
pub use text::{
    DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NODES_MAX, DOCUMENT_PATHS_BYTES_MAX, NUMBER_CHARS_MAX,
    Notation, Places, format_text,
};
pub use types::{ContractType, ResourceType};

/// Makes a struct stand for a contract: each field is a state store, a KV resource of values of one type, or a struct with a
/// resource of its own. Schemas come from the types of the fields, descriptions from their comments.
///
/// ```
/// use pleach_contract::{Contract, ContractType, Resource};
/// use schemars::JsonSchema;
///
/// /// Notes that follow their author.
/// #[derive(Contract)]
/// #[contract(id = "acme.notes@v1", kind = "app", name = "Notes", crate = "pleach_contract")]
/// struct Notes {
///     /// What is not finished yet.
///     #[state(kind = "map", version = "v2", accepts(v1 = DraftV1))]
///     drafts: Draft,
///     #[kv(purpose = "Who did what", history = 5, tier = "presence")]
///     activity: Activity,
///     #[resource]
///     notes: NoteKeys,
/// }
///
/// #[derive(Resource)]
/// #[resource(purpose = "Notes by author", schema = Draft, atomic(publish = ["note", "recent"]), crate = "pleach_contract")]
/// struct NoteKeys {
///     #[keyspace(key = "note.{author}.{id:ulid}", access(by_author(given = ["author"])))]
///     note: Draft,
///     /// What changed last.
///     #[index(of = "note", key = "recent.{author}.{at:time}.{id:ulid}", values(at = "/changedAt"))]
///     recent: (),
/// }
///
/// #[derive(JsonSchema)]
/// struct DraftV1 {
///     title: String,
/// }
///
/// #[derive(JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// struct Draft {
///     title: String,
///     changed_at: String,
/// }
///
/// #[derive(JsonSchema)]
/// struct Activity {
///     what: String,
/// }
///
/// let contract = Notes::contract().expect("it has no problems").contract;
/// assert_eq!(contract.description, "Notes that follow their author.");
/// assert_eq!(contract.state["drafts"].accepted_versions["v1"].schema, "DraftV1");
/// assert_eq!(contract.resources.kv["notes"].keyspaces["note"].access["by_author"].given, ["author"]);
/// ```
///
/// | attribute | takes |
/// |---|---|
/// | `#[contract]` | `id`, `kind`, `name`; `description`, unless the struct has a comment; `docs`; `state`, `stores` and `crate`, see below |
/// | `#[state]` | `kind`; `version`, `accepts(v1 = Type)` |
/// | `#[kv]` | `purpose`; `version`, `accepts(…)`, `required`, `history`, `tier`, `ttl_ms`, `max_value_bytes` |
/// | `#[resource]` | nothing: the type of the field derives [`Resource`](macro@Resource) |
///
/// Those of fields take a `name` as well, where the document has another than Rust. The document is that of a [`ContractBuilder`],
/// and is checked when it is built.
///
/// With `state = "NotesState"` a type of that name is made, too, with a method for each state store, and for each store with
/// older versions an enum: `OldDrafts` with the variant `V1` above. The types of values then are for serde, those of older
/// ones implement `Debug`.
///
/// The code that is made finds this crate at `::pleach::contract` and `pleach-stores` at `::pleach::stores`. `crate` and `stores` say
/// where they are in a program that does without `pleach`, as above.
#[cfg(feature = "derive")]
pub use pleach_contract_derive::Contract;

/// Makes a struct stand for a KV resource: each field is a keyspace, an index, a relationship or a counter. There is an example
/// at [`Contract`](macro@Contract).
///
/// | attribute | takes |
/// |---|---|
/// | `#[resource]` | what `#[kv]` takes; `schema = Type`, `atomic(group = ["member", "member"])`, `crate` |
/// | `#[keyspace]` | `key`; `version`, `accepts(…)`, `role`, `from = ["keyspace"]`, `tier`, `ttl_ms`, `retention(segment, bucket, keep)`, `access(name(given = ["segment"], range, limit))` |
/// | `#[index]` | `of`, `key`; `values(segment = "/pointer")`, `unique`, `max_lag_ms` |
/// | `#[relationship]` | `from`, `to`, `forward`, `reverse`; `on_delete` |
/// | `#[counter]` | `of`, `key`; `when(pointer, equals)`, `shards` |
///
/// The type of a keyspace is that of its values; where it is the `schema` of the resource, the keyspace has the versions of the
/// resource, too. All others are of the type `()`.
#[cfg(feature = "derive")]
pub use pleach_contract_derive::Resource;
