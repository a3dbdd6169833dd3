//! Keywords that put schemas together: `allOf`, `anyOf`, `oneOf`, `not`, `if`, and a `$ref` with others beside it.

use serde_json::Value;

use super::change::{Change, Holds, Sense};
use super::kinship::{are_disjoint, paired, tags};
use super::place::{Place, Root};
use super::walk::{Site, Step, Walk};
use crate::canonical::canonical;
use crate::evolution::FindingCode;

/// Compares two schemas of which one is nothing but a choice: the other is a choice of one. Whether it was so.
///
/// This is how a value that may be missing comes about: what was `T` becomes `anyOf: [T, null]`.
pub(super) fn alternatives<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    (old, new): (&Place<'a>, &Place<'a>),
) -> bool {
    // Next to what accepts everything, a choice is a condition as any other.
    if site.old.is_anything() || site.new.is_anything() {
        return false;
    }
    for keyword in ["anyOf", "oneOf"] {
        let (was_choice, is_choice) = (site.old.is_only(keyword), site.new.is_only(keyword));
        if was_choice == is_choice {
            continue;
        }
        // The place before references were followed, so that the same reference is found again.
        let before = if was_choice { site.old.listed(keyword) } else { vec![old.clone()] };
        let after = if is_choice { site.new.listed(keyword) } else { vec![new.clone()] };
        if keyword == "anyOf" {
            any_of(walk, site, before, after);
        } else {
            one_of(walk, site, before, after);
        }
        return true;
    }
    false
}

pub(super) fn compare<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    let (before, after) = (conditions(walk, &site.old, true), conditions(walk, &site.new, false));
    all_of(walk, site, before, after);
    choice(walk, site, "anyOf", any_of);
    choice(walk, site, "oneOf", one_of);
    negation(walk, site);
    conditional(walk, site);
}

/// What must hold beside everything else.
fn conditions<'a>(walk: &Walk<'a, '_>, place: &Place<'a>, is_old: bool) -> Vec<Place<'a>> {
    let root = if is_old { walk.old } else { walk.new };
    let reference = place.keywords().get("$ref").and_then(Value::as_str);
    let referred = reference.and_then(|reference| root.target(reference));
    referred.into_iter().chain(place.listed("allOf")).collect()
}

fn all_of<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, before: Vec<Place<'a>>, after: Vec<Place<'a>>) {
    let pairing = paired(walk, before, after);
    for pair in pairing.pairs {
        walk.follow(site, pair, Step::Here, Sense::Same);
    }
    for place in pairing.added {
        let change = Change::tightened(FindingCode::ConditionAdded, "a further condition must hold");
        walk.tell_at(site, place.path, change);
    }
    for place in pairing.removed {
        let change = Change::loosened(FindingCode::ConditionRemoved, "a condition need not hold any more");
        walk.tell_at(site, place.path, change);
    }
}

/// A choice that is there in both, in one, or in neither.
fn choice<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    keyword: &str,
    both: fn(&mut Walk<'a, '_>, &Site<'a>, Vec<Place<'a>>, Vec<Place<'a>>),
) {
    match (site.old.listed(keyword), site.new.listed(keyword)) {
        (before, after) if before.is_empty() && after.is_empty() => {}
        (before, after) if !before.is_empty() && !after.is_empty() => both(walk, site, before, after),
        (before, _) => one_sided(walk, site, keyword, before.is_empty()),
    }
}

fn one_sided<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, keyword: &str, is_added: bool) {
    let change = if is_added {
        Change::tightened(FindingCode::ConditionAdded, format!("`{keyword}` was added"))
    } else {
        Change::loosened(FindingCode::ConditionRemoved, format!("`{keyword}` was removed"))
    };
    walk.tell(site, keyword, change);
}

/// If each branch accepts all that its counterpart did, so do all together, however they were put into pairs.
fn any_of<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, before: Vec<Place<'a>>, after: Vec<Place<'a>>) {
    const KEYWORD: &str = "anyOf";
    let pairing = paired(walk, before, after);
    for pair in pairing.pairs {
        walk.follow_branch(site, KEYWORD, pair, Sense::Same);
    }
    for place in pairing.added {
        let message = format!("{} was added", described(KEYWORD, &place, walk.new, site.place()));
        walk.tell_at(site, place.path, Change::loosened(FindingCode::BranchAdded, message));
    }
    for place in pairing.removed {
        let message = format!("{} was removed", described(KEYWORD, &place, walk.old, site.place()));
        walk.tell_at(site, place.path, Change::tightened(FindingCode::BranchRemoved, message));
    }
}

