use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{
    Batch, BucketConfig, BucketName, ConsumerName, ConsumerStart, Engine as _, Headers, Key, Revision,
    SystemClock, Timestamp,
};
use pollster::block_on;

use super::*;
use crate::disk::RealDisk;
use crate::index::{Head, Index as _, IndexChange, IndexKey, LsmIndex, ReadAt};
use crate::log::tests::cleaned;
use crate::log::{BucketId, FrameKind, Log, LogWriter, Payload, Record, RecordKind, Tail};
use crate::{EmbeddedEngine, Settings};

const KEYS: u64 = 8;

/// A closed store with two records of each of eight keys, all of which are in its flushed index.
fn indexed_store(path: &Path) {
    let engine = EmbeddedEngine::open(path).unwrap();
    let name = BucketName::parse("b").unwrap();
    let config = BucketConfig { history: 2.try_into().unwrap(), ..BucketConfig::default() };
    block_on(engine.create_bucket(&name, config)).unwrap();
    for round in 0..2 {
        for at in 0..KEYS {
            let batch = Batch::new().put(key(at), format!("value {round}"));
            block_on(engine.commit(&name, batch)).unwrap();
        }
    }
    drop(engine);
    rebuild(path, RebuildOptions { discard_old: true }, &mut |_| {}).unwrap();
}

fn key(number: u64) -> Key {
    Key::parse(format!("k.{number}")).unwrap()
}

fn index_key(key: &Key) -> Bytes {
    IndexKey::head(BucketId(1), key.as_bytes())
}

