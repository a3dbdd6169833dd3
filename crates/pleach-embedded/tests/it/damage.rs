use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pleach_embedded::EmbeddedEngine;
use pleach_engine::{At, Clock, Engine, EngineError, Entry, ErrorKind};
use pollster::block_on;

use crate::store::{Store, bucket, contents, copy, create, get, key, put, small};

/// The first frame of a segment comes after its header.
const HEADER_BYTES: usize = 80;

/// The frame that says a store was closed is a header without records.
const MARK_BYTES: usize = 40;

type Contents = BTreeMap<String, Entry>;

/// A store with a few commits in one segment, closed, and what it held after each commit.
fn small_store() -> (Store, Vec<Contents>) {
    let mut settings = small();
    settings.segment_bytes = 1024 * 1024;
    let store = Store::with(settings);
    let engine = store.open();
    let name = create(&engine, 2);
    let mut states = vec![Contents::new()];
    for at in 0..8_usize {
        put(&engine, &name, &format!("k.{}", at % 5), format!("value {at} ").repeat(at * 12));
        states.push(contents(&engine, &name).expect("a scan"));
    }
    drop(engine);
    (store, states)
}

/// Opens a copy of `store` whose only segment holds `bytes`, and reads everything.
fn open_with(store: &Store, bytes: &[u8]) -> (Result<Contents, EngineError>, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    copy(&store.path(), &path);
    let segment = path.join("log").join(store.segments()[0].file_name().expect("a name"));
    std::fs::write(&segment, bytes).expect("a damaged segment");
    let result = read_and_write(&path, store);
    (result, std::fs::read(&segment).expect("the segment"))
}

fn read_and_write(path: &Path, store: &Store) -> Result<Contents, EngineError> {
    let open = || {
        EmbeddedEngine::open_with(path, store.settings.clone(), Arc::clone(&store.clock) as Arc<dyn Clock>)
    };
    let engine = open()?;
    let name = bucket("b");
    let before = match contents(&engine, &name) {
        // Nothing is left of the log, not even the bucket.
        Err(EngineError::BucketNotFound { .. }) => return Ok(Contents::new()),
        before => before?,
    };
    for at in before.keys() {
        block_on(engine.history(&name, &key(at)))?;
    }
    put(&engine, &name, "later", "written after the damage");
    drop(engine);
    let mut after = contents(&open()?, &name)?;
    assert!(after.remove("later").is_some(), "what is written after a recovery stays");
    assert_eq!(after, before);
    Ok(before)
}

#[test]
fn a_log_that_was_cut_anywhere_opens_with_the_commits_before_the_cut() {
    let (store, states) = small_store();
    let bytes = std::fs::read(&store.segments()[0]).expect("the segment");
    let whole = &bytes[..bytes.len() - MARK_BYTES];
    let mut longest = 0;
    for cut in HEADER_BYTES..=whole.len() {
        let (found, _) = open_with(&store, &whole[..cut]);
        let found = found.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let state = states.iter().position(|state| *state == found);
        let state = state.unwrap_or_else(|| panic!("cut at {cut}: no state the store ever had"));
        assert!(state >= longest, "cut at {cut}: fewer commits than with a shorter log");
        longest = state;
    }
    assert_eq!(longest, states.len() - 1);
}

#[test]
fn a_flipped_bit_is_reported_or_harmless_and_nothing_is_cut_off() {
    let (store, states) = small_store();
    let bytes = std::fs::read(&store.segments()[0]).expect("the segment");
    let whole = states.last().expect("a state");
    let mut reported = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let (found, after) = open_with(&store, &damaged);
        match found {
            Ok(found) => assert_eq!(found, *whole, "byte {at}: a wrong value"),
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported), "byte {at}: {error}");
                assert_eq!(after, damaged, "byte {at}: the file was changed");
                reported += 1;
            }
        }
    }
    // All but the padding, the unused bytes of the header and the mark at the end are under a checksum.
    assert!(reported > bytes.len() * 9 / 10, "only {reported} of {} flips were noticed", bytes.len());
}

#[test]
fn damage_in_the_middle_is_reported_with_its_position() {
    let (store, _) = small_store();
    let bytes = std::fs::read(&store.segments()[0]).expect("the segment");
    let frames: Vec<usize> =
        (HEADER_BYTES..bytes.len()).filter(|at| bytes[*at..].starts_with(b"PLfr")).collect();
    let (third, fourth) = (frames[2], frames[3]);
    let mut damaged = bytes;
    damaged[third + 50] ^= 4;
    let (found, _) = open_with(&store, &damaged);
    let Err(EngineError::Corrupt { path, offset, .. }) = found else { panic!("{found:?}") };
    assert_eq!(path.file_name(), store.segments()[0].file_name());
    assert_eq!(offset, third as u64);
    assert!(offset < fourth as u64);
}

