//! Records about contracts that move from one store to another.

use std::num::NonZeroU8;

use pleach_contract::Contract;
use pleach_engine::{BucketConfig, Engine, Operation};
use pleach_stores::{
    Arrival, AuthorityError, ContractRecords, Extent, Materialised, PlanOptions, SYSTEM_BUCKET,
    TransferError, TransferLine,
};
use serde_json::json;

use crate::Given;
use crate::given::{LINEAGE, NOTES, contract, interrupted, lineage, name, note, notes_with, short_note};
use crate::watched::Failing;

fn first() -> Contract {
    notes_with(note(), json!({"history": 3}))
}

/// Shorter notes and drafts besides.
fn second() -> Contract {
    let resource = |schema: &str| json!({"purpose": "Notes", "schema": {"schema": schema}, "history": 3});
    let kv = json!({"notes": resource("Short"), "drafts": resource("Short")});
    contract(json!({"Short": short_note()}), kv)
}

/// A store with a lineage in its second version, and an override.
async fn filled(given: &Given) {
    given.accept(&first()).await;
    given.insist(&second()).await;
    let glass = given.engine.break_glass("bob", "a repair").unwrap();
    crate::given::put(&glass, NOTES, "broken", "no JSON").await.unwrap();
}

async fn records(given: &Given) -> Result<ContractRecords, AuthorityError> {
    given.contracts.records(&Extent::Store).await
}

