use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{self, Fields, nearest, report_type};
use super::resource::{KEEP_MAX, LIMIT_MAX};
use super::{
    Access, AtomicGroup, Condition, Contract, ContractId, ContractKind, Counter, FORMAT, HISTORY_MAX, Index,
    Keyspace, KvResource, MAX_VALUE_BYTES_MAX, OnDelete, Period, Relationship, Resources, Retention, Role,
    SHARDS_MAX, SchemaReference, StateStore, StoreKind, TTL_MS_MAX, TtlTier, first_version,
};
use crate::problem::{Code, Problem, Problems};
use crate::text::{Node, NodeKind};

const TIERS: [(&str, TtlTier); 3] =
    [("ephemeral", TtlTier::Ephemeral), ("presence", TtlTier::Presence), ("permanent", TtlTier::Permanent)];

/// Reads a document. What is missing beyond use makes it `None`; a problem says so.
pub(super) fn contract(node: &Node, problems: &mut Problems) -> Option<Contract> {
    let mut fields = Fields::of(node, "", problems)?;
    // A document of another format has other fields: nothing else about it is worth saying.
    format(&mut fields)?;
    let id = id(&mut fields);
    let kinds = [
        ("service", ContractKind::Service),
        ("app", ContractKind::App),
        ("device", ContractKind::Device),
        ("agent", ContractKind::Agent),
    ];
    let kind = fields.required_choice("kind", &kinds);
    let display_name = fields.text("displayName", "add the name that people know it by");
    let description = fields.text("description", "add a sentence that says what it is for");
    let docs = fields.optional_text("docs");
    let schemas = fields.map("schemas", schema);
    let state = fields.map("state", store);
    let resources = match fields.optional("resources") {
        Some(node) => resources(node, &fields.path("resources"), fields.problems()),
        None => Resources::default(),
    };
    fields.end();
    // What could not be read stays empty, so that everything else is still checked; the problem is reported.
    Some(Contract {
        format: FORMAT.into(),
        id: id.or_else(|| ContractId::parse("unknown@v1"))?,
        kind: kind.unwrap_or(ContractKind::Service),
        display_name: display_name.unwrap_or_default(),
        description: description.unwrap_or_default(),
        docs,
        schemas,
        state,
        resources,
    })
}

fn format(fields: &mut Fields<'_>) -> Option<()> {
    let found = fields.text("format", &format!("begin the document with `format: {FORMAT}`"))?;
    if found == FORMAT {
        return Some(());
    }
    let version =
        |text: &str| text.strip_prefix("pleach.contract.v").and_then(|version| version.parse::<u32>().ok());
    let (message, fix) = match version(&found) {
        Some(2..) => (
            format!("the format `{found}` is newer than this version of Pleach, which reads `{FORMAT}`"),
            "use a newer Pleach".to_owned(),
        ),
        _ => (format!("the format `{found}` is unknown"), format!("write `{FORMAT}`")),
    };
    let path = fields.path("format");
    fields.problems().push(Problem::new(Code::FormatUnknown, path, message, fix));
    None
}

fn id(fields: &mut Fields<'_>) -> Option<ContractId> {
    let fix = "write dotted words of small letters and a major version, such as `acme.notes@v1`";
    let text = fields.text("id", fix)?;
    let id = ContractId::parse(&text);
    if id.is_none() {
        let path = fields.path("id");
        let message = format!("`{text}` is not the id of a contract");
        fields.problems().push(Problem::new(Code::IdForm, path, message, fix));
    }
    id
}

fn schema(node: &Node, path: &str, problems: &mut Problems) -> Option<Value> {
    if !matches!(node.kind, NodeKind::Object(_) | NodeKind::Bool(_)) {
        report_type(node, path, "a JSON Schema: an object, true or false", problems);
        return None;
    }
    Some(node.value())
}

fn reference(node: &Node, path: &str, problems: &mut Problems) -> Option<SchemaReference> {
    if let NodeKind::Text(name) = &node.kind {
        let message = "a schema is named in an object";
        problems.push(Problem::new(Code::FieldType, path, message, format!("write `{{schema: {name}}}`")));
        return None;
    }
    let mut fields = Fields::of(node, path, problems)?;
    let schema = fields.text("schema", "name one of the contract's `schemas`");
    fields.end();
    Some(SchemaReference { schema: schema? })
}

fn required_reference(fields: &mut Fields<'_>) -> Option<SchemaReference> {
    let node =
        fields.required("schema", "add `schema: {schema: Name}` with one of the contract's `schemas`")?;
    reference(node, &fields.path("schema"), fields.problems())
}