/// Changes the index behind the log's back.
fn tamper(path: &Path, changes: impl FnOnce(&dyn Fn(u64) -> Head) -> Vec<IndexChange>) -> IndexCheck {
    let index = LsmIndex::open(Arc::new(RealDisk), &path.join("index"), 1024 * 1024).unwrap();
    let head = |number| {
        Head::decode(&index.get(&index_key(&key(number)), ReadAt::Newest).unwrap().unwrap()).unwrap()
    };
    let later = Revision::new(1000);
    index.write(later, changes(&head));
    index.seal();
    index.flush(usize::MAX, later).unwrap();
    drop(index);
    let report = verify(path, &mut |_| {}).unwrap();
    assert!(report.log.is_sound());
    match report.index {
        IndexReport::Checked(check) => check,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_index_that_says_something_else_than_the_log_is_found_key_by_key() {
    let directory = tempfile::tempdir().unwrap();
    indexed_store(directory.path());
    let check = tamper(directory.path(), |head| {
        let stale = Head { revision: Revision::new(1), past: Vec::new(), ..head(1) };
        let mut misplaced = head(2);
        misplaced.position.offset += 8;
        let mut other_value = head(3);
        other_value.payload.value = "forged".into();
        let mut lost_past = head(4);
        lost_past.past[0].position.offset += 8;
        let invented = Head { revision: Revision::new(3), ..head(5) };
        vec![
            IndexChange::Remove(index_key(&key(0))),
            IndexChange::Insert(index_key(&key(1)), stale.encode()),
            IndexChange::Insert(index_key(&key(2)), misplaced.encode()),
            IndexChange::Insert(index_key(&key(3)), other_value.encode()),
            IndexChange::Insert(index_key(&key(4)), lost_past.encode()),
            IndexChange::Insert(index_key(&Key::parse("invented").unwrap()), invented.encode()),
        ]
    });
    assert_eq!((check.missing, check.stale, check.buckets_wrong), (1, 1, 0), "{check:#?}");
    assert_eq!((check.heads, check.wrong), (KEYS, 4), "{check:#?}");
    assert_eq!(check.examples.len(), 6);
}

#[test]
fn a_bucket_that_the_log_does_not_have_is_found_in_the_index() {
    let directory = tempfile::tempdir().unwrap();
    indexed_store(directory.path());
    let check = tamper(directory.path(), |_| {
        let name = BucketName::parse("invented").unwrap();
        let (revision, time) = (Revision::new(1), Timestamp::default());
        let bucket = crate::catalog::Bucket::new(BucketId(7), name, BucketConfig::default(), revision, time);
        vec![IndexChange::Insert(IndexKey::bucket(&bucket.name), bucket.encode().unwrap())]
    });
    assert_eq!(check.buckets_wrong, 1);
    assert_eq!(check.missing + check.stale + check.wrong, 0);
}

/// A forgotten key has records in the log until that is cleaned, and no head in the index.
#[test]
fn a_key_that_was_forgotten_is_not_missing_in_the_index_and_any_other_is() {
    let directory = tempfile::tempdir().unwrap();
    indexed_store(directory.path());
    let mut writer = writer_of(directory.path());
    let forget = Payload::plain(Headers::new(), Bytes::from_static(&[0]));
    for (kind, payload) in [(RecordKind::Delete, Payload::default()), (RecordKind::Compact, forget)] {
        let (revision, time) = (writer.last().next(), Timestamp::from_micros(u64::MAX / 2));
        let (key, expires, index, faded) = (key(0), None, 0, false);
        let record = Record { kind, key, revision, time, expires, payload, index, faded };
        writer.append(FrameKind::Commit, BucketId(1), &[record]);
    }
    writer.write(true).unwrap();
    writer.close().unwrap();
    drop(writer);
    rebuild(directory.path(), RebuildOptions { discard_old: true }, &mut |_| {}).unwrap();
    let report = verify(directory.path(), &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    let IndexReport::Checked(check) = report.index else { panic!("{:?}", report.index) };
    assert_eq!(check.heads, KEYS - 1);
    let check = tamper(directory.path(), |_| vec![IndexChange::Remove(index_key(&key(1)))]);
    assert_eq!((check.missing, check.heads), (1, KEYS - 2), "{check:#?}");
}

/// A writer that goes on with the log of a closed store.
fn writer_of(path: &Path) -> LogWriter {
    let store = identity::load_or_create(&RealDisk, path).unwrap();
    let log = Arc::new(Log::open(Arc::new(RealDisk), &path.join("log"), store).unwrap());
    let tail = Tail::recover(&log, &log.last_segment().unwrap(), Revision::ZERO).unwrap();
    LogWriter::after(&log, Some(tail), 1024 * 1024).unwrap()
}

/// Sound frames that nobody could have written.
#[test]
fn a_commit_to_a_bucket_that_was_never_created_is_found_and_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(EmbeddedEngine::open(&path).unwrap());
    let mut writer = writer_of(&path);
    let (kind, payload) = (RecordKind::Put, Payload::plain(Headers::new(), "v".into()));
    let (revision, time) = (Revision::new(2), Timestamp::from_micros(1));
    writer.append(FrameKind::Upkeep, BucketId(0), &[]);
    writer.append(
        FrameKind::Commit,
        BucketId(9),
        &[Record { kind, key: key(1), revision, time, expires: None, payload, index: 0, faded: false }],
    );
    writer.write(true).unwrap();
    writer.close().unwrap();
    let log = verify(&path, &mut |_| {}).unwrap().log;
    assert_eq!((log.damages.len(), log.records), (1, 1), "{log:#?}");
    assert!(log.damages[0].what.contains("bucket number 9"), "{log:#?}");
    let report = salvage(&path, directory.path().join("new"), &mut |_| {}).unwrap();
    assert_eq!(report.guessed_buckets, [BucketName::parse("salvaged-9").unwrap()]);
    assert!(verify(directory.path().join("new"), &mut |_| {}).unwrap().is_sound());
}

#[test]
fn an_index_that_could_not_be_built_leaves_the_old_one_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let (index, old) = (directory.path().join("index"), directory.path().join("index.set-aside-1"));
    for (path, name) in [(&index, "half"), (&old, "whole")] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join(name), "").unwrap();
    }
    rebuild::put_back(directory.path(), &index, &old);
    assert!(index.join("whole").exists() && !index.join("half").exists() && !old.exists());
}

#[test]
fn a_segment_whose_header_is_damaged_is_read_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    indexed_store(directory.path());
    let path = directory.path().join("log").join(crate::log::SegmentId::new(Revision::new(1)).file_name());
    let whole = std::fs::read(&path).unwrap();
    for at in 0..80 {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        std::fs::write(&path, bytes).unwrap();
        let log = verify(directory.path(), &mut |_| {}).unwrap().log;
        assert!(!log.is_sound(), "byte {at}: {log:#?}");
        assert_eq!((log.records, log.lost()), (1 + 2 * KEYS, Vec::new()), "byte {at}");
    }
}

