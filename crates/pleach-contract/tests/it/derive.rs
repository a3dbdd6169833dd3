//! One contract from Rust types, from the builder and from text: one digest.

use pleach_contract::{
    Code, Contract, ContractBuilder, ContractKind, ContractType, Digest, Notation, Resource, ResourceType,
    StoreKind, schema_name, schema_of,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

const CASES: &str = include_str!("../../testdata/cases.yaml");

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
struct Case {
    #[schemars(schema_with = "status")]
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    due_at: Option<String>,
}

fn status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["OPEN", "UNDER_REVIEW", "CLOSED"]})
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Event {
    what: String,
}

#[derive(JsonSchema)]
struct Party {}

#[derive(JsonSchema)]
struct Preferences {}

#[derive(JsonSchema)]
struct PreferencesV1 {}

/// Cases, their events and the parties to them
#[derive(Contract)]
#[contract(id = "acme.cases@v1", kind = "service", name = "Cases", crate = "pleach_contract")]
struct Cases {
    #[state(kind = "value", version = "v2", accepts(v1 = PreferencesV1))]
    preferences: Preferences,
    #[resource]
    cases: CaseKeys,
    #[kv(purpose = "Who is signed in", tier = "presence")]
    sessions: Party,
}

#[derive(Resource)]
#[resource(
    purpose = "Cases and everything that happens to them",
    schema = Case,
    history = 5,
    max_value_bytes = 65_536,
    atomic(transition = ["current", "event", "due", "open"]),
    crate = "pleach_contract"
)]
struct CaseKeys {
    /// Rebuilt from the events.
    #[keyspace(key = "t.{tenant}.case.{case:ulid}.current", role = "derived", from = ["event"])]
    current: Case,
    #[keyspace(
        key = "t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}",
        retention(segment = "at", bucket = "month", keep = 84),
        access(timeline(given = ["tenant", "case"], range = "at", limit = 200))
    )]
    event: Event,
    #[keyspace(key = "t.{tenant}.party.{party:ulid}")]
    party: Party,
    #[index(of = "current", key = "t.{tenant}.idx.due.{due:time}.{case:ulid}", values(due = "/dueAt"))]
    due: (),
    #[relationship(
        from = "current",
        to = "party",
        forward = "t.{tenant}.case_party.{case:ulid}.{party:ulid}",
        reverse = "t.{tenant}.party_case.{party:ulid}.{case:ulid}"
    )]
    parties: (),
    #[counter(
        of = "current",
        key = "t.{tenant}.count.open",
        when(pointer = "/status", equals = "OPEN"),
        shards = 16
    )]
    open: (),
}

fn of_text(text: &str) -> Contract {
    Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract
}

fn of_type<T: ContractType>() -> Contract {
    let parsed = T::contract().unwrap();
    assert_eq!(parsed.warnings.list(), []);
    parsed.contract
}

fn of_builder() -> Contract {
    let members = json!({
        "history": 5,
        "maxValueBytes": 65536,
        "keyspaces": {
            "current": {"key": "t.{tenant}.case.{case:ulid}.current", "role": "derived", "from": ["event"]},
            "event": {
                "key": "t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}",
                "schema": {"schema": "Event"},
                "retention": {"segment": "at", "bucket": "month", "keep": 84},
                "access": {"timeline": {"given": ["tenant", "case"], "range": "at", "limit": 200}},
            },
            "party": {"key": "t.{tenant}.party.{party:ulid}", "schema": {"schema": "Party"}},
        },
        "indexes": {"due": {
            "of": "current", "key": "t.{tenant}.idx.due.{due:time}.{case:ulid}", "values": {"due": "/dueAt"},
        }},
        "relationships": {"parties": {
            "from": "current", "to": "party",
            "forward": "t.{tenant}.case_party.{case:ulid}.{party:ulid}",
            "reverse": "t.{tenant}.party_case.{party:ulid}.{case:ulid}",
        }},
        "counters": {"open": {
            "of": "current", "key": "t.{tenant}.count.open", "shards": 16,
            "when": {"pointer": "/status", "equals": "OPEN"},
        }},
        "atomic": {"transition": {"members": ["current", "event", "due", "open"]}},
    });
    let older = json!({"stateVersion": "v2", "acceptedVersions": {"v1": {"schema": "PreferencesV1"}}});
    let builder = ContractBuilder::new("acme.cases@v1", ContractKind::Service)
        .describe("Cases", "Cases, their events and the parties to them")
        .schema::<Case>()
        .schema::<Event>()
        .schema::<Party>()
        .schema::<Preferences>()
        .schema::<PreferencesV1>()
        .state("preferences", StoreKind::Value, "Preferences", older)
        .kv("cases", "Cases and everything that happens to them", "Case", members)
        .kv("sessions", "Who is signed in", "Party", json!({"tier": "presence"}));
    builder.build().unwrap().contract
}

#[test]
fn text_builder_and_derive_give_one_digest() {
    let (text, builder, derived) = (of_text(CASES), of_builder(), of_type::<Cases>());
    assert_eq!(builder.canonical(), text.canonical());
    assert_eq!(derived.canonical(), text.canonical());
    let digests: Vec<Digest> = [text, builder, derived].iter().map(Contract::digest).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
}

