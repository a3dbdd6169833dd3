//! Every bit of a small store is turned over, one at a time.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use pleach_embedded::{EmbeddedEngine, Settings, inspect};
use pleach_engine::{
    Batch, BucketConfig, BucketInfo, Clock, ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError,
    Entry, Revision, WatchEvent, WatchQuery, WatchStart,
};
use pollster::block_on;
use tempfile::TempDir;

use crate::store::{Store, bucket, contents, copy, files, key, put};

/// Set in the process that turns the bits over.
const CHILD: &str = "PLEACH_BITFLIPS_CHILD";

const WORKERS: usize = 2;

/// More memory than this is never asked for, in kilobytes.
const MEMORY_MAX: u64 = 8 * 1024 * 1024;

/// The frame that says a store was closed, in which no commit is.
const MARK_BYTES: usize = 40;

/// One flip of so many in the log is also looked at by `verify`, which takes long.
const VERIFIED_STEP: usize = 27;

/// The files of a store, by their paths in it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Everything that can be read from a store.
#[derive(Debug, PartialEq)]
struct Everything {
    buckets: Vec<BucketInfo>,
    contents: BTreeMap<String, Entry>,
    histories: Vec<Vec<Entry>>,
    consumers: Vec<ConsumerInfo>,
    changes: Vec<WatchEvent>,
}

/// Turns over every bit of every file, and without the index one bit of each byte of the log. The library under
/// the index may panic or ask for all the memory there is when it meets a damaged file; so this happens in a
/// process of its own, which is watched for that.
#[test]
fn no_flipped_bit_gives_a_wrong_answer_or_loses_a_file() {
    if std::env::var_os(CHILD).is_some() {
        return flip_everything();
    }
    let test = std::env::current_exe().expect("this test");
    let name = "bitflips::no_flipped_bit_gives_a_wrong_answer_or_loses_a_file";
    let run = format!("ulimit -v {MEMORY_MAX}; exec \"$0\" --exact {name} --nocapture --test-threads=1");
    let child = Command::new("sh")
        .args(["-c", &run])
        .arg(test)
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("the child runs");
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{}\n{out}\n{err}", child.status);
    assert!(!err.contains("panicked"), "something panicked on damaged files:\n{err}");
    assert!(out.contains("flips"), "{out}");
}

#[allow(clippy::print_stdout, reason = "the process that started this one reads it")]
fn flip_everything() {
    let store = small_store();
    let expected = read(&store.path(), &store).expect("it is sound");
    let whole = read_files(&store.path());
    assert_eq!(read(&store.path(), &store).expect("it is sound"), expected);
    assert!(read_files(&store.path()) == whole, "nothing changes by looking at it");
    println!("{:?}", whole.iter().map(|(path, bytes)| (path, bytes.len())).collect::<Vec<_>>());
    let flips = flips(&whole);
    let (next, tally) = (AtomicUsize::new(0), Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let bench = Bench::new(&store, &whole, &expected);
                while let Some((path, bit, index)) = flips.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bench.flip(path, *bit, *index, &tally);
                }
            });
        }
    });
    println!("{} flips: {tally:?}", flips.len());
    // All but some padding and the mark at the end is under a checksum.
    let (verified, sound) = (tally.verified.into_inner(), tally.sound.into_inner());
    assert!(sound < verified / 20, "verify found nothing wrong with {sound} of {verified} damaged logs");
}

/// Which bits of which files are turned over, and whether there is an index meanwhile.
fn flips(whole: &Files) -> Vec<(&Path, usize, bool)> {
    let mut flips = Vec::new();
    for (path, bytes) in whole.iter().filter(|(path, _)| !is_hint(path)) {
        flips.extend((0..bytes.len() * 8).map(|bit| (&**path, bit, true)));
        if is_log(path) {
            let one_of_each_byte = (0..bytes.len()).map(|at| at * 8 + at % 8);
            flips.extend(one_of_each_byte.map(|bit| (&**path, bit, false)));
        }
    }
    flips
}

/// Files that say something to people, and that no store depends on.
fn is_hint(path: &Path) -> bool {
    path.ends_with("LOCK") || path.ends_with(pleach_embedded::STATUS_FILE_NAME)
}

fn is_log(path: &Path) -> bool {
    path.starts_with("log") || path == Path::new("STORE")
}

/// What became of the flips.
#[derive(Debug, Default)]
struct Tally {
    /// How many were an error, and how many changed nothing that was read.
    reported: AtomicUsize,
    harmless: AtomicUsize,
    /// How many `verify` looked at, and with how many it found nothing wrong.
    verified: AtomicUsize,
    sound: AtomicUsize,
}

