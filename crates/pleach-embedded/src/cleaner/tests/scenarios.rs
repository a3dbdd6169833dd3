use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, ConsumerName, ConsumerStart, Engine, EngineError, Revision, WatchEvent,
    WatchQuery, WatchStart,
};
use pollster::block_on;

use super::rig::{Rig, clock, commit, key, name, settings};
use crate::Settings;
use crate::cleaner::Outcome;
use crate::cleaner::plan::Plan;
use crate::faults::{DiskOp, Fault, Machine};
use crate::recovery::Media;

#[test]
fn a_forgotten_key_stays_forgotten_though_the_feed_keeps_its_changes() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = directory.path().join("store");
    let mut rig = Rig::open(&path, settings(), &clock);
    let config = BucketConfig { marker_ttl: Some(Duration::from_secs(60)), ..BucketConfig::default() };
    block_on(rig.engine.create_bucket(&name(), config)).unwrap();
    let put = commit(&rig, Batch::new().put(key("gone"), "value"));
    let delete = commit(&rig, Batch::new().delete(key("gone")));
    let other = commit(&rig, Batch::new().put(key("other"), "value"));
    clock.advance(Duration::from_secs(120));
    // The marker and its neighbour become one segment; the key is forgotten by a record of its own.
    rig.clean(delete, other);
    assert!(block_on(rig.engine.history(&name(), &key("gone"))).unwrap().is_empty(), "forgotten");
    let forget = other + 1;
    commit(&rig, Batch::new().put(key("last"), "value"));
    rig.clean(1, 1);
    rig.clean(put, put);
    rig.clean(forget, forget);
    assert_eq!(block_on(rig.engine.read(&name(), &key("gone"), At::Latest)).unwrap(), None);
    rig.close();
    std::fs::remove_dir_all(path.join("index")).unwrap();
    let rig = Rig::open(&path, settings(), &clock);
    let found = block_on(rig.engine.read(&name(), &key("gone"), At::Latest)).unwrap();
    rig.close();
    assert_eq!(found, None, "it was deleted and forgotten");
}

#[test]
fn a_purge_that_was_compacted_away_does_not_come_back() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = directory.path().join("store");
    let settings = Settings { feed_bytes: Some(0), ..settings() };
    let mut rig = Rig::open(&path, settings.clone(), &clock);
    let config = BucketConfig { history: NonZeroU8::new(5).unwrap(), ..BucketConfig::default() };
    block_on(rig.engine.create_bucket(&name(), config)).unwrap();
    let first = commit(&rig, Batch::new().put(key("k"), "first"));
    let purge = commit(&rig, Batch::new().purge(key("k")));
    let second = commit(&rig, Batch::new().put(key("k"), "second"));
    block_on(rig.engine.compact_key(&name(), &key("k"), NonZeroU8::MIN)).unwrap();
    let compact = second + 1;
    commit(&rig, Batch::new().put(key("last"), "value"));
    let history = |rig: &Rig| {
        let entries = block_on(rig.engine.history(&name(), &key("k"))).unwrap();
        entries.iter().map(|entry| entry.revision.get()).collect::<Vec<_>>()
    };
    assert_eq!(history(&rig), [second]);
    // The purge is dead; it stays because what it purged is still there. Then that goes, then the compaction.
    rig.clean(purge, purge);
    rig.clean(1, 1);
    rig.clean(first, first);
    rig.clean(second, second);
    rig.clean(compact, compact);
    assert_eq!(history(&rig), [second]);
    rig.close();
    std::fs::remove_dir_all(path.join("index")).unwrap();
    let rig = Rig::open(&path, settings, &clock);
    let found = history(&rig);
    rig.close();
    assert_eq!(found, [second], "what was compacted away stays away");
}

#[test]
fn a_sweep_of_a_store_that_nobody_writes_to_ends() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = directory.path().join("store");
    let settings = Settings { feed_bytes: Some(0), ..settings() };
    let rig = Rig::open(&path, settings.clone(), &clock);
    block_on(rig.engine.create_bucket(&name(), BucketConfig::default())).unwrap();
    for number in 0..5 {
        commit(&rig, Batch::new().purge(key(&format!("{}.{number}", "k".repeat(200)))));
    }
    rig.flush();
    rig.close();
    let mut rig = Rig::open(&path, settings, &clock);
    let worked = (0..50).filter(|_| rig.cleaner.step().unwrap() == Outcome::Worked).count();
    rig.close();
    assert!(worked < 20, "it never rests");
}

