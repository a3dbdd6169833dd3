use std::collections::BTreeMap;

use super::Comparison;
use crate::document::{Keyspace, KvResource, SchemaReference, StateStore};
use crate::evolution::{Finding, FindingCode, Question, Subject};
use crate::text::child;

/// The versions of values that a store, a resource or a keyspace can hold.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Versions<'c> {
    current: &'c str,
    schema: &'c SchemaReference,
    accepted: &'c BTreeMap<String, SchemaReference>,
    /// The field that says which is current.
    field: &'static str,
}

impl<'c> Versions<'c> {
    pub(in super::super) fn of_state(store: &'c StateStore) -> Self {
        let (current, accepted) = (&store.state_version, &store.accepted_versions);
        Self { current, schema: &store.schema, accepted, field: "stateVersion" }
    }

    pub(in super::super) fn of_resource(resource: &'c KvResource) -> Self {
        let (current, accepted) = (&resource.version, &resource.accepted_versions);
        Self { current, schema: &resource.schema, accepted, field: "version" }
    }

    pub(in super::super) fn of_keyspace(keyspace: &'c Keyspace) -> Self {
        let (current, accepted) = (&keyspace.version, &keyspace.accepted_versions);
        Self { current, schema: &keyspace.schema, accepted, field: "version" }
    }

    /// All versions, the current one first, each with the name of its schema.
    fn all(self) -> impl Iterator<Item = (&'c str, &'c str)> {
        let older = self.accepted.iter().map(|(version, schema)| (version.as_str(), schema.schema.as_str()));
        std::iter::once((self.current, self.schema.schema.as_str())).chain(older)
    }

    /// The name of the schema of a version.
    pub(in super::super) fn schema_of(self, version: &str) -> Option<&'c str> {
        self.all().find(|(known, _)| *known == version).map(|(_, schema)| schema)
    }
}

/// Every version that the old contract may have stored.
pub(super) fn compare<'c>(
    all: &mut Comparison<'c>,
    subject: &Subject,
    path: &str,
    (old, new): (Versions<'c>, Versions<'c>),
    keys: &[String],
) {
    for (version, schema) in old.all() {
        let of_version = subject.of_version(version);
        let is_current = version == old.current;
        match new.schema_of(version) {
            Some(other) => all.values(&of_version, (schema, other), keys),
            None if is_current => {
                let current = new.current;
                let message =
                    format!("version `{current}` is written, and `{version}` cannot be read any more");
                let place = child(path, new.field);
                let finding = Finding::new(FindingCode::VersionUnaccepted, place, of_version, message);
                all.tell(finding.asking(Question::Present));
            }
            None => {
                let message = format!("version `{version}` cannot be read any more");
                let place = child(&child(path, "acceptedVersions"), version);
                let finding = Finding::new(FindingCode::VersionDropped, place, of_version, message);
                all.tell(finding.asking(Question::Present));
            }
        }
    }
    if new.current != old.current && new.schema_of(old.current).is_some() {
        let message = format!(
            "version `{}` is written, and `{}` can still be read; programs with the old contract do not know it",
            new.current, old.current
        );
        let place = child(path, new.field);
        let subject = subject.of_version(new.current);
        all.tell(Finding::new(FindingCode::VersionRaised, place, subject, message));
    }
    for version in new.accepted.keys().filter(|version| old.schema_of(version).is_none()) {
        let place = child(&child(path, "acceptedVersions"), version);
        let message = format!("version `{version}` can be read too");
        all.tell(Finding::new(FindingCode::VersionAccepted, place, subject.of_version(version), message));
    }
}
