use std::collections::BTreeMap;

use super::names::{Names, pascal, snake};
use super::source::Source;
use crate::document::{Contract, StateStore, StoreKind};

/// Writes the facade over the state stores of a contract, if it has any, as a call of the macro that makes it.
pub(super) fn write(
    source: &mut Source,
    contract: &Contract,
    named: &BTreeMap<String, String>,
    name: &str,
    names: &mut Names,
) {
    if contract.state.is_empty() {
        return;
    }
    source.line("");
    source.open("stores::state_facade! {");
    source.doc(&format!("What `{}` keeps for each of its users and devices.", contract.id));
    source.open(&format!("pub struct {} {{", names.take(format!("{name}State"))));
    let mut methods = Names::default();
    for (store_name, store) in &contract.state {
        let method = methods.take(snake(store_name));
        write_store(source, (store_name.as_str(), store), &method, named, names);
    }
    source.close("}");
    source.close("}");
}

fn write_store(
    source: &mut Source,
    (name, store): (&str, &StateStore),
    method: &str,
    named: &BTreeMap<String, String>,
    names: &mut Names,
) {
    let typed = |schema: &str| named.get(schema).cloned().unwrap_or_else(|| "serde_json::Value".into());
    let kind = match store.kind {
        StoreKind::Value => "value",
        StoreKind::Map => "map",
    };
    match &store.description {
        Some(about) => source.doc(about),
        None => source.doc(&format!("The {kind} store `{name}`.")),
    }
    let (version, value) = (&store.state_version, typed(&store.schema.schema));
    let declared = format!("{kind} {method}({name:?}, {version:?}): {value}");
    if store.accepted_versions.is_empty() {
        source.line(&format!("{declared};"));
        return;
    }
    let older = names.take(format!("Old{}", pascal(name)));
    source.open(&format!("{declared}, or {older} {{"));
    let mut variants = Names::default();
    for (version, schema) in &store.accepted_versions {
        let variant = variants.take(pascal(version));
        source.line(&format!("{variant}({}) = {version:?},", typed(&schema.schema)));
    }
    source.close("};");
}