fn store(node: &Node, path: &str, problems: &mut Problems) -> Option<StateStore> {
    let mut fields = Fields::of(node, path, problems)?;
    let kind = fields.required_choice("kind", &[("value", StoreKind::Value), ("map", StoreKind::Map)]);
    let schema = required_reference(&mut fields);
    let state_version = fields.optional_text("stateVersion").unwrap_or_else(first_version);
    let accepted_versions = fields.map("acceptedVersions", reference);
    let description = fields.optional_text("description");
    fields.end();
    Some(StateStore { kind: kind?, schema: schema?, state_version, accepted_versions, description })
}

fn resources(node: &Node, path: &str, problems: &mut Problems) -> Resources {
    let Some(mut fields) = Fields::of(node, path, problems) else { return Resources::default() };
    let kv = fields.map("kv", resource);
    fields.end();
    Resources { kv }
}

fn resource(node: &Node, path: &str, problems: &mut Problems) -> Option<KvResource> {
    let mut fields = Fields::of(node, path, problems)?;
    let purpose = fields.text("purpose", "add a sentence that says what it is for").unwrap_or_default();
    let schema = required_reference(&mut fields);
    let version = fields.optional_text("version").unwrap_or_else(first_version);
    let accepted_versions = fields.map("acceptedVersions", reference);
    let required = fields.flag("required", true);
    let history = fields.number("history", (1, HISTORY_MAX)).unwrap_or(1);
    let (tier, ttl_ms) = ttl(&mut fields, 0);
    let max_value_bytes = fields.number("maxValueBytes", (1, MAX_VALUE_BYTES_MAX));
    // Without a schema of its own, a keyspace has the resource's; what that is called does not matter here if it is missing.
    let inherited = Inherited {
        schema: schema.clone().unwrap_or_else(|| SchemaReference { schema: String::new() }),
        version: version.clone(),
        accepted_versions: accepted_versions.clone(),
        ttl_ms,
    };
    let keyspaces =
        fields.map("keyspaces", |node, path, problems| keyspace(node, path, problems, &inherited));
    let indexes = fields.map("indexes", index);
    let relationships = fields.map("relationships", relationship);
    let counters = fields.map("counters", counter);
    let atomic = fields.map("atomic", group);
    fields.end();
    let schema = schema?;
    Some(KvResource {
        purpose,
        schema,
        version,
        accepted_versions,
        required,
        history,
        tier,
        ttl_ms,
        max_value_bytes,
        keyspaces,
        indexes,
        relationships,
        counters,
        atomic,
    })
}

fn ttl(fields: &mut Fields<'_>, inherited: u64) -> (Option<TtlTier>, u64) {
    let tier = fields.choice("tier", &TIERS);
    let given = fields.number("ttlMs", (0, TTL_MS_MAX));
    (tier, given.unwrap_or_else(|| tier.map_or(inherited, TtlTier::default_ms)))
}

/// What a keyspace has of its resource where it does not say otherwise.
struct Inherited {
    schema: SchemaReference,
    version: String,
    accepted_versions: BTreeMap<String, SchemaReference>,
    ttl_ms: u64,
}

fn keyspace(node: &Node, path: &str, problems: &mut Problems, inherited: &Inherited) -> Option<Keyspace> {
    let mut fields = Fields::of(node, path, problems)?;
    let key = fields.text("key", "add the form of its keys, such as `t.{tenant}.case.{case:ulid}`");
    // Versions belong to their schema: whoever brings a schema of its own begins anew.
    let (schema, version, accepted) = match fields.optional("schema") {
        Some(node) => {
            let own = reference(node, &fields.path("schema"), fields.problems());
            (own, first_version(), BTreeMap::new())
        }
        None => {
            let Inherited { schema, version, accepted_versions, .. } = inherited;
            (Some(schema.clone()), version.clone(), accepted_versions.clone())
        }
    };
    let version = fields.optional_text("version").unwrap_or(version);
    let accepted_versions = match fields.optional("acceptedVersions") {
        Some(_) => fields.map("acceptedVersions", reference),
        None => accepted,
    };
    let role =
        fields.choice("role", &[("source", Role::Source), ("derived", Role::Derived)]).unwrap_or_default();
    let from = fields.texts("from");
    let (tier, ttl_ms) = ttl(&mut fields, inherited.ttl_ms);
    let retention = match fields.optional("retention") {
        Some(node) => retention(node, &fields.path("retention"), fields.problems()),
        None => None,
    };
    let access = fields.map("access", access);
    let description = fields.optional_text("description");
    fields.end();
    Some(Keyspace {
        key: key?,
        schema: schema?,
        version,
        accepted_versions,
        role,
        from,
        tier,
        ttl_ms,
        retention,
        access,
        description,
    })
}

