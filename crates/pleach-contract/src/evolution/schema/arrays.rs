//! Keywords about the items of an array.

use serde_json::Value;

use super::change::{Change, Sense};
use super::place::Place;
use super::scalars::{at_least, at_most};
use super::types::Types;
use super::walk::{Site, Step, Walk};
use crate::evolution::FindingCode;

pub(super) fn compare<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    if !site.old_types.meets(Types::ARRAY) && !site.new_types.meets(Types::ARRAY) {
        return;
    }
    let is_draft_2019 = walk.new.is_draft_2019();
    let (old, new) = (Items::of(&site.old, is_draft_2019), Items::of(&site.new, is_draft_2019));
    for index in 0..old.first.len().max(new.first.len()) {
        walk.follow(site, (old.at(index), new.at(index)), Step::Item(index), Sense::Same);
    }
    walk.follow(site, (old.others, new.others), Step::Any, Sense::Same);
    contains(walk, site);
}

/// What the items must be: the first ones each for itself, and all others.
#[derive(Debug)]
struct Items<'a> {
    first: Vec<Place<'a>>,
    others: Place<'a>,
}

impl<'a> Items<'a> {
    fn of(place: &Place<'a>, is_draft_2019: bool) -> Self {
        let is_list = matches!(place.keywords().get("items"), Some(Value::Array(_)));
        match (is_draft_2019, is_list) {
            (true, true) => Self { first: place.listed("items"), others: place.keyword("additionalItems") },
            (true, false) => Self { first: Vec::new(), others: place.keyword("items") },
            (false, _) => Self { first: place.listed("prefixItems"), others: place.keyword("items") },
        }
    }

    fn at(&self, index: usize) -> Place<'a> {
        self.first.get(index).unwrap_or(&self.others).clone()
    }
}

/// `contains` asks for enough items of a form, and perhaps for not too many: then it is a limit from both sides.
fn contains<'a>(walk: &mut Walk<'a, '_>, site: &Site<'a>) {
    const KEYWORD: &str = "contains";
    let (old, new) = (site.old.keywords(), site.new.keywords());
    match (old.contains_key(KEYWORD), new.contains_key(KEYWORD)) {
        (false, false) => {}
        (false, true) => {
            let message = "some items must be of a form from now on";
            let change = Change::tightened(FindingCode::ConditionAdded, message);
            walk.tell_of(site, KEYWORD, Types::ARRAY, change);
        }
        (true, false) => {
            let message = "no items need be of a form any more";
            let change = Change::loosened(FindingCode::ConditionRemoved, message);
            walk.tell_of(site, KEYWORD, Types::ARRAY, change);
        }
        (true, true) => {
            let is_limited = old.contains_key("maxContains") || new.contains_key("maxContains");
            let sense = if is_limited { Sense::Either } else { Sense::Same };
            walk.follow(site, (site.old.keyword(KEYWORD), site.new.keyword(KEYWORD)), Step::Any, sense);
            at_least(walk, site, "minContains", Types::ARRAY, 1);
            at_most(walk, site, "maxContains", Types::ARRAY);
        }
    }
}
