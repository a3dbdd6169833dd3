use std::collections::{BTreeMap, BTreeSet};

use super::read::suggest;
use super::{Keyspace, Role};
use crate::problem::{Code, Problem, Problems};
use crate::text::child;

/// Finds derived keyspaces that nothing could be rebuilt from: without a source, or in a circle.
pub(super) fn check(keyspaces: &BTreeMap<String, Keyspace>, path: &str, problems: &mut Problems) {
    for (name, keyspace) in keyspaces {
        let path = child(path, name);
        match keyspace.role {
            Role::Derived if keyspace.from.is_empty() => {
                let message = format!("`{name}` is derived, and nothing says from what");
                let fix = "add `from` with the keyspaces it is built from";
                problems.push(Problem::new(Code::RoleSource, path.clone(), message, fix));
            }
            Role::Source if !keyspace.from.is_empty() => {
                let message = format!("`{name}` is a source, and yet it is built from others");
                let fix = "write `role: derived`, or remove `from`: only one can be the truth";
                problems.push(Problem::new(Code::RoleSource, child(&path, "from"), message, fix));
            }
            Role::Derived | Role::Source => {}
        }
        let mut seen = BTreeSet::new();
        for (index, source) in keyspace.from.iter().enumerate() {
            if !seen.insert(source) {
                let message = format!("`{name}` is built from `{source}` twice");
                let path = child(&child(&path, "from"), index);
                problems.push(Problem::new(Code::MemberRepeated, path, message, "remove one of the two"));
            } else if !keyspaces.contains_key(source) {
                let message = format!("there is no keyspace `{source}`");
                let fix = suggest(source, keyspaces.keys().map(String::as_str), "declare it");
                let path = child(&child(&path, "from"), index);
                problems.push(Problem::new(Code::MemberUnknown, path, message, fix));
            }
        }
    }
    for name in in_circles(keyspaces) {
        let message = format!("`{name}` is built from itself, by way of what it is built from");
        let fix = "one of them must be a source";
        problems.push(Problem::new(Code::RoleLoop, child(&child(path, name), "from"), message, fix));
    }
}

/// The keyspaces that are left when those whose sources are all settled are taken away, again and again.
fn in_circles(keyspaces: &BTreeMap<String, Keyspace>) -> Vec<&str> {
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    loop {
        let more: Vec<&str> = keyspaces
            .iter()
            .filter(|(name, _)| !settled.contains(name.as_str()))
            .filter(|(_, keyspace)| {
                keyspace
                    .from
                    .iter()
                    .all(|from| settled.contains(from.as_str()) || !keyspaces.contains_key(from))
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if more.is_empty() {
            break;
        }
        settled.extend(more);
    }
    keyspaces.keys().map(String::as_str).filter(|name| !settled.contains(name)).collect()
}
