//! The derives of `pleach-contract`, which exports and documents them: use them from there.
//!
//! They read attributes and write calls of `ContractBuilder`, nothing more: what a document must look like is known in one
//! place. `vocabulary` lists what each attribute takes, `attribute` reads it, `setting` is what was said, `expand` makes
//! code of it, and `facade` the call of the macro that makes types for state stores.

mod attribute;
mod expand;
mod facade;
mod setting;
mod vocabulary;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Makes a struct stand for a contract: its fields are the state stores and the resources.
#[proc_macro_derive(Contract, attributes(contract, state, kv, resource))]
pub fn derive_contract(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::contract(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a struct stand for a KV resource: its fields are keyspaces, indexes, relationships and counters.
#[proc_macro_derive(Resource, attributes(resource, keyspace, index, relationship, counter))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::resource(&input).unwrap_or_else(Error::into_compile_error).into()
}

#[cfg(test)]
mod tests;
