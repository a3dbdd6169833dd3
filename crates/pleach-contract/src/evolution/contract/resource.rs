use super::versions::{self, Versions};
use super::{Comparison, keyspace, members};
use crate::document::{Contract, KvResource};
use crate::evolution::{Effect, Finding, FindingCode, Question, Subject, Verdict};
use crate::text::child;

const KV: &str = "/resources/kv";

/// Compares the KV resources.
pub(super) fn compare(all: &mut Comparison<'_>) {
    let (old, new) = (&all.old.resources.kv, &all.new.resources.kv);
    let contracts = (all.old, all.new);
    let mut added: Vec<&String> = new.keys().filter(|alias| !old.contains_key(*alias)).collect();
    for (alias, resource) in old {
        if let Some(after) = new.get(alias) {
            changes(all, alias, resource, after);
            continue;
        }
        let is_same = |other: &&String| looks_same((contracts.0, resource), (contracts.1, &new[*other]));
        let renamed = added.iter().position(is_same).map(|at| added.remove(at));
        let finding = match renamed {
            Some(other) => {
                let message = format!("`{other}` looks renamed from `{alias}`, and its bucket begins empty");
                Finding::new(FindingCode::ResourceRenamed, child(KV, other), subject(alias, None), message)
            }
            None => {
                let message = format!("the resource `{alias}` was removed");
                Finding::new(FindingCode::ResourceRemoved, child(KV, alias), subject(alias, None), message)
            }
        };
        all.tell(finding.asking(Question::Present));
    }
    for alias in added {
        let message = format!("the resource `{alias}` was added");
        all.tell(Finding::new(FindingCode::ResourceAdded, child(KV, alias), subject(alias, None), message));
    }
}

pub(super) fn subject(alias: &str, keyspace: Option<&str>) -> Subject {
    Subject::Kv { alias: alias.to_owned(), keyspace: keyspace.map(str::to_owned), version: None }
}

/// Whether one resource could be the other under another alias.
fn looks_same((old, before): (&Contract, &KvResource), (new, after): (&Contract, &KvResource)) -> bool {
    let content =
        |contract: &Contract, resource: &KvResource| contract.schemas.get(&resource.schema.schema).cloned();
    content(old, before) == content(new, after) && before.keyspaces == after.keyspaces
}

fn changes<'c>(all: &mut Comparison<'c>, alias: &'c str, old: &'c KvResource, new: &'c KvResource) {
    let path = child(KV, alias);
    let whole = subject(alias, None);
    all.prose(&whole, &child(&path, "purpose"), &old.purpose, &new.purpose);
    if old.required != new.required {
        let message = if new.required { "code counts on it from now on" } else { "code can do without it" };
        let place = child(&path, "required");
        all.tell(Finding::new(FindingCode::ResourceRequired, place, whole.clone(), message));
    }
    history(all, &whole, &child(&path, "history"), (old.history, new.history));
    time_to_live(all, &whole, &child(&path, "ttlMs"), (old.ttl_ms, new.ttl_ms));
    size(all, &whole, &child(&path, "maxValueBytes"), (old.max_value_bytes, new.max_value_bytes));
    let place = child(&path, "keyspaces");
    match (old.keyspaces.is_empty(), new.keyspaces.is_empty()) {
        (true, true) => {
            let versions = (Versions::of_resource(old), Versions::of_resource(new));
            versions::compare(all, &whole, &path, versions, &[]);
        }
        (true, false) => {
            let message = "keys that could be anything must be of a keyspace from now on";
            let finding = Finding::new(FindingCode::KeyspacesDeclared, place.clone(), whole, message);
            all.tell(finding.asking(Question::KeyRefused));
            for (name, keyspace) in &new.keyspaces {
                let versions = (Versions::of_resource(old), Versions::of_keyspace(keyspace));
                let path = child(&place, name);
                versions::compare(
                    all,
                    &subject(alias, Some(name)),
                    &path,
                    versions,
                    &members::pointers(new, name),
                );
            }
        }
        (false, true) => {
            let message = "keys need not be of a keyspace any more";
            all.tell(Finding::new(FindingCode::KeyspacesDropped, place, whole, message));
            for (name, keyspace) in &old.keyspaces {
                let versions = (Versions::of_keyspace(keyspace), Versions::of_resource(new));
                versions::compare(all, &subject(alias, Some(name)), &path, versions, &[]);
            }
        }
        (false, false) => keyspace::compare(all, alias, &place, (old, new)),
    }
    members::compare(all, alias, &path, (old, new));
}

fn history(all: &mut Comparison<'_>, subject: &Subject, path: &str, (old, new): (u64, u64)) {
    let message = format!("the history of a key is {new} long instead of {old}");
    let code = if new < old { FindingCode::HistoryLowered } else { FindingCode::HistoryRaised };
    let finding = Finding::new(code, path, subject.clone(), message);
    if new < old {
        all.tell(finding.asking(Question::Deeper { history: new }));
    } else if new > old {
        all.tell(finding);
    }
}

pub(super) fn time_to_live(all: &mut Comparison<'_>, subject: &Subject, path: &str, (old, new): (u64, u64)) {
    // For ever is the longest.
    let length = |ms: u64| if ms == 0 { u64::MAX } else { ms };
    let shown = |ms: u64| if ms == 0 { "for ever".to_owned() } else { format!("{ms} ms") };
    let message = format!("values live {} instead of {}", shown(new), shown(old));
    let is_lower = length(new) < length(old);
    let code = if is_lower { FindingCode::TtlLowered } else { FindingCode::TtlRaised };
    let finding = Finding::new(code, path, subject.clone(), message);
    // A value gets the time of its keyspace when it is written, and keeps it; that of its bucket holds for all that is in it.
    let is_of_later_values = matches!(subject, Subject::Kv { keyspace: Some(_), .. });
    if is_lower && is_of_later_values {
        all.tell(finding.with(Effect::Ok, Effect::Ok, Verdict::Safe));
    } else if is_lower {
        all.tell(finding.asking(Question::Older { ms: new }));
    } else if new != old {
        all.tell(finding);
    }
}

fn size(all: &mut Comparison<'_>, subject: &Subject, path: &str, (old, new): (Option<u64>, Option<u64>)) {
    let shown =
        |bytes: Option<u64>| bytes.map_or("what the engine takes".into(), |bytes| format!("{bytes} bytes"));
    let message = format!("values have at most {} instead of {}", shown(new), shown(old));
    match new {
        Some(bytes) if old.is_none_or(|old| bytes < old) => {
            let finding = Finding::new(FindingCode::SizeLowered, path, subject.clone(), message);
            all.tell(finding.asking(Question::Larger { bytes }));
        }
        _ if new != old => {
            all.tell(Finding::new(FindingCode::SizeRaised, path, subject.clone(), message));
        }
        _ => {}
    }
}
