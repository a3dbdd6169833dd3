use std::collections::HashSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::change::{Change, Holds, Sense};
use super::place::{Place, Root, Shape, is_annotation};
use super::types::Types;
use super::{CHANGES_MAX, arrays, branches, identical, objects, scalars};
use crate::evolution::{FindingCode, Question, Steps, Verdict};
use crate::text::child;

/// The longest place of a value that is kept in mind, in bytes: a recursive schema has no end of them.
const INSTANCE_BYTES_MAX: usize = 512;

/// Goes through two schemas side by side.
///
/// A schema is the sum of its conditions, so it is enough to compare conditions of one kind with each other: if each
/// accepts all that its counterpart did, so does the whole. What belongs together (`properties` and
/// `additionalProperties`, `contains` and `maxContains`) is compared together. Nothing is ever tried and taken back, so
/// pairs that were seen need not be seen again, and the work is a list instead of a recursion.
#[derive(Debug)]
pub(super) struct Walk<'a, 's> {
    pub(super) old: &'s Root<'a>,
    pub(super) new: &'s Root<'a>,
    /// The places of a value that keys are made of.
    keys: &'s [String],
    pub(super) steps: &'s mut Steps,
    seen: HashSet<(usize, usize, Sense, Option<String>)>,
    waiting: Vec<Pair<'a>>,
    changes: Vec<Change>,
    more: bool,
}

/// Two subschemas that look at the same place of a value.
#[derive(Clone, Debug)]
struct Pair<'a> {
    old: Place<'a>,
    new: Place<'a>,
    instance: Option<String>,
    sense: Sense,
    /// The branch of a choice that it belongs to, for people.
    branch: Option<Rc<str>>,
}

/// A pair that both say something.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) old: Place<'a>,
    pub(super) new: Place<'a>,
    pub(super) old_types: Types,
    pub(super) new_types: Types,
    instance: Option<String>,
    sense: Sense,
    branch: Option<Rc<str>>,
}

/// Where below a place of a value another one is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'n> {
    Here,
    Field(&'n str),
    Item(usize),
    /// Any field or item.
    Any,
}

impl<'a, 's> Walk<'a, 's> {
    pub(super) fn new(
        old: &'s Root<'a>,
        new: &'s Root<'a>,
        keys: &'s [String],
        steps: &'s mut Steps,
    ) -> Self {
        let (seen, waiting, changes) = Default::default();
        Self { old, new, keys, steps, seen, waiting, changes, more: false }
    }

    /// All changes, and whether there are more.
    pub(super) fn run(mut self) -> (Vec<Change>, bool) {
        let (old, new) = (self.old.place(), self.new.place());
        let start = Pair { old, new, instance: Some(String::new()), sense: Sense::Same, branch: None };
        if self.old.is_draft_2019() != self.new.is_draft_2019() {
            let message =
                "the drafts of JSON Schema are different, so the same words may mean different things";
            self.undecided(&start, message);
            return (self.changes, self.more);
        }
        self.waiting.push(start);
        while let Some(pair) = self.waiting.pop() {
            if self.steps.are_spent() {
                let message = "the schemas are too large or too entangled to be compared to the end";
                self.undecided(&Pair { old: self.old.place(), new: self.new.place(), ..pair }, message);
                break;
            }
            self.visit(pair);
        }
        (self.changes, self.more)
    }

    fn visit(&mut self, pair: Pair<'a>) {
        self.steps.spend(1);
        let places = (self.old.resolved(&pair.old), self.new.resolved(&pair.new));
        let (Some(old), Some(new)) = places else {
            return self.undecided(&pair, "a reference leads nowhere");
        };
        let on_the_way = pair.instance.clone().filter(|instance| {
            self.keys.iter().any(|key| key.strip_prefix(instance.as_str()).is_some_and(is_below_or_same))
        });
        if !self.seen.insert((old.identity(), new.identity(), pair.sense, on_the_way)) {
            return;
        }
        self.annotations(&pair);
        let resolved = Pair { old, new, ..pair.clone() };
        if resolved.new.identity() != pair.new.identity() {
            self.annotations(&resolved);
        }
        let old_types = types(resolved.old.shape());
        let new_types = types(resolved.new.shape());
        let Pair { old, new, instance, sense, branch } = resolved;
        let site = Site { old, new, old_types, new_types, instance, sense, branch };
        match (site.old.shape(), site.new.shape()) {
            (Shape::Anything, Shape::Anything) | (Shape::Nothing, Shape::Nothing) => {}
            (_, Shape::Nothing) => {
                let message = "nothing is allowed here any more";
                self.tell(&site, "", Change::tightened(FindingCode::SchemaForbidden, message));
            }
            (Shape::Nothing, _) => {
                let message = "something is allowed where nothing was";
                self.tell(&site, "", Change::loosened(FindingCode::SchemaAllowed, message));
            }
            _ if branches::alternatives(self, &site, (&pair.old, &pair.new)) => {}
            _ => self.compare(&site),
        }
    }

    fn compare(&mut self, site: &Site<'a>) {
        if identical::needed(&site.old) || identical::needed(&site.new) {
            if identical::check(self, site) {
                return;
            }
            let message =
                "what `unevaluatedProperties`, `unevaluatedItems` or `dependencies` stand beside was changed";
            let change = Change::new(FindingCode::SchemaUndecided, message);
            self.tell(site, "", change.with(Holds::Unknown, Holds::Unknown));
        }
        scalars::compare(self, site);
        objects::compare(self, site);
        arrays::compare(self, site);
        branches::compare(self, site);
    }

