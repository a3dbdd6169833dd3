//! A log that was cleaned, or that an older version has written, is inspected like any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pleach_embedded::inspect::{
    IndexReport, RebuildOptions, RevisionRange, SalvageReport, VerifyReport, rebuild, salvage, verify,
};
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    Batch, BucketConfig, BucketInfo, Clock, ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError,
    Entry, Revision, WatchQuery, WatchStart,
};
use pollster::block_on;

use crate::formats;
use crate::store::{Store, bucket, contents, create, files, key, put};

/// How long the cleaner may take.
const CLEAN_TIMEOUT: Duration = Duration::from_secs(600);

/// The segments that were made by cleaning.
fn cleaned_segments(store: &Store) -> Vec<PathBuf> {
    let name = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains('-'));
    store.segments().into_iter().filter(name).collect()
}

/// A closed store whose log was cleaned: much of what was written to it is gone.
#[allow(clippy::disallowed_methods, reason = "the engine's own threads run in real time")]
fn cleaned_store() -> Store {
    let settings = Settings {
        segment_bytes: 8 * 1024,
        memtable_bytes: 16 * 1024,
        feed_bytes: Some(0),
        clean_bytes_per_second: u64::MAX,
        ..Settings::default()
    };
    let store = Store::with(settings);
    let engine = store.open();
    let (name, gone) = (create(&engine, 2), bucket("gone"));
    block_on(engine.create_bucket(&gone, BucketConfig::default())).expect("a bucket");
    for at in 0..40 {
        put(&engine, &gone, &format!("k.{at}"), "x".repeat(300));
        put(&engine, &name, &format!("steady.{at}"), format!("steady {at}"));
    }
    block_on(engine.delete_bucket(&gone)).expect("it is deleted");
    for at in 0..600 {
        put(&engine, &name, &format!("k.{}", at % 7), format!("value {at} ").repeat(at % 90));
    }
    block_on(engine.commit(&name, Batch::new().delete(key("k.1")).purge(key("k.2")))).expect("a commit");
    let consumer = ConsumerName::parse("reader").expect("a name");
    block_on(engine.create_consumer(&name, &consumer, ConsumerStart::Now)).expect("a consumer");
    let last = put(&engine, &name, "seen", "by the consumer");
    block_on(engine.acknowledge(&name, &consumer, Revision::new(last))).expect("acknowledged");
    let written = 600 * 45 * 11;
    let given_up = Instant::now() + CLEAN_TIMEOUT;
    // The newest segments wait for the index.
    while cleaned_segments(&store).is_empty() || log_bytes(&store) > written / 4 {
        assert!(Instant::now() < given_up, "{:?} with {} bytes", store.segments(), log_bytes(&store));
        std::thread::sleep(Duration::from_millis(10));
    }
    block_on(engine.close()).expect("it closes");
    // From here on nothing moves any more.
    Store { settings: Settings { clean: false, ..store.settings.clone() }, ..store }
}