/// A closed store of several segments with an index, and its log. A consumer of the bucket stands at its end.
fn store_of_segments(path: &Path) -> Log {
    let settings = Settings { segment_bytes: 1024, clean: false, ..Settings::default() };
    let engine = EmbeddedEngine::open_with(path, settings, Arc::new(SystemClock::new())).unwrap();
    let name = BucketName::parse("b").unwrap();
    let config = BucketConfig { history: 2.try_into().unwrap(), ..BucketConfig::default() };
    block_on(engine.create_bucket(&name, config)).unwrap();
    for at in 0..80 {
        block_on(engine.commit(&name, Batch::new().put(key(at), format!("value {at}")))).unwrap();
    }
    let consumer = ConsumerName::parse("reader").unwrap();
    block_on(engine.create_consumer(&name, &consumer, ConsumerStart::Now)).unwrap();
    drop(engine);
    rebuild(path, RebuildOptions { discard_old: true }, &mut |_| {}).unwrap();
    let store = identity::load_or_create(&RealDisk, path).unwrap();
    let log = Log::open(Arc::new(RealDisk), &path.join("log"), store).unwrap();
    assert!(log.segments().len() > 4);
    log
}

/// The machine stopped after a segment was cleaned and before the index was pointed to it.
#[test]
fn segments_that_were_replaced_and_not_yet_removed_are_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let log = store_of_segments(&path);
    let run = log.segments()[1..3].to_vec();
    let before = verify(&path, &mut |_| {}).unwrap();
    let new = cleaned(&log, &run, |_| true);
    let report = verify(&path, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    assert_eq!((report.index, report.log.records), (before.index, before.log.records));
    let salvaged = salvage(&path, directory.path().join("new"), &mut |_| {}).unwrap();
    assert_eq!((salvaged.records, salvaged.left_out), (before.log.records, 0));
    assert!(verify(directory.path().join("new"), &mut |_| {}).unwrap().is_sound());
    assert!(run.iter().all(|segment| segment.path.exists()) && new.path.exists(), "nothing is removed");

    // The index still points to the old ones; what is gone is looked for by its revision.
    run.iter().for_each(|segment| std::fs::remove_file(&segment.path).unwrap());
    let report = verify(&path, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    // A record that the index points to is nowhere.
    let log = Log::open(Arc::new(RealDisk), &path.join("log"), log.store).unwrap();
    let gone = run[0].first();
    let newer = cleaned(&log, &log.segments()[1..2], |record| record.revision != gone);
    std::fs::remove_file(&new.path).unwrap();
    assert_eq!(newer.id().generation, 2);
    let report = verify(&path, &mut |_| {}).unwrap();
    let IndexReport::Checked(check) = &report.index else { panic!("{:?}", report.index) };
    assert_eq!((report.log.is_sound(), check.wrong, check.examples.len()), (true, 1, 1), "{check:#?}");
    rebuild(&path, RebuildOptions::default(), &mut |_| {}).unwrap();
    assert!(verify(&path, &mut |_| {}).unwrap().is_sound());
}

/// A footer that leaves out a bucket hides its records from whoever reads that bucket alone.
#[test]
fn a_sound_footer_that_is_not_that_of_its_segment_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let log = store_of_segments(directory.path());
    let segment = log.segments().remove(1);
    let footer = segment.footer().unwrap();
    let mut wrong = footer.clone();
    wrong.buckets.get_mut(&BucketId(1)).unwrap().records += 1;
    let at = segment.len() - footer.encode(segment.binding(), 0).len() as u64;
    segment.file.write_at(&wrong.encode(segment.binding(), at), at).unwrap();
    let log = verify(directory.path(), &mut |_| {}).unwrap().log;
    assert_eq!((log.damage_count, &log.damages[0].path), (1, &segment.path), "{log:#?}");
    assert!(log.damages[0].what.contains("footer"), "{log:#?}");
}

