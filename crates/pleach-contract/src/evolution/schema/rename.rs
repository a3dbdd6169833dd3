use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::objects::entries;
use super::walk::{Site, Walk};
use crate::document::fields::nearest;

/// The most properties that are compared with each other: beyond, too much was changed to suspect anything.
const CANDIDATES_MAX: usize = 64;

/// Properties that seem to have another name now: those that are gone, and what they seem to be called.
///
/// One was removed and one was added, and both must be the same. If there are several, their names must be alike too.
pub(super) fn suspected<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) -> BTreeMap<&'a str, &'a str> {
    let (before, after) = (entries(&site.old, "properties"), entries(&site.new, "properties"));
    let removed: Vec<_> = before.iter().filter(|(name, _)| !after.contains_key(*name)).collect();
    let added: Vec<_> = after.iter().filter(|(name, _)| !before.contains_key(*name)).collect();
    walk.steps.spend(before.len() + after.len());
    let mut found = BTreeMap::new();
    if removed.len().max(added.len()) > CANDIDATES_MAX {
        return found;
    }
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for (name, schema) in &removed {
        walk.steps.spend(added.len());
        let is_same = |(other, value): &&(&'a String, &'a Value)| {
            !taken.contains(other.as_str()) && value == schema && says_something(value)
        };
        let same: Vec<&str> = added.iter().filter(is_same).map(|(other, _)| other.as_str()).collect();
        let alike = same.iter().copied().find(|other| is_respelled(name, other));
        let alike = alike.or_else(|| nearest(name, same.iter().copied()));
        let is_only = removed.len() == 1 && added.len() == 1;
        let only = same.first().copied().filter(|_| is_only);
        if let Some(other) = alike.or(only) {
            taken.insert(other);
            found.insert(name.as_str(), other);
        }
    }
    found
}

/// Whether both have the same letters, or one has the other in it: `due_at` and `dueAt`, `name` and `fullName`.
fn is_respelled(left: &str, right: &str) -> bool {
    const LETTERS_MIN: usize = 3;
    let letters = |name: &str| -> String {
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (left, right) = (letters(left), letters(right));
    let shorter = left.len().min(right.len());
    shorter >= LETTERS_MIN && (left.contains(&right) || right.contains(&left))
}

/// Two schemas that say nothing are no sign of anything.
fn says_something(schema: &Value) -> bool {
    schema.as_object().is_some_and(|map| !map.is_empty())
}
