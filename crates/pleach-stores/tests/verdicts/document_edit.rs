//! Random changes of a contract: what a team may do to it between two releases.

use serde_json::{Map, Value, json};

use crate::document::{
    ALIASES, KEYSPACES, STORES, VERSIONS, add_keyspace, any_schema, contract, document, keyspace, resource,
    state,
};
use crate::keys::GRAMMARS;
use crate::random::Random;
use crate::schema_edit;

/// How often a change is tried that may lead to no contract.
const TRIES: usize = 10;

/// The next version of a contract; the same again if nothing that was tried is one.
pub(crate) fn evolved(from: &Value, random: &mut Random) -> Value {
    for _ in 0..TRIES {
        let mut next = from.clone();
        for _ in 0..*random.pick(&[1, 1, 1, 2, 3]) {
            change(&mut next, random);
        }
        if next != *from && contract(&next).is_some() {
            return next;
        }
    }
    from.clone()
}

/// A first contract.
pub(crate) fn first(random: &mut Random) -> Value {
    loop {
        let first = document(random);
        if contract(&first).is_some() {
            return first;
        }
    }
}

fn change(document: &mut Value, random: &mut Random) {
    match random.below(20) {
        0..=11 => edit_schema(document, random),
        12..=16 => edit_resource(document, random),
        17 | 18 => edit_state(document, random),
        _ => edit_aliases(document, random),
    }
}

fn edit_schema(document: &mut Value, random: &mut Random) {
    let Some(schemas) = document["schemas"].as_object_mut() else { return };
    let names: Vec<String> = schemas.keys().cloned().collect();
    schema_edit::edit(&mut schemas[random.pick(&names)], random);
}

fn edit_resource(document: &mut Value, random: &mut Random) {
    let aliases = names(&document["resources"]["kv"]);
    let Some(alias) = random.any(&aliases) else { return };
    let before = document.clone();
    let resource = &mut document["resources"]["kv"][alias];
    let keyspaces = names(&resource["keyspaces"]);
    match random.below(12) {
        0 => resource["history"] = json!(random.between(1, 5)),
        1 => set(resource, "ttlMs", *random.pick(&[0, 1000, 60_000, 3_600_000]), 0),
        2 => set(resource, "maxValueBytes", *random.pick(&[0, 20, 200, 2000]), 0),
        3 | 4 => edit_versions(resource, "version", &before, random),
        5 | 6 => match random.any(&keyspaces) {
            Some(name) => edit_versions(&mut resource["keyspaces"][name], "version", &before, random),
            None => resource["schema"] = any_schema(&before, random),
        },
        _ => edit_keyspaces(resource, &keyspaces, &before, random),
    }
}

fn set(owner: &mut Value, field: &str, number: u64, none: u64) {
    if number == none {
        remove(owner, field);
    } else {
        owner[field] = json!(number);
    }
}

/// Raises, drops, accepts and swaps versions.
fn edit_versions(owner: &mut Value, field: &str, document: &Value, random: &mut Random) {
    let current = owner[field].as_str().unwrap_or("v1").to_owned();
    let accepted = names(&owner["acceptedVersions"]);
    match random.below(6) {
        // Another version is written; the old one stays accepted, or not.
        0 | 1 => {
            let new = (*random.pick(&VERSIONS)).to_owned();
            let old = owner["schema"].clone();
            if random.percent(70) && new != current && !old.is_null() {
                owner["acceptedVersions"][&current] = old;
            }
            remove(&mut owner["acceptedVersions"], &new);
            owner[field] = json!(new);
            if random.percent(60) && !owner["schema"].is_null() {
                owner["schema"] = any_schema(document, random);
            }
        }
        2 => {
            if let Some(version) = random.any(&accepted) {
                remove(&mut owner["acceptedVersions"], version);
            }
        }
        3 => {
            let version = *random.pick(&VERSIONS);
            if version != current {
                owner["acceptedVersions"][version] = any_schema(document, random);
            }
        }
        4 => owner["schema"] = any_schema(document, random),
        _ => remove(owner, "acceptedVersions"),
    }
    if owner["acceptedVersions"].as_object().is_none_or(Map::is_empty) {
        remove(owner, "acceptedVersions");
    }
}