impl Tally {
    fn count(count: &AtomicUsize, is: bool) {
        count.fetch_add(usize::from(is), Ordering::Relaxed);
    }
}

/// A copy of the store on which one flip after the other is tried.
struct Bench<'a> {
    directory: TempDir,
    store: &'a Store,
    whole: &'a Files,
    expected: &'a Everything,
}

impl<'a> Bench<'a> {
    fn new(store: &'a Store, whole: &'a Files, expected: &'a Everything) -> Self {
        let directory = memory();
        copy(&store.path(), &directory.path().join("store"));
        Self { directory, store, whole, expected }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn flip(&self, file: &Path, bit: usize, with_index: bool, tally: &Tally) {
        let place =
            format!("bit {bit} of {} {}", file.display(), if with_index { "" } else { "without index" });
        let mut damaged = self.whole[file].clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(self.path().join(file), &damaged).expect("the file is damaged");
        if !with_index {
            std::fs::remove_dir_all(self.path().join("index")).expect("the index goes");
        }
        let verified = (is_log(file) && bit.is_multiple_of(VERIFIED_STEP))
            .then(|| inspect::verify(self.path(), &mut |_| {}));
        let found = read(&self.path(), self.store);
        let after = read_files(&self.path());
        let sound = matches!(&verified, Some(Ok(report)) if report.log.is_sound());
        Tally::count(&tally.verified, verified.is_some());
        Tally::count(&tally.sound, sound);
        Tally::count(&tally.reported, found.is_err());
        Tally::count(&tally.harmless, found.is_ok());
        match found {
            Ok(found) => {
                assert!(found == *self.expected, "{place}: {found:#?} instead of {:#?}", self.expected);
            }
            Err(error) => {
                assert!(is_log(file), "{place}: the log is sound, and {error}");
                check_error(&error, file, &place);
                assert_eq!(after[file], damaged, "{place}: the file was changed");
                assert!(!sound, "{place}: {error}, and nothing for verify");
            }
        }
        if with_index {
            self.check_files(&after, file, &damaged, &place);
        }
        self.restore(&after);
    }

    /// Every file is there, and the damaged one as it was, under its name or set aside.
    fn check_files(&self, after: &Files, file: &Path, damaged: &[u8], place: &str) {
        let aside = after.keys().any(|path| path.starts_with("index.set-aside-1"));
        for (path, bytes) in self.whole {
            let at = match path.strip_prefix("index") {
                Ok(rest) if aside => Path::new("index.set-aside-1").join(rest),
                _ => path.clone(),
            };
            assert!(after.contains_key(&at), "{place}: {} is gone", at.display());
            let found = &after[&at];
            let expected = if path == file { damaged } else { bytes };
            // The last segment may have lost the mark that says it was closed.
            let may_change = is_hint(path);
            let unchanged =
                found == expected || may_change || (path == file && was_cut(after, path, damaged));
            assert!(unchanged, "{place}: {} was changed", path.display());
        }
    }

    /// Makes the copy what it was.
    fn restore(&self, after: &Files) {
        let root = self.path();
        for entry in files(&root) {
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            if name.starts_with("index.") {
                std::fs::remove_dir_all(&entry).expect("it is removed");
            }
        }
        for path in after.keys().filter(|path| !self.whole.contains_key(*path)) {
            let _ = std::fs::remove_file(root.join(path));
        }
        for (path, bytes) in self.whole.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)) {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, bytes).expect("the file is whole again");
        }
    }
}

/// Whether the end of a file is kept beside it, and the rest is as it was.
fn was_cut(after: &Files, path: &Path, damaged: &[u8]) -> bool {
    let kept = after.iter().find(|(other, _)| other.to_string_lossy().contains(".cut-"));
    kept.is_some_and(|(_, kept)| {
        kept.len() <= MARK_BYTES
            && damaged.ends_with(kept)
            && after[path].starts_with(&damaged[..damaged.len() - kept.len()])
    })
}

/// An error says what is damaged, and where.
fn check_error(error: &EngineError, file: &Path, place: &str) {
    match error {
        EngineError::Corrupt { path, .. } => {
            let named = path.file_name() == file.file_name();
            // A store that is another one by its name does not fit to its log.
            assert!(named || file == Path::new("STORE"), "{place}: {error}");
        }
        other => assert!(matches!(other, EngineError::UnknownFormat { .. }), "{place}: {other}"),
    }
}

