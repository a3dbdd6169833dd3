//! Indexes, relationships, counters and atomic groups: what a resource has beside its keyspaces.

use std::collections::{BTreeMap, BTreeSet};

use super::resource::subject;
use super::{Comparison, keyspace};
use crate::document::{Counter, Index, KvResource, Relationship};
use crate::evolution::{Finding, FindingCode, Question, Subject};
use crate::key::Grammar;
use crate::text::child;

/// The places of a keyspace's values that keys of its indexes are made of.
pub(super) fn pointers(resource: &KvResource, keyspace: &str) -> Vec<String> {
    let indexes = resource.indexes.values().filter(|index| index.of == keyspace);
    let pointers: BTreeSet<&String> = indexes.flat_map(|index| index.values.values()).collect();
    pointers.into_iter().cloned().collect()
}

/// Compares what a resource has beside its keyspaces.
pub(super) fn compare(
    all: &mut Comparison<'_>,
    alias: &str,
    path: &str,
    (old, new): (&KvResource, &KvResource),
) {
    let members = Members { alias, renamed: keyspace::renamed(old, new) };
    let indexes = (&old.indexes, &new.indexes);
    let codes = (FindingCode::IndexRemoved, FindingCode::IndexAdded);
    each(all, &child(path, "indexes"), indexes, codes, &members, |all, path, old, new| {
        members.index(all, path, old, new);
    });
    let relationships = (&old.relationships, &new.relationships);
    let codes = (FindingCode::RelationshipRemoved, FindingCode::RelationshipAdded);
    each(all, &child(path, "relationships"), relationships, codes, &members, |all, path, old, new| {
        members.relationship(all, path, old, new);
    });
    let counters = (&old.counters, &new.counters);
    let codes = (FindingCode::CounterRemoved, FindingCode::CounterAdded);
    each(all, &child(path, "counters"), counters, codes, &members, |all, path, old, new| {
        members.counter(all, path, old, new);
    });
    for (name, index) in
        new.indexes.iter().filter(|(name, index)| index.unique && !old.indexes.contains_key(*name))
    {
        members.unique(all, &child(&child(path, "indexes"), name), name, index);
    }
    members.groups(all, &child(path, "atomic"), (old, new));
}

/// Goes through members of one kind by their names.
fn each<'m, T>(
    all: &mut Comparison<'_>,
    path: &str,
    (old, new): (&'m BTreeMap<String, T>, &'m BTreeMap<String, T>),
    (removed, added): (FindingCode, FindingCode),
    members: &Members<'_>,
    changed: impl Fn(&mut Comparison<'_>, (&str, &str), &'m T, &'m T),
) {
    for (name, before) in old {
        let place = child(path, name);
        match new.get(name) {
            Some(after) => changed(all, (&place, name), before, after),
            None => {
                let message = format!("`{name}` was removed");
                all.tell(Finding::new(removed, place, members.subject(None), message));
            }
        }
    }
    for name in new.keys().filter(|name| !old.contains_key(*name)) {
        let message = format!("`{name}` was added");
        all.tell(Finding::new(added, child(path, name), members.subject(None), message));
    }
}

/// The members of one resource, in which keyspaces may have other names now.
#[derive(Debug)]
struct Members<'c> {
    alias: &'c str,
    renamed: BTreeMap<&'c str, &'c str>,
}