#[test]
fn a_watch_with_history_reads_its_snapshot_though_the_log_was_cleaned_twice() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = directory.path().join("store");
    let settings = Settings { feed_bytes: Some(0), ..settings() };
    let mut rig = Rig::open(&path, settings, &clock);
    let config =
        |history| BucketConfig { history: NonZeroU8::new(history).unwrap(), ..BucketConfig::default() };
    block_on(rig.engine.create_bucket(&name(), config(1))).unwrap();
    let first = commit(&rig, Batch::new().put(key("k"), "first"));
    let other = commit(&rig, Batch::new().put(key("other"), "value"));
    // A small value of a bucket without history: the index is not told where it is now.
    rig.clean(1, other);
    rig.cleaner.remove_replaced().unwrap();
    assert!(rig.core.log.replaced().is_empty());
    block_on(rig.engine.update_bucket(&name(), config(5))).unwrap();
    let second = commit(&rig, Batch::new().put(key("k"), "second"));
    let query = WatchQuery { start: WatchStart::History, ..WatchQuery::default() };
    let mut watch = block_on(rig.engine.watch(&name(), query)).unwrap();
    block_on(rig.engine.compact_key(&name(), &key("k"), NonZeroU8::MIN)).unwrap();
    commit(&rig, Batch::new().put(key("last"), "value"));
    rig.clean(1, 1);
    rig.cleaner.remove_replaced().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        match block_on(watch.next()).unwrap() {
            Ok(WatchEvent::Change(change)) => seen.push(change.entry.revision.get()),
            other => panic!("{other:?}"),
        }
    }
    drop(watch);
    rig.close();
    assert_eq!(seen, [first, second]);
}

#[test]
fn keys_that_are_deleted_all_day_stay_deleted() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = directory.path().join("store");
    let settings = Settings { segment_bytes: 4096, ..settings() };
    let mut rig = Rig::open(&path, settings.clone(), &clock);
    let config = BucketConfig { marker_ttl: Some(Duration::from_secs(60)), ..BucketConfig::default() };
    block_on(rig.engine.create_bucket(&name(), config)).unwrap();
    let consumer = ConsumerName::parse("c").unwrap();
    block_on(rig.engine.create_consumer(&name(), &consumer, ConsumerStart::Now)).unwrap();
    let long = |number: usize| key(&format!("{}.{number}", "k".repeat(200)));
    for number in 0..100 {
        commit(&rig, Batch::new().put(long(number), "value"));
    }
    for number in 0..100 {
        let deleted = commit(&rig, Batch::new().delete(long(number)));
        block_on(rig.engine.acknowledge(&name(), &consumer, Revision::new(deleted))).unwrap();
    }
    clock.advance(Duration::from_secs(120));
    for round in 0..6 {
        commit(&rig, Batch::new().put(key("busy"), format!("{round}-{}", "v".repeat(100))));
        rig.flush();
        (0..200).take_while(|_| rig.cleaner.step().unwrap() == Outcome::Worked).for_each(drop);
        clock.advance(Duration::from_secs(40));
    }
    let live = |rig: &Rig| {
        (0..100)
            .filter(|number| {
                block_on(rig.engine.read(&name(), &long(*number), At::Latest)).unwrap().is_some()
            })
            .count()
    };
    assert_eq!(live(&rig), 0);
    rig.close();
    std::fs::remove_dir_all(path.join("index")).unwrap();
    let rig = Rig::open(&path, settings, &clock);
    let found = live(&rig);
    let kept = (0..100)
        .filter(|number| !block_on(rig.engine.history(&name(), &long(*number))).unwrap().is_empty())
        .count();
    rig.close();
    assert_eq!((found, kept), (0, 0), "they were deleted and forgotten");
}

/// A machine whose disk fails on demand.
fn given_machine() -> Machine {
    let mut machine = Machine::new();
    machine.settings = Settings { feed_bytes: Some(0), ..settings() };
    machine
}

fn media(machine: &Machine) -> Media {
    Media { disk: Arc::new(machine.disk.clone()), ..Media::real(&machine.path()) }
}

/// A store on it with a few segments, which the index on the disk has.
fn given_segments(machine: &Machine) -> Rig {
    let rig = Rig::of(machine.open_on(media(machine)).expect("the store opens"));
    block_on(rig.engine.create_bucket(&name(), BucketConfig::default())).expect("the bucket");
    for number in 0..5 {
        commit(&rig, Batch::new().put(key(&format!("k.{number}")), "value"));
    }
    rig.flush();
    rig
}

fn clean_first_two(rig: &mut Rig) -> Result<Outcome, EngineError> {
    let run = rig.core.log.segments()[0..2].to_vec();
    let since = rig.cleaner.clean_since();
    rig.cleaner.clean(&Plan { run, thorough: true, urgent: false }, &since)
}

#[test]
fn a_new_segment_whose_name_could_not_be_synced_does_no_harm() {
    let machine = given_machine();
    let mut rig = given_segments(&machine);
    machine.disk.fail(DiskOp::SyncDirectory, 0, Fault::Io);
    assert!(clean_first_two(&mut rig).is_err());
    if !rig.core.health.is_poisoned() {
        // Later another run is worth more.
        rig.clean(2, 3);
        rig.flush();
        rig.cleaner.remove_replaced().unwrap();
        assert!(rig.core.log.replaced().is_empty());
    }
    rig.close();
    let opened = machine.open_on(media(&machine));
    assert!(opened.is_ok(), "{:?}", opened.err());
}

#[test]
fn a_full_disk_is_not_filled_with_what_could_not_be_finished() {
    let machine = given_machine();
    let mut rig = given_segments(&machine);
    // The header is written; what follows is not.
    machine.disk.fail(DiskOp::Write, 1, Fault::Full);
    assert!(clean_first_two(&mut rig).is_err());
    let names = rig.core.log.disk.list(&rig.core.log.directory).unwrap();
    rig.close();
    assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
}