/// Of `oneOf` a value must fit exactly one branch, so one that accepts more can take values from another. If no value can
/// fit two, it is the same as `anyOf`.
fn one_of<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, before: Vec<Place<'a>>, after: Vec<Place<'a>>) {
    const KEYWORD: &str = "oneOf";
    let were_disjoint = are_disjoint(walk, &before, true);
    let are_disjoint = are_disjoint(walk, &after, false);
    let sense = if were_disjoint && are_disjoint { Sense::Same } else { Sense::Either };
    let pairing = paired(walk, before, after);
    for pair in pairing.pairs {
        walk.follow_branch(site, KEYWORD, pair, sense);
    }
    let holds = |are_disjoint: bool| if are_disjoint { Holds::Yes } else { Holds::Partly };
    for place in pairing.added {
        let branch = described(KEYWORD, &place, walk.new, site.place());
        let message = if are_disjoint {
            format!("{branch} was added, which no other overlaps")
        } else {
            format!("{branch} was added, and values that fit it and another are refused")
        };
        let change = Change::new(FindingCode::ChoiceAdded, message);
        walk.tell_at(site, place.path, change.with(holds(are_disjoint), Holds::Partly));
    }
    for place in pairing.removed {
        let message = format!("{} was removed", described(KEYWORD, &place, walk.old, site.place()));
        let change = Change::new(FindingCode::ChoiceRemoved, message);
        walk.tell_at(site, place.path, change.with(Holds::Partly, holds(were_disjoint)));
    }
}

/// A branch of a choice for people: its title, the value of its tag, its name or its index, and the place of a value that it
/// looks at.
pub(super) fn described<'a>(
    keyword: &str,
    branch: &Place<'a>,
    root: &Root<'a>,
    instance: Option<&str>,
) -> String {
    const NAME_CHARS_MAX: usize = 60;
    let resolved = root.resolved(branch);
    let words = resolved.as_ref().unwrap_or(branch).keywords();
    let title = words.get("title").and_then(Value::as_str).map(|title| format!("`{title}`"));
    let tag = || {
        resolved
            .as_ref()
            .and_then(|place| tags(place).into_iter().next())
            .map(|(name, value)| format!("with `{name}` {value}"))
    };
    let name = || branch.keywords().get("$ref")?.as_str()?.rsplit('/').next().map(|name| format!("`{name}`"));
    let fixed = || words.get("const").map(canonical);
    let index = || branch.path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut shown = title.or_else(tag).or_else(name).or_else(fixed).unwrap_or_else(index);
    if let Some((end, _)) = shown.char_indices().nth(NAME_CHARS_MAX) {
        shown.truncate(end);
        shown.push('…');
    }
    let place = match instance {
        None => String::new(),
        Some("") => " of the value".to_owned(),
        Some(place) => format!(" of {place}"),
    };
    format!("the `{keyword}` branch {shown}{place}")
}

fn negation<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const KEYWORD: &str = "not";
    match (site.old.keywords().contains_key(KEYWORD), site.new.keywords().contains_key(KEYWORD)) {
        (false, false) => {}
        (true, true) => {
            let pair = (site.old.keyword(KEYWORD), site.new.keyword(KEYWORD));
            walk.follow(site, pair, Step::Here, Sense::Flipped);
        }
        (is_old, _) => one_sided(walk, site, KEYWORD, !is_old),
    }
}

/// Which of `then` and `else` applies is decided by `if`: they can be compared only if that is the same.
fn conditional<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const KEYWORD: &str = "if";
    match (site.old.keywords().contains_key(KEYWORD), site.new.keywords().contains_key(KEYWORD)) {
        (false, false) => {}
        (true, true) => {
            for (keyword, sense) in [(KEYWORD, Sense::Either), ("then", Sense::Same), ("else", Sense::Same)] {
                let pair = (site.old.keyword(keyword), site.new.keyword(keyword));
                walk.follow(site, pair, Step::Here, sense);
            }
        }
        (is_old, _) => one_sided(walk, site, KEYWORD, !is_old),
    }
}
