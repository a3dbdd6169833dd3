use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pleach_embedded::inspect::{
    Damage, IndexReport, Progress, RebuildOptions, RevisionRange, SalvageReport, Step, VerifyReport, rebuild,
    salvage, verify,
};
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    Batch, BucketConfig, BucketInfo, Clock, Compression, Engine, EngineError, Entry, Expiry, Headers, Key,
    Operation, Revision, ScanQuery,
};
use pollster::block_on;

use crate::store::{Store, bucket, contents, create, files, get, key, put};

/// The first frame of a segment comes after its header.
const HEADER_BYTES: usize = 80;

/// The first byte of every frame of a segment.
fn frames(bytes: &[u8]) -> Vec<usize> {
    (HEADER_BYTES..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(b"PLfr")).collect()
}

/// Every file under a directory with its bytes, but for the lock.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in files(directory) {
        if path.is_dir() {
            all.extend(snapshot(&path));
        } else if path.file_name().is_some_and(|name| name != "LOCK") {
            let bytes = std::fs::read(&path).expect("a file");
            all.insert(path, bytes);
        }
    }
    all
}

/// Verifies a store, and that this changes nothing.
fn verified(store: &Store) -> VerifyReport {
    let before = snapshot(&store.path());
    let mut steps: Vec<Progress> = Vec::new();
    let report = verify(store.path(), &mut |progress| steps.push(progress)).expect("a report");
    assert!(snapshot(&store.path()) == before, "something on the disk was changed");
    steps.retain(|at| at.step == Step::ReadLog);
    assert!(steps.is_sorted_by_key(|at| at.done), "progress goes forward");
    assert_eq!(steps.last().map(|at| at.done), steps.last().map(|at| at.total));
    report
}

fn range(first: u64, last: u64) -> RevisionRange {
    RevisionRange { first: Revision::new(first), last: Revision::new(last) }
}

/// A store in one segment: revision 1 creates the bucket, revisions 2 to 11 are puts of `k.0` to `k.9`.
fn ten_puts() -> Store {
    let store = Store::with(Settings { segment_bytes: 1024 * 1024, ..untouched() });
    let engine = store.open();
    let name = create(&engine, 3);
    for at in 0..10 {
        put(&engine, &name, &format!("k.{at}"), format!("value {at}").repeat(9));
    }
    drop(engine);
    store
}

/// Settings under which the log holds what a test has written, and nothing else.
fn untouched() -> Settings {
    Settings { clean: false, ..crate::store::small() }
}

/// A store of several segments whose index was written out.
fn large() -> Store {
    let store = Store::with(untouched());
    let engine = store.open();
    let name = create(&engine, 2);
    for at in 0..600 {
        put(&engine, &name, &format!("k.{}", at % 400), format!("value {at} ").repeat(10));
    }
    drop(engine);
    assert!(store.segments().len() > 3);
    assert!(store.path().join("index").join("MANIFEST").exists());
    store
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).expect("a damaged file");
}

fn only(report: &VerifyReport) -> &Damage {
    assert_eq!((report.log.damages.len(), report.log.damage_count), (1, 1), "{:#?}", report.log.damages);
    &report.log.damages[0]
}

#[test]
fn a_sound_store_is_said_to_be_sound_with_its_totals() {
    let store = ten_puts();
    let report = verified(&store);
    assert!(report.is_sound(), "{report:#?}");
    let log = &report.log;
    assert_eq!((log.segments, log.records, log.buckets, log.live_entries), (1, 11, 1, Some(10)));
    assert_eq!(log.frames, 12, "eleven commits and a mark");
    assert_eq!(log.revisions, Some(range(1, 11)));
    assert_eq!(log.torn_tail, None);
    assert!(log.lost().is_empty());
    assert_eq!(report.index, IndexReport::Absent, "nothing of it was written out yet");
}

#[test]
fn the_index_is_compared_with_the_log() {
    let store = large();
    let report = verified(&store);
    assert!(report.is_sound(), "{report:#?}");
    assert_eq!(report.log.live_entries, Some(400));
    let IndexReport::Checked(check) = report.index else { panic!("{:?}", report.index) };
    assert!(check.heads > 100 && check.applied.get() > 100, "{check:?}");
}