    /// Changes of what decides nothing.
    fn annotations(&mut self, pair: &Pair<'a>) {
        let (old, new) = (pair.old.keywords(), pair.new.keywords());
        // What has no counterpart was added or removed as a whole, and is told there.
        if old.is_empty() || new.is_empty() {
            return;
        }
        let gone = old.keys().filter(|word| !new.contains_key(*word));
        for word in gone.chain(new.keys()).filter(|word| is_annotation(word)) {
            if old.get(word) == new.get(word) {
                continue;
            }
            let code =
                if word == "default" { FindingCode::SchemaDefault } else { FindingCode::SchemaAnnotation };
            let place = if new.contains_key(word) { &pair.new } else { &pair.old };
            let path = child(&place.path, word);
            let message = format!("`{word}` was {}", verb(old, new, word));
            self.push(Change { path, instance: pair.instance.clone(), ..Change::new(code, message) });
        }
    }

    fn undecided(&mut self, pair: &Pair<'a>, message: &str) {
        let change = Change::new(FindingCode::SchemaUndecided, message);
        let change = change.with(Holds::Unknown, Holds::Unknown).asking(Some(Question::Refused));
        self.push(Change { path: pair.new.path.clone(), instance: pair.instance.clone(), ..change });
    }

    /// Tells a change of a keyword that is there in one of the two, or of the schema itself.
    pub(super) fn tell(&mut self, site: &Site<'a>, keyword: &str, change: Change) {
        let place = match keyword {
            "" if site.new.is_missing() => site.old.path.clone(),
            "" => site.new.path.clone(),
            _ if site.new.keywords().contains_key(keyword) => child(&site.new.path, keyword),
            _ => child(&site.old.path, keyword),
        };
        self.tell_at(site, place, change);
    }

    /// The same of a keyword that is only about some types: without values of these nothing happens.
    pub(super) fn tell_of(&mut self, site: &Site<'a>, keyword: &str, types: Types, change: Change) {
        let change = site.gated(types, change);
        self.tell(site, keyword, change);
    }

    pub(super) fn tell_at(&mut self, site: &Site<'a>, path: String, change: Change) {
        let is_key = site.instance.as_ref().is_some_and(|instance| self.keys.contains(instance));
        let widens = matches!(change.code, FindingCode::TypeWidened | FindingCode::BranchAdded);
        let change = if is_key && widens {
            let message = format!("{}, and keys are made of it", change.message);
            Change { at_least: Verdict::Dangerous, message, ..change }
        } else {
            change
        };
        let instance = change.instance.clone().or_else(|| site.instance.clone());
        let mut change = Change { path, instance, ..change.seen(site.sense) };
        if let Some(branch) = &site.branch {
            change.message = format!("in {branch}: {}", change.message);
        }
        let asks = change.question.is_none() && change.verdict() > Verdict::Safe;
        self.push(if asks { change.asking(Some(Question::Refused)) } else { change });
    }

    fn push(&mut self, change: Change) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(change);
        } else {
            self.more = true;
        }
    }

    /// Compares two parts of a pair later.
    pub(super) fn follow(
        &mut self,
        site: &Site<'a>,
        (old, new): (Place<'a>, Place<'a>),
        step: Step<'_>,
        sense: Sense,
    ) {
        if old.is_missing() && new.is_missing() {
            return;
        }
        let instance = site.below(step).filter(|instance| {
            let longest = self.keys.iter().map(String::len).max().unwrap_or(0);
            instance.len() <= INSTANCE_BYTES_MAX.max(longest)
        });
        let branch = site.branch.clone();
        self.waiting.push(Pair { old, new, instance, sense: site.sense.then(sense), branch });
    }

    /// Compares two branches of a choice later. Findings inside name the innermost branch.
    pub(super) fn follow_branch(
        &mut self,
        site: &Site<'a>,
        keyword: &str,
        (old, new): (Place<'a>, Place<'a>),
        sense: Sense,
    ) {
        let branch = branches::described(keyword, &new, self.new, site.place());
        let (instance, sense) = (site.instance.clone(), site.sense.then(sense));
        self.waiting.push(Pair { old, new, instance, sense, branch: Some(branch.into()) });
    }
}

impl Site<'_> {
    /// The place of a value that it looks at; none if that is too deep to say.
    pub(super) fn place(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// The place of a value that is a step below.
    pub(super) fn below(&self, step: Step<'_>) -> Option<String> {
        let here = self.instance.as_deref()?;
        Some(match step {
            Step::Here => here.to_owned(),
            Step::Field(name) => child(here, name),
            Step::Item(place) => child(here, place),
            Step::Any => child(here, "*"),
        })
    }

    /// Which values carry something there; which are refused, if it is too deep to say.
    pub(super) fn carriers(&self, step: Step<'_>) -> Question {
        self.below(step).map_or(Question::Refused, |pointer| Question::Carries { pointer })
    }

    /// A change that is only about some types.
    pub(super) fn gated(&self, types: Types, change: Change) -> Change {
        let matters = change.backward > Holds::Yes && self.old_types.meets(types)
            || change.forward > Holds::Yes && self.new_types.meets(types);
        if !matters && !change.is_idle() {
            let message = format!("{}, which is about no value there can be", change.message);
            return Change::new(FindingCode::SchemaIdle, message);
        }
        change
    }
}

/// How a keyword was changed, for people.
pub(super) fn verb(old: &Map<String, Value>, new: &Map<String, Value>, keyword: &str) -> &'static str {
    match (old.contains_key(keyword), new.contains_key(keyword)) {
        (false, _) => "added",
        (_, false) => "removed",
        _ => "changed",
    }
}

fn types(shape: Shape<'_>) -> Types {
    match shape {
        Shape::Says(map) => Types::effective(map),
        Shape::Anything | Shape::Nothing => Types::ALL,
    }
}

fn is_below_or_same(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}
