//! Random contracts, as the documents that people write, and what this test reads in them.

use std::cell::RefCell;
use std::collections::HashMap;

use pleach_contract::Contract;
use serde_json::{Map, Value, json};

use crate::keys::{self, GRAMMARS};
use crate::random::Random;
use crate::schema;

pub(crate) const ALIASES: [&str; 3] = ["notes", "files", "tasks"];
pub(crate) const KEYSPACES: [&str; 4] = ["k1", "k2", "k3", "k4"];
pub(crate) const STORES: [&str; 3] = ["prefs", "drafts", "places"];
pub(crate) const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// A random contract.
pub(crate) fn document(random: &mut Random) -> Value {
    let schemas: Map<String, Value> =
        (0..random.between(1, 3)).map(|index| (format!("S{index}"), schema::root(random))).collect();
    let mut document = json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app",
        "displayName": "Notes", "description": "Notes", "schemas": schemas,
        "state": {}, "resources": {"kv": {}},
    });
    let aliases = *random.pick(&[0, 1, 1, 1, 1, 2]);
    for alias in &ALIASES[..aliases] {
        document["resources"]["kv"][alias] = resource(&document, random);
    }
    let stores = if aliases == 0 { 1 } else { *random.pick(&[0, 0, 1, 2]) };
    for store in &STORES[..stores] {
        document["state"][store] = state(&document, random);
    }
    document
}

thread_local! {
    /// Documents that were read before: the generator and the play ask for the same ones.
    static READ: RefCell<HashMap<String, Option<Contract>>> = RefCell::default();
}

/// How many documents are remembered.
const READ_MAX: usize = 64;

/// A contract, if pleach takes the document for one.
pub(crate) fn contract(document: &Value) -> Option<Contract> {
    READ.with_borrow_mut(|read| {
        if read.len() >= READ_MAX {
            read.clear();
        }
        let checked = || Contract::from_value(document).ok().map(|checked| checked.contract);
        read.entry(document.to_string()).or_insert_with(checked).clone()
    })
}

/// A reference to one of the schemas.
pub(crate) fn any_schema(document: &Value, random: &mut Random) -> Value {
    let names: Vec<&String> =
        document["schemas"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
    json!({"schema": random.pick(&names)})
}

/// A random KV resource.
pub(crate) fn resource(document: &Value, random: &mut Random) -> Value {
    let mut resource = json!({"purpose": "Notes", "schema": any_schema(document, random)});
    resource["history"] = json!(random.pick(&[1, 1, 2, 3, 5]));
    versions(&mut resource, "version", document, random);
    if random.percent(15) {
        resource["ttlMs"] = json!(random.pick(&[60_000, 3_600_000]));
    }
    if random.percent(10) {
        resource["maxValueBytes"] = json!(random.pick(&[20, 200]));
    }
    let keyspaces = *random.pick(&[0, 0, 1, 1, 2, 3]);
    for name in &KEYSPACES[..keyspaces] {
        let keyspace = keyspace(&resource, document, random);
        add_keyspace(&mut resource, name, keyspace);
    }
    resource
}

/// A random keyspace.
pub(crate) fn keyspace(resource: &Value, document: &Value, random: &mut Random) -> Value {
    let mut keyspace = json!({"key": random.pick(&GRAMMARS)});
    if random.percent(40) {
        keyspace["schema"] = any_schema(document, random);
        versions(&mut keyspace, "version", document, random);
    }
    if random.percent(8) && resource["ttlMs"].is_null() {
        keyspace["ttlMs"] = json!(random.pick(&[1000, 60_000]));
    }
    keyspace
}

/// Declares a keyspace, unless it shares a key that the test may write with another.
pub(crate) fn add_keyspace(resource: &mut Value, name: &str, keyspace: Value) {
    let key = keyspace["key"].as_str().unwrap_or_default();
    let others = resource["keyspaces"].as_object().cloned().unwrap_or_default();
    let clashes = |other: &Value| {
        let other = other["key"].as_str().unwrap_or_default();
        other == key || keys::KEYS.iter().any(|one| keys::matches(key, one) && keys::matches(other, one))
    };
    if !others.iter().any(|(other, declared)| other != name && clashes(declared)) {
        resource["keyspaces"][name] = keyspace;
    }
}

/// A random state store.
pub(crate) fn state(document: &Value, random: &mut Random) -> Value {
    let mut store = json!({"kind": random.pick(&["value", "map"]), "schema": any_schema(document, random)});
    versions(&mut store, "stateVersion", document, random);
    store
}

/// Gives something versions now and then.
fn versions(owner: &mut Value, field: &str, document: &Value, random: &mut Random) {
    if random.percent(25) {
        owner[field] = json!("v2");
        if random.percent(70) {
            owner["acceptedVersions"] = json!({"v1": any_schema(document, random)});
        }
    }
}

/// The versions that something can be read in, the current one first, each with the name of its schema.
pub(crate) fn declared_versions(owner: &Value, field: &str) -> Vec<(String, String)> {
    let current = owner[field].as_str().unwrap_or("v1").to_owned();
    let mut all = vec![(current, owner["schema"]["schema"].as_str().unwrap_or_default().to_owned())];
    for (version, schema) in owner["acceptedVersions"].as_object().into_iter().flatten() {
        all.push((version.clone(), schema["schema"].as_str().unwrap_or_default().to_owned()));
    }
    all
}

/// A keyspace with what it has from its resource written out: see `docs/contracts.md`.
pub(crate) fn whole(resource: &Value, keyspace: &Value) -> Value {
    let mut whole = keyspace.clone();
    if keyspace["schema"].is_null() {
        for field in ["schema", "version", "acceptedVersions"] {
            if keyspace[field].is_null() && !resource[field].is_null() {
                whole[field] = resource[field].clone();
            }
        }
    }
    whole
}

/// The part of a resource that a key belongs to: a keyspace, or the resource if it declares none.
pub(crate) fn place_of(resource: &Value, key: &str) -> Option<Value> {
    match resource["keyspaces"].as_object().filter(|keyspaces| !keyspaces.is_empty()) {
        None => Some(resource.clone()),
        Some(keyspaces) => {
            let has = |keyspace: &&Value| keys::matches(keyspace["key"].as_str().unwrap_or_default(), key);
            keyspaces.values().find(has).map(|keyspace| whole(resource, keyspace))
        }
    }
}
