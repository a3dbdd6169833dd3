//! What a plan says about what is stored is true: how much goes, when, and whose it is.

use std::time::Duration;

use pleach_contract::evolution::Verdict;
use pleach_engine::{BucketConfig, Engine};
use pleach_stores::{Expiring, Plan, PlanFinding, Step};
use serde_json::{Value, json};

use crate::Given;
use crate::given::{NOTES, name, note, notes, notes_with, short_note};

fn on_both(test: impl AsyncFn(Given)) {
    pollster::block_on(test(Given::in_memory()));
    pollster::block_on(test(Given::embedded()));
}

fn finding<'p>(plan: &'p Plan, code: &str) -> &'p PlanFinding {
    let found = plan.findings.iter().find(|finding| finding.code == code);
    found.unwrap_or_else(|| panic!("no {code} in {:#?}", plan.findings))
}

#[test]
fn a_lower_time_to_live_says_how_many_expire_and_when() {
    on_both(async |given| {
        given.accept(&notes(note())).await;
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
        for (key, wait) in [("a", 2 * day), ("b", day - hour / 2), ("c", hour), ("d", Duration::ZERO)] {
            given.put(NOTES, key, r#"{"text": ""}"#).await.unwrap();
            given.clock.advance(wait);
        }
        let ttl = u64::try_from((day + hour).as_millis()).unwrap();
        let plan = given.plan(&notes_with(note(), json!({"ttlMs": ttl}))).await;
        let lowered = finding(&plan, "ttl.lowered");
        assert_eq!(lowered.verdict, Verdict::Dangerous);
        let answer = lowered.answer.as_ref().unwrap();
        let expiring = Expiring { at_once: 1, within_hour: 1, within_day: 1, later: 1 };
        assert_eq!((answer.count, answer.of, answer.expiring), (4, 4, Some(expiring)));
        assert!(lowered.reason.contains("1 at once, 1 within an hour"), "{}", lowered.reason);
        assert!(!lowered.fix.contains("scan"), "{}", lowered.fix);
    });
}

#[test]
fn a_lower_time_to_live_that_ends_nothing_sooner_is_safe() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"ttlMs": 100_000}))).await;
        let plan = given.plan(&notes_with(note(), json!({"ttlMs": 50_000}))).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
        let plan = given.plan(&notes_with(note(), json!({"ttlMs": 50_000}))).await;
        assert_eq!(plan.verdict(), Verdict::Dangerous);
    });
}

#[test]
fn the_time_to_live_of_a_keyspace_ends_nothing_that_is_stored() {
    on_both(async |given| {
        let with =
            |ttl: Value| notes_with(note(), json!({"keyspaces": {"a": {"key": "a.{id}", "ttlMs": ttl}}}));
        given.accept(&with(json!(3_600_000))).await;
        given.put(NOTES, "a.one", r#"{"text": ""}"#).await.unwrap();
        given.clock.advance(Duration::from_secs(1800));
        let plan = given.plan(&with(json!(60_000))).await;
        let lowered = finding(&plan, "ttl.lowered");
        assert_eq!(lowered.verdict, Verdict::Safe, "{lowered:?}");
        assert!(!lowered.reason.contains("expired as soon as"), "{}", lowered.reason);
        given.apply(&plan).await.unwrap();
        assert!(given.get(NOTES, "a.one").await.is_some());
        given.put(NOTES, "a.two", r#"{"text": ""}"#).await.unwrap();
        given.clock.advance(Duration::from_secs(61));
        assert!(given.get(NOTES, "a.one").await.is_some());
        assert!(given.get(NOTES, "a.two").await.is_none());
    });
}

#[test]
fn limits_that_affect_nothing_are_lowered_safely() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 5}))).await;
        for key in ["one", "one", "two"] {
            given.put(NOTES, key, r#"{"text": ""}"#).await.unwrap();
        }
        let lower = |history: u64, bytes: u64| {
            notes_with(note(), json!({"history": history, "maxValueBytes": bytes}))
        };
        let plan = given.plan(&lower(2, 100)).await;
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        assert_eq!(finding(&plan, "history.lowered").verdict, Verdict::Safe);
        assert_eq!(given.plan(&lower(1, 100)).await.verdict(), Verdict::Dangerous);
        assert_eq!(given.plan(&lower(2, 5)).await.verdict(), Verdict::Dangerous);
        // A value that only history keeps is too large to be written again.
        let long = json!({"text": "x".repeat(200)}).to_string();
        for value in [long.as_str(), r#"{"text": ""}"#] {
            given.put(NOTES, "two", value).await.unwrap();
        }
        let plan = given.plan(&lower(3, 100)).await;
        let lowered = finding(&plan, "size.lowered");
        assert_eq!((lowered.verdict, lowered.answer.as_ref().unwrap().count), (Verdict::Dangerous, 0));
        assert_eq!(lowered.answer.as_ref().unwrap().kept.unwrap().records, 1);
    });
}

