//! Contracts: documents that say what the keys and values of a store mean.
//!
//! Everything that makes Pleach more than a place for bytes is derived from a contract: what is provisioned, which
//! values are refused, what an index holds, what may be deleted and rebuilt. So a contract is read strictly. Begin
//! with [`Contract::parse`], which takes JSON or YAML and reports every problem at once, each with a stable code, a
//! place and a fix; [`Contract::digest`] then says in one word which contract it is, however it was written down.
//! [`ContractBuilder`] makes the same document from Rust types. [`Validators`] checks values.
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
mod document;
pub mod evolution;
mod format_schema;
pub mod key;
mod problem;
mod schema;
mod text;

pub use builder::{ContractBuilder, schema_of};
pub use canonical::{Digest, canonical};
pub use document::{
    Access, AtomicGroup, Condition, Contract, ContractId, ContractKind, Counter, FORMAT, HISTORY_MAX, Index,
    Keyspace, KvResource, MAX_VALUE_BYTES_MAX, NAME_CHARS_MAX, OnDelete, Parsed, Period, Relationship,
    Resources, Retention, Role, SCHEMAS_MAX, SHARDS_MAX, SchemaReference, StateStore, StoreKind, TTL_MS_MAX,
    TtlTier,
};
pub use format_schema::format_schema;
pub use problem::{Code, PROBLEMS_MAX, Position, Problem, Problems, Severity};
pub use schema::{
    CompiledSchema, EVALUATIONS_MAX, Refused, SCHEMA_NODES_MAX, SCHEMA_REFERENCES_MAX, VALUE_DEPTH_MAX,
    VIOLATIONS_MAX, Validators, Violation, WORK_MAX,
};
pub use text::{
    DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NODES_MAX, NUMBER_CHARS_MAX, Notation, Places,
    format_text,
};
