//! Writers that do not wait for an apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use pleach_engine::{Clock, Engine, Key, Operation, ScanQuery};
use pleach_stores::{ApplyOptions, AuthorityError, Contracts, GUARD_AGE_MAX, Guarded, Plan, PlanOptions};
use serde_json::json;

use crate::Given;
use crate::given::{NOTES, contract_of, lineage, name, note, notes, short_note};

/// Whatever is written while a contract comes into force: once it has, nothing is there that it refuses.
pub(crate) async fn no_violator_slips_in_behind_an_apply(given: Given) {
    given.accept(&notes(note())).await;
    let (applied, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..30 {
        let plan = given.plan(&notes(short_note())).await;
        let stop = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            for writer in 0..2 {
                let (engine, stop) = (&given.engine, &stop);
                scope.spawn(move || {
                    for number in 0.. {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        // Most are fine, and a long one comes now and then.
                        let text = if number % 97 == 96 { "much too long" } else { "tiny" };
                        let key = Key::parse(format!("w{writer}.n{}", number % 300)).unwrap();
                        let put = Operation::put(key, format!(r#"{{"text": "{text}"}}"#));
                        let _ = pollster::block_on(engine.commit(&name(NOTES), put.into()));
                    }
                });
            }
            let result = pollster::block_on(given.contracts.apply(&plan, ApplyOptions::by("ann")));
            stop.store(true, Ordering::SeqCst);
            result
        });
        let long = long_ones(&given).await;
        match result {
            Ok(_) => {
                assert_eq!(long, [""; 0], "they slipped in");
                applied.fetch_add(1, Ordering::SeqCst);
                given.insist(&notes(note())).await;
            }
            Err(AuthorityError::Violators { .. }) => {
                refused.fetch_add(1, Ordering::SeqCst);
                for key in long {
                    given.put(NOTES, &key, r#"{"text": "tiny"}"#).await.unwrap();
                }
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(applied.into_inner() > 0, "{refused:?} were refused, and none applied");
}

/// A write that was judged by the old guards and is still under way is waited for, and then seen.
pub(crate) async fn an_apply_waits_for_writes_that_are_under_way(given: Given) {
    check_waits(&given, |_| {}).await;
}

/// A sweep forgets the guards, and not who still writes by them.
pub(crate) async fn an_apply_waits_for_writes_that_are_older_than_a_sweep(given: Given) {
    check_waits(&given, |_| drop(pollster::block_on(given.contracts.sweep()).unwrap())).await;
}

/// Where others write to the store as well, guards are read again now and then, and take the place of those before.
#[test]
fn an_apply_waits_for_writes_by_guards_that_grew_old() {
    let given = Given::able(|can| can.sole_writer = false);
    let grow_old = |_: &Plan| {
        // Someone else has changed what the store knows, though nothing about this bucket.
        let clock = Arc::clone(&given.clock) as Arc<dyn Clock>;
        let other = Contracts::of(&Guarded::new(Arc::clone(&given.below) as Arc<dyn Engine>, clock));
        let contract = contract_of("acme.other@v1", json!({}), json!({}));
        pollster::block_on(other.plan(&contract, PlanOptions::default())).unwrap();
        given.clock.advance(GUARD_AGE_MAX * 2);
        pollster::block_on(given.put(NOTES, "soon", r#"{"text": "tiny"}"#)).unwrap();
    };
    pollster::block_on(check_waits(&given, grow_old));
}

/// Whoever gives up waiting does not wait for those that come after.
#[test]
fn an_apply_waits_for_writes_that_another_waited_for_in_vain() {
    let given = Given::in_memory();
    let give_up = |plan: &Plan| {
        let mut apply = Box::pin(given.contracts.apply(plan, ApplyOptions::by("ann")));
        assert!(apply.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    };
    pollster::block_on(check_waits(&given, give_up));
}

/// Holds a write up and lets something happen: an apply waits for the write all the same.
async fn check_waits(given: &Given, happen: impl FnOnce(&Plan)) {
    given.accept(&notes(note())).await;
    let plan = given.plan(&notes(short_note())).await;
    let gate = given.below.hold_up(&name(NOTES));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            pollster::block_on(given.put(NOTES, "late", r#"{"text": "much too long"}"#)).unwrap();
        });
        gate.wait();
        happen(&plan);
        let applier =
            scope.spawn(|| pollster::block_on(given.contracts.apply(&plan, ApplyOptions::by("ann"))));
        thread::sleep(Duration::from_millis(100));
        let both_wait = !writer.is_finished() && !applier.is_finished();
        // Whatever comes out, nobody is left waiting.
        gate.open();
        assert!(both_wait);
        let result = applier.join().unwrap();
        assert!(matches!(result, Err(AuthorityError::Violators { count: 1, .. })), "{result:?}");
    });
}

/// An apply whose guards someone else took off meanwhile is not accepted, whatever it has seen before.
pub(crate) async fn an_apply_without_its_guards_is_not_accepted(given: Given) {
    given.accept(&notes(note())).await;
    given.put(NOTES, "one", r#"{"text": "tiny"}"#).await.unwrap();
    let plan = given.plan(&notes(short_note())).await;
    let clock = Arc::clone(&given.clock) as Arc<dyn Clock>;
    let other = Guarded::new(Arc::clone(&given.below) as Arc<dyn Engine>, clock);
    given.below.before_scan(&name(NOTES), move || {
        pollster::block_on(Contracts::of(&other).resume(&lineage())).unwrap();
    });
    let error = given.apply(&plan).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Moved { .. }), "{error:?}");
    let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
    assert_eq!((status.authority.version, status.is_unfinished), (1, false));
    given.put(NOTES, "one", r#"{"text": "much too long"}"#).await.unwrap();
}

async fn long_ones(given: &Given) -> Vec<String> {
    let query = ScanQuery { limit: 10_000, ..ScanQuery::default() };
    let page = given.engine.scan(&name(NOTES), query).await.unwrap();
    let long = page.entries.iter().filter(|entry| entry.value.len() > br#"{"text": "12345"}"#.len());
    long.map(|entry| entry.key.to_string()).collect()
}
