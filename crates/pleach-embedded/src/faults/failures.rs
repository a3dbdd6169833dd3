use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join_all, poll_fn};
use futures_util::{Future, FutureExt};
use pleach_engine::{BucketConfig, BucketName, CommitError, Committed, Engine, EngineError, ErrorKind};
use pollster::block_on;
use tokio::sync::oneshot;

use super::disk::{DiskOp, Fault, Survival};
use super::machine::{Ledger, Machine, bucket, buffered, contents};
use crate::commit::{BucketChange, Request};
use crate::upkeep::Upkeep;

const SURVIVALS: [Survival; 6] = [
    Survival::Synced,
    Survival::Prefix(1),
    Survival::Prefix(2),
    Survival::Any(3),
    Survival::Any(4),
    Survival::Any(5),
];

/// A store with the bucket and a few commits in it, and what they were.
fn given(config: BucketConfig) -> (Machine, Ledger) {
    let (machine, mut ledger) = (Machine::new(), Ledger::default());
    let engine = machine.open();
    block_on(engine.create_bucket(&bucket(), config)).expect("the bucket");
    ledger.commit(&engine, 3);
    block_on(engine.close()).expect("it closes");
    (machine, ledger)
}

/// Opens the store again after a power cut, and checks that it holds what it should and takes more.
fn check_after_power_cut(machine: &Machine, ledger: &mut Ledger, survival: Survival) {
    for keep_index in [true, false] {
        machine.power_cycle(survival, keep_index);
        let engine = machine.open();
        ledger.check(&engine, true);
        for result in ledger.commit(&engine, 2) {
            result.expect("a commit");
        }
        ledger.check(&engine, true);
    }
}

fn is_full(result: &Result<Committed, CommitError>) -> bool {
    matches!(result, Err(CommitError::Engine(EngineError::DiskFull { .. })))
}

/// Whether the store takes no more writes, and the error says to open it again.
fn is_read_only(result: &Result<Committed, CommitError>) -> bool {
    let Err(CommitError::Engine(error @ EngineError::ReadOnly { .. })) = result else { return false };
    assert!(error.help().contains("open the store again"), "{}", error.help());
    true
}

/// Fails one operation under a group, and checks that the group is not acknowledged and the store is read-only.
fn the_group_fails(machine: &Machine, ledger: &mut Ledger, op: DiskOp) {
    let mut bench = machine.open_bench();
    assert!(bench.commit(ledger, 3).iter().all(Result::is_ok));
    machine.disk.fail(op, 0, Fault::Io);
    let results = bench.commit(ledger, 3);
    assert!(results.iter().all(is_read_only), "{op:?}: {results:?}");
    let writes = machine.disk.writes();
    assert!(bench.commit(ledger, 1).iter().all(is_read_only));
    assert_eq!(machine.disk.writes(), writes, "nothing more is written");
}

#[test]
fn a_failed_sync_acknowledges_nobody_and_nothing_acknowledged_is_lost() {
    for survival in SURVIVALS {
        let (machine, mut ledger) = given(BucketConfig::default());
        the_group_fails(&machine, &mut ledger, DiskOp::Sync);
        check_after_power_cut(&machine, &mut ledger, survival);
    }
}

#[test]
fn a_failed_write_acknowledges_nobody_and_nothing_acknowledged_is_lost() {
    for survival in SURVIVALS {
        let (machine, mut ledger) = given(BucketConfig::default());
        the_group_fails(&machine, &mut ledger, DiskOp::Write);
        check_after_power_cut(&machine, &mut ledger, survival);
    }
}

#[test]
fn a_store_that_takes_no_more_writes_is_still_read() {
    let (machine, mut ledger) = given(BucketConfig::default());
    let engine = machine.open();
    let before = contents(&engine);
    machine.disk.fail(DiskOp::Sync, 0, Fault::Io);
    assert!(is_read_only(&ledger.commit(&engine, 1)[0]));
    assert_eq!(contents(&engine), before);
    let key = pleach_engine::Key::parse("k.0").expect("a key");
    let compacted = block_on(engine.compact_key(&bucket(), &key, NonZeroU8::MIN));
    assert!(matches!(compacted, Err(EngineError::ReadOnly { .. })), "{compacted:?}");
    drop(engine);
    ledger.check(&machine.open(), true);
}