/// Opens the store and reads all there is.
fn read(path: &Path, store: &Store) -> Result<Everything, EngineError> {
    let engine =
        EmbeddedEngine::open_with(path, store.settings.clone(), Arc::clone(&store.clock) as Arc<dyn Clock>)?;
    let (name, other) = (bucket("b"), bucket("other"));
    let mut contents = contents(&engine, &name)?;
    contents.extend(self::contents(&engine, &other)?);
    let mut histories = Vec::new();
    for at in 0..6 {
        histories.push(block_on(engine.history(&name, &key(&format!("k.{at}"))))?);
        histories.push(block_on(engine.history(&other, &key(&format!("o.{at}"))))?);
    }
    let consumers = block_on(engine.consumers(&name))?;
    let buckets = block_on(engine.buckets())?;
    let mut changes = Vec::new();
    for info in &buckets {
        let start = WatchStart::Revision(info.feed_floor.max(Revision::new(1)));
        let mut watch = block_on(engine.watch(&info.name, WatchQuery { start, ..WatchQuery::default() }))?;
        // The last record of each bucket is a put of this key.
        loop {
            let event = block_on(watch.next()).expect("it does not end")?;
            let last = matches!(&event, WatchEvent::Change(change) if change.entry.key.as_str() == "last");
            changes.push(event);
            if last {
                break;
            }
        }
    }
    Ok(Everything { buckets, contents, histories, consumers, changes })
}

/// A closed store of a few kilobytes with finished segments, a cleaned one, an unfinished one, and an index.
fn small_store() -> Store {
    let settings = Settings {
        segment_bytes: 700,
        memtable_bytes: 16 * 1024,
        cache_bytes: 64 * 1024,
        feed_bytes: Some(0),
        clean_bytes_per_second: u64::MAX,
        ..Settings::default()
    };
    let mut store = Store::with(settings);
    store.directory = memory();
    let engine = store.open();
    let (name, other) = (bucket("b"), bucket("other"));
    let history = |history| BucketConfig {
        history: NonZeroU8::new(history).expect("not zero"),
        ..BucketConfig::default()
    };
    block_on(engine.create_bucket(&name, history(2))).expect("a bucket");
    block_on(engine.create_bucket(&other, history(1))).expect("a bucket");
    let consumer = ConsumerName::parse("reader").expect("a name");
    block_on(engine.create_consumer(&name, &consumer, ConsumerStart::Now)).expect("a consumer");
    for round in 0..28_usize {
        let last = put(&engine, &name, &format!("k.{}", round % 4), format!("value {round}"));
        if round == 12 {
            put(&engine, &name, "k.4", "stays where it is");
        }
        if round % 9 == 0 {
            block_on(engine.acknowledge(&name, &consumer, Revision::new(last))).expect("it moves on");
        }
    }
    let deleted = Batch::new().delete(key("k.3"));
    block_on(engine.commit(&name, deleted)).expect("a commit");
    wait_until_clean(&store);
    drop(engine);
    store.settings.clean = false;
    let engine = store.open();
    for round in 0..4_usize {
        put(&engine, &other, &format!("o.{round}"), format!("{round}-").repeat(round * 30));
    }
    block_on(engine.commit(&name, Batch::new().delete(key("k.2")).put(key("k.5"), "new"))).expect("a commit");
    put(&engine, &name, "last", "of b");
    put(&engine, &other, "last", "of other");
    drop(engine);
    assert!(store.segments().len() >= 4, "{:?}", store.segments());
    store
}

/// Waits until there is a cleaned segment and nothing is left to be done.
fn wait_until_clean(store: &Store) {
    const STEP: Duration = Duration::from_millis(10);
    let (mut before, mut unchanged) = (Vec::new(), 0);
    for _ in 0..60_000 {
        let segments = store.segments();
        let cleaned = segments
            .iter()
            .any(|path| path.file_stem().is_some_and(|name| name.to_string_lossy().contains('-')));
        unchanged = if cleaned && segments == before { unchanged + 1 } else { 0 };
        if unchanged == 150 {
            return;
        }
        before = segments;
        std::thread::sleep(STEP);
    }
    assert_eq!(unchanged, 150, "the log is never clean: {before:?}");
}

/// A directory in memory, where that can be had: thousands of files are written.
fn memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Every file below `root`.
fn read_files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for path in files(&directory) {
            if path.is_dir() {
                directories.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file");
                found.insert(path.strip_prefix(root).expect("inside").to_path_buf(), bytes);
            }
        }
    }
    found
}
