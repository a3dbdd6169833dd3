//! Keywords about a value itself: its type, its choices, its limits, its form.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::change::{Change, Holds};
use super::number::{compare as compare_numbers, divides, number};
use super::types::{Types, choices};
use super::walk::{Site, Walk, verb};
use crate::evolution::FindingCode;

/// The most values that a message names.
const NAMED_MAX: usize = 5;

pub(super) fn compare<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    types(walk, site);
    chosen(walk, site);
    for (least, most, types) in [
        ("minLength", "maxLength", Types::STRING),
        ("minItems", "maxItems", Types::ARRAY),
        ("minProperties", "maxProperties", Types::OBJECT),
    ] {
        at_least(walk, site, least, types, 0);
        at_most(walk, site, most, types);
    }
    range(walk, site, ("minimum", "exclusiveMinimum"), Ordering::Greater);
    range(walk, site, ("maximum", "exclusiveMaximum"), Ordering::Less);
    multiple(walk, site);
    unique(walk, site);
    let pattern = [FindingCode::PatternAdded, FindingCode::PatternChanged, FindingCode::PatternRemoved];
    form(walk, site, "pattern", pattern);
    let format = [FindingCode::FormatAdded, FindingCode::FormatChanged, FindingCode::FormatRemoved];
    form(walk, site, "format", format);
}

fn types<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    let (old, new) = (Types::declared(site.old.keywords()), Types::declared(site.new.keywords()));
    if old == new {
        return;
    }
    let message = format!("{old} became {new}");
    let change = match (site.old_types.within(new), site.new_types.within(old)) {
        (true, true) => Change::new(FindingCode::SchemaIdle, message),
        (true, false) => Change::loosened(FindingCode::TypeWidened, message),
        (false, true) => Change::tightened(FindingCode::TypeNarrowed, message),
        (false, false) => {
            let holds = if site.old_types.meets(new) { Holds::Partly } else { Holds::No };
            Change::new(FindingCode::TypeChanged, message).with(holds, Holds::Partly)
        }
    };
    walk.tell(site, "type", change);
}

fn chosen<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    let (old_words, new_words) = (site.old.keywords(), site.new.keywords());
    let same = ["enum", "const"].iter().all(|word| old_words.get(*word) == new_words.get(*word));
    if same {
        return;
    }
    let (old, new) = (choices(old_words), choices(new_words));
    walk.steps.spend(old.iter().chain(&new).map(BTreeSet::len).sum());
    let change = match (&old, &new) {
        (None, None) => return,
        (Some(_), None) => {
            Change::loosened(FindingCode::EnumWidened, "there is no list of values any more to choose from")
        }
        (None, Some(new)) => {
            let message = format!("only {} can be chosen", names(new.iter()));
            Change::tightened(FindingCode::EnumNarrowed, message)
        }
        (Some(old), Some(new)) => {
            let (added, removed): (Vec<_>, Vec<_>) =
                (new.difference(old).collect(), old.difference(new).collect());
            let added_names = names(added.iter().copied());
            let removed_names = names(removed.iter().copied());
            match (added.is_empty(), removed.is_empty()) {
                (true, true) => return,
                (false, true) => {
                    Change::loosened(FindingCode::EnumWidened, format!("{added_names} can be chosen too"))
                }
                (true, false) => {
                    let message = format!("{removed_names} cannot be chosen any more");
                    Change::tightened(FindingCode::EnumNarrowed, message)
                }
                (false, false) => {
                    let message =
                        format!("{removed_names} cannot be chosen any more, and {added_names} can instead");
                    Change::new(FindingCode::EnumChanged, message).with(Holds::Partly, Holds::Partly)
                }
            }
        }
    };
    let is_const = new_words.contains_key("const") || (new.is_none() && old_words.contains_key("const"));
    walk.tell(site, if is_const { "const" } else { "enum" }, change);
}

fn names<'n>(values: impl Iterator<Item = &'n String>) -> String {
    const NAME_CHARS_MAX: usize = 40;
    let cut = |value: &String| match value.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.clone(),
    };
    let values: Vec<&String> = values.collect();
    let listed: Vec<String> = values.iter().take(NAMED_MAX).map(|value| cut(value)).collect();
    match values.len().saturating_sub(NAMED_MAX) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// How many there must be, and how many if nothing is said.
pub(super) fn at_least<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, word: &str, types: Types, default: u64) {
    limit(walk, site, (word, types), Ordering::Greater, Some(&Number::from(default)));
}

/// How many there may be.
pub(super) fn at_most<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, word: &str, types: Types) {
    limit(walk, site, (word, types), Ordering::Less, None);
}

/// A limit of how many there are; `tighter` is how the new number compares to the old one if it is.
fn limit<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    (keyword, types): (&str, Types),
    tighter: Ordering,
    default: Option<&Number>,
) {
    let old = number(site.old.keywords().get(keyword)).or(default);
    let new = number(site.new.keywords().get(keyword)).or(default);
    let order = match (old, new) {
        (None, None) => return,
        (None, Some(_)) => Some(tighter),
        (Some(_), None) => Some(tighter.reverse()),
        (Some(old), Some(new)) => compare_numbers(new, old),
    };
    let shown = [old, new].map(|limit| limit.map_or("none".to_owned(), Number::to_string));
    let message = format!("`{keyword}`: {} became {}", shown[0], shown[1]);
    tell_order(walk, site, (keyword, types), order.map(|order| (order, tighter)), message);
}

