//! What the change of a contract does to what is stored under it.

mod heirs;
mod key;
mod keyspace;
mod members;
mod resource;
mod state;
mod versions;

use std::collections::HashMap;
use std::rc::Rc;

use super::schema::{self, Change, Holds, Root};
use super::{Effect, Finding, FindingCode, Steps, Subject, Verdict};
use crate::document::Contract;
use crate::text::child;

pub(super) use versions::Versions;

/// A property that was added to a schema: perhaps its name was used before.
#[derive(Clone, Debug)]
pub(super) struct Added {
    pub(super) subject: Subject,
    pub(super) path: String,
    /// Which place of a value it is.
    pub(super) instance: String,
}

/// The names of a schema, old and new, and the places of its values that keys are made of.
type Names<'c> = (&'c str, &'c str, Vec<String>);

/// Two contracts, and what was found so far.
#[derive(Debug)]
pub(super) struct Comparison<'c> {
    old: &'c Contract,
    new: &'c Contract,
    steps: Steps,
    /// Schemas that were compared.
    schemas: HashMap<Names<'c>, Rc<(Vec<Change>, bool)>>,
    pub(super) findings: Vec<Finding>,
    pub(super) added: Vec<Added>,
    /// Whether there is more than was found.
    pub(super) more: bool,
}

impl<'c> Comparison<'c> {
    /// Compares everything.
    pub(super) fn of(old: &'c Contract, new: &'c Contract) -> Self {
        let (schemas, findings, added) = Default::default();
        let mut all = Self { old, new, steps: Steps::new(), schemas, findings, added, more: false };
        if old.id != new.id {
            let message = format!("`{}` became `{}`, which is another lineage", old.id, new.id);
            all.tell(Finding::new(FindingCode::ContractId, "/id", Subject::Contract, message));
            return all;
        }
        all.head();
        state::compare(&mut all);
        resource::compare(&mut all);
        all
    }

    fn tell(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn head(&mut self) {
        let (old, new) = (self.old, self.new);
        if old.kind != new.kind {
            let message = "the kind of program is another";
            let finding = Finding::new(FindingCode::ContractKind, "/kind", Subject::Contract, message);
            let has_state = !old.state.is_empty();
            self.tell(match has_state {
                true => finding.with(Effect::Breaks, Effect::Ok, Verdict::Dangerous),
                false => finding,
            });
        }
        self.prose(&Subject::Contract, "/displayName", &old.display_name, &new.display_name);
        self.prose(&Subject::Contract, "/description", &old.description, &new.description);
        self.prose(&Subject::Contract, "/docs", &old.docs, &new.docs);
    }

    /// A text for people.
    fn prose<T: PartialEq>(&mut self, subject: &Subject, path: &str, old: &T, new: &T) {
        if old != new {
            let message = "a text for people was changed";
            self.tell(Finding::new(FindingCode::ContractProse, path, subject.clone(), message));
        }
    }

    /// The values of one version, whose schema has one name in the old contract and one in the new.
    fn values(&mut self, subject: &Subject, (old, new): (&'c str, &'c str), keys: &[String]) {
        let (Some(old_schema), Some(new_schema)) = (self.old.schemas.get(old), self.new.schemas.get(new))
        else {
            // Such a contract is refused when it is read.
            return;
        };
        let compared = match self.schemas.get(&(old, new, keys.to_vec())) {
            Some(known) => Rc::clone(known),
            None => {
                let old_root = Root { schema: old_schema, path: child("/schemas", old) };
                let new_root = Root { schema: new_schema, path: child("/schemas", new) };
                let found = Rc::new(schema::diff(&old_root, &new_root, keys, &mut self.steps));
                self.schemas.insert((old, new, keys.to_vec()), Rc::clone(&found));
                found
            }
        };
        let (changes, more) = &*compared;
        self.more |= more;
        for change in changes {
            self.tell(of_change(change, subject));
            if let (FindingCode::PropertyAdded, Some(instance)) = (change.code, &change.instance) {
                let (subject, path, instance) = (subject.clone(), change.path.clone(), instance.clone());
                self.added.push(Added { subject, path, instance });
            }
        }
    }
}

fn of_change(change: &Change, subject: &Subject) -> Finding {
    let finding = Finding::new(change.code, change.path.clone(), subject.clone(), change.message.clone());
    let (backward, forward): (Holds, Holds) = (change.backward, change.forward);
    let finding = finding.with(backward.backward(), forward.forward(), change.verdict());
    Finding { question: change.question.clone(), ..finding }
}
