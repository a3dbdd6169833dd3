//! A plan is safe only if every stored record was judged under the new contract, or provably need not be.

use pleach_contract::Contract;
use pleach_contract::evolution::Verdict;
use pleach_engine::{Batch, BucketConfig, Engine, Key, Operation, ScanQuery};
use pleach_stores::state::{Principal, PutOptions, PutOutcome, STATE_BUCKET, State};
use pleach_stores::{ApplyOptions, AuthorityError, Plan, PlanFinding, PlanOptions};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, contract, name, note, notes, notes_with, put, short_note};

fn on_both(test: impl AsyncFn(Given)) {
    pollster::block_on(test(Given::in_memory()));
    pollster::block_on(test(Given::embedded()));
}

fn finding<'p>(plan: &'p Plan, code: &str) -> &'p PlanFinding {
    let found = plan.findings.iter().find(|finding| finding.code == code);
    found.unwrap_or_else(|| panic!("no {code} in {:#?}", plan.findings))
}

/// How many live entries, kept records and keys of those stand against a finding.
fn counts(finding: &PlanFinding) -> (u64, u64, u64) {
    let answer = finding.answer.as_ref().unwrap();
    let kept = answer.kept.unwrap_or_default();
    (answer.count, kept.records, kept.keys)
}

async fn insist(given: &Given, plan: &Plan) -> Result<pleach_stores::Applied, AuthorityError> {
    given.contracts.apply(plan, ApplyOptions::by("ann").acknowledging("it is a test")).await
}

fn orders(address: Value) -> Contract {
    notes(json!({
        "type": "object", "$defs": {"Address": address},
        "properties": {"billing": {"$ref": "#/$defs/Address"}, "shipping": {"$ref": "#/$defs/Address"}},
    }))
}

fn closed(fields: &[&str]) -> Value {
    let fields: serde_json::Map<_, _> =
        fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": fields, "additionalProperties": false})
}

#[test]
fn a_definition_that_two_places_share_is_judged_in_both() {
    on_both(async |given| {
        for place in ["billing", "shipping"] {
            let given = given.anew();
            given.accept(&orders(closed(&["line1", "line2"]))).await;
            for number in 0..3 {
                let order = json!({place: {"line1": "a", "line2": "b"}});
                given.put(NOTES, &format!("o{number}"), &order.to_string()).await.unwrap();
            }
            let plan = given.plan(&orders(closed(&["line1"]))).await;
            assert_eq!(plan.verdict(), Verdict::Dangerous, "{place}: {:#?}", plan.findings);
            let worst = plan.dangers().map(|danger| counts(danger).0).max();
            assert_eq!(worst, Some(3), "{place}: {:#?}", plan.findings);
            let sample = &plan.dangers().next().unwrap().answer.as_ref().unwrap().samples[0];
            assert!(sample.path.starts_with(&format!("/{place}")), "{sample:?}");
            assert!(!sample.fix.is_empty() && !sample.message.is_empty(), "{sample:?}");
            assert!(matches!(given.apply(&plan).await, Err(AuthorityError::Unacknowledged { .. })));
        }
    });
}