fn tell_order<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    (keyword, types): (&str, Types),
    order: Option<(Ordering, Ordering)>,
    message: String,
) {
    let change = match order {
        Some((Ordering::Equal, _)) => return,
        Some((order, tighter)) if order == tighter => {
            Change::tightened(FindingCode::BoundsTightened, message)
        }
        Some(_) => Change::loosened(FindingCode::BoundsLoosened, message),
        None => Change::new(FindingCode::BoundsChanged, message).with(Holds::Partly, Holds::Partly),
    };
    walk.tell_of(site, keyword, types, change);
}

/// A limit of a number, in both its forms.
fn range<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, words: (&str, &str), tighter: Ordering) {
    let (old, new) = (edge(site.old.keywords(), words, tighter), edge(site.new.keywords(), words, tighter));
    let order = match (&old, &new) {
        (None, None) => return,
        (None, Some(_)) => Some(tighter),
        (Some(_), None) => Some(tighter.reverse()),
        // Of equal numbers, the one that is itself excluded is tighter.
        (Some(old), Some(new)) => compare_numbers(new.0, old.0).map(|order| match order {
            Ordering::Equal if new.1 == old.1 => Ordering::Equal,
            Ordering::Equal if new.1 => tighter,
            Ordering::Equal => tighter.reverse(),
            order => order,
        }),
    };
    let shown = [&old, &new].map(|edge| match edge {
        None => "none".to_owned(),
        Some((number, true)) => format!("{number} (excluded)"),
        Some((number, false)) => number.to_string(),
    });
    let keyword = match (&new, &old) {
        (Some((_, true)), _) | (None, Some((_, true))) => words.1,
        _ => words.0,
    };
    let message = format!("`{}`: {} became {}", words.0, shown[0], shown[1]);
    tell_order(walk, site, (keyword, Types::NUMBER), order.map(|order| (order, tighter)), message);
}

/// The tighter one of two limits, and whether it is itself excluded.
fn edge<'a>(
    map: &'a Map<String, Value>,
    (included, excluded): (&str, &str),
    tighter: Ordering,
) -> Option<(&'a Number, bool)> {
    match (number(map.get(included)), number(map.get(excluded))) {
        (Some(included), Some(excluded)) => match compare_numbers(included, excluded) {
            Some(order) if order == tighter => Some((included, false)),
            _ => Some((excluded, true)),
        },
        (Some(included), None) => Some((included, false)),
        (None, excluded) => excluded.map(|excluded| (excluded, true)),
    }
}

fn multiple<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const KEYWORD: &str = "multipleOf";
    let (old, new) = (number(site.old.keywords().get(KEYWORD)), number(site.new.keywords().get(KEYWORD)));
    let message = format!("`{KEYWORD}` was {}", verb(site.old.keywords(), site.new.keywords(), KEYWORD));
    let change = match (old, new) {
        (None, None) => return,
        (None, Some(_)) => Change::tightened(FindingCode::BoundsTightened, message),
        (Some(_), None) => Change::loosened(FindingCode::BoundsLoosened, message),
        (Some(old), Some(new)) => {
            let message = format!("`{KEYWORD}`: {old} became {new}");
            match (divides(new, old), divides(old, new)) {
                (true, true) => return,
                (true, false) => Change::loosened(FindingCode::BoundsLoosened, message),
                (false, true) => Change::tightened(FindingCode::BoundsTightened, message),
                (false, false) => {
                    Change::new(FindingCode::BoundsChanged, message).with(Holds::Partly, Holds::Partly)
                }
            }
        }
    };
    walk.tell_of(site, KEYWORD, Types::NUMBER, change);
}

fn unique<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const KEYWORD: &str = "uniqueItems";
    let is_unique = |map: &Map<String, Value>| map.get(KEYWORD) == Some(&Value::Bool(true));
    let change = match (is_unique(site.old.keywords()), is_unique(site.new.keywords())) {
        (false, true) => {
            Change::tightened(FindingCode::BoundsTightened, "no two items may be equal any more")
        }
        (true, false) => Change::loosened(FindingCode::BoundsLoosened, "items may be equal"),
        _ => return,
    };
    walk.tell_of(site, KEYWORD, Types::ARRAY, change);
}

/// What a text must look like.
fn form<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    keyword: &str,
    [added, changed, removed]: [FindingCode; 3],
) {
    let (old, new) = (site.old.keywords().get(keyword), site.new.keywords().get(keyword));
    let shown = |value: &Value| names(std::iter::once(&value.to_string()));
    let change = match (old, new) {
        (old, new) if old == new => return,
        (Some(old), Some(new)) => {
            let message = format!("`{keyword}`: {} became {}", shown(old), shown(new));
            Change::new(changed, message).with(Holds::Partly, Holds::Unknown)
        }
        (None, Some(new)) => Change::tightened(added, format!("`{keyword}` {} was added", shown(new))),
        _ => Change::loosened(removed, format!("`{keyword}` was removed")),
    };
    walk.tell_of(site, keyword, Types::STRING, change);
}