#[test]
fn a_flipped_byte_of_a_value_is_found_with_its_place_bucket_and_key() {
    let store = ten_puts();
    let segment = store.segments().remove(0);
    let starts = frames(&std::fs::read(&segment).expect("the segment"));
    // The fifth frame is the put of k.3 at revision 5; 80 bytes after its beginning is its value.
    flip(&segment, starts[4] + 80);
    let report = verified(&store);
    let damage = only(&report);
    assert_eq!((&damage.path, damage.offset), (&segment, starts[4] as u64));
    assert_eq!(damage.length, Some((starts[5] - starts[4]) as u64));
    assert_eq!((damage.lost, damage.commits), (Some(range(5, 5)), Some(1)));
    assert_eq!(damage.bucket, Some(bucket("b")));
    assert_eq!(damage.keys.iter().map(|lost| lost.key.as_str()).collect::<Vec<_>>(), ["k.3"]);
    assert!(!damage.keys[0].sound);
    assert_eq!(report.log.lost(), [range(5, 5)]);
    assert_eq!(report.log.records, 10);
    assert_eq!(report.log.live_entries, Some(9));
}

#[test]
fn after_damaged_headers_the_next_sound_commit_tells_what_is_missing() {
    let store = ten_puts();
    let segment = store.segments().remove(0);
    let starts = frames(&std::fs::read(&segment).expect("the segment"));
    flip(&segment, starts[4] + 20);
    flip(&segment, starts[5] + 20);
    let report = verified(&store);
    let damage = only(&report);
    assert_eq!((damage.offset, damage.length), (starts[4] as u64, Some((starts[6] - starts[4]) as u64)));
    assert_eq!(damage.lost, Some(range(5, 6)));
    assert_eq!(damage.keys[0].key, key("k.3"));
    assert!(damage.keys[0].sound, "its record is whole");
}

#[test]
fn a_flipped_bit_anywhere_costs_at_most_its_own_commit() {
    let store = ten_puts();
    let segment = store.segments().remove(0);
    let whole = std::fs::read(&segment).expect("the segment");
    let end = whole.len() - 40;
    let mut found = 0;
    for at in (0..end).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&segment, &bytes).expect("a damaged segment");
        let report = verify(store.path(), &mut |_| {}).expect("a report");
        let lost: u64 = report.log.lost().iter().map(RevisionRange::count).sum();
        assert!(lost <= 1, "byte {at}: {report:#?}");
        assert_eq!(report.log.records + lost, 11, "byte {at}");
        if !report.is_sound() {
            found += 1;
            assert!(report.log.damages[0].offset <= at as u64, "byte {at}: {report:#?}");
        }
    }
    assert!(found > end / 5 * 9 / 10, "only {found} of {} flips were found", end / 5);
}

#[test]
fn a_torn_tail_is_no_damage_and_stays() {
    let store = ten_puts();
    let segment = store.segments().remove(0);
    let bytes = std::fs::read(&segment).expect("the segment");
    let last = frames(&bytes)[10];
    std::fs::write(&segment, &bytes[..last + 60]).expect("a torn segment");
    let report = verified(&store);
    assert!(report.is_sound(), "{report:#?}");
    let torn = report.log.torn_tail.expect("a torn tail");
    assert_eq!((torn.path, torn.offset, torn.bytes), (segment, last as u64, 60));
    assert_eq!(report.log.revisions, Some(range(1, 10)));
}

#[test]
fn a_missing_segment_is_named_with_the_revisions_that_were_in_it() {
    let store = large();
    let segments = store.segments();
    let first = |at: usize| -> u64 {
        segments[at].file_stem().and_then(|name| name.to_str()).expect("a name").parse().expect("a number")
    };
    std::fs::remove_file(&segments[1]).expect("it is removed");
    let report = verified(&store);
    let damage = only(&report);
    assert_eq!((&damage.path, damage.what.as_str()), (&segments[1], "the segment is missing"));
    assert_eq!(damage.lost, Some(range(first(1), first(2) - 1)));
    assert_eq!(report.index, IndexReport::NotChecked);
}

