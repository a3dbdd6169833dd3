//! Keywords about the fields of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::change::{Change, Holds, Sense};
use super::place::{NO_KEYWORDS, Place, Shape};
use super::rename;
use super::types::Types;
use super::walk::{Site, Step, Walk};
use crate::evolution::{FindingCode, Verdict};

pub(super) fn compare<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    if !site.old_types.meets(Types::OBJECT) && !site.new_types.meets(Types::OBJECT) {
        return;
    }
    let (old, new) = (Fields::of(walk, &site.old, true), Fields::of(walk, &site.new, false));
    let renamed = rename::suspected(walk, site);
    for (from, to) in &renamed {
        let message =
            format!("`{to}` looks renamed from `{from}`: what is stored under the old name is not found");
        let change = Change::new(FindingCode::PropertyRenamed, message).with(Holds::No, Holds::No);
        let question = Some(site.carriers(Step::Field(from)));
        let path = site.new.named("properties", to).path;
        walk.tell_at(site, path, change.at_least(Verdict::Dangerous).asking(question));
    }
    properties(walk, site, (&old, &new), &renamed);
    patterns(walk, site, (&old, &new));
    others(walk, site, (&old, &new));
    required(walk, site, &renamed);
    dependent(walk, site);
    let names = (site.old.keyword("propertyNames"), site.new.keyword("propertyNames"));
    walk.follow(site, names, Step::Here, Sense::Same);
}

/// What the fields of an object that no `properties` name must be.
#[derive(Debug)]
struct Fields<'a> {
    has_patterns: bool,
    others: Place<'a>,
}

impl<'a> Fields<'a> {
    fn of(walk: &Walk<'a, '_>, place: &Place<'a>, is_old: bool) -> Self {
        let root = if is_old { walk.old } else { walk.new };
        let others = place.keyword("additionalProperties");
        Self {
            has_patterns: !entries(place, "patternProperties").is_empty(),
            // A reference that leads nowhere is told where it is followed.
            others: root.resolved(&others).unwrap_or(others),
        }
    }

    /// Whether a field that this side does not name is accepted by `named` on the other side.
    fn joins(&self, named: &Place<'a>) -> Holds {
        let never_there = self.others.is_nothing() && !self.has_patterns;
        if named.is_anything() || never_there { Holds::Yes } else { Holds::Partly }
    }

    /// Whether a field that the other side names is accepted by this side, which does not.
    fn leaves(&self, named: &Place<'a>) -> Holds {
        if self.others.is_anything() || named.is_nothing() { Holds::Yes } else { Holds::Partly }
    }

    /// Whether such fields must be of a form that can be compared.
    fn has_form(&self) -> bool {
        !self.has_patterns && matches!(self.others.shape(), Shape::Says(_))
    }

    fn is_open(&self) -> bool {
        !self.others.is_nothing()
    }
}

fn properties<'a>(
    walk: &mut Walk<'a, '_>,
    site: &Site<'a>,
    (old, new): (&Fields<'a>, &Fields<'a>),
    renamed: &BTreeMap<&'a str, &'a str>,
) {
    const KEYWORD: &str = "properties";
    let (before, after) = (entries(&site.old, KEYWORD), entries(&site.new, KEYWORD));
    walk.steps.spend(before.len() + after.len());
    for name in before.keys().filter(|name| after.contains_key(*name)) {
        let pair = (site.old.named(KEYWORD, name), site.new.named(KEYWORD, name));
        walk.follow(site, pair, Step::Field(name), Sense::Same);
    }
    let is_renamed = |name: &str| renamed.iter().any(|(from, to)| *from == name || *to == name);
    for name in after.keys().filter(|name| !before.contains_key(*name) && !is_renamed(name)) {
        let place = walk.new.resolved(&site.new.named(KEYWORD, name));
        let Some(place) = place else { continue };
        let model = if old.is_open() { "an open" } else { "a closed" };
        let message = format!("the property `{name}` was added to {model} model");
        let mut change = Change::new(FindingCode::PropertyAdded, message);
        if old.has_form() {
            walk.follow(site, (old.others.clone(), place), Step::Field(name), Sense::Same);
        } else {
            change = change.with(old.joins(&place), old.leaves(&place));
        }
        let question = (change.backward > Holds::Yes).then(|| site.carriers(Step::Field(name)));
        let path = site.new.named(KEYWORD, name).path;
        let instance = site.below(Step::Field(name));
        walk.tell_at(site, path, Change { instance, ..change.asking(question) });
    }
    for name in before.keys().filter(|name| !after.contains_key(*name) && !is_renamed(name)) {
        let Some(place) = walk.old.resolved(&site.old.named(KEYWORD, name)) else { continue };
        let model = if new.is_open() { "an open" } else { "a closed" };
        let message = format!("the property `{name}` was removed from {model} model");
        let mut change = Change::new(FindingCode::PropertyRemoved, message).at_least(Verdict::Scan);
        if new.has_form() {
            walk.follow(site, (place, new.others.clone()), Step::Field(name), Sense::Same);
        } else {
            // Writers that do not know the name will hardly use it, but nothing keeps them from it.
            let forward = match new.joins(&place) {
                Holds::Partly if new.others.is_anything() && !new.has_patterns => Holds::Unknown,
                forward => forward,
            };
            change = change.with(new.leaves(&place), forward);
        }
        let path = site.old.named(KEYWORD, name).path;
        walk.tell_at(site, path, change.asking(Some(site.carriers(Step::Field(name)))));
    }
}

