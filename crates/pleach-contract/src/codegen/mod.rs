//! Rust code of a contract: types of its schemas, keys of its keyspaces, and facades over its resources and its state.

mod facade;
mod keys;
mod names;
mod shape;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod types;

use crate::canonical::canonical;
use crate::document::Contract;
use facade::Facade;
use names::{Names, pascal};
use source::Source;
use types::Types;

/// How Rust code is made.
#[derive(Clone, Debug)]
pub struct RustOptions {
    /// The path under which the code finds the stores: `pleach::stores`, unless it is told another.
    pub stores_path: String,
}

impl Default for RustOptions {
    fn default() -> Self {
        Self { stores_path: "pleach::stores".into() }
    }
}

/// A Rust module for a contract, for a file of its own. Same contract, same text.
///
/// It needs the crates `serde`, with its derive macros, and `serde_json` beside Pleach. Whatever a schema says that a
/// Rust type cannot is left to the checks of the store; where nothing fits, the type is `serde_json::Value`. Fields
/// that a schema allows without naming them are kept in a map, so that reading and writing a value loses nothing.
///
/// ```
/// use pleach_contract::codegen::{RustOptions, rust_module};
/// use pleach_contract::{Contract, Notation};
///
/// let text = r#"
/// format: pleach.contract.v1
/// id: acme.notes@v1
/// kind: service
/// displayName: Notes
/// description: Notes of people
/// schemas:
///   Note: {type: object, properties: {title: {type: string}}, required: [title], additionalProperties: false}
/// resources:
///   kv:
///     notes:
///       purpose: What people wrote down
///       schema: {schema: Note}
///       keyspaces: {note: {key: "u.{user}.note.{number:uint(6)}"}}
/// "#;
/// let contract = Contract::parse(text.as_bytes(), Notation::Yaml).expect("it has no problems").contract;
/// let code = rust_module(&contract, &RustOptions::default());
/// assert!(code.contains("pub struct Note {"));
/// assert!(code.contains("pub struct NotesNoteKey<'k> {"));
/// ```
#[must_use]
pub fn rust_module(contract: &Contract, options: &RustOptions) -> String {
    let mut types = Types::new(contract);
    types.define_all();
    let Types { mut names, source, named, .. } = types;
    let facade = Facade { contract, named: &named, name: facade_name(contract, &mut names) };
    let mut parts = Source::default();
    facade.write(&mut parts, &mut names);
    state::write(&mut parts, contract, &named, &facade.name, &mut names);
    let mut text = Source::default();
    text.line(&format!("// Made of the contract {} by `pleach contract codegen`: do not edit.", contract.id));
    text.line("");
    text.line(&format!("use {} as stores;", options.stores_path));
    text.append(parts);
    text.append(source);
    text.line("");
    text.doc("The contract, as JSON.");
    text.line(&format!("pub const CONTRACT: &str = {};", raw(&canonical(&contract.to_value()))));
    text.into_text()
}

/// The last word of the contract's id.
fn facade_name(contract: &Contract, names: &mut Names) -> String {
    let id = contract.id.as_str();
    let name = id.split_once('@').map_or(id, |(name, _)| name);
    names.take(pascal(name.rsplit('.').next().unwrap_or(name)))
}

/// A raw string literal.
fn raw(text: &str) -> String {
    let hashes = text.split('"').skip(1).map(|after| after.chars().take_while(|next| *next == '#').count());
    let fence = "#".repeat(hashes.max().map_or(0, |longest| longest + 1));
    format!("r{fence}\"{text}\"{fence}")
}