impl Members<'_> {
    fn subject(&self, keyspace: Option<&str>) -> Subject {
        subject(self.alias, keyspace)
    }

    /// Whether both names are the same keyspace.
    fn is_same(&self, old: &str, new: &str) -> bool {
        self.renamed.get(old).copied().unwrap_or(old) == new
    }

    fn index(&self, all: &mut Comparison<'_>, (path, name): (&str, &str), old: &Index, new: &Index) {
        let subject = self.subject(Some(&new.of));
        let finding = |code, place: &str, message: &str| {
            Finding::new(code, child(path, place), subject.clone(), message)
        };
        let place = [
            ("of", !self.is_same(&old.of, &new.of)),
            ("key", !same_keys(&old.key, &new.key)),
            ("values", old.values != new.values),
        ];
        if let Some((place, _)) = place.into_iter().find(|(_, differs)| *differs) {
            let message = "the index has other keys, and must be rebuilt";
            all.tell(finding(FindingCode::IndexChanged, place, message));
        }
        match (old.unique, new.unique) {
            (false, true) => self.unique(all, path, name, new),
            (true, false) => {
                let message = "entries may share a key of the index";
                all.tell(finding(FindingCode::IndexRelaxed, "unique", message));
            }
            _ => {}
        }
        if old.max_lag_ms != new.max_lag_ms {
            let message = format!("it may be {} ms behind instead of {}", new.max_lag_ms, old.max_lag_ms);
            all.tell(finding(FindingCode::IndexLag, "maxLagMs", &message));
        }
        all.prose(&subject, &child(path, "description"), &old.description, &new.description);
    }

    fn unique(&self, all: &mut Comparison<'_>, path: &str, name: &str, index: &Index) {
        let message = "only one entry may have a key of the index from now on";
        let subject = self.subject(Some(&index.of));
        let finding = Finding::new(FindingCode::IndexUnique, child(path, "unique"), subject, message);
        all.tell(finding.asking(Question::Twice { index: name.to_owned() }));
    }

    fn relationship(
        &self,
        all: &mut Comparison<'_>,
        (path, _): (&str, &str),
        old: &Relationship,
        new: &Relationship,
    ) {
        let subject = self.subject(None);
        let place = [
            ("from", !self.is_same(&old.from, &new.from)),
            ("to", !self.is_same(&old.to, &new.to)),
            ("forward", !same_keys(&old.forward, &new.forward)),
            ("reverse", !same_keys(&old.reverse, &new.reverse)),
        ];
        if let Some((place, _)) = place.into_iter().find(|(_, differs)| *differs) {
            let message = "its links have other keys or other ends";
            let code = FindingCode::RelationshipChanged;
            all.tell(Finding::new(code, child(path, place), subject.clone(), message));
        }
        if old.on_delete != new.on_delete {
            let message = "what happens to the links of what is deleted was changed";
            let (code, place) = (FindingCode::RelationshipDelete, child(path, "onDelete"));
            all.tell(Finding::new(code, place, subject.clone(), message));
        }
        all.prose(&subject, &child(path, "description"), &old.description, &new.description);
    }

    fn counter(&self, all: &mut Comparison<'_>, (path, _): (&str, &str), old: &Counter, new: &Counter) {
        let subject = self.subject(Some(&new.of));
        let place = [
            ("of", !self.is_same(&old.of, &new.of)),
            ("key", !same_keys(&old.key, &new.key)),
            ("when", old.when != new.when),
            ("shards", new.shards < old.shards),
        ];
        if let Some((place, _)) = place.into_iter().find(|(_, differs)| *differs) {
            let message = "the counter counts another way, and must be counted anew";
            let code = FindingCode::CounterChanged;
            all.tell(Finding::new(code, child(path, place), subject.clone(), message));
        } else if new.shards > old.shards {
            let message = format!("it is kept in {} parts instead of {}", new.shards, old.shards);
            let (code, place) = (FindingCode::CounterShards, child(path, "shards"));
            all.tell(Finding::new(code, place, subject.clone(), message));
        }
        all.prose(&subject, &child(path, "description"), &old.description, &new.description);
    }

    fn groups(&self, all: &mut Comparison<'_>, path: &str, (old, new): (&KvResource, &KvResource)) {
        let names: BTreeSet<&String> = old.atomic.keys().chain(new.atomic.keys()).collect();
        for name in names {
            let before: BTreeSet<&str> = old
                .atomic
                .get(name)
                .into_iter()
                .flat_map(|group| &group.members)
                .map(|member| self.renamed.get(member.as_str()).copied().unwrap_or(member))
                .collect();
            let after: BTreeSet<&str> = new
                .atomic
                .get(name)
                .into_iter()
                .flat_map(|group| &group.members)
                .map(String::as_str)
                .collect();
            let place = child(path, name);
            let list = |members: &[&str]| members.join(", ");
            let (more, less): (Vec<&str>, Vec<&str>) =
                (after.difference(&before).copied().collect(), before.difference(&after).copied().collect());
            if !more.is_empty() {
                let message = format!("{} is committed together with the group `{name}`", list(&more));
                let code = FindingCode::AtomicTightened;
                all.tell(Finding::new(code, place.clone(), self.subject(None), message));
            }
            if !less.is_empty() {
                let message =
                    format!("{} is not committed together with the group `{name}` any more", list(&less));
                let code = FindingCode::AtomicLoosened;
                all.tell(Finding::new(code, place, self.subject(None), message));
            }
        }
    }
}

/// Whether both texts are the same grammar.
fn same_keys(old: &str, new: &str) -> bool {
    old == new || matches!((Grammar::parse(old), Grammar::parse(new)), (Ok(old), Ok(new)) if old == new)
}
