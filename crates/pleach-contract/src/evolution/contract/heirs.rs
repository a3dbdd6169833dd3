use super::Comparison;
use super::key::KeyChange;
use super::keyspace::grammar;
use crate::document::{Keyspace, KvResource};
use crate::evolution::{Effect, Finding, FindingCode, Question, Subject, Verdict};
use crate::text::child;

/// The keyspaces of a new contract that take the keys of an old keyspace which is split, merged, or gone from its name.
///
/// Entries stay where they are: a key belongs to the keyspace whose grammar takes it. So nothing is lost if every stored value is
/// accepted by the keyspace that has its key now, and a scan can tell.
#[derive(Debug)]
pub(super) struct Heirs<'c> {
    name: &'c str,
    /// The heirs by name; at least one.
    pub(super) list: Vec<(&'c str, &'c Keyspace)>,
    /// The other old keyspaces whose keys the heir takes.
    merged_with: Vec<&'c str>,
}

/// The heirs of an old keyspace. None if it is what `other` is called in the new contract, or nothing takes its keys.
pub(super) fn of<'c>(
    name: &'c str,
    (old, new): (&'c KvResource, &'c KvResource),
    other: &str,
) -> Option<Heirs<'c>> {
    let keyspace = old.keyspaces.get(name)?;
    let list: Vec<_> = new
        .keyspaces
        .iter()
        .filter(|(_, after)| shares(keyspace, after))
        .map(|(heir, after)| (heir.as_str(), after))
        .collect();
    let is_there = new.keyspaces.contains_key(other);
    // Under its own name it is compared part by part, unless others take some of its keys.
    if list.is_empty() || is_there && list.iter().all(|(heir, _)| *heir == other) {
        return None;
    }
    let rivals = old.keyspaces.iter().filter(|(rival, _)| *rival != name);
    let is_merged =
        |before: &Keyspace| list.len() == 1 && list.iter().any(|(_, after)| shares(before, after));
    let merged_with =
        rivals.filter(|(_, before)| is_merged(before)).map(|(rival, _)| rival.as_str()).collect();
    Some(Heirs { name, list, merged_with })
}

/// Whether a key of the one can be a key of the other, and means the same.
pub(super) fn shares(old: &Keyspace, new: &Keyspace) -> bool {
    let (Some(old), Some(new)) = (grammar(old), grammar(new)) else { return false };
    old.overlap(&new).is_some() && !KeyChange::of(&old, &new).is_reordered
}

impl Heirs<'_> {
    /// Tells what has become of the keyspace.
    pub(super) fn tell(&self, all: &mut Comparison<'_>, subject: &Subject, path: &str) {
        let name = self.name;
        let quoted =
            |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let heirs: Vec<&str> = self.list.iter().map(|(heir, _)| *heir).collect();
        let (code, message) = match (heirs.as_slice(), self.merged_with.as_slice()) {
            ([heir], []) => {
                (FindingCode::KeyspaceRenamed, format!("`{heir}` takes keys of `{name}`, which is gone"))
            }
            ([heir], others) => {
                let message = format!("`{name}` is merged into `{heir}`, together with {}", quoted(others));
                (FindingCode::KeyspaceMerged, message)
            }
            (heirs, _) => (FindingCode::KeyspaceSplit, format!("`{name}` is split into {}", quoted(heirs))),
        };
        let place = child(path, heirs.first().copied().unwrap_or(name));
        let finding = Finding::new(code, place, subject.clone(), message);
        all.tell(finding.with(Effect::Scan, Effect::Breaks, Verdict::Scan).asking(Question::Refused));
    }
}
