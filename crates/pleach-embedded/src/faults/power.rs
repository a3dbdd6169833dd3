use pleach_engine::{BucketConfig, Engine, EngineError};
use pollster::block_on;

use super::disk::{Fault, Survival};
use super::machine::{Ledger, Machine, bucket, buffered};

/// Opens a store, closes it, and commits to it in two sessions; stops where the power goes.
fn work(machine: &Machine, ledger: &mut Ledger, config: &BucketConfig) -> Result<(), EngineError> {
    block_on(machine.try_open()?.close())?;
    let engine = machine.try_open()?;
    block_on(engine.create_bucket(&bucket(), config.clone()))?;
    for round in 0..6 {
        ledger.commit(&engine, 1 + round % 3);
    }
    block_on(engine.close())?;
    let engine = machine.try_open()?;
    for _ in 0..4 {
        ledger.commit(&engine, 2);
    }
    block_on(engine.close())
}

fn survivals(seed: usize) -> [Survival; 3] {
    let seed = seed as u64;
    [Survival::Synced, Survival::Prefix(seed), Survival::Any(seed)]
}

/// Lets the power go during each operation of the disk in turn, and again while the store is opened after
/// it. Says how many operations that were.
fn cut_power_everywhere(config: &BucketConfig, all_acknowledged: bool) -> usize {
    for cut in 0.. {
        for (case, survival) in survivals(cut).into_iter().enumerate() {
            let machine = Machine::new();
            let mut ledger = Ledger::default();
            machine.disk.cut_power_after(cut);
            let result = work(&machine, &mut ledger, config);
            if !machine.disk.is_off() {
                result.expect("nothing fails while there is power");
                return cut;
            }
            let keep_index = (cut + case) % 2 == 0;
            machine.power_cycle(survival, keep_index);

            machine.disk.cut_power_after((cut + case) % 7);
            if let Err(error) = machine.try_open() {
                assert!(machine.disk.is_off(), "cut at {cut}, {survival:?}: {error}");
            }
            machine.power_cycle(survivals(cut + 1)[(cut + case) % 3], true);

            reopen_and_check(
                &machine,
                &mut ledger,
                config,
                all_acknowledged,
                &format!("{cut}, {survival:?}"),
            );
        }
    }
    unreachable!("the work ends")
}

/// Checks what is there, goes on, and checks that again.
fn reopen_and_check(
    machine: &Machine,
    ledger: &mut Ledger,
    config: &BucketConfig,
    all_acknowledged: bool,
    case: &str,
) {
    let engine = machine.try_open().unwrap_or_else(|error| panic!("cut at {case}: {error}"));
    let before = ledger.check(&engine, all_acknowledged);
    let newest = ledger.acknowledged.values().map(|committed| committed.last).max();
    block_on(engine.create_bucket(&bucket(), config.clone())).expect("the bucket");
    let results = ledger.commit(&engine, 2);
    for result in results {
        let committed = result.expect("a commit");
        assert!(!all_acknowledged || Some(committed.first) > newest, "{case}: a revision was used again");
    }
    assert_eq!(ledger.check(&engine, all_acknowledged).len(), before.len() + 2);
    block_on(engine.close()).expect("it closes");
    let again = ledger.check(&machine.open(), all_acknowledged);
    assert_eq!(again.len(), before.len() + 2, "{case}: what was there is still there");
}

#[test]
fn a_power_cut_at_any_moment_loses_no_acknowledged_commit_and_halves_no_batch() {
    let operations = cut_power_everywhere(&BucketConfig::default(), true);
    assert!(operations > 60, "only {operations} operations: are segments still small?");
}

#[test]
fn a_power_cut_at_any_moment_leaves_a_prefix_of_what_was_buffered() {
    let operations = cut_power_everywhere(&buffered(), false);
    assert!(operations > 30, "only {operations} operations: are segments still small?");
}

#[test]
fn one_failed_operation_at_any_moment_loses_no_acknowledged_commit_and_shows_no_refused_one() {
    for fault in [Fault::Io, Fault::Full] {
        for failing in 0.. {
            let machine = Machine::new();
            let mut ledger = Ledger::default();
            machine.disk.fail_any(failing, fault);
            let result = work(&machine, &mut ledger, &BucketConfig::default());
            if !machine.disk.has_failed() {
                result.expect("nothing fails without a reason");
                break;
            }
            if failing % 2 == 0 {
                machine.power_cycle(survivals(failing)[failing / 2 % 3], failing % 4 == 0);
            }
            let case = format!("{failing}, {fault:?}");
            reopen_and_check(&machine, &mut ledger, &BucketConfig::default(), true, &case);
        }
    }
}