#[test]
fn a_log_that_ends_before_the_index_does_is_damaged() {
    let store = large();
    let segments = store.segments();
    for segment in &segments[2..] {
        std::fs::remove_file(segment).expect("it is removed");
    }
    let report = verified(&store);
    let damage = only(&report);
    let lost = damage.lost.expect("the index knows");
    assert_eq!(
        segments[2].file_stem().expect("a name").to_str(),
        Some(&*format!("{:020}", lost.first.get()))
    );
    let error = rebuild(store.path(), RebuildOptions::default(), &mut |_| {}).expect_err("it is damaged");
    assert!(matches!(error, EngineError::Corrupt { .. }), "{error}");
    assert!(!store.path().join("index.set-aside-1").exists(), "the witness stays in its place");
    let to = store.directory.path().join("new");
    assert_eq!(salvaged(&store, &to).last, lost.last, "what the index knows of is not given to others");
    assert_eq!(put(&open(&to, &store), &bucket("b"), "next", "v"), lost.last.get() + 1);
}

#[test]
fn a_damaged_index_is_found_and_rebuild_mends_it() {
    let store = large();
    let before = contents(&store.open(), &bucket("b")).expect("a scan");
    let mut tables = files(&store.path().join("index"));
    tables.retain(|path| path.extension().is_some_and(|extension| extension == "table"));
    let bytes = std::fs::read(&tables[0]).expect("a table");
    flip(&tables[0], bytes.len() / 3);
    let report = verified(&store);
    assert!(report.log.is_sound() && !report.is_sound(), "{report:#?}");

    let mut steps = Vec::new();
    let done = rebuild(store.path(), RebuildOptions::default(), &mut |at| steps.push(at)).expect("a rebuild");
    assert!(steps.iter().any(|at| at.step == Step::BuildIndex && at.done > 0));
    assert_eq!(done.applied.get(), 601);
    assert!(done.set_aside.as_ref().is_some_and(|path| path.exists()), "{done:?}");
    let report = verified(&store);
    assert!(report.is_sound(), "{report:#?}");
    let IndexReport::Checked(check) = report.index else { panic!("{:?}", report.index) };
    assert_eq!((check.applied.get(), check.heads), (601, 400));
    assert_eq!(contents(&store.open(), &bucket("b")).expect("a scan"), before);

    let options = RebuildOptions { discard_old: true };
    assert_eq!(rebuild(store.path(), options, &mut |_| {}).expect("a rebuild").set_aside, None);
    assert!(!store.path().join("index.set-aside-2").exists());
    assert!(verified(&store).is_sound());
}

/// An index that is sound by its checksums, and says something else than the log.
#[test]
fn an_index_of_another_past_is_found() {
    let store = large();
    let old = store.directory.path().join("old");
    crate::store::copy(&store.path(), &old);
    let engine = store.open();
    block_on(engine.update_bucket(&bucket("b"), BucketConfig::default())).expect("an update");
    put(&engine, &bucket("b"), "k.1", "another value");
    drop(engine);
    rebuild(store.path(), RebuildOptions { discard_old: true }, &mut |_| {}).expect("a rebuild");

    // The index of now over the log of then knows what is not there.
    std::fs::remove_dir_all(old.join("index")).expect("it is removed");
    crate::store::copy(&store.path().join("index"), &old.join("index"));
    let report = verify(&old, &mut |_| {}).expect("a report");
    assert!(!report.log.is_sound(), "{report:#?}");
}

/// Every record of every key.
fn history(engine: &dyn Engine, info: &BucketInfo, keys: &[Key]) -> Vec<Entry> {
    let history = |key| block_on(engine.history(&info.name, key)).expect("a history");
    keys.iter().flat_map(history).collect()
}

fn salvaged(store: &Store, to: &Path) -> SalvageReport {
    let before = snapshot(&store.path());
    let report = salvage(store.path(), to, &mut |_| {}).expect("a report");
    assert!(snapshot(&store.path()) == before, "the old store was changed");
    report
}

fn open(path: &Path, store: &Store) -> EmbeddedEngine {
    let clock = std::sync::Arc::clone(&store.clock) as std::sync::Arc<dyn Clock>;
    EmbeddedEngine::open_with(path, Settings { create: false, ..store.settings.clone() }, clock)
        .expect("it opens")
}

