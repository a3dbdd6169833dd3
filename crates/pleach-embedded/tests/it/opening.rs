use std::process::Command;
use std::sync::Arc;

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{Clock, EngineError, ErrorKind};

use crate::store::{Store, create, files, get, put};

#[test]
fn a_store_in_use_names_its_holder() {
    let store = Store::new();
    let _engine = store.open();
    let error = store.try_open().expect_err("it is in use");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
}

#[test]
fn a_directory_of_something_else_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("notes.txt"), "mine").expect("a file");
    let error = EmbeddedEngine::open(directory.path()).expect_err("it is no store");
    assert!(matches!(error, EngineError::NotAStore { .. }), "{error}");
    assert_eq!(files(directory.path()).len(), 1);
}

#[test]
fn a_file_is_no_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    std::fs::write(&path, "text").expect("a file");
    assert!(matches!(EmbeddedEngine::open(&path), Err(EngineError::NotAStore { .. })));
}

#[test]
fn a_missing_store_is_made_only_if_asked_for() {
    let mut store = Store::with(Settings { create: false, ..Settings::default() });
    assert!(matches!(store.try_open(), Err(EngineError::NotAStore { .. })));
    assert!(!store.path().exists());
    store.settings.create = true;
    store.open();
    store.settings.create = false;
    store.open();
}

#[test]
fn an_interrupted_creation_is_taken_up_again() {
    let store = Store::new();
    std::fs::create_dir_all(store.path().join("log")).expect("a directory");
    std::fs::write(store.path().join("LOCK"), "").expect("a file");
    std::fs::write(store.path().join("STORE.tmp"), "{\"for").expect("a file");
    let engine = store.open();
    let name = create(&engine, 1);
    put(&engine, &name, "a", "1");
    drop(engine);
    assert_eq!(get(&store.open(), &name, "a"), Some("1".into()));
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let store = Store::new();
    drop(store.open());
    let path = store.path().join("STORE");
    let text = std::fs::read_to_string(&path).expect("the identity");
    std::fs::write(&path, text.replace("\"version\":1", "\"version\":7")).expect("a newer identity");
    let error = store.try_open().expect_err("it is newer");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("format 7"), "{error}");

    std::fs::write(&path, text).expect("the identity");
    let segment = &store.segments()[0];
    let mut bytes = std::fs::read(segment).expect("a segment");
    bytes[8] = 9;
    std::fs::write(segment, bytes).expect("a newer segment");
    let error = store.try_open().expect_err("it is newer");
    assert!(error.to_string().contains("format 9"), "{error}");
}

#[test]
fn a_segment_of_another_store_is_refused() {
    let (store, other) = (Store::new(), Store::new());
    drop(store.open());
    drop(other.open());
    std::fs::copy(&other.segments()[0], &store.segments()[0]).expect("a copy");
    let error = store.try_open().expect_err("it is of another store");
    assert!(error.to_string().contains("another store"), "{error}");
}

/// Where a user may not write, and root is not asked: the store is opened by a process without rights.
#[test]
fn a_directory_that_cannot_be_written_is_a_clear_error() {
    const CHILD: &str = "PLEACH_READ_ONLY_CHILD";
    if let Ok(path) = std::env::var(CHILD) {
        let error = EmbeddedEngine::open(path).expect_err("it cannot be written");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().starts_with("cannot "), "{error}");
        return;
    }
    let store = Store::new();
    drop(store.open());
    let readable = |path: &std::path::Path, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    // The test itself goes along, because its own place may be closed to others.
    let program = store.directory.path().join("program");
    std::fs::copy(std::env::current_exe().expect("this test"), &program).expect("a copy");
    readable(store.directory.path(), 0o755);
    readable(&store.path(), 0o555);
    let am_root =
        std::fs::metadata("/proc/self").is_ok_and(|proc| std::os::unix::fs::MetadataExt::uid(&proc) == 0);
    let mut command = if am_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        command
    } else {
        Command::new(&program)
    };
    let name = "opening::a_directory_that_cannot_be_written_is_a_clear_error";
    let output = command.args(["--exact", name]).env(CHILD, store.path()).output().expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    readable(&store.path(), 0o755);
}

#[test]
fn whoever_opens_a_store_without_an_index_hears_how_far_it_has_come() {
    let store = Store::new();
    let engine = store.open();
    let name = create(&engine, 1);
    for at in 0..300 {
        put(&engine, &name, &format!("k.{at}"), "v".repeat(200));
    }
    drop(engine);
    let heard = || {
        let mut heard = Vec::new();
        let (settings, clock) = (store.settings.clone(), Arc::clone(&store.clock) as Arc<dyn Clock>);
        let engine = EmbeddedEngine::open_with_progress(store.path(), settings, clock, &mut |bytes| {
            heard.push(bytes);
        });
        drop(engine.expect("the store opens"));
        heard
    };
    let with_index = heard().last().copied().unwrap_or_default();
    std::fs::remove_dir_all(store.path().join("index")).expect("the index goes");
    let without = heard();
    assert!(without.is_sorted(), "{without:?}");
    let all = without.last().copied().unwrap_or_default();
    assert!(all > 300 * 200 && all > with_index, "{with_index} and {all} bytes were read");
}
