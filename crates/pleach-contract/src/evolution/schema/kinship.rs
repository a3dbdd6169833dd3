use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::objects::{entries, names};
use super::place::Place;
use super::types::{Types, plain_choices};
use super::walk::Walk;
use crate::canonical::canonical;

/// The most comparisons of branches with each other; beyond, they are taken in their order.
const COMPARISONS_MAX: usize = 4096;

/// Branches of two schemas that belong together, and those that do not.
#[derive(Debug)]
pub(super) struct Pairing<'a> {
    pub(super) pairs: Vec<(Place<'a>, Place<'a>)>,
    pub(super) removed: Vec<Place<'a>>,
    pub(super) added: Vec<Place<'a>>,
}

/// Puts branches into pairs: first those that are the same, then those that are alike. It is a guess, and any guess will
/// do: a bad one only finds more differences than there are.
pub(super) fn paired<'a>(
    walk: &mut Walk<'a, '_>,
    before: Vec<Place<'a>>,
    after: Vec<Place<'a>>,
) -> Pairing<'a> {
    walk.steps.spend(before.len() + after.len());
    let mut pairs = Vec::new();
    let mut added: Vec<Option<Place<'a>>> = after.into_iter().map(Some).collect();
    let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, place) in added.iter().enumerate().rev() {
        place.iter().for_each(|place| by_text.entry(canonical(place.schema)).or_default().push(index));
    }
    let mut removed: Vec<Option<Place<'a>>> = Vec::new();
    for old in before {
        let same = by_text.get_mut(&canonical(old.schema)).and_then(Vec::pop);
        match same.and_then(|index| added[index].take()) {
            Some(new) => pairs.push((old, new)),
            None => removed.push(Some(old)),
        }
    }
    let left = added.iter().flatten().count();
    let few = removed.len() * left <= COMPARISONS_MAX;
    walk.steps.spend(if few { removed.len() * left } else { left });
    for degree in (1..=3).rev() {
        for old in &mut removed {
            let kin = |new: &&mut Option<Place<'a>>| match (old.as_ref(), new.as_ref()) {
                (Some(old), Some(new)) if few => kinship(walk, old, new) >= degree,
                (Some(_), Some(_)) => degree == 1,
                _ => false,
            };
            let found = added.iter_mut().find(kin).and_then(Option::take);
            if let Some(new) = found {
                pairs.extend(old.take().map(|old| (old, new)));
            }
        }
    }
    Pairing {
        pairs,
        removed: removed.into_iter().flatten().collect(),
        added: added.into_iter().flatten().collect(),
    }
}

/// How alike two branches are: 0 if not at all.
fn kinship<'a>(walk: &Walk<'a, '_>, old: &Place<'a>, new: &Place<'a>) -> u8 {
    let reference = |place: &Place<'a>| place.keywords().get("$ref").and_then(Value::as_str);
    if reference(old).is_some() && reference(old) == reference(new) {
        return 3;
    }
    let (Some(old), Some(new)) = (walk.old.resolved(old), walk.new.resolved(new)) else { return 0 };
    let (old_words, new_words) = (old.keywords(), new.keywords());
    let title = |words: &Map<String, Value>| words.get("title").cloned();
    let (old_tags, new_tags) = (tags(&old), tags(&new));
    if old_tags.iter().any(|tag| new_tags.contains(tag)) {
        return 3;
    }
    if title(old_words).is_some() && title(old_words) == title(new_words) {
        return 3;
    }
    // A tag of another value is another thing, whatever else is the same.
    if old_tags.iter().any(|(name, _)| new_tags.iter().any(|(other, _)| name == other)) {
        return 0;
    }
    let (old_types, new_types) = (Types::effective(old_words), Types::effective(new_words));
    match (old_types, new_types) {
        (Types::ALL, Types::ALL) => 1,
        (Types::ALL, _) | (_, Types::ALL) => 0,
        (old, new) if old == new => 2,
        (old, new) => u8::from(old.meets(new)),
    }
}

/// The properties that must be there with one certain value.
pub(super) fn tags(place: &Place<'_>) -> BTreeSet<(String, String)> {
    let required = names(place.keywords().get("required"));
    let properties = entries(place, "properties");
    let fixed = properties.iter().filter_map(|(name, schema)| Some((name, schema.get("const")?)));
    fixed
        .filter(|(name, _)| required.contains(name.as_str()))
        .map(|(name, value)| (name.clone(), canonical(value)))
        .collect()
}

/// Whether certainly no value fits two of the branches.
pub(super) fn are_disjoint<'a>(walk: &mut Walk<'a, '_>, branches: &[Place<'a>], is_old: bool) -> bool {
    let count = branches.len();
    if count * count > COMPARISONS_MAX {
        return false;
    }
    walk.steps.spend(count * count);
    let root = if is_old { walk.old } else { walk.new };
    let resolved: Option<Vec<Place<'a>>> = branches.iter().map(|branch| root.resolved(branch)).collect();
    let Some(resolved) = resolved else { return false };
    let is_apart = |left: &Place<'a>, right: &Place<'a>| {
        let (left_words, right_words) = (left.keywords(), right.keywords());
        let both = Types::effective(left_words).and(Types::effective(right_words));
        let apart = |left: &Map<String, Value>, right: &Map<String, Value>| {
            let choices = (plain_choices(left), plain_choices(right));
            matches!(choices, (Some(left), Some(right)) if left.is_disjoint(&right))
        };
        !both.meets(Types::ALL)
            || apart(left_words, right_words)
            || both.within(Types::OBJECT)
                && {
                    let required = names(left_words.get("required"));
                    let other = names(right_words.get("required"));
                    required.intersection(&other).any(|name| {
                    let left = root.resolved(&left.named("properties", name));
                    let right = root.resolved(&right.named("properties", name));
                    matches!((left, right), (Some(left), Some(right)) if apart(left.keywords(), right.keywords()))
                })
                }
    };
    let mut later = resolved.as_slice();
    while let Some((first, rest)) = later.split_first() {
        if !rest.iter().all(|other| is_apart(first, other)) {
            return false;
        }
        later = rest;
    }
    true
}
