use std::collections::{BTreeMap, BTreeSet};

use super::key::KeyChange;
use super::resource::{subject, time_to_live};
use super::versions::{self, Versions};
use super::{Comparison, heirs, members};
use crate::document::{Keyspace, KvResource, Retention, Role};
use crate::evolution::{Finding, FindingCode, Question, Subject};
use crate::key::Grammar;
use crate::text::child;

/// Compares the keyspaces of a resource that had some and has some.
pub(super) fn compare<'c>(
    all: &mut Comparison<'c>,
    alias: &'c str,
    path: &str,
    (old, new): (&'c KvResource, &'c KvResource),
) {
    let renamed = renamed(old, new);
    let mut inherited: BTreeSet<&str> = renamed.values().copied().collect();
    for (name, keyspace) in &old.keyspaces {
        let whole = subject(alias, Some(name));
        let other = renamed.get(name.as_str()).copied().unwrap_or(name);
        let heirs = heirs::of(name, (old, new), other);
        if let Some(heirs) = heirs {
            heirs.tell(all, &whole, path);
            for (heir, after) in &heirs.list {
                lifetime(all, &whole, &child(path, heir), (old, new), (keyspace, after));
            }
            inherited.extend(heirs.list.iter().map(|(heir, _)| *heir));
            continue;
        }
        let Some(after) = new.keyspaces.get(other) else {
            let message = format!("the keyspace `{name}` was removed");
            let finding = Finding::new(FindingCode::KeyspaceRemoved, child(path, name), whole, message);
            all.tell(finding.asking(Question::Present));
            continue;
        };
        let place = child(path, other);
        if other != name {
            let message = format!("the keyspace `{other}` was called `{name}`, and has the same keys");
            all.tell(Finding::new(FindingCode::KeyspaceRenamed, place.clone(), whole.clone(), message));
        }
        key(all, &whole, &child(&place, "key"), (&keyspace.key, &after.key));
        sources(all, &whole, &place, (keyspace, after), &renamed);
        lifetime(all, &whole, &place, (old, new), (keyspace, after));
        access(all, &whole, &child(&place, "access"), (keyspace, after));
        let versions = (Versions::of_keyspace(keyspace), Versions::of_keyspace(after));
        versions::compare(all, &whole, &place, versions, &members::pointers(new, other));
        all.prose(&whole, &child(&place, "description"), &keyspace.description, &after.description);
    }
    let is_known = |name: &String| old.keyspaces.contains_key(name) || inherited.contains(name.as_str());
    for name in new.keyspaces.keys().filter(|name| !is_known(name)) {
        let message = format!("the keyspace `{name}` was added");
        let place = child(path, name);
        all.tell(Finding::new(FindingCode::KeyspaceAdded, place, subject(alias, Some(name)), message));
    }
}

/// Keyspaces that have another name and take the same keys, or more: the old name, and the new one.
pub(super) fn renamed<'c>(old: &'c KvResource, new: &'c KvResource) -> BTreeMap<&'c str, &'c str> {
    let gone = old.keyspaces.iter().filter(|(name, _)| !new.keyspaces.contains_key(*name));
    // Two keyspaces of a resource never share a key, so there is at most one.
    let found = gone.filter_map(|(name, keyspace)| {
        let keys = grammar(keyspace)?;
        let mut added = new.keyspaces.iter().filter(|(other, _)| !old.keyspaces.contains_key(*other));
        let (other, after) = added.find(|(_, after)| {
            grammar(after).is_some_and(|after| KeyChange::of(&keys, &after).takes_all())
        })?;
        let is_merged =
            old.keyspaces.iter().any(|(rival, before)| rival != name && heirs::shares(before, after));
        (!is_merged).then_some((name.as_str(), other.as_str()))
    });
    found.collect()
}

pub(super) fn grammar(keyspace: &Keyspace) -> Option<Grammar> {
    Grammar::parse(&keyspace.key).ok()
}