fn refusal<T: std::fmt::Debug>(result: Result<T, AuthorityError>) -> TransferError {
    match result.unwrap_err() {
        AuthorityError::Transfer(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Makes the buckets that are reserved, as a copy does.
async fn make_buckets(given: &Given, records: &ContractRecords) {
    let copies = given.engine.for_copies();
    for (bucket, _) in records.buckets() {
        let config = BucketConfig { history: NonZeroU8::new(3).unwrap(), ..BucketConfig::default() };
        copies.create_bucket(&name(bucket), config).await.unwrap();
    }
}

#[test]
fn a_lineage_is_not_moved_while_an_apply_is_unfinished() {
    pollster::block_on(async {
        let prepared = async |given: &Given| {
            given.accept(&first()).await;
            given.plan(&second()).await
        };
        let is_pending = async |given: &Given| {
            let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
            matches!(status.authority.status, Materialised::Pending { .. })
        };
        let (given, _) = interrupted(&Given::in_memory(), prepared, is_pending).await;
        let error = refusal(records(&given).await);
        assert!(matches!(error, TransferError::Unfinished { .. }), "{error:?}");
        assert!(error.help().contains("pleach contract apply"), "{}", error.help());
        given.contracts.resume(&lineage()).await.unwrap();
        assert_eq!(records(&given).await.unwrap().lineages[0].authority.version, 2);
        // One that has claimed buckets and was not accepted yet.
        let is_claimed = async |given: &Given| {
            let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
            status.authority.status == Materialised::Current && status.is_unfinished
        };
        let (given, _) = interrupted(&Given::in_memory(), prepared, is_claimed).await;
        assert!(matches!(refusal(records(&given).await), TransferError::Unfinished { .. }));
    });
}

#[test]
fn claims_of_plans_and_plans_stay_in_their_store() {
    pollster::block_on(async {
        let given = Given::in_memory();
        given.accept(&first()).await;
        let options = PlanOptions { guard: true, ..PlanOptions::default() };
        given.contracts.plan(&second(), options).await.unwrap();
        let status = given.contracts.status(&lineage()).await.unwrap().unwrap();
        assert!(status.buckets[NOTES].claim.is_some());
        let records = records(&given).await.unwrap();
        assert_eq!(records.lineages[0].buckets[NOTES].claim, None);
        let target = given.anew();
        target.contracts.hold(&records).await.unwrap();
        make_buckets(&target, &records).await;
        target.contracts.put_records(&records, async || Ok(true)).await.unwrap();
        let status = target.contracts.status(&lineage()).await.unwrap().unwrap();
        assert!(status.plans.is_empty() && status.buckets[NOTES].claim.is_none());
    });
}

#[test]
fn a_target_that_cannot_keep_a_promise_shows_every_shortfall() {
    pollster::block_on(async {
        let given = Given::in_memory();
        filled(&given).await;
        let target = Given::able(|can| can.history_max = 1);
        let error = refusal(target.contracts.can_take(&records(&given).await.unwrap()).await);
        let TransferError::Incapable { shortfalls, .. } = &error else { panic!("{error:?}") };
        assert_eq!(shortfalls.len(), 2, "{error}");
        assert!(error.to_string().contains("/resources/kv/drafts/history"), "{error}");
    });
}

#[test]
fn a_move_that_fails_at_any_call_is_completed_by_repeating_it() {
    pollster::block_on(async {
        for source in [Given::in_memory(), Given::embedded()] {
            filled(&source).await;
            let records = records(&source).await.unwrap();
            for failing in [Failing::Before, Failing::After] {
                for calls in 0.. {
                    let mut target = source.anew();
                    target.below.fail_after(calls, failing);
                    let held = target.contracts.hold(&records).await;
                    let mut done = held.is_ok();
                    if done {
                        make_buckets_if_possible(&target, &records).await;
                        done = target.contracts.put_records(&records, async || Ok(true)).await.is_ok();
                    }
                    let has_failed = target.below.mend();
                    target.restart();
                    check_whole_or_not_at_all(&target).await;
                    target.contracts.hold(&records).await.unwrap();
                    make_buckets_if_possible(&target, &records).await;
                    let digest = target.contracts.put_records(&records, async || Ok(true)).await.unwrap();
                    assert_eq!(digest, records.digest());
                    assert_eq!(target.contracts.can_take(&records).await.unwrap(), Arrival::Done);
                    assert_eq!(target.contracts.broken_glass().await.unwrap().len(), 1);
                    assert!(target.contracts.damages().await.unwrap().is_empty());
                    if !has_failed {
                        assert!(done);
                        break;
                    }
                }
            }
        }
    });
}

async fn make_buckets_if_possible(given: &Given, records: &ContractRecords) {
    let copies = given.engine.for_copies();
    for (bucket, _) in records.buckets() {
        let config = BucketConfig { history: NonZeroU8::new(3).unwrap(), ..BucketConfig::default() };
        let _ = copies.create_bucket(&name(bucket), config).await;
    }
}

/// Either the contract is in force with its whole history, or programs cannot bind and nothing is written unchecked.
async fn check_whole_or_not_at_all(given: &Given) {
    let status = given.contracts.status(&lineage()).await.unwrap();
    match status {
        Some(status) => {
            assert_eq!(given.contracts.history(&lineage()).await.unwrap().len(), 2);
            assert_eq!(status.buckets.len(), 2);
            given.contracts.bind(&second()).await.unwrap();
        }
        None => {
            assert!(given.contracts.history(&lineage()).await.unwrap().is_empty());
            assert!(given.contracts.bind(&second()).await.is_err());
        }
    }
    if given.engine.bucket(&name(NOTES)).await.is_ok() {
        assert!(given.put(NOTES, "k", "no JSON").await.is_err());
    }
}

#[test]
fn records_survive_their_lines_and_changed_ones_are_refused() {
    pollster::block_on(async {
        let given = Given::in_memory();
        filled(&given).await;
        let records = records(&given).await.unwrap();
        let lines = records.to_lines();
        let texts: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let read = |texts: &[String]| {
            let lines = texts.iter().map(|text| serde_json::from_str::<TransferLine>(text).unwrap());
            ContractRecords::from_lines(lines)
        };
        assert_eq!(read(&texts).unwrap(), records);
        for left_out in 0..texts.len() {
            let rest: Vec<String> = texts
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|(_, text)| text.clone())
                .collect();
            assert!(matches!(refusal(read(&rest)), TransferError::Invalid { .. }), "{}", texts[left_out]);
        }
        let edited: Vec<String> = texts.iter().map(|text| text.replace("\"bob\"", "\"eve\"")).collect();
        assert!(matches!(refusal(read(&edited)), TransferError::Invalid { .. }));
        assert!(
            serde_json::from_str::<TransferLine>(r#"{"system":"end","records":1,"sha256":"","x":1}"#)
                .is_err()
        );
    });
}

#[test]
fn what_is_not_known_or_damaged_is_not_left_behind() {
    pollster::block_on(async {
        let given = Given::in_memory();
        filled(&given).await;
        given.plant(SYSTEM_BUCKET, "future.record", "{}").await;
        let error = refusal(records(&given).await);
        assert!(matches!(&error, TransferError::Unknown { key } if key == "future.record"), "{error:?}");
        let key = pleach_engine::Key::parse("future.record").unwrap();
        given.below.commit(&name(SYSTEM_BUCKET), Operation::purge(key).into()).await.unwrap();
        records(&given).await.unwrap();
        given.plant(SYSTEM_BUCKET, &format!("bucket.{NOTES}"), "no JSON").await;
        let error = records(&given).await.unwrap_err();
        assert!(matches!(error, AuthorityError::Damaged { .. }), "{LINEAGE}: {error:?}");
    });
}