#[test]
fn a_recursive_schema_is_judged_at_every_depth() {
    on_both(async |given| {
        let tree = |fields: &[&str]| {
            let mut node = closed(fields);
            node["properties"]["next"] = json!({"$ref": "#/$defs/Node"});
            notes(json!({"$defs": {"Node": node}, "$ref": "#/$defs/Node"}))
        };
        given.accept(&tree(&["a", "b"])).await;
        given.put(NOTES, "deep", r#"{"next": {"next": {"next": {"b": "x"}}}}"#).await.unwrap();
        let plan = given.plan(&tree(&["a"])).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
    });
}

#[test]
fn records_are_judged_by_their_keys_whatever_their_keyspace_was_called() {
    on_both(async |given| {
        let with = |keyspace: &str, key: &str, kind: &str| {
            let schema = json!({"type": "object", "properties": {"n": {"type": kind}}});
            let mut keyspaces = json!({"other": {"key": "y.{id}"}});
            keyspaces[keyspace] = json!({"key": key});
            notes_with(schema, json!({"keyspaces": keyspaces}))
        };
        given.accept(&with("k1", "x.{id}", "integer")).await;
        given.put(NOTES, "x.one", r#"{"n": 5}"#).await.unwrap();
        let removed = given.plan(&with("other", "y.{id}", "integer")).await;
        assert_eq!(counts(finding(&removed, "keyspace.removed")), (1, 0, 0));
        assert_eq!(removed.verdict(), Verdict::Dangerous);
        insist(&given, &removed).await.unwrap();
        // The same keys under another name: what they hold is what they held.
        let back = given.plan(&with("k2", "x.{id}", "string")).await;
        assert_eq!(back.verdict(), Verdict::Dangerous, "{:#?}", back.findings);
        assert_eq!(counts(finding(&back, "data.refused")), (1, 0, 0));
        let fits = given.plan(&with("k2", "x.{id}", "integer")).await;
        assert_eq!(fits.verdict(), Verdict::Safe, "{:#?}", fits.findings);
    });
}

#[test]
fn a_keyspace_that_held_nothing_is_removed_safely() {
    on_both(async |given| {
        let with = |keyspaces: Value| notes_with(note(), json!({"keyspaces": keyspaces}));
        let both = with(json!({"a": {"key": "a.{id}"}, "b": {"key": "b.{id}"}}));
        given.accept(&both).await;
        given.put(NOTES, "a.one", r#"{"text": ""}"#).await.unwrap();
        let plan = given.plan(&with(json!({"a": {"key": "a.{id}"}}))).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        // Until someone writes to it.
        given.put(NOTES, "b.one", r#"{"text": ""}"#).await.unwrap();
        assert!(matches!(given.apply(&plan).await, Err(AuthorityError::Violators { .. })));
        // And keys that another keyspace takes over are not lost.
        let merged = given.plan(&with(json!({"all": {"key": "{kind}.{id}"}}))).await;
        assert_eq!(merged.verdict(), Verdict::Safe, "{:#?}", merged.findings);
    });
}

fn versions(current: &str, accepted: &[&str]) -> Contract {
    let accepted: serde_json::Map<_, _> =
        accepted.iter().map(|version| ((*version).to_owned(), json!({"schema": "Note"}))).collect();
    notes_with(note(), json!({"history": 5, "version": current, "acceptedVersions": accepted}))
}

#[test]
fn records_that_history_keeps_are_judged() {
    on_both(async |given| {
        given.accept(&versions("v1", &[])).await;
        for key in ["rewritten", "rewritten", "deleted", "deleted", "purged"] {
            given.put(NOTES, key, r#"{"text": "of v1"}"#).await.unwrap();
        }
        given.accept(&versions("v2", &["v1"])).await;
        given.put(NOTES, "rewritten", r#"{"text": "of v2"}"#).await.unwrap();
        let key = |text: &str| Key::parse(text).unwrap();
        let gone = Batch::new().delete(key("deleted")).purge(key("purged"));
        given.engine.commit(&name(NOTES), gone).await.unwrap();
        // No live entry is of v1 any more, but four records are that a revert can bring back.
        let plan = given.plan(&versions("v2", &[])).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
        let dropped = finding(&plan, "version.dropped");
        assert_eq!(counts(dropped), (0, 4, 2));
        assert!(dropped.reason.contains("4 kept records of 2 keys"), "{}", dropped.reason);
        assert!(dropped.answer.as_ref().unwrap().samples[0].kept);
        assert_eq!(plan.scans["notes"].kept, 4);
        insist(&given, &plan).await.unwrap();
    });
}

#[test]
fn kept_records_that_the_schema_refuses_are_found() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 3}))).await;
        for text in ["much longer", "tiny"] {
            given.put(NOTES, "one", &json!({"text": text}).to_string()).await.unwrap();
        }
        let plan = given.plan(&notes_with(short_note(), json!({"history": 3}))).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
        assert_eq!(counts(plan.dangers().next().unwrap()), (0, 1, 1));
    });
}