/// How long entries stay, and whether they are the truth.
fn lifetime(
    all: &mut Comparison<'_>,
    subject: &Subject,
    place: &str,
    resources: (&KvResource, &KvResource),
    (old, new): (&Keyspace, &Keyspace),
) {
    if old.role != new.role {
        let message = match new.role {
            Role::Derived => "what was the truth is to be built from something else",
            Role::Source => "what was built from something else is to be the truth",
        };
        let finding = Finding::new(FindingCode::RoleChanged, child(place, "role"), subject.clone(), message);
        all.tell(finding.asking(Question::Present));
    }
    // What a keyspace has from its resource is told there.
    if (old.ttl_ms, new.ttl_ms) != (resources.0.ttl_ms, resources.1.ttl_ms) {
        time_to_live(all, subject, &child(place, "ttlMs"), (old.ttl_ms, new.ttl_ms));
    }
    let kept = (old.retention.as_ref(), new.retention.as_ref());
    retention(all, subject, &child(place, "retention"), kept);
}

fn key(all: &mut Comparison<'_>, subject: &Subject, path: &str, (old, new): (&str, &str)) {
    let (Ok(old), Ok(new)) = (Grammar::parse(old), Grammar::parse(new)) else { return };
    let KeyChange { changed, narrowed, widened, named, .. } = KeyChange::of(&old, &new);
    let finding = |code, message| Finding::new(code, path, subject.clone(), message);
    if let Some(why) = changed {
        all.tell(finding(FindingCode::KeyChanged, why).asking(Question::Present));
    }
    for what in narrowed {
        all.tell(finding(FindingCode::KeyNarrowed, what).asking(Question::KeyRefused));
    }
    for what in widened {
        all.tell(finding(FindingCode::KeyWidened, what));
    }
    for what in named {
        all.tell(finding(FindingCode::KeyNamed, what));
    }
}

fn sources(
    all: &mut Comparison<'_>,
    subject: &Subject,
    path: &str,
    (old, new): (&Keyspace, &Keyspace),
    renamed: &BTreeMap<&str, &str>,
) {
    if old.role != new.role {
        return;
    }
    let called_now = |name: &String| renamed.get(name.as_str()).copied().unwrap_or(name.as_str()).to_owned();
    let before: BTreeSet<String> = old.from.iter().map(called_now).collect();
    let after: BTreeSet<String> = new.from.iter().cloned().collect();
    if before != after {
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("it is built from {} instead of {}", list(after), list(before));
        all.tell(Finding::new(FindingCode::RoleSources, child(path, "from"), subject.clone(), message));
    }
}

fn retention(
    all: &mut Comparison<'_>,
    subject: &Subject,
    path: &str,
    kept: (Option<&Retention>, Option<&Retention>),
) {
    let (code, message) = match kept {
        (None, None) => return,
        (None, Some(new)) => {
            (FindingCode::RetentionAdded, format!("only {} buckets of time are kept", new.keep))
        }
        (Some(_), None) => (FindingCode::RetentionRaised, "keys are kept for ever".into()),
        (Some(old), Some(new)) if (&old.segment, old.bucket) != (&new.segment, new.bucket) => {
            (FindingCode::RetentionChanged, "what is kept is counted another way".into())
        }
        (Some(old), Some(new)) => {
            let message = format!("{} buckets of time are kept instead of {}", new.keep, old.keep);
            match new.keep.cmp(&old.keep) {
                std::cmp::Ordering::Equal => return,
                std::cmp::Ordering::Less => (FindingCode::RetentionLowered, message),
                std::cmp::Ordering::Greater => (FindingCode::RetentionRaised, message),
            }
        }
    };
    let finding = Finding::new(code, path, subject.clone(), message);
    let goes = code != FindingCode::RetentionRaised;
    all.tell(if goes { finding.asking(Question::Retained) } else { finding });
}

fn access(all: &mut Comparison<'_>, subject: &Subject, path: &str, (old, new): (&Keyspace, &Keyspace)) {
    for (name, before) in &old.access {
        let (code, what) = match new.access.get(name) {
            None => (FindingCode::AccessRemoved, "removed"),
            Some(after) if after != before => (FindingCode::AccessChanged, "changed"),
            Some(_) => continue,
        };
        let message = format!("the access path `{name}` was {what}");
        all.tell(Finding::new(code, child(path, name), subject.clone(), message));
    }
    for name in new.access.keys().filter(|name| !old.access.contains_key(*name)) {
        let message = format!("the access path `{name}` was added");
        all.tell(Finding::new(FindingCode::AccessAdded, child(path, name), subject.clone(), message));
    }
}
