use super::Comparison;
use super::versions::{self, Versions};
use crate::document::{Contract, StateStore, StoreKind};
use crate::evolution::{Finding, FindingCode, Question, Subject};
use crate::text::child;

/// Compares the state stores.
pub(super) fn compare(all: &mut Comparison<'_>) {
    let (old, new) = (all.old, all.new);
    let subject = |name: &String| Subject::State { store: name.clone(), version: None };
    let mut added: Vec<&String> = new.state.keys().filter(|name| !old.state.contains_key(*name)).collect();
    for (name, store) in &old.state {
        let path = child("/state", name);
        if let Some(after) = new.state.get(name) {
            changes(all, &subject(name), &path, store, after);
            continue;
        }
        let is_same = |other: &&String| looks_same((old, store), (new, &new.state[*other]));
        let renamed = added.iter().position(is_same).map(|at| added.remove(at));
        let finding = match renamed {
            Some(other) => {
                let message = format!("the store `{other}` looks renamed from `{name}`, and begins empty");
                Finding::new(FindingCode::StateRenamed, child("/state", other), subject(name), message)
            }
            None => {
                let message = format!("the store `{name}` was removed");
                Finding::new(FindingCode::StateRemoved, path, subject(name), message)
            }
        };
        all.tell(finding.asking(Question::Present));
    }
    for name in added {
        let message = format!("the store `{name}` was added");
        let path = child("/state", name);
        all.tell(Finding::new(FindingCode::StateAdded, path, subject(name), message));
    }
}

fn changes<'c>(
    all: &mut Comparison<'c>,
    subject: &Subject,
    path: &str,
    old: &'c StateStore,
    new: &'c StateStore,
) {
    if old.kind != new.kind {
        let shown = |kind: StoreKind| match kind {
            StoreKind::Value => "one value",
            StoreKind::Map => "many values under keys",
        };
        let message = format!("{} became {}", shown(old.kind), shown(new.kind));
        let finding = Finding::new(FindingCode::StateKind, child(path, "kind"), subject.clone(), message);
        all.tell(finding.asking(Question::Present));
    }
    versions::compare(all, subject, path, (Versions::of_state(old), Versions::of_state(new)), &[]);
    all.prose(subject, &child(path, "description"), &old.description, &new.description);
}

/// Whether one store could be the other under another name.
fn looks_same((old, before): (&Contract, &StateStore), (new, after): (&Contract, &StateStore)) -> bool {
    let content =
        |contract: &Contract, store: &StateStore| contract.schemas.get(&store.schema.schema).cloned();
    before.kind == after.kind && content(old, before) == content(new, after)
}
