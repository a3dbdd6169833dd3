use std::collections::BTreeMap;

use pleach_contract::{Contract, SchemaReference, canonical};

/// Whether two contracts read the records of a resource alike, so that no record can be lost by going from one to the other.
///
/// This is the only ground on which a plan leaves a bucket unread. It is equality, never a judgement: the same keys, in
/// keyspaces of the same names, with the same versions, each with the same schema as a canonical document, and the same
/// reserved keys. A schema holds everything it refers to, so equal documents validate alike.
pub(crate) fn resources_alike(old: &Contract, new: &Contract, alias: &str) -> bool {
    let (Some(before), Some(after)) = (old.resources.kv.get(alias), new.resources.kv.get(alias)) else {
        return false;
    };
    let whole = |contract: &Contract, resource: &pleach_contract::KvResource| {
        let own = (&resource.version, &resource.schema);
        let own = resource.keyspaces.is_empty().then(|| readings(contract, own, &resource.accepted_versions));
        let keyspaces = resource.keyspaces.iter().map(|(name, keyspace)| {
            let current = (&keyspace.version, &keyspace.schema);
            let read = readings(contract, current, &keyspace.accepted_versions);
            (name.clone(), keyspace.key.clone(), read)
        });
        (own, keyspaces.collect::<Vec<_>>())
    };
    whole(old, before) == whole(new, after)
        && before.indexes == after.indexes
        && before.relationships == after.relationships
        && before.counters == after.counters
}

/// The same for a state store.
pub(crate) fn stores_alike(old: &Contract, new: &Contract, store: &str) -> bool {
    let (Some(before), Some(after)) = (old.state.get(store), new.state.get(store)) else { return false };
    let whole = |contract: &Contract, store: &pleach_contract::StateStore| {
        readings(contract, (&store.state_version, &store.schema), &store.accepted_versions)
    };
    before.kind == after.kind && whole(old, before) == whole(new, after)
}

/// The version that is written, and the schema of each that is read, as a canonical document.
fn readings(
    contract: &Contract,
    (current, schema): (&String, &SchemaReference),
    accepted: &BTreeMap<String, SchemaReference>,
) -> (String, BTreeMap<String, Option<String>>) {
    let document = |schema: &SchemaReference| contract.schemas.get(&schema.schema).map(canonical);
    let all = accepted.iter().chain(std::iter::once((current, schema)));
    (current.clone(), all.map(|(version, schema)| (version.clone(), document(schema))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn contract(schema: Value, more: Value) -> Contract {
        let mut resource = json!({"purpose": "Notes", "schema": {"schema": "Note"}});
        for (field, value) in more.as_object().unwrap() {
            resource[field] = value.clone();
        }
        let state = json!({"drafts": {"kind": "map", "schema": {"schema": "Note"}}});
        let document = json!({
            "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes",
            "description": "Notes", "schemas": {"Note": schema}, "resources": {"kv": {"notes": resource}},
            "state": state,
        });
        Contract::from_value(&document).unwrap_or_else(|problems| panic!("{:?}", problems.list())).contract
    }

    fn check(new: &Contract, are_alike: (bool, bool)) {
        let old = contract(json!({"type": "object", "maxProperties": 3}), json!({}));
        assert_eq!((resources_alike(&old, new, "notes"), stores_alike(&old, new, "drafts")), are_alike);
    }

    #[test]
    fn only_what_reads_every_record_the_same_is_alike() {
        let same = || json!({"maxProperties": 3, "type": "object"});
        check(&contract(same(), json!({})), (true, true));
        // What is kept of a record, and for how long, is no matter of reading it.
        check(&contract(same(), json!({"history": 5, "ttlMs": 60_000, "purpose": "Other"})), (true, true));
        check(&contract(json!({"type": "object", "maxProperties": 4}), json!({})), (false, false));
        // Not even what looks harmless: this is no place for judgement.
        check(
            &contract(json!({"type": "object", "maxProperties": 3, "title": "Note"}), json!({})),
            (false, false),
        );
        check(&contract(same(), json!({"version": "v2"})), (false, true));
        let accepted = json!({"acceptedVersions": {"v0": {"schema": "Note"}}});
        check(&contract(same(), accepted), (false, true));
        check(&contract(same(), json!({"keyspaces": {"note": {"key": "n.{id}"}}})), (false, true));
    }

    #[test]
    fn what_one_of_them_lacks_is_not_alike() {
        let all = contract(json!({"type": "object"}), json!({}));
        assert!(!resources_alike(&all, &all, "other"));
        assert!(!stores_alike(&all, &all, "other"));
    }
}