#[test]
fn what_a_torn_write_left_behind_is_kept_beside_the_log() {
    let (store, states) = small_store();
    let segment = store.segments().remove(0);
    let bytes = std::fs::read(&segment).expect("the segment");
    let torn = bytes.len() - MARK_BYTES - 20;
    std::fs::write(&segment, &bytes[..torn]).expect("a torn segment");
    let engine = store.open();
    assert_eq!(contents(&engine, &bucket("b")).expect("a scan"), states[states.len() - 2]);
    let kept: Vec<_> = crate::store::files(&store.path().join("log"))
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".cut-"))
        .collect();
    assert_eq!(kept.len(), 1);
    let rest = std::fs::read(&kept[0]).expect("the rest");
    assert!(bytes[..torn].ends_with(&rest));
}

#[test]
fn a_missing_or_shortened_segment_is_named() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..100 {
        put(&engine, &name, &format!("k.{at}"), "v".repeat(200));
    }
    drop(engine);
    let segments = store.segments();
    assert!(segments.len() > 3);
    let second = std::fs::read(&segments[1]).expect("a segment");

    std::fs::write(&segments[1], &second[..second.len() - 1]).expect("a shortened segment");
    let error = store.try_open().expect_err("it is shortened");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains(&*segments[1].file_name().expect("a name").to_string_lossy()),
        "{error}"
    );

    std::fs::remove_file(&segments[1]).expect("it is removed");
    let error = store.try_open().expect_err("it is missing");
    assert!(error.to_string().contains("is missing") || error.to_string().contains("damaged"), "{error}");

    std::fs::write(&segments[1], &second).expect("it is back");
    assert_eq!(contents(&store.open(), &name).expect("a scan").len(), 100);
}

#[test]
fn a_damaged_value_is_never_served_and_spoils_no_other() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..100 {
        put(&engine, &name, &format!("k.{at}"), format!("value {at} ").repeat(200));
    }
    drop(engine);
    let segment = &store.segments()[1];
    let mut bytes = std::fs::read(segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(segment, bytes).expect("a damaged segment");
    // The index knows all of it, so the damage is met when the value is read, if not before.
    let engine = match store.try_open() {
        Ok(engine) => engine,
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
    };
    let mut damaged = 0;
    for at in 0..100 {
        match block_on(engine.read(&name, &key(&format!("k.{at}")), At::Latest)) {
            Ok(entry) => assert_eq!(entry.expect("it is there").value, format!("value {at} ").repeat(200)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    put(&engine, &name, "k.0", "new");
    assert_eq!(get(&engine, &name, "k.0"), Some("new".into()));
}

#[test]
fn a_log_shorter_than_the_index_is_reported() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..300 {
        put(&engine, &name, &format!("k.{at}"), "v".repeat(400));
    }
    drop(engine);
    let segments = store.segments();
    for segment in &segments[2..] {
        std::fs::remove_file(segment).expect("it is removed");
    }
    let error = store.try_open().expect_err("commits are missing");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// A flipped bit in the list of the index's files made keys disappear without a word.
#[test]
fn a_damaged_index_is_never_believed() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 2);
    for at in 0..600 {
        put(&engine, &name, &format!("k.{at}"), format!("value {at} ").repeat(10));
    }
    let whole = contents(&engine, &name).expect("a scan");
    drop(engine);
    let index = store.path().join("index");
    let files = crate::store::files(&index);
    assert!(files.len() > 1, "the index was flushed: {files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("a file of the index");
        for at in (0..bytes.len()).step_by((bytes.len() / 12).max(1)) {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("store");
            copy(&store.path(), &path);
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let place = path.join(file.strip_prefix(store.path()).expect("inside the store"));
            std::fs::write(place, damaged).expect("a damaged file");
            check_damaged_index(&path, &store, &whole);
        }
    }
}

/// What is there is whole, or damage is reported and the next open mends it.
fn check_damaged_index(path: &Path, store: &Store, whole: &Contents) {
    let clock = || Arc::clone(&store.clock) as Arc<dyn Clock>;
    let open = || EmbeddedEngine::open_with(path, store.settings.clone(), clock()).expect("the log is sound");
    let found = contents(&open(), &bucket("b"));
    match found {
        Ok(found) => assert!(found == *whole, "{} of {} keys were there", found.len(), whole.len()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let found = contents(&open(), &bucket("b")).expect("the index was built anew");
            assert!(found == *whole, "{} of {} keys were there", found.len(), whole.len());
        }
    }
}