fn patterns<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, (old, new): (&Fields<'a>, &Fields<'a>)) {
    const KEYWORD: &str = "patternProperties";
    let (before, after) = (entries(&site.old, KEYWORD), entries(&site.new, KEYWORD));
    walk.steps.spend(before.len() + after.len());
    for pattern in before.keys().filter(|pattern| after.contains_key(*pattern)) {
        let pair = (site.old.named(KEYWORD, pattern), site.new.named(KEYWORD, pattern));
        walk.follow(site, pair, Step::Any, Sense::Same);
    }
    let free = |place: &Place<'a>| if place.is_anything() { Holds::Yes } else { Holds::Partly };
    for pattern in after.keys().filter(|pattern| !before.contains_key(*pattern)) {
        let Some(place) = walk.new.resolved(&site.new.named(KEYWORD, pattern)) else { continue };
        let message = format!("properties whose names match `{pattern}` have a form of their own");
        let change = Change::new(FindingCode::PatternPropertyAdded, message);
        let change = change.with(free(&place), old.leaves(&place));
        walk.tell_at(site, site.new.named(KEYWORD, pattern).path, change);
    }
    for pattern in before.keys().filter(|pattern| !after.contains_key(*pattern)) {
        let Some(place) = walk.old.resolved(&site.old.named(KEYWORD, pattern)) else { continue };
        let message = format!("properties whose names match `{pattern}` are like any other");
        let change = Change::new(FindingCode::PatternPropertyRemoved, message);
        let change = change.with(new.leaves(&place), free(&place));
        walk.tell_at(site, site.old.named(KEYWORD, pattern).path, change);
    }
}

/// Fields that nothing names.
fn others<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, (old, new): (&Fields<'a>, &Fields<'a>)) {
    const KEYWORD: &str = "additionalProperties";
    let change = match (old.others.shape(), new.others.shape()) {
        (Shape::Anything, Shape::Anything) | (Shape::Nothing, Shape::Nothing) => return,
        (_, Shape::Nothing) => Change::tightened(
            FindingCode::AdditionalClosed,
            "properties that the schema does not name are refused from now on",
        ),
        (Shape::Anything, _) => Change::tightened(
            FindingCode::AdditionalNarrowed,
            "properties that the schema does not name must be of a form from now on",
        ),
        (Shape::Nothing, _) => Change::loosened(
            FindingCode::AdditionalOpened,
            "properties that the schema does not name are allowed from now on",
        ),
        (_, Shape::Anything) => Change::loosened(
            FindingCode::AdditionalOpened,
            "properties that the schema does not name may be anything from now on",
        ),
        (Shape::Says(_), Shape::Says(_)) => {
            let pair = (site.old.keyword(KEYWORD), site.new.keyword(KEYWORD));
            return walk.follow(site, pair, Step::Any, Sense::Same);
        }
    };
    walk.tell_of(site, KEYWORD, Types::OBJECT, change);
}

fn required<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>, renamed: &BTreeMap<&'a str, &'a str>) {
    const KEYWORD: &str = "required";
    let (before, after) = (names(site.old.keywords().get(KEYWORD)), names(site.new.keywords().get(KEYWORD)));
    walk.steps.spend(before.len() + after.len());
    // Also of a property that seems renamed: what is stored has it under its old name only, if at all.
    for name in after.difference(&before) {
        let message = format!("the property `{name}` must be there from now on");
        walk.tell_of(site, KEYWORD, Types::OBJECT, Change::tightened(FindingCode::RequiredAdded, message));
    }
    for name in before.difference(&after).filter(|name| !renamed.contains_key(*name)) {
        let message = format!("the property `{name}` need not be there any more");
        walk.tell_of(site, KEYWORD, Types::OBJECT, Change::loosened(FindingCode::RequiredRemoved, message));
    }
}

fn dependent<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const REQUIRED: &str = "dependentRequired";
    let (before, after) = (entries(&site.old, REQUIRED), entries(&site.new, REQUIRED));
    let all: BTreeSet<&str> = before.keys().chain(after.keys()).map(String::as_str).collect();
    for name in all {
        let (old, new) = (names(before.get(name)), names(after.get(name)));
        walk.steps.spend(1 + old.len() + new.len());
        for other in new.difference(&old) {
            let message = format!("with `{name}`, `{other}` must be there too from now on");
            let change = Change::tightened(FindingCode::DependentAdded, message);
            walk.tell_of(site, REQUIRED, Types::OBJECT, change);
        }
        for other in old.difference(&new) {
            let message = format!("with `{name}`, `{other}` need not be there any more");
            let change = Change::loosened(FindingCode::DependentRemoved, message);
            walk.tell_of(site, REQUIRED, Types::OBJECT, change);
        }
    }
    const SCHEMAS: &str = "dependentSchemas";
    let (before, after) = (entries(&site.old, SCHEMAS), entries(&site.new, SCHEMAS));
    let all: BTreeSet<&str> = before.keys().chain(after.keys()).map(String::as_str).collect();
    for name in all {
        let pair = (site.old.named(SCHEMAS, name), site.new.named(SCHEMAS, name));
        walk.follow(site, pair, Step::Here, Sense::Same);
    }
}

/// The schemas of a keyword that has several by name.
pub(super) fn entries<'a>(place: &Place<'a>, keyword: &str) -> &'a Map<String, Value> {
    place.keywords().get(keyword).and_then(Value::as_object).unwrap_or(&NO_KEYWORDS)
}

/// A list of names.
pub(super) fn names(value: Option<&Value>) -> BTreeSet<&str> {
    let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}
