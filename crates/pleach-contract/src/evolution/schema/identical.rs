use std::collections::HashSet;

use serde_json::Value;

use super::place::Place;
use super::walk::{Site, Walk};

/// Whether a schema has a keyword that depends on everything beside it.
pub(super) fn needed(place: &Place<'_>) -> bool {
    let keywords = place.keywords();
    ["unevaluatedProperties", "unevaluatedItems", "dependencies"]
        .iter()
        .any(|word| keywords.contains_key(*word))
}

/// Whether both say the same word for word, and so does everything they refer to.
pub(super) fn check(walk: &mut Walk<'_, '_>, site: &Site<'_>) -> bool {
    let mut seen = HashSet::new();
    let mut waiting = vec![(site.old.clone(), site.new.clone())];
    while let Some((old, new)) = waiting.pop() {
        if !seen.insert((old.identity(), new.identity())) {
            continue;
        }
        if old.schema != new.schema {
            return false;
        }
        for reference in references(walk, new.schema) {
            let (Some(old), Some(new)) = (walk.old.target(reference), walk.new.target(reference)) else {
                return false;
            };
            waiting.push((old, new));
        }
        if walk.steps.are_spent() {
            return false;
        }
    }
    true
}

/// Every text that is a reference, wherever it stands: one that only looks like it does no harm.
fn references<'a>(walk: &mut Walk<'_, '_>, schema: &'a Value) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        walk.steps.spend(1);
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                waiting.extend(map.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}
