//! A contract in force is in force everywhere at once: commits of other processes that were judged before it came into
//! force are not stored after it.

use std::panic::{self, AssertUnwindSafe};
use std::thread;

use pleach_engine::{
    At, Batch, BucketConfig, CommitError, Engine, EngineError, Expectation, Key, Operation, ScanQuery,
    Selection, WatchEvent, WatchQuery, WatchStart,
};
use pleach_stores::{ApplyOptions, PlanOptions};

use crate::given::{NOTES, name, note, notes, put, refusal, short_note};
use crate::process::{Process, Shared};

const LONG: &str = r#"{"text": "much too long"}"#;
const SHORT: &str = r#"{"text": "tiny"}"#;

/// The test, with processes that share a store in memory, on one server, and on three.
macro_rules! shared {
    ($($name:ident)*) => {
        mod in_memory { $(
            #[test]
            fn $name() {
                pollster::block_on(super::$name(crate::process::Shared::in_memory()));
            }
        )* }
        mod on_one_server { $(
            #[test]
            fn $name() {
                pollster::block_on(super::$name(crate::process::Shared::one_server()));
            }
        )* }
        mod on_three_servers { $(
            #[test]
            fn $name() {
                pollster::block_on(super::$name(crate::process::Shared::three_servers()));
            }
        )* }
    };
}

shared! {
    a_commit_judged_before_an_apply_is_not_stored_after_it
    a_commit_judged_before_an_adoption_is_not_stored_after_it
    a_commit_that_keeps_both_contracts_survives_an_apply
    nobody_is_refused_by_a_contract_that_is_no_longer_in_force
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// Holds a commit of `writer` up inside its engine, applies a plan of `applier` meanwhile, and lets the commit go on.
fn held_up(
    writer: &Process,
    bucket: &str,
    batch: Batch,
    meanwhile: impl FnOnce(),
) -> Result<(), CommitError> {
    let gate = writer.below.hold_up(&name(bucket));
    thread::scope(|scope| {
        let late = scope.spawn(|| pollster::block_on(writer.engine.commit(&name(bucket), batch)));
        gate.wait();
        // Whatever comes out, nobody is left waiting.
        let done = panic::catch_unwind(AssertUnwindSafe(meanwhile));
        gate.open();
        let late = late.join().unwrap().map(drop);
        done.unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        late
    })
}

async fn accept(process: &Process, contract: &pleach_contract::Contract, options: PlanOptions) {
    let plan = process.contracts.plan(contract, options).await.unwrap();
    process.contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
}

async fn read(process: &Process, bucket: &str, at: &str) -> Option<String> {
    let entry = process.engine.read(&name(bucket), &key(at), At::Latest).await.unwrap();
    entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned())
}

/// Whatever the commit expects of its own keys, and however many operations it has.
async fn a_commit_judged_before_an_apply_is_not_stored_after_it(shared: Shared) {
    let batches = [
        Batch::new().put(key("late"), LONG),
        Batch::from(Operation::put(key("late"), LONG).expecting(Expectation::Absent)),
        Batch::new().put(key("late"), LONG).put(key("late.too"), SHORT),
    ];
    let (writer, applier) = (shared.process().await, shared.process().await);
    for batch in batches {
        accept(&applier, &notes(note()), PlanOptions::default()).await;
        put(&writer.engine, NOTES, "early", SHORT).await.unwrap();
        let meanwhile = || pollster::block_on(accept(&applier, &notes(short_note()), PlanOptions::default()));
        let late = held_up(&writer, NOTES, batch, meanwhile);
        assert!(matches!(late, Err(CommitError::Engine(EngineError::BrokenContract { .. }))), "{late:?}");
        for process in [&writer, &applier] {
            assert_eq!(read(process, NOTES, "late").await, None);
            assert_eq!(read(process, NOTES, "late.too").await, None);
            assert_eq!(read(process, NOTES, "early").await.as_deref(), Some(SHORT));
        }
    }
}

