use std::sync::Arc;
use std::time::Duration;

use pleach_contract::evolution::Verdict;
use pleach_engine::{Engine, Key};
use pleach_stores::{ApplyOptions, AuthorityError, Plan, PlanFinding, PlanOptions};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, contract, lineage, name, note, notes, notes_with, put, refusal, short_note};

/// The findings that are not safe.
fn dangers(plan: &Plan) -> Vec<&PlanFinding> {
    plan.dangers().collect()
}

/// How many entries stand against the plan, by its worst finding.
fn count(plan: &Plan) -> (u64, u64) {
    let answers = plan.findings.iter().filter_map(|finding| finding.answer.as_ref());
    answers.map(|answer| (answer.count, answer.of)).max().unwrap_or_default()
}

fn titled() -> Value {
    json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "title": {"type": "string"}},
        "required": ["text", "title"],
    })
}

pub(crate) async fn a_safe_change_needs_no_word(given: Given) {
    given.accept(&notes_with(short_note(), json!({"history": 2}))).await;
    given.put(NOTES, "one", r#"{"text": "hello"}"#).await.unwrap();
    given.below.scans(NOTES);
    let plan = given.plan(&notes_with(note(), json!({"history": 5}))).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:?}", dangers(&plan));
    assert!(!plan.findings.is_empty());
    given.apply(&plan).await.unwrap();
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
}

pub(crate) async fn a_scan_that_finds_nothing_is_safe(given: Given) {
    given.accept(&notes(note())).await;
    for number in 0..30 {
        given.put(NOTES, &format!("n{number}"), r#"{"text": "tiny"}"#).await.unwrap();
    }
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:?}", dangers(&plan));
    assert_eq!(count(&plan), (0, 30));
    assert!(plan.findings.iter().any(|finding| finding.reason.contains("none of 30")), "{:?}", plan.findings);
    assert_eq!(plan.scans["notes"].versions["v1"], 30);
    given.apply(&plan).await.unwrap();
    refusal(given.put(NOTES, "one", r#"{"text": "much longer"}"#).await);
}

pub(crate) async fn a_scan_that_finds_something_is_dangerous(given: Given) {
    given.accept(&notes(note())).await;
    for number in 0..30 {
        let text = if number % 3 == 0 { "much longer" } else { "tiny" };
        given.put(NOTES, &format!("n{number:02}"), &json!({"text": text}).to_string()).await.unwrap();
    }
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous);
    let [danger] = dangers(&plan)[..] else { panic!("{:?}", plan.findings) };
    let answer = danger.answer.as_ref().unwrap();
    assert_eq!((answer.count, answer.of, answer.samples.len()), (10, 30, 10));
    let sample = &answer.samples[1];
    assert_eq!(
        (sample.key.as_str(), sample.path.as_str(), sample.version.as_deref()),
        ("n03", "/text", Some("v1"))
    );
    assert_eq!(sample.message, "this must have at most 5 characters");
    assert_eq!(given.get(NOTES, "n03").await.unwrap().revision, sample.revision);
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unacknowledged { count: 1, .. }), "{error:?}");
    let blank = ApplyOptions::by("ann").acknowledging("  ");
    assert!(given.contracts.apply(&plan, blank).await.is_err());
    given.put(NOTES, "n03", r#"{"text": "much longer"}"#).await.unwrap();
}

pub(crate) async fn a_bucket_is_read_once_for_all_findings(given: Given) {
    let old = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "size": {"type": "integer"}, "kind": {"enum": ["a", "b", "c"]}},
    });
    given.accept(&notes_with(old, json!({"history": 9}))).await;
    for number in 0..20 {
        given.put(NOTES, &format!("n{number}"), r#"{"text": "x", "size": 9, "kind": "a"}"#).await.unwrap();
    }
    let new = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 3}, "size": {"type": "integer", "maximum": 5}, "kind": {"enum": ["a"]}},
        "required": ["title"],
    });
    given.below.scans(NOTES);
    let more = json!({"history": 2, "ttlMs": 1_000_000, "maxValueBytes": 20});
    let plan = given.plan(&notes_with(new, more)).await;
    assert_eq!(given.below.scans(NOTES), 1);
    assert!(
        plan.findings.iter().filter(|finding| finding.question.is_some()).count() >= 6,
        "{:#?}",
        plan.findings
    );
}