#[test]
fn salvage_of_a_sound_store_keeps_contents_history_and_buckets() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 4);
    let gone = bucket("gone");
    block_on(engine.create_bucket(&gone, BucketConfig::default())).expect("a bucket");
    put(&engine, &gone, "k", "v");
    block_on(engine.delete_bucket(&gone)).expect("it is deleted");
    let packed = BucketConfig {
        compression: Compression::Lz4,
        ttl: Some(Duration::from_hours(1)),
        ..BucketConfig::default()
    };
    block_on(engine.create_bucket(&gone, packed)).expect("a bucket of the same name");
    put(&engine, &gone, "k", "again ".repeat(500));
    let mut headers = Headers::new();
    headers.set("Trace-Id", "7").expect("a header");
    let late = store.clock.now().saturating_add(Duration::from_secs(90));
    for at in 0..40 {
        let put = Operation::put(key(&format!("k.{}", at % 7)), format!("value {at}").repeat(at));
        let put = put.with_headers(headers.clone()).expiring(Expiry::At(late));
        let batch = Batch::from(put).put(key("last"), at.to_string());
        block_on(engine.commit(&name, batch)).expect("a commit");
    }
    block_on(engine.commit(&name, Batch::new().delete(key("k.1")).purge(key("k.2")))).expect("a commit");
    block_on(engine.compact_key(&name, &key("last"), 2.try_into().expect("not zero"))).expect("compacted");
    drop(engine);

    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    assert!(report.log.is_sound() && report.guessed_buckets.is_empty(), "{report:#?}");
    assert_eq!(
        (report.left_out, Some(report.last)),
        (0, report.log.revisions.map(|revisions| revisions.last))
    );
    assert!(verify(&to, &mut |_| {}).expect("a report").is_sound());
    let (old, new) = (store.open(), open(&to, &store));
    let infos = block_on(old.buckets()).expect("the buckets");
    assert_eq!(infos.len(), 2);
    for (info, other) in infos.iter().zip(block_on(new.buckets()).expect("the buckets")) {
        assert_eq!((&info.name, &info.config, info.created), (&other.name, &other.config, other.created));
        let found = contents(&old, &info.name).expect("a scan");
        assert!(!found.is_empty());
        assert_eq!(found, contents(&new, &info.name).expect("a scan"));
    }
    let keys: Vec<Key> = (0..7).map(|at| key(&format!("k.{at}"))).chain([key("last")]).collect();
    assert_eq!(history(&old, &infos[0], &keys), history(&new, &infos[0], &keys));
    put(&new, &name, "k.9", "goes on");
}

#[test]
fn salvage_of_a_damaged_store_keeps_everything_else_and_lists_what_is_lost() {
    let store = large();
    let segment = store.segments().remove(1);
    let starts = frames(&std::fs::read(&segment).expect("a segment"));
    flip(&segment, starts[3] + 80);
    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    assert_eq!(report.log.damages.len(), 1);
    let lost = &report.log.damages[0];
    let revision = lost.lost.expect("it is known").first.get();
    assert_eq!(report.log.lost(), [range(revision, revision)]);
    // Revision 1 made the bucket, and revision 2 is the first of 600 puts to 400 keys.
    assert_eq!(lost.keys[0].key, key(&format!("k.{}", (revision - 2) % 400)));
    assert_eq!((report.commits, report.last.get()), (600, 601));
    let new = open(&to, &store);
    let name = bucket("b");
    let mut kept = 0;
    for at in 0..400 {
        let newest = (0..600).filter(|put| put % 400 == at && put + 2 != revision).max();
        let expected = newest.map(|put| format!("value {put} ").repeat(10));
        assert_eq!(get(&new, &name, &format!("k.{at}")), expected);
        kept += u64::from(expected.is_some());
    }
    assert!(kept >= 399);
    for (at, entry) in contents(&new, &name).expect("a scan") {
        let put: u64 = at[2..].parse().expect("a number");
        let revision = entry.revision.get() - 2;
        assert_eq!(revision % 400, put, "revisions stay as they were");
    }
    assert!(block_on(new.scan(&name, ScanQuery { limit: 10, ..ScanQuery::default() })).is_ok());
}