#[test]
fn a_bucket_change_behind_a_failed_sync_is_not_acknowledged() {
    let (machine, mut ledger) = given(BucketConfig::default());
    let bench = machine.open_bench();
    let (commit, mut committed) = bench.request(ledger.batch().1);
    let other = BucketName::parse("other").expect("a name");
    let (reply, mut changed) = oneshot::channel();
    let change = BucketChange::Create(other.clone(), BucketConfig::default());
    machine.disk.fail(DiskOp::Sync, 0, Fault::Io);
    bench.finish_with(vec![commit, Request::Bucket { change, reply }]);
    assert!(is_read_only(&committed.try_recv().expect("an answer")));
    let changed = changed.try_recv().expect("an answer");
    assert!(matches!(changed, Err(EngineError::ReadOnly { .. })), "{changed:?}");
    check_after_power_cut(&machine, &mut ledger, Survival::Synced);
}

#[test]
fn a_full_disk_refuses_a_group_of_which_nothing_is_ever_seen() {
    for survival in SURVIVALS {
        for commits_after in [0, 1, 3] {
            let (machine, mut ledger) = given(BucketConfig::default());
            let mut bench = machine.open_bench();
            assert!(bench.commit(&mut ledger, 2).iter().all(Result::is_ok));
            machine.disk.set_full(true);
            for _ in 0..2 {
                let results = bench.commit(&mut ledger, 4);
                assert!(results.iter().all(is_full), "{results:?}");
            }
            machine.disk.set_full(false);
            for _ in 0..commits_after {
                assert!(bench.commit(&mut ledger, 1).iter().all(Result::is_ok), "there is space again");
            }
            drop(bench);
            check_after_power_cut(&machine, &mut ledger, survival);
        }
    }
}

#[test]
fn a_full_disk_whose_torn_write_cannot_be_cut_off_takes_no_more_writes() {
    for op in [DiskOp::Truncate, DiskOp::Sync] {
        let (machine, mut ledger) = given(BucketConfig::default());
        let mut bench = machine.open_bench();
        machine.disk.fail(DiskOp::Write, 0, Fault::Full);
        machine.disk.fail(op, 0, Fault::Io);
        assert!(bench.commit(&mut ledger, 3).iter().all(is_read_only), "{op:?}");
        assert!(bench.commit(&mut ledger, 1).iter().all(is_read_only));
        drop(bench);
        check_after_power_cut(&machine, &mut ledger, Survival::Any(1));
    }
}

#[test]
fn a_segment_that_cannot_be_made_harms_no_commit() {
    // The first write and sync are those of the group.
    let steps = [
        (DiskOp::Create, 0),
        (DiskOp::Write, 1),
        (DiskOp::Sync, 1),
        (DiskOp::Rename, 0),
        (DiskOp::SyncDirectory, 0),
    ];
    for (op, skip) in steps {
        for fault in [Fault::Full, Fault::Io] {
            for survival in SURVIVALS {
                let (mut machine, mut ledger) = given(BucketConfig::default());
                machine.settings.segment_bytes = 1;
                let mut bench = machine.open_bench();
                machine.disk.fail(op, skip, fault);
                assert!(bench.commit(&mut ledger, 2).iter().all(Result::is_ok), "{op:?}: durable before");
                for _ in 0..3 {
                    let results = bench.commit(&mut ledger, 1);
                    assert!(
                        results.iter().all(|result| result.is_ok() || is_read_only(result)),
                        "{results:?}"
                    );
                }
                drop(bench);
                // First as after a kill, where everything that was written is there.
                ledger.check(&machine.open(), true);
                check_after_power_cut(&machine, &mut ledger, survival);
            }
        }
    }
}

#[test]
fn a_segment_for_which_there_is_no_space_leaves_nothing_behind() {
    let (mut machine, mut ledger) = given(BucketConfig::default());
    machine.settings.segment_bytes = 1;
    let mut bench = machine.open_bench();
    machine.disk.fail(DiskOp::Write, 1, Fault::Full);
    assert!(bench.commit(&mut ledger, 1)[0].is_ok());
    let names = crate::disk::Disk::list(&machine.disk, &machine.path().join("log")).expect("a list");
    assert!(names.iter().all(|name| name.ends_with(".log")), "{names:?}");
}

#[test]
fn a_store_is_not_made_by_halves() {
    for op in [DiskOp::Create, DiskOp::Write, DiskOp::Sync, DiskOp::Rename, DiskOp::SyncDirectory] {
        for skip in 0..2 {
            for survival in SURVIVALS {
                let machine = Machine::new();
                machine.disk.fail(op, skip, Fault::Full);
                let error = machine.try_open().expect_err("the disk is full");
                assert!(matches!(error, EngineError::DiskFull { .. }), "{op:?}: {error}");
                machine.power_cycle(survival, true);
                block_on(machine.open().create_bucket(&bucket(), BucketConfig::default())).expect("a bucket");
            }
        }
    }
}

