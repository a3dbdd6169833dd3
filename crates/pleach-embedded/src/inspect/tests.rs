use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{Batch, BucketConfig, BucketName, Engine as _, Headers, Key, Revision, Timestamp};
use pollster::block_on;

use super::*;
use crate::EmbeddedEngine;
use crate::index::{Head, Index as _, IndexChange, IndexKey, LsmIndex, ReadAt};
use crate::log::{BucketId, FrameKind, Log, LogWriter, Payload, Record, RecordKind, Tail};

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
    let index = LsmIndex::open(&path.join("index"), 1024 * 1024).unwrap();
    let head =
        |number| Head::decode(index.get(&index_key(&key(number)), ReadAt::Newest).unwrap().unwrap()).unwrap();
    let applied = Revision::new(1 + 2 * KEYS);
    index.write(applied.next(), changes(&head));
    index.seal();
    index.flush(applied.next()).unwrap();
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

/// Sound frames that nobody could have written.
#[test]
fn a_commit_to_a_bucket_that_was_never_created_is_found_and_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(EmbeddedEngine::open(&path).unwrap());
    let store = identity::load_or_create(&RealDisk, &path).unwrap();
    let log = Arc::new(Log::open(Arc::new(RealDisk), &path.join("log"), store).unwrap());
    let tail = Tail::recover(&log, &log.last_segment().unwrap(), Revision::ZERO).unwrap();
    let mut writer = LogWriter::after(&log, Some(tail), 1024 * 1024).unwrap();
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