#[test]
fn a_consumer_that_the_index_has_elsewhere_is_found() {
    let directory = tempfile::tempdir().unwrap();
    drop(store_of_segments(directory.path()));
    let index = LsmIndex::open(Arc::new(RealDisk), &directory.path().join("index"), 1024 * 1024).unwrap();
    let place = IndexKey::consumer(BucketId(1), "reader");
    let state = index.get(&place, ReadAt::Newest).unwrap().expect("the consumer");
    let mut moved = state.to_vec();
    moved[8] ^= 1;
    let later = Revision::new(1000);
    let other = IndexKey::consumer(BucketId(1), "invented");
    index.write(later, vec![IndexChange::Insert(place, moved.into()), IndexChange::Insert(other, state)]);
    index.seal();
    index.flush(usize::MAX, later).unwrap();
    drop(index);
    let report = verify(directory.path(), &mut |_| {}).unwrap();
    let IndexReport::Checked(check) = &report.index else { panic!("{:?}", report.index) };
    assert_eq!((check.consumers_wrong, report.is_sound()), (2, false), "{check:?}");
}

/// A log of frames about buckets: creations, deletions and commits, some revisions without any.
fn life_of(frames: &[(u64, u32, FrameKind, RecordKind, &str)]) -> lives::Lives {
    let mut lives = lives::Lives::default();
    for (revision, bucket, kind, record, name) in frames {
        let (revision, time) = (Revision::new(*revision), Timestamp::from_micros(*revision));
        let payload = Payload::plain(Headers::new(), Bytes::new());
        let (key, expires, index, faded) = (Key::parse(name).unwrap(), None, 0, false);
        let record = Record { kind: *record, key, revision, time, expires, payload, index, faded };
        let header = crate::log::FrameHeader {
            kind: *kind,
            body_len: 0,
            records: 1,
            first: revision,
            durable: Revision::ZERO,
            bucket: BucketId(*bucket),
            size: 1,
        };
        lives.see(&crate::log::Frame { header, records: vec![(80, record)] });
    }
    lives
}

/// What is written to mend a log, by revision.
fn mended(mend: &mend::Mend) -> Vec<(u64, u32, RecordKind, String)> {
    let record = |(at, (bucket, record)): (&Revision, &(BucketId, Record))| {
        (at.get(), bucket.0, record.kind, record.key.to_string())
    };
    mend.records.iter().map(record).collect()
}

#[test]
fn lost_creations_and_deletions_are_mended_where_revisions_are_missing() {
    use FrameKind::{Bucket, Commit};
    use RecordKind::{CreateBucket, DeleteBucket, Put};
    // Both are lost at the same place: the deletion of the first, and the creation of the second of that name.
    let frames = [(1, 1, Bucket, CreateBucket, "a"), (2, 1, Commit, Put, "k"), (5, 2, Commit, Put, "k")];
    let known =
        mend::Known::from([(BucketId(2), (BucketName::parse("a").unwrap(), BucketConfig::default()))]);
    let mend = mend::Mend::new(life_of(&frames), &known).unwrap();
    assert_eq!(mended(&mend), [(3, 1, DeleteBucket, "a".into()), (4, 2, CreateBucket, "a".into())]);
    assert_eq!(mend.guessed.len(), 1);

    // Without room for the deletion, the older one gets another name.
    let frames =
        [(1, 1, Bucket, CreateBucket, "a"), (2, 1, Commit, Put, "k"), (3, 2, Bucket, CreateBucket, "a")];
    let mend = mend::Mend::new(life_of(&frames), &mend::Known::new()).unwrap();
    assert_eq!(mended(&mend), []);
    assert_eq!(mend.renamed[&BucketId(1)], BucketName::parse("salvaged-1").unwrap());

    // What is left of a bucket that was deleted needs no creation.
    let frames =
        [(4, 1, Commit, Put, "k"), (6, 1, Bucket, DeleteBucket, "a"), (7, 2, Bucket, CreateBucket, "a")];
    let mend = mend::Mend::new(life_of(&frames), &mend::Known::new()).unwrap();
    assert_eq!((mended(&mend), mend.over.len()), (Vec::new(), 1));

    // Each loss has room for one.
    let frames = [(2, 1, Commit, Put, "k"), (4, 2, Commit, Put, "k"), (5, 3, Commit, Put, "k")];
    let mend = mend::Mend::new(life_of(&frames), &mend::Known::new()).unwrap();
    assert_eq!(mended(&mend).iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [1, 3]);
}