#[test]
fn comments_become_descriptions() {
    let contract = of_type::<Cases>();
    assert_eq!(contract.description, "Cases, their events and the parties to them");
    let current = &contract.resources.kv["cases"].keyspaces["current"];
    assert_eq!(current.description.as_deref(), Some("Rebuilt from the events."));
    assert_eq!(contract.resources.kv["cases"].keyspaces["event"].description, None);
}

/// Everything that can be said.
///
/// In two
/// paragraphs.
#[derive(Contract)]
#[contract(id = "acme.all@v2", kind = "agent", name = "All", docs = "# All", crate = "pleach_contract")]
struct All {
    /// Stays.
    #[state(name = "re-mains", kind = "map")]
    remains: Party,
    #[kv(
        name = "up-loads",
        purpose = "p",
        version = "v3",
        accepts(v2 = Event, "v1.0" = Preferences),
        required = false,
        history = 2,
        ttl_ms = 5000,
        max_value_bytes = 9
    )]
    uploads: Party,
    #[resource(name = "re-source")]
    resource: AllKeys,
}

#[derive(Resource)]
#[resource(
    purpose = "p",
    schema = Party,
    version = "v2",
    accepts(v1 = Event),
    tier = "presence",
    crate = "pleach_contract"
)]
struct AllKeys {
    /// The versions are those of the resource.
    #[keyspace(key = "a.{id:ulid}.{n:uint}", ttl_ms = 1000)]
    same: Party,
    #[keyspace(name = "ot-her", key = "b.{id:ulid}", version = "v9", accepts(v8 = Preferences), tier = "ephemeral")]
    other: Event,
    /// One each.
    #[index(of = "same", key = "i.{x}", values(x = "/x"), unique, max_lag_ms = 7)]
    index: (),
    /// Both ways.
    #[relationship(from = "same", to = "ot-her", forward = "f.{a}", reverse = "r.{a}", on_delete = "unlink")]
    link: (),
    /// How many.
    #[counter(of = "same", key = "n", when(pointer = "/x", equals = true))]
    count: (),
}

const ALL: &str = r##"
format: pleach.contract.v1
id: acme.all@v2
kind: agent
displayName: All
description: "Everything that can be said.\n\nIn two paragraphs."
docs: "# All"
schemas:
  Party: {type: object}
  Preferences: {type: object}
  Event: {type: object, properties: {what: {type: string}}, required: [what]}
state:
  re-mains: {kind: map, schema: {schema: Party}, description: Stays.}
resources:
  kv:
    up-loads:
      purpose: p
      schema: {schema: Party}
      version: v3
      acceptedVersions: {v2: {schema: Event}, v1.0: {schema: Preferences}}
      required: false
      history: 2
      ttlMs: 5000
      maxValueBytes: 9
    re-source:
      purpose: p
      schema: {schema: Party}
      version: v2
      acceptedVersions: {v1: {schema: Event}}
      tier: presence
      keyspaces:
        same: {key: "a.{id:ulid}.{n:uint}", ttlMs: 1000, description: The versions are those of the resource.}
        ot-her:
          key: "b.{id:ulid}"
          schema: {schema: Event}
          version: v9
          acceptedVersions: {v8: {schema: Preferences}}
          tier: ephemeral
      indexes:
        index: {of: same, key: "i.{x}", values: {x: /x}, unique: true, maxLagMs: 7, description: One each.}
      relationships:
        link: {from: same, to: ot-her, forward: "f.{a}", reverse: "r.{a}", onDelete: unlink, description: Both ways.}
      counters:
        count: {of: same, key: n, when: {pointer: /x, equals: true}, description: How many.}
"##;

#[test]
fn every_field_of_the_format_can_be_said_in_attributes() {
    assert_eq!(of_type::<All>(), of_text(ALL));
}

#[test]
fn what_is_wrong_with_a_derived_contract_is_told_like_that_of_any_other() {
    #[derive(Contract)]
    #[contract(id = "Notes", kind = "app", name = "Notes", description = "Notes", crate = "pleach_contract")]
    struct Wrong {
        #[kv(purpose = "p", history = 65)]
        notes: Party,
    }
    let problems = Wrong::contract().unwrap_err();
    let found: Vec<_> = problems.list().iter().map(|problem| (problem.code, &*problem.path)).collect();
    assert_eq!(found, [(Code::IdForm, "/id"), (Code::FieldRange, "/resources/kv/notes/history")]);
}

#[test]
fn two_types_of_one_name_are_told_apart_or_told() {
    mod other {
        #[derive(schemars::JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        pub(super) struct Party {
            pub(super) name: String,
        }
    }
    let builder = Cases::builder();
    assert!(builder.clone().schema::<Party>().build().is_ok());
    let problems = builder.clone().schema::<other::Party>().build().unwrap_err();
    let clash = &problems.list()[0];
    assert_eq!((clash.code, &*clash.path), (Code::NameClash, "/schemas/Party"));
    let problems = CaseKeys::declare(builder, "cases").build().unwrap_err();
    let clash = &problems.list()[0];
    assert_eq!((clash.code, &*clash.path), (Code::NameClash, "/resources/kv/cases"));
}

#[test]
fn more_can_be_added_to_what_is_derived() {
    let built = Cases::builder()
        .schema_value("Extra", json!({"type": "string"}))
        .kv("extra", "More", "Extra", Value::Null)
        .build()
        .unwrap();
    assert_eq!(built.contract.resources.kv.len(), 3);
    assert_eq!(built.contract.schemas[&schema_name::<Event>()], schema_of::<Event>());
}