/// Whatever happens to the log, both tools come to an end, and what is salvaged is a sound store.
#[test]
fn a_log_that_was_mangled_at_random_is_salvaged_into_a_sound_store() {
    let store = large();
    let whole: Vec<(PathBuf, Vec<u8>)> = store
        .segments()
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).expect("a segment")))
        .collect();
    // A linear congruential generator, so that every run does the same.
    let mut state = 7_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("small") % limit
    };
    for round in 0..40 {
        for (path, bytes) in &whole {
            std::fs::write(path, bytes).expect("a segment");
        }
        for _ in 0..=below(4) {
            let (path, bytes) = &whole[below(whole.len())];
            let (mut bytes, at, other) = (bytes.clone(), below(bytes.len()), below(bytes.len()));
            let len = below(300).min(bytes.len() - at.max(other));
            match below(4) {
                0 => bytes[at..at + len].fill(0),
                1 => bytes.truncate(at),
                2 => bytes.copy_within(other..other + len, at),
                _ => bytes[at..at + len].reverse(),
            }
            std::fs::write(path, bytes).expect("a mangled segment");
        }
        let to = store.directory.path().join(format!("new-{round}"));
        let report = salvage(store.path(), &to, &mut |_| {}).expect("a report");
        let new = verify(&to, &mut |_| {}).expect("a report");
        assert!(new.is_sound(), "round {round}: {new:#?}");
        assert!(new.log.records >= report.records && new.log.records <= report.records + 2, "round {round}");
        let lost: u64 = report.log.lost().iter().map(RevisionRange::count).sum();
        assert!(report.log.records + lost <= 601, "round {round}: {report:#?}");
        let (last, bytes) = whole.last().expect("a segment");
        if std::fs::read(last).expect("a segment") == *bytes {
            assert_eq!(report.log.records + lost, 601, "round {round}: {report:#?}");
        }
    }
}

#[test]
fn a_bucket_whose_creation_is_lost_is_salvaged_under_a_name_that_says_so() {
    let store = ten_puts();
    let segment = store.segments().remove(0);
    flip(&segment, HEADER_BYTES + 70);
    let to = store.directory.path().join("new");
    let report = salvaged(&store, &to);
    assert_eq!(report.log.lost(), [range(1, 1)]);
    assert_eq!(report.guessed_buckets, [bucket("salvaged-1")]);
    assert_eq!(contents(&open(&to, &store), &bucket("salvaged-1")).expect("a scan").len(), 10);
}

#[test]
fn what_says_which_store_it_is_may_be_damaged() {
    let store = ten_puts();
    std::fs::write(store.path().join("STORE"), "{").expect("a damaged file");
    let report = verified(&store);
    assert_eq!(only(&report).path, store.path().join("STORE"));
    assert_eq!(report.log.records, 11);
    let to = store.directory.path().join("new");
    assert_eq!(salvaged(&store, &to).records, 11);
    assert_eq!(contents(&open(&to, &store), &bucket("b")).expect("a scan").len(), 10);
}

#[test]
fn nothing_is_salvaged_over_something_else() {
    let store = ten_puts();
    let full = store.directory.path().join("full");
    std::fs::create_dir(&full).expect("a directory");
    std::fs::write(full.join("file"), "mine").expect("a file");
    for to in [full.clone(), store.path(), store.path().join("inside")] {
        let error = salvage(store.path(), &to, &mut |_| {}).expect_err("it is refused");
        assert!(matches!(error, EngineError::Io { action: "create", .. }), "{error}");
    }
    assert_eq!(files(&full).len(), 1);
    let empty = store.directory.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    assert_eq!(salvaged(&store, &empty).records, 11);
}

#[test]
fn a_store_in_use_and_what_is_no_store_are_refused() {
    let store = ten_puts();
    let to = store.directory.path().join("new");
    let engine = store.open();
    let errors = [
        verify(store.path(), &mut |_| {}).map(drop),
        rebuild(store.path(), RebuildOptions::default(), &mut |_| {}).map(drop),
        salvage(store.path(), &to, &mut |_| {}).map(drop),
    ];
    for error in errors {
        assert!(matches!(error, Err(EngineError::Locked { .. })), "{error:?}");
    }
    drop(engine);
    for path in [store.directory.path().to_owned(), store.directory.path().join("nothing")] {
        let error = verify(&path, &mut |_| {}).expect_err("it is no store");
        assert!(matches!(error, EngineError::NotAStore { .. }), "{error}");
    }
    assert!(!to.exists() && !store.directory.path().join("nothing").exists());
}