fn log_bytes(store: &Store) -> u64 {
    let files = files(&store.path().join("log"));
    // A file may be removed while they are counted.
    files.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Everything that can be asked of a store: its buckets, and of each the entries, the history and the consumers.
type Everything = Vec<(BucketInfo, BTreeMap<String, Entry>, Vec<Entry>, Vec<ConsumerInfo>)>;

fn everything(engine: &dyn Engine) -> Everything {
    let infos = block_on(engine.buckets()).expect("the buckets");
    let of = |info: BucketInfo| {
        let entries = contents(engine, &info.name).expect("a scan");
        let keys = entries.keys().cloned().chain((0..7).map(|at| format!("k.{at}")));
        let history = keys.flat_map(|at| block_on(engine.history(&info.name, &key(&at))).expect("a history"));
        let history = history.collect();
        let consumers = block_on(engine.consumers(&info.name)).expect("the consumers");
        (info, entries, history, consumers)
    };
    infos.into_iter().map(of).collect()
}

fn open(path: &Path, store: &Store) -> EmbeddedEngine {
    let clock = std::sync::Arc::clone(&store.clock) as std::sync::Arc<dyn Clock>;
    let settings = Settings { create: false, ..store.settings.clone() };
    EmbeddedEngine::open_with(path, settings, clock).expect("it opens")
}

fn sound(path: &Path) -> VerifyReport {
    let report = verify(path, &mut |_| {}).expect("a report");
    assert!(report.is_sound(), "{report:#?}");
    report
}

fn salvaged(store: &Store, to: &Path) -> SalvageReport {
    let report = salvage(store.path(), to, &mut |_| {}).expect("a report");
    sound(to);
    report
}

/// The revision from which on a watch gets everything.
fn watch_floor(engine: &EmbeddedEngine) -> Revision {
    let query = WatchQuery { start: WatchStart::Revision(Revision::new(1)), ..WatchQuery::default() };
    let Err(EngineError::Compacted { oldest }) = block_on(engine.watch(&bucket("b"), query)) else {
        unreachable!("what the watch should begin with is gone");
    };
    oldest
}

#[test]
fn a_cleaned_store_is_sound_and_its_index_can_be_built_anew() {
    let store = cleaned_store();
    let before = everything(&store.open());
    let report = sound(&store.path());
    let IndexReport::Checked(check) = &report.index else { panic!("{:?}", report.index) };
    assert!(check.heads > 40, "{check:?}");
    rebuild(store.path(), RebuildOptions { discard_old: true }, &mut |_| {}).expect("a rebuild");
    let report = sound(&store.path());
    let IndexReport::Checked(check) = &report.index else { panic!("{:?}", report.index) };
    assert_eq!(check.heads, 48, "forty steady keys, seven that changed, and one more: {check:?}");
    assert_eq!(everything(&store.open()), before);
}

#[test]
fn salvage_of_a_cleaned_store_keeps_everything_with_its_revisions() {
    let store = cleaned_store();
    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    assert!(report.log.is_sound(), "{report:#?}");
    assert_eq!((report.left_out, &report.guessed_buckets), (0, &Vec::new()));
    let (old, new) = (store.open(), open(&to, &store));
    let found = everything(&new);
    assert_eq!(found, everything(&old), "also where the feed begins");
    assert_eq!(found[0].3.len(), 1, "a consumer");
    assert!(watch_floor(&new).get() > 100);
    assert_eq!(watch_floor(&new), watch_floor(&old));
    let next = put(&new, &bucket("b"), "next", "v");
    assert_eq!(next, report.last.get() + 1, "and it goes on where it was");
    drop(new);
    assert!(watch_floor(&open(&to, &store)) > Revision::new(100), "also after it was opened again");
}

#[test]
fn a_flipped_byte_of_a_cleaned_segment_is_one_damage_and_costs_one_commit() {
    let store = cleaned_store();
    let segment = cleaned_segments(&store).remove(0);
    let whole = std::fs::read(&segment).expect("a segment");
    let records = sound(&store.path()).log.records;
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&segment, &bytes).expect("a damaged segment");
        let log = verify(store.path(), &mut |_| {}).expect("a report").log;
        // Up to seven bytes of padding after each frame carry nothing.
        assert!(log.damage_count <= 1, "byte {at}: {:#?}", log.damages);
        assert!(log.records + 1 >= records, "byte {at}: {} of {records} records", log.records);
        assert!(log.records == records || log.lost().len() == 1, "byte {at}: {:#?}", log.damages);
    }
}

#[test]
fn what_is_salvaged_from_a_damaged_store_tells_watches_from_before_the_loss() {
    let store = cleaned_store();
    let segment = store.segments().pop().expect("a segment");
    let bytes = std::fs::read(&segment).expect("a segment");
    let frames: Vec<usize> =
        (80..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(b"PLfr")).collect();
    let (mut damaged, at) = (bytes, frames[0] + 70);
    damaged[at] ^= 0x10;
    std::fs::write(&segment, damaged).expect("a damaged segment");
    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    let lost: Vec<RevisionRange> = report.log.lost();
    assert_eq!(lost.len(), 1, "{report:#?}");
    let engine = open(&to, &store);
    assert_eq!(watch_floor(&engine), lost[0].last.next());
    assert_eq!(Some(put(&engine, &bucket("b"), "next", "v")), report.last.get().checked_add(1));
}

#[test]
fn a_cleaned_segment_without_its_footer_is_salvaged_with_a_feed_that_begins_after_it() {
    let store = cleaned_store();
    let segment = cleaned_segments(&store).remove(0);
    let bytes = std::fs::read(&segment).expect("a segment");
    std::fs::write(&segment, &bytes[..bytes.len() - 1]).expect("a damaged segment");
    let before = store.try_open().expect_err("it has lost its end");
    assert!(matches!(before, EngineError::Corrupt { .. }), "{before}");
    let following = store.segments().into_iter().find(|path| *path > segment).expect("another segment");
    let following: u64 =
        following.file_name().expect("a name").to_string_lossy()[..20].parse().expect("a number");
    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    assert!(report.log.lost().is_empty(), "{report:#?}");
    assert!(watch_floor(&open(&to, &store)).get() >= following);
}

#[test]
fn a_store_of_the_first_format_is_verified_rebuilt_and_salvaged() {
    let store = formats::open_copy(1, true);
    let report = verify(store.path(), &mut |_| {}).expect("a report");
    assert!(report.log.is_sound(), "{report:#?}");
    let to = store.directory.path().join("new");
    let salvaged = salvaged(&store, &to);
    assert_eq!((salvaged.left_out, salvaged.log.records), (0, salvaged.records));
    assert_eq!(Some(salvaged.last), report.log.revisions.map(|revisions| revisions.last));
    block_on(formats::check(&open(&to, &store))).expect("everything");
    let rebuilt = rebuild(store.path(), RebuildOptions::default(), &mut |_| {}).expect("a rebuild");
    assert_eq!(rebuilt.applied, salvaged.last);
    sound(&store.path());
    let engine = store.open();
    block_on(formats::check(&engine)).expect("everything");
    assert_eq!(everything(&engine), everything(&open(&to, &store)));
}