/// Adds, removes, renames, splits, merges, narrows and widens keyspaces.
fn edit_keyspaces(resource: &mut Value, declared: &[String], document: &Value, random: &mut Random) {
    let new = (*random.pick(&KEYSPACES)).to_owned();
    let any = random.any(declared).cloned();
    match (random.below(8), any) {
        (0, Some(name)) => remove(&mut resource["keyspaces"], &name),
        (1, Some(name)) if !declared.contains(&new) => {
            let moved = resource["keyspaces"][&name].clone();
            remove(&mut resource["keyspaces"], &name);
            resource["keyspaces"][new] = moved;
        }
        (2 | 3, Some(name)) => {
            let mut changed = resource["keyspaces"][&name].clone();
            changed["key"] = json!(random.pick(&GRAMMARS));
            add_keyspace(resource, &name, changed);
        }
        // One becomes two that have other keys of it, or two become one.
        (4, Some(name)) => {
            let (one, other) =
                *random.pick(&[("n.{id:x|y}", "n.{id:z|zz|long}"), ("n.{id:slug(2)}", "m.{id}")]);
            let mut first = resource["keyspaces"][&name].clone();
            let mut second = first.clone();
            (first["key"], second["key"]) = (json!(one), json!(other));
            remove(&mut resource["keyspaces"], &name);
            add_keyspace(resource, &name, first);
            add_keyspace(resource, &new, second);
        }
        (5, Some(name)) => {
            let kept = resource["keyspaces"][&name].clone();
            resource["keyspaces"] = json!({});
            resource["keyspaces"][&name] = kept;
            resource["keyspaces"][&name]["key"] = json!(random.pick(&["n.{id}", "n.{rest...}"]));
        }
        (6, Some(_)) => remove(resource, "keyspaces"),
        _ => {
            let added = keyspace(resource, document, random);
            add_keyspace(resource, &new, added);
        }
    }
    if resource["keyspaces"].as_object().is_none_or(Map::is_empty) {
        remove(resource, "keyspaces");
    }
}

fn edit_state(document: &mut Value, random: &mut Random) {
    let stores = names(&document["state"]);
    let before = document.clone();
    let new = (*random.pick(&STORES)).to_owned();
    match (random.below(8), random.any(&stores)) {
        (0, Some(store)) => remove(&mut document["state"], store),
        (1, Some(store)) if !stores.contains(&new) => {
            let moved = document["state"][store].clone();
            remove(&mut document["state"], store);
            document["state"][new] = moved;
        }
        (2, Some(store)) => document["state"][store]["kind"] = json!(random.pick(&["value", "map"])),
        (3..=6, Some(store)) => edit_versions(&mut document["state"][store], "stateVersion", &before, random),
        _ => document["state"][new] = state(&before, random),
    }
}

fn edit_aliases(document: &mut Value, random: &mut Random) {
    let aliases = names(&document["resources"]["kv"]);
    let before = document.clone();
    let new = (*random.pick(&ALIASES)).to_owned();
    match (random.below(4), random.any(&aliases)) {
        (0 | 1, Some(alias)) => remove(&mut document["resources"]["kv"], alias),
        (2, Some(alias)) if !aliases.contains(&new) => {
            let moved = document["resources"]["kv"][alias].clone();
            remove(&mut document["resources"]["kv"], alias);
            document["resources"]["kv"][new] = moved;
        }
        _ => document["resources"]["kv"][new] = resource(&before, random),
    }
}

fn names(owner: &Value) -> Vec<String> {
    owner.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn remove(owner: &mut Value, field: &str) {
    if let Some(map) = owner.as_object_mut() {
        map.remove(field);
    }
}