#[test]
fn a_failed_sync_of_upkeep_makes_the_store_read_only() {
    let (machine, mut ledger) = given(buffered());
    let mut bench = machine.open_bench();
    assert!(bench.commit(&mut ledger, 1)[0].is_ok());
    machine.disk.fail(DiskOp::Sync, 0, Fault::Io);
    Upkeep::new(Arc::clone(&bench.core)).step();
    assert!(is_read_only(&bench.commit(&mut ledger, 1)[0]));
}

#[test]
fn no_stretch_of_the_index_is_flushed_before_the_log_under_it_is_synced() {
    let (mut machine, mut ledger) = given(buffered());
    machine.settings.memtable_bytes = 1;
    let bench = machine.open_bench();
    let (core, (request, mut answer)) = (Arc::clone(&bench.core), bench.request(ledger.batch().1));
    bench.finish_with(vec![request]);
    answer.try_recv().expect("an answer").expect("a commit");
    let sealed = core.index.backlog().sealed;
    assert!(sealed > 0, "the stretch was sealed");
    let visible = core.snapshots.visible();
    assert!(core.durable.load(std::sync::atomic::Ordering::Acquire) < visible.get());
    machine.disk.fail(DiskOp::Sync, 0, Fault::Io);
    core.flush_index(visible).expect_err("the log cannot be synced");
    assert_eq!(core.index.backlog().sealed, sealed, "nothing was flushed");
}

/// Begins what cannot end yet.
fn begin<F: Future + Unpin>(future: &mut F) {
    block_on(poll_fn(|context| {
        assert!(future.poll_unpin(context).is_pending());
        Poll::Ready(())
    }));
}

#[test]
fn nobody_waits_for_a_thread_that_has_panicked() {
    let (machine, mut ledger) = given(BucketConfig::default());
    let engine = machine.open();
    let batches: Vec<_> = (0..8).map(|_| ledger.batch().1).collect();
    let (name, disk, seen) = (bucket(), machine.disk.clone(), machine.disk.writes());
    machine.disk.fail(DiskOp::Write, 0, Fault::Panic);
    let (done, finished) = mpsc::channel();
    let commits = move || {
        let mut batches = batches.into_iter();
        let hold = disk.hold();
        let mut first = engine.commit(&name, batches.next().expect("a batch"));
        begin(&mut first);
        // The rest comes when the first is being written, so that it waits behind it.
        while disk.writes() == seen {
            std::thread::yield_now();
        }
        let mut rest = join_all(batches.map(|batch| engine.commit(&name, batch))).boxed();
        begin(&mut rest);
        drop(hold);
        let results = block_on(async { (first.await, rest.await) });
        drop(engine);
        done.send(results).expect("someone waits");
    };
    std::thread::Builder::new().spawn(commits).expect("a thread");
    let (first, rest) = finished.recv_timeout(Duration::from_secs(300)).expect("everyone is answered");
    for result in rest.iter().chain([&first]) {
        let kind = result.as_ref().map_err(CommitError::kind);
        assert_eq!(kind.err(), Some(ErrorKind::Closed), "{result:?}");
    }
    ledger.check(&machine.open(), true);
}

#[test]
fn the_same_power_cut_leaves_the_same_bytes() {
    let bytes = |survival| {
        let (machine, _) = given(BucketConfig::default());
        let path = machine.path().join("sample");
        let file = crate::disk::Disk::create(&machine.disk, &path).expect("a file");
        crate::disk::Disk::sync_directory(&machine.disk, &machine.path()).expect("a sync");
        file.write_at(&[1; 500], 0).expect("a write");
        file.sync().expect("a sync");
        file.write_at(&[2; 500], 300).expect("a write");
        file.truncate(600).expect("a cut");
        machine.disk.power_cycle(survival);
        assert!(file.len().is_err(), "a file opened before the power cut is of no use after");
        machine.disk.bytes(&path)
    };
    assert_eq!(bytes(Survival::Synced), [1; 500]);
    for survival in SURVIVALS {
        assert_eq!(bytes(survival), bytes(survival));
    }
    assert!(SURVIVALS.iter().any(|survival| bytes(*survival).contains(&2)), "something unsynced survives");
}