/// Also of a bucket that nobody owned before. There are contracts in the store, of another bucket.
async fn a_commit_judged_before_an_adoption_is_not_stored_after_it(shared: Shared) {
    let (writer, applier) = (shared.process().await, shared.process().await);
    let other = crate::given::contract_of("acme.other@v1", serde_json::json!({}), serde_json::json!({}));
    accept(&applier, &other, PlanOptions::default()).await;
    let config = BucketConfig::plain(writer.engine.capabilities());
    writer.engine.create_bucket(&name("carts"), config).await.unwrap();
    put(&writer.engine, "carts", "early", SHORT).await.unwrap();
    let adopt = || PlanOptions { adopt: [("notes".to_owned(), name("carts"))].into(), ..Default::default() };
    let late = held_up(&writer, "carts", Batch::new().put(key("late"), LONG), || {
        pollster::block_on(accept(&applier, &notes(short_note()), adopt()));
    });
    assert!(matches!(late, Err(CommitError::Engine(EngineError::BrokenContract { .. }))), "{late:?}");
    assert_eq!(read(&applier, "carts", "late").await, None);
    assert_eq!(read(&applier, "carts", "early").await.as_deref(), Some(SHORT));
}

/// The writer is not told: its batch is judged again and committed.
async fn a_commit_that_keeps_both_contracts_survives_an_apply(shared: Shared) {
    let (writer, applier) = (shared.process().await, shared.process().await);
    accept(&applier, &notes(note()), PlanOptions::default()).await;
    let seen = put(&writer.engine, NOTES, "early", SHORT).await.unwrap();
    let over = Operation::put(key("early"), r#"{"text": "late"}"#).expecting(Expectation::Revision(seen));
    held_up(&writer, NOTES, over.into(), || {
        pollster::block_on(accept(&applier, &notes(short_note()), PlanOptions::default()));
    })
    .unwrap();
    assert_eq!(read(&applier, NOTES, "early").await.as_deref(), Some(r#"{"text": "late"}"#));
}

/// A process whose guards are older than an apply takes what the contract in force takes.
async fn nobody_is_refused_by_a_contract_that_is_no_longer_in_force(shared: Shared) {
    let (writer, applier) = (shared.process().await, shared.process().await);
    accept(&applier, &notes(short_note()), PlanOptions::default()).await;
    refusal(put(&writer.engine, NOTES, "one", LONG).await);
    accept(&applier, &notes(note()), PlanOptions::default()).await;
    put(&writer.engine, NOTES, "one", LONG).await.unwrap();
    assert_eq!(read(&applier, NOTES, "one").await.as_deref(), Some(LONG));
}

/// No scan, count or watch through Pleach shows it, and nobody writes it by hand.
#[test]
fn a_fence_is_not_seen() {
    pollster::block_on(async {
        let shared = Shared::one_server();
        let (writer, applier) = (shared.process().await, shared.process().await);
        accept(&applier, &notes(note()), PlanOptions::default()).await;
        let one = put(&writer.engine, NOTES, "one", SHORT).await.unwrap();
        let query = WatchQuery { filters: Vec::new(), start: WatchStart::History };
        let mut watch = writer.engine.watch(&name(NOTES), query).await.unwrap();
        accept(&applier, &notes(short_note()), PlanOptions::default()).await;
        // Whoever follows the bucket up to its newest revision comes there.
        let info = writer.engine.bucket(&name(NOTES)).await.unwrap();
        assert_eq!(info.last_revision, one);
        put(&writer.engine, NOTES, "two", SHORT).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let event = futures_util::StreamExt::next(&mut watch).await.unwrap().unwrap();
            if let WatchEvent::Change(change) = event {
                seen.push(change.entry.key.to_string());
            }
        }
        assert_eq!(seen, ["one", "two"]);
        for process in [&writer, &applier] {
            let page = process.engine.scan(&name(NOTES), ScanQuery::default()).await.unwrap();
            let keys: Vec<&str> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
            assert_eq!(keys, ["one", "two"]);
            assert_eq!(process.engine.count(&name(NOTES), Selection::all()).await.unwrap(), 2);
        }
        let fence = Key::parse_reserved("_kv.guard.00").unwrap();
        let by_hand = Batch::new().put(fence, "");
        assert!(writer.engine.commit(&name(NOTES), by_hand.clone()).await.is_err());
        let config = BucketConfig::plain(writer.engine.capabilities());
        writer.engine.create_bucket(&name("carts"), config).await.unwrap();
        assert!(
            writer.engine.commit(&name("carts"), by_hand).await.is_err(),
            "also where nobody is the owner"
        );
    });
}