#[test]
fn records_that_were_overwritten_since_the_plan_are_looked_at() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 3}))).await;
        let plan = given.plan(&notes_with(short_note(), json!({"history": 3}))).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        for text in ["much longer", "tiny"] {
            given.put(NOTES, "one", &json!({"text": text}).to_string()).await.unwrap();
        }
        let error = given.apply(&plan).await.unwrap_err();
        assert!(matches!(error, AuthorityError::Violators { count: 1, .. }), "{error:?}");
    });
}

#[test]
fn kept_records_that_cannot_be_read_are_no_reason_to_call_a_plan_safe() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 3}))).await;
        given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
        given.below.cramp();
        let plan = given.plan(&notes_with(short_note(), json!({"history": 3}))).await;
        assert_eq!(finding(&plan, "data.unread").verdict, Verdict::Dangerous);
        insist(&given, &plan).await.unwrap();
    });
}

#[test]
fn an_acknowledgement_covers_what_the_plan_showed() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        given.put(NOTES, "shown", r#"{"text": "much longer"}"#).await.unwrap();
        let plan = given.plan(&notes(short_note())).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous);
        given.put(NOTES, "since", r#"{"text": "much longer"}"#).await.unwrap();
        let error = insist(&given, &plan).await.unwrap_err();
        let AuthorityError::Violators { count: 1, samples, .. } = &error else { panic!("{error:?}") };
        assert_eq!(samples[0].key, "since");
        let plan = given.plan(&notes(short_note())).await;
        insist(&given, &plan).await.unwrap();
    });
}

/// A pending plan that says the same is given again, but not if what it showed was written anew: it could not be applied.
#[test]
fn a_plan_that_shows_records_is_made_anew_when_they_are_written_over() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        for number in 0..20 {
            given.put(NOTES, &format!("n{number:02}"), r#"{"text": "much longer"}"#).await.unwrap();
        }
        let first = given.plan(&notes(short_note())).await;
        assert_eq!(given.plan(&notes(short_note())).await.id, first.id);
        given.put(NOTES, "n19", r#"{"text": "much longer"}"#).await.unwrap();
        assert!(matches!(insist(&given, &first).await, Err(AuthorityError::Violators { .. })));
        let second = given.plan(&notes(short_note())).await;
        insist(&given, &second).await.unwrap();
    });
}

#[test]
fn what_breaks_the_contract_in_force_is_told_and_is_no_loss() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        let glass = given.engine.break_glass("bob", "a test").unwrap();
        put(&glass, NOTES, "broken", r#"{"text": 5}"#).await.unwrap();
        given.put(NOTES, "good", r#"{"text": "tiny"}"#).await.unwrap();
        let plan = given.plan(&notes(short_note())).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        let broken = finding(&plan, "data.unreadable");
        assert_eq!(counts(broken), (1, 0, 0));
        assert_eq!(broken.answer.as_ref().unwrap().samples[0].key, "broken");
        given.apply(&plan).await.unwrap();
    });
}

fn drafts(schema: Value) -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Draft": schema}, "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    });
    Contract::from_value(&document).unwrap().contract
}

/// Writes a draft in a session under a contract that is in force.
async fn draft(given: &Given, contract: &Contract, who: Principal, key: &str, draft: Value) {
    let state = State::open(&given.engine).await.unwrap();
    let session = state.session(who, &state.contract(contract).await.unwrap());
    let put = session.store("drafts").unwrap().put(Some(key), draft, PutOptions::default()).await.unwrap();
    assert!(matches!(put, PutOutcome::Applied(_)), "{put:?}");
}

/// Brings a draft into a store that has no contract yet, as a copy from another store.
async fn bring(given: &Given, contract: &Contract, who: Principal, key: &str, value: Value) {
    let elsewhere = given.anew();
    elsewhere.accept(contract).await;
    draft(&elsewhere, contract, who, key, value).await;
    let bucket = name(STATE_BUCKET);
    let config = elsewhere.below.bucket(&bucket).await.unwrap().config;
    given.below.create_bucket(&bucket, config).await.unwrap();
    for entry in elsewhere.below.scan(&bucket, ScanQuery::default()).await.unwrap().entries {
        let put = Operation::put(entry.key, entry.value).with_headers(entry.headers);
        given.below.commit(&bucket, Batch::from(put)).await.unwrap();
    }
}