fn retention(node: &Node, path: &str, problems: &mut Problems) -> Option<Retention> {
    let mut fields = Fields::of(node, path, problems)?;
    let segment = fields.text("segment", "name the segment of the key that holds the time or date");
    let periods = [
        ("hour", Period::Hour),
        ("day", Period::Day),
        ("week", Period::Week),
        ("month", Period::Month),
        ("year", Period::Year),
    ];
    let bucket = fields.required_choice("bucket", &periods);
    fields.required("keep", "say how many buckets are kept");
    let keep = fields.number("keep", (1, KEEP_MAX));
    fields.end();
    Some(Retention { segment: segment?, bucket: bucket?, keep: keep? })
}

fn access(node: &Node, path: &str, problems: &mut Problems) -> Option<Access> {
    let mut fields = Fields::of(node, path, problems)?;
    let given = fields.texts("given");
    let range = fields.optional_text("range");
    let limit = fields.number("limit", (1, LIMIT_MAX)).unwrap_or(100);
    fields.end();
    Some(Access { given, range, limit })
}

fn index(node: &Node, path: &str, problems: &mut Problems) -> Option<Index> {
    let mut fields = Fields::of(node, path, problems)?;
    let of = fields.text("of", "name the keyspace whose entries it finds");
    let key = fields.text("key", "add the form of its keys");
    let values = fields.map("values", fields::text);
    let unique = fields.flag("unique", false);
    let max_lag_ms = fields.number("maxLagMs", (0, TTL_MS_MAX)).unwrap_or(0);
    let description = fields.optional_text("description");
    fields.end();
    Some(Index { of: of?, key: key?, values, unique, max_lag_ms, description })
}

fn relationship(node: &Node, path: &str, problems: &mut Problems) -> Option<Relationship> {
    let mut fields = Fields::of(node, path, problems)?;
    let from = fields.text("from", "name the keyspace it begins at");
    let to = fields.text("to", "name the keyspace it leads to");
    let forward = fields.text("forward", "add the form of the keys that lead there");
    let reverse = fields.text("reverse", "add the form of the keys that lead back");
    let choices = [("restrict", OnDelete::Restrict), ("unlink", OnDelete::Unlink)];
    let on_delete = fields.choice("onDelete", &choices).unwrap_or_default();
    let description = fields.optional_text("description");
    fields.end();
    Some(Relationship { from: from?, to: to?, forward: forward?, reverse: reverse?, on_delete, description })
}

fn counter(node: &Node, path: &str, problems: &mut Problems) -> Option<Counter> {
    let mut fields = Fields::of(node, path, problems)?;
    let of = fields.text("of", "name the keyspace whose entries it counts");
    let key = fields.text("key", "add the form of its keys");
    let when = match fields.optional("when") {
        Some(node) => condition(node, &fields.path("when"), fields.problems()),
        None => None,
    };
    let shards = fields.number("shards", (1, SHARDS_MAX)).unwrap_or(1);
    let description = fields.optional_text("description");
    fields.end();
    Some(Counter { of: of?, key: key?, when, shards, description })
}

fn condition(node: &Node, path: &str, problems: &mut Problems) -> Option<Condition> {
    let mut fields = Fields::of(node, path, problems)?;
    let pointer = fields.text("pointer", "add a JSON Pointer into the value, such as `/status`");
    let equals = fields.required("equals", "add the value that must stand there").map(Node::value);
    fields.end();
    Some(Condition { pointer: pointer?, equals: equals? })
}

fn group(node: &Node, path: &str, problems: &mut Problems) -> Option<AtomicGroup> {
    let mut fields = Fields::of(node, path, problems)?;
    fields.required("members", "list what is committed together");
    let members = fields.texts("members");
    let description = fields.optional_text("description");
    fields.end();
    Some(AtomicGroup { members, description })
}

/// A fix that names the nearest of what there is.
pub(super) fn suggest<'w>(word: &str, known: impl Iterator<Item = &'w str> + Clone, else_: &str) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<&str> = known.take(10).collect();
            if all.is_empty() {
                else_.to_owned()
            } else {
                format!("{else_}, or name one of: {}", all.join(", "))
            }
        }
    }
}