pub(crate) async fn what_was_written_since_the_plan_is_looked_at(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Safe);
    given.put(NOTES, "two", r#"{"text": "much longer"}"#).await.unwrap();
    let error = given.apply(&plan).await.unwrap_err();
    let AuthorityError::Violators { count: 1, samples, .. } = &error else { panic!("{error:?}") };
    assert_eq!(samples[0].key, "two");
    // Nothing has changed, and nobody is refused.
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, status.is_unfinished), (1, false));
    given.put(NOTES, "three", r#"{"text": "much longer"}"#).await.unwrap();
    for key in ["two", "three"] {
        given.put(NOTES, key, r#"{"text": "tiny"}"#).await.unwrap();
    }
    given.apply(&plan).await.unwrap();
    // And what someone else slips in while it is applied is found as well.
    given.insist(&notes(note())).await;
    let plan = given.plan(&notes(short_note())).await;
    let below = Arc::clone(&given.below);
    given.below.before_scan(&name(NOTES), move || {
        pollster::block_on(put(&*below, NOTES, "four", r#"{"text": "much longer"}"#)).unwrap();
    });
    assert!(matches!(given.apply(&plan).await, Err(AuthorityError::Violators { .. })));
}

pub(crate) async fn a_guarded_plan_refuses_violators_at_once(given: Given) {
    given.accept(&notes(note())).await;
    let options = PlanOptions { guard: true, ..PlanOptions::default() };
    let plan = given.contracts.plan(&notes(short_note()), options.clone()).await.unwrap();
    let reason = refusal(given.put(NOTES, "one", r#"{"text": "much longer"}"#).await);
    assert!(reason.contains("about to be applied"), "{reason}");
    given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
    given.contracts.reject(&lineage(), &plan.id).await.unwrap();
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
    given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
    let plan = given.contracts.plan(&notes(short_note()), options).await.unwrap();
    refusal(given.put(NOTES, "one", r#"{"text": "much longer"}"#).await);
    given.clock.advance(pleach_stores::PLAN_LIFETIME);
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
    assert!(given.apply(&plan).await.is_err());
}

pub(crate) async fn an_acknowledged_danger_is_applied_and_kept(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "much longer"}"#).await.unwrap();
    let plan = given.plan(&notes(short_note())).await;
    let options = ApplyOptions::by("ann").acknowledging("nobody reads it");
    given.contracts.apply(&plan, options).await.unwrap();
    let history = given.contracts.history(&lineage()).await.unwrap();
    assert_eq!(history[1].acknowledgement.as_deref(), Some("nobody reads it"));
    assert!(given.get(NOTES, "one").await.is_some());
}

/// A new version with the old one accepted loses nothing; one that leaves the old one out does.
pub(crate) async fn values_of_accepted_versions_stay_readable(given: Given) {
    let resource = |version: &str, schema: &str, accepted: Value| {
        let resource = json!({"purpose": "Notes", "schema": {"schema": schema}, "version": version, "acceptedVersions": accepted});
        let mut schemas = json!({"Note": note(), "Titled": titled()});
        if accepted_is_empty(&resource) {
            schemas.as_object_mut().unwrap().retain(|name, _| name == schema);
        }
        contract(schemas, json!({"notes": resource}))
    };
    given.accept(&resource("v1", "Note", json!({}))).await;
    given.put(NOTES, "one", r#"{"text": "old"}"#).await.unwrap();
    let kept = given.plan(&resource("v2", "Titled", json!({"v1": {"schema": "Note"}}))).await;
    assert_eq!(kept.verdict(), Verdict::Safe, "{:#?}", dangers(&kept));
    let lost = given.plan(&resource("v2", "Titled", json!({}))).await;
    assert_eq!(lost.verdict(), Verdict::Dangerous, "{:#?}", lost.findings);
    given.apply(&kept).await.unwrap();
    given.put(NOTES, "two", r#"{"text": "new", "title": "of v2"}"#).await.unwrap();
    refusal(given.put(NOTES, "three", r#"{"text": "untitled"}"#).await);
    // As long as a value of the old version is there, it cannot be dropped without a word.
    let drop = resource("v2", "Titled", json!({}));
    let plan = given.plan(&drop).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous);
    assert_eq!(plan.scans["notes"].versions, [("v1".to_owned(), 1), ("v2".to_owned(), 1)].into());
    given.put(NOTES, "one", r#"{"text": "old", "title": "migrated"}"#).await.unwrap();
    let plan = given.plan(&drop).await;
    assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", dangers(&plan));
    given.apply(&plan).await.unwrap();
}

fn accepted_is_empty(resource: &Value) -> bool {
    resource["acceptedVersions"].as_object().is_none_or(serde_json::Map::is_empty)
}

pub(crate) async fn shorter_lives_and_histories_are_counted(given: Given) {
    given.accept(&notes_with(note(), json!({"history": 5}))).await;
    for text in ["1", "2", "3"] {
        given.put(NOTES, "old", &json!({"text": text}).to_string()).await.unwrap();
    }
    given.clock.advance(Duration::from_secs(100));
    given.put(NOTES, "new", &json!({"text": "x".repeat(100)}).to_string()).await.unwrap();
    let plan =
        given.plan(&notes_with(note(), json!({"history": 2, "ttlMs": 50_000, "maxValueBytes": 50}))).await;
    assert_eq!(plan.verdict(), Verdict::Dangerous);
    let mut found: Vec<(String, u64)> = Vec::new();
    for danger in plan.dangers() {
        let question = serde_json::to_value(&danger.question).unwrap();
        if let (Some(ask), Some(answer)) = (question["ask"].as_str(), &danger.answer) {
            found.push((
                format!(
                    "{ask} {}",
                    answer.samples.iter().map(|sample| sample.key.as_str()).collect::<String>()
                ),
                answer.count,
            ));
        }
    }
    found.sort();
    assert_eq!(
        found,
        [("deeper old".to_owned(), 1), ("larger new".to_owned(), 1), ("older newoldoldold".to_owned(), 2)]
    );
    given.insist(&notes_with(note(), json!({"history": 2, "ttlMs": 50_000, "maxValueBytes": 50}))).await;
    assert!(given.get(NOTES, "old").await.is_none());
    let key = Key::parse("new").unwrap();
    assert_eq!(given.engine.history(&name(NOTES), &key).await.unwrap().len(), 1);
}

/// To ask every key for its history would take a call each.
/// An engine that has no room for all records at once is asked for those of each key.
pub(crate) async fn histories_that_are_too_much_at_once_are_read_singly(given: Given) {
    given.below.cramp();
    given.accept(&notes_with(note(), json!({"history": 5}))).await;
    for key in ["flat", "deep", "deep", "deep"] {
        given.put(NOTES, key, r#"{"text": "tiny"}"#).await.unwrap();
    }
    let plan = given.plan(&notes_with(note(), json!({"history": 2}))).await;
    let deeper = plan.dangers().find_map(|danger| danger.answer.as_ref()).unwrap();
    assert_eq!((deeper.count, deeper.of), (1, 2));
}

pub(crate) async fn histories_are_read_in_one_go(given: Given) {
    given.accept(&notes_with(note(), json!({"history": 5}))).await;
    for number in 0..50 {
        for _ in 0..=number % 4 {
            given.put(NOTES, &format!("n{number:02}"), r#"{"text": "tiny"}"#).await.unwrap();
        }
    }
    // Gone with its history, and gone with a marker that counts as a record.
    let key = |text: &str| Key::parse(text).unwrap();
    let gone = pleach_engine::Batch::new().purge(key("n03")).delete(key("n07"));
    given.engine.commit(&name(NOTES), gone).await.unwrap();
    given.below.histories();
    let plan = given.plan(&notes_with(note(), json!({"history": 2}))).await;
    assert_eq!(given.below.histories(), 0);
    let deeper = plan.dangers().find_map(|danger| danger.answer.as_ref()).unwrap();
    // Those with three or four records: 12 and 12, without the one that was purged. What was deleted has its history.
    assert_eq!((deeper.count, deeper.of), (23, 50));
}

pub(crate) async fn stored_values_that_are_no_json_are_counted(given: Given) {
    given.accept(&notes(note())).await;
    given.plant(NOTES, "one", "no json at all").await;
    given.plant(NOTES, "two", "\u{0}\u{1}").await;
    // They came past the guards and cannot be read now: a plan shows them, and takes nothing from them.
    let plan = given.plan(&notes(short_note())).await;
    assert_eq!(plan.verdict(), Verdict::Safe);
    let told = plan.findings.iter().find(|finding| finding.code == "data.unreadable").unwrap();
    assert_eq!(told.answer.as_ref().unwrap().count, 2);
}

pub(crate) async fn keyspaces_that_are_declared_later_are_looked_at(given: Given) {
    given.accept(&notes(json!({"type": "object"}))).await;
    given.put(NOTES, "note.one", "{}").await.unwrap();
    let keyspaces = json!({"keyspaces": {"note": {"key": "note.{id}"}}});
    let plan = given.plan(&notes_with(note(), keyspaces)).await;
    let refused = plan.findings.iter().find(|finding| finding.code == "required.added").unwrap();
    assert_eq!(refused.answer.as_ref().map(|answer| (answer.count, answer.of)), Some((1, 1)), "{refused:?}");
    assert_eq!(plan.verdict(), Verdict::Dangerous);
}

/// Two values are one in an index if they are the same, however they are written down.
pub(crate) async fn a_unique_index_compares_values_and_not_texts(given: Given) {
    let resource = |more: Value| {
        let mut resource = json!({
            "purpose": "Notes", "schema": {"schema": "Note"}, "keyspaces": {"note": {"key": "note.{id}"}},
        });
        resource["indexes"] = more;
        contract(json!({"Note": {"type": "object"}}), json!({"notes": resource}))
    };
    given.accept(&resource(json!({}))).await;
    let values = [
        ("a", r#"{"number": 1, "at": "2026-01-01T12:00:00Z", "id": "6fa459ea-ee8a-3ca4-894e-db77e160355e"}"#),
        (
            "b",
            r#"{"number": 1.0, "at": "2026-01-01T13:00:00.000+01:00", "id": "6FA459EA-EE8A-3CA4-894E-DB77E160355E"}"#,
        ),
        (
            "c",
            r#"{"number": 10e-1, "at": "2026-01-01T12:00:01Z", "id": "6fa459ea-ee8a-3ca4-894e-db77e160355f"}"#,
        ),
    ];
    for (key, value) in values {
        given.put(NOTES, &format!("note.{key}"), value).await.unwrap();
    }
    for (segment, pointer, wanted) in [("uint", "/number", 2), ("time(3)", "/at", 1), ("uuid", "/id", 1)] {
        let index = json!({"of": "note", "key": format!("by.{{x:{segment}}}"), "values": {"x": pointer}, "unique": true});
        let plan = given.plan(&resource(json!({"by": index}))).await;
        assert_eq!(count(&plan).0, wanted, "{segment}: {:#?}", plan.findings);
    }
}