#[test]
fn no_fix_asks_for_a_scan_that_was_made() {
    on_both(async |given| {
        given.accept(&notes_with(note(), json!({"history": 5}))).await;
        for text in ["much longer", "again"] {
            given.put(NOTES, "one", &json!({"text": text}).to_string()).await.unwrap();
        }
        let more = json!({"history": 1, "ttlMs": 60_000, "maxValueBytes": 5});
        for contract in [notes_with(short_note(), more), notes_with(short_note(), json!({"history": 5}))] {
            for finding in given.plan(&contract).await.findings {
                let answer = finding.answer.unwrap_or_default();
                let fixes = answer.samples.iter().map(|sample| &sample.fix).chain([&finding.fix]);
                fixes.for_each(|fix| assert!(!fix.contains("scan"), "{}: {fix}", finding.code));
            }
        }
    });
}

async fn reconfigure(given: &Given, change: impl FnOnce(&mut BucketConfig)) {
    let glass = given.engine.break_glass("bob", "a test").unwrap();
    let mut config = glass.bucket(&name(NOTES)).await.unwrap().config;
    change(&mut config);
    glass.update_bucket(&name(NOTES), config).await.unwrap();
}

#[test]
fn drift_is_told_and_judged_as_any_change() {
    on_both(async |given| {
        let contract = notes_with(note(), json!({"history": 2}));
        given.accept(&contract).await;
        reconfigure(&given, |config| config.history = 9.try_into().unwrap()).await;
        let drifted = given.plan(&contract).await;
        assert_eq!(drifted.verdict(), Verdict::Safe, "{:#?}", drifted.findings);
        for _ in 0..5 {
            given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
        }
        let plan = given.plan(&contract).await;
        let [drift] = &plan.drift[..] else { panic!("{:?}", plan.drift) };
        assert_eq!(
            (drift.setting.as_str(), drift.expected.as_str(), drift.found.as_str(), drift.becomes.as_str()),
            ("history", "2", "9", "2")
        );
        let judged = finding(&plan, "drift.history");
        assert_eq!((judged.verdict, judged.answer.as_ref().unwrap().count), (Verdict::Dangerous, 1));
        assert!(matches!(&plan.steps[..], [Step::Configure { .. }]));
        assert!(given.apply(&plan).await.is_err());
        // A contract that asks for what there is has nothing to put right.
        let plan = given.plan(&notes_with(note(), json!({"history": 9}))).await;
        assert_eq!((plan.drift.len(), plan.verdict()), (0, Verdict::Safe));
    });
}

#[test]
fn drift_that_loses_nothing_is_put_right_safely() {
    on_both(async |given| {
        let contract = notes_with(note(), json!({"history": 3, "maxValueBytes": 1000}));
        given.accept(&contract).await;
        given.put(NOTES, "one", r#"{"text": ""}"#).await.unwrap();
        reconfigure(&given, |config| {
            config.history = 1.try_into().unwrap();
            config.ttl = Some(Duration::from_secs(3600));
            config.value_bytes_max = 100;
        })
        .await;
        let plan = given.plan(&contract).await;
        let settings: Vec<_> = plan.drift.iter().map(|drift| drift.setting.as_str()).collect();
        assert_eq!(settings, ["history", "ttl", "value_bytes_max"]);
        assert_eq!(plan.verdict(), Verdict::Safe, "{:#?}", plan.findings);
        given.apply(&plan).await.unwrap();
        let plan = given.plan(&contract).await;
        assert!(plan.is_nothing() && plan.drift.is_empty(), "{plan:?}");
    });
}

#[test]
fn what_is_declared_and_not_kept_is_a_shortfall_that_blocks_nothing() {
    on_both(async |given| {
        let more = json!({
            "keyspaces": {"note": {"key": "note.{id}"}},
            "indexes": {"by_owner": {"of": "note", "key": "by.{owner}.{id}", "values": {"owner": "/text"}}},
        });
        let plan = given.plan(&notes_with(note(), more)).await;
        let [short] = &plan.shortfalls[..] else { panic!("{:?}", plan.shortfalls) };
        assert_eq!(short.path, "/resources/kv/notes/indexes/by_owner");
        assert_eq!(short.message, "index `by_owner` is declared but Pleach does not maintain it yet");
        assert!(!short.blocks);
        given.apply(&plan).await.unwrap();
    });
}