#[test]
fn state_of_before_the_first_plan_is_judged() {
    on_both(async |given| {
        let loose = drafts(json!({"type": "object"}));
        bring(&given, &loose, Principal::device("phone.7").unwrap(), "first", json!({})).await;
        let strict = drafts(json!({"type": "object", "required": ["title"]}));
        let plan = given.plan(&strict).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
        let refused = finding(&plan, "data.refused");
        let place = refused.answer.as_ref().unwrap().samples[0].state.clone().unwrap();
        assert_eq!(
            (place.owner.as_str(), place.store.as_str(), place.key.as_deref()),
            ("device phone.7", "drafts", Some("first"))
        );
        // A first contract that has no place for it at all.
        let plan = given.plan(&contract(json!({}), json!({}))).await;
        assert_eq!(finding(&plan, "data.refused").path, "/state/drafts");
        let plan = given.plan(&loose).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        given.apply(&plan).await.unwrap();
    });
}

#[test]
fn a_state_store_that_comes_back_is_judged() {
    on_both(async |given| {
        let loose = drafts(json!({"type": "object"}));
        given.accept(&loose).await;
        draft(&given, &loose, Principal::user("ann").unwrap(), "first", json!({})).await;
        given.insist(&contract(json!({}), json!({}))).await;
        let plan = given.plan(&drafts(json!({"type": "object", "required": ["title"]}))).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous, "{:#?}", plan.findings);
        assert_eq!(given.plan(&loose).await.verdict(), Verdict::Safe);
    });
}

#[test]
fn a_bucket_that_is_read_alike_is_not_scanned() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
        given.below.scans(NOTES);
        let plan = given.plan(&notes_with(note(), json!({"history": 5}))).await;
        assert_eq!((given.below.scans(NOTES), plan.verdict()), (0, Verdict::Safe));
        given.apply(&plan).await.unwrap();
        assert_eq!(given.below.scans(NOTES), 0);
        // Everything else is, whatever the diff thinks of it.
        given.plan(&notes(json!({}))).await;
        assert_eq!(given.below.scans(NOTES), 1);
    });
}

#[test]
fn a_plan_of_the_older_format_is_not_applied() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        let plan = given.plan(&notes(short_note())).await;
        let mut text = serde_json::to_value(&plan).unwrap();
        assert_eq!(text["format"], "pleach.plan.v2");
        text["format"] = json!("pleach.plan.v1");
        text.as_object_mut().unwrap().remove("id");
        let old: Plan = with_id(text);
        let key = format!("plan.acme/notes=v1.{}", old.id);
        let record = json!({"status": "pending", "plan": old});
        given.plant(pleach_stores::SYSTEM_BUCKET, &key, &record.to_string()).await;
        let error = given.apply(&old).await.unwrap_err();
        assert!(matches!(error, AuthorityError::OldPlan { .. }), "{error:?}");
        // It is not taken for the new one either.
        assert_eq!(given.plan(&notes(short_note())).await.format, "pleach.plan.v2");
    });
}

/// A plan with the id that its text has.
fn with_id(mut text: Value) -> Plan {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(pleach_contract::canonical(&text).as_bytes());
    text["id"] = json!(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    serde_json::from_value(text).unwrap()
}

#[test]
fn an_adopted_bucket_is_judged_with_its_history() {
    on_both(async |given| {
        let config = BucketConfig { history: 3.try_into().unwrap(), ..BucketConfig::default() };
        given.engine.create_bucket(&name("old"), config).await.unwrap();
        for value in ["no note", r#"{"text": "a note"}"#] {
            given.put("old", "one", value).await.unwrap();
        }
        let adopt = [("notes".to_owned(), name("old"))].into();
        let options = PlanOptions { adopt, ..PlanOptions::default() };
        let plan = given.contracts.plan(&notes_with(note(), json!({"history": 3})), options).await.unwrap();
        assert_eq!(counts(finding(&plan, "bucket.adopted")), (0, 1, 1));
        assert_eq!(plan.verdict(), Verdict::Dangerous);
    });
}
