use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use pleach_engine::{Direction, EngineError, Revision};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::block::{Block, BlockBuilder, seal, unseal};
use super::filter::Filter;
use super::manifest::Manifest;
use super::table::TableInfo;
use super::*;
use crate::disk::RealDisk;
use crate::faults::{Fault, SimDisk, Survival};
use crate::index::{IndexChange, IndexHome as _, MemoryHome};
use crate::random::seeded;

const CACHE_BYTES: u64 = 64 * 1024;

/// So small that a few hundred writes fill several levels.
const TINY: Sizes = Sizes { table_bytes: 600, base_bytes: 1500 };

type Contents = BTreeMap<Bytes, Bytes>;

/// A directory in memory, where that can be had: thousands of files are written.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn open(disk: &Arc<dyn Disk>, directory: &Path) -> Result<LsmIndex, EngineError> {
    LsmIndex::open_sized(Arc::clone(disk), directory, CACHE_BYTES, 0, TINY)
}

fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn pairs(
    index: &dyn Index,
    range: (Bound<Bytes>, Bound<Bytes>),
    at: ReadAt,
    direction: Direction,
) -> Vec<(Bytes, Bytes)> {
    let mut cursor = index.cursor(range.0, range.1, at, direction);
    let mut pairs = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        pairs.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
    }
    pairs
}

/// Draws numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        seeded::next(&mut self.0) % limit
    }

    fn key(&mut self) -> Bytes {
        // Some share long beginnings, one is the beginning of another, and some are of another kind.
        let number = self.below(60);
        match number % 3 {
            0 => format!("key.of.some.length.{number}").into(),
            1 => format!("key.of.some.length.{number}.more").into(),
            _ => vec![u8::try_from(number).unwrap(); 1 + usize::try_from(number % 5).unwrap()].into(),
        }
    }

    fn bound(&mut self) -> Bound<Bytes> {
        match self.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}

/// The same random work on this index and on one that keeps everything in one map, compared all the time.
#[test]
fn it_answers_as_a_simple_map_of_versions_does() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let directory = directory();
        let (disk, home) = (real(), MemoryHome::new(SimDisk::default()));
        let mut index = open(&disk, directory.path()).unwrap();
        let model = home.open(0).unwrap();
        let (mut revision, mut held, mut deepest) = (0, 0, 0);
        for _ in 0..400 {
            match dice.below(12) {
                0..=6 => {
                    // The same revision may be written again.
                    revision += dice.below(3);
                    let change = |dice: &mut Dice| {
                        let (key, len) = (dice.key(), usize::try_from(dice.below(120)).unwrap());
                        (dice.below(4) > 0, key, Bytes::from(vec![u8::try_from(len).unwrap(); len]))
                    };
                    let changes: Vec<_> = (0..1 + dice.below(4)).map(|_| change(&mut dice)).collect();
                    for index in [&index as &dyn Index, &*model] {
                        let changes = changes.iter().map(|(put, key, value)| match put {
                            true => IndexChange::Insert(key.clone(), value.clone()),
                            false => IndexChange::Remove(key.clone()),
                        });
                        index.write(Revision::new(revision), changes.collect());
                    }
                }
                7 => index.seal(),
                8 => {
                    held += dice.below(revision - held + 1);
                    index.flush(usize::MAX, Revision::new(held)).unwrap();
                }
                9 => drop(index.compact(Revision::new(held), false).unwrap()),
                10 => {
                    index.seal();
                    index.flush(usize::MAX, Revision::new(held)).unwrap();
                    drop(index);
                    index = open(&disk, directory.path()).unwrap();
                }
                _ => {}
            }
            let used = |level: &usize| !index.view().levels.0[*level].is_empty();
            deepest = deepest.max((0..LEVELS).filter(used).max().unwrap_or_default());
            let at = match dice.below(2) {
                0 => ReadAt::Newest,
                _ => ReadAt::Snapshot(Revision::new(held + dice.below(revision - held + 1))),
            };
            let (key, range) = (dice.key(), (dice.bound(), dice.bound()));
            assert_eq!(index.get(&key, at).unwrap(), model.get(&key, at).unwrap(), "seed {seed}");
            for direction in [Direction::Forward, Direction::Backward] {
                let read = |index: &dyn Index| pairs(index, range.clone(), at, direction);
                assert_eq!(read(&index), read(&*model), "seed {seed}, {range:?} {direction:?}");
            }
        }
        assert!(deepest >= 2, "seed {seed} used {deepest} levels only");
    }
}

/// A table with these keys, each removed where there is no value.
fn table(index: &LsmIndex, pairs: &[(&str, u64, Option<&str>)]) -> Arc<Table> {
    let mut writer = index.shared.create_table().unwrap();
    for (key, revision, value) in pairs {
        let hash = index.shared.hash(key.as_bytes());
        writer.push(hash, key.as_bytes(), *revision, value.map(str::as_bytes)).unwrap();
    }
    Arc::new(writer.finish().unwrap())
}

/// A merge writes all of the tables below anew, also where they go beyond those above.
#[test]
fn a_removal_stays_as_long_as_it_hides_something() {
    let directory = directory();
    let index = open(&real(), directory.path()).unwrap();
    let upper = table(&index, &[("a", 9, Some("9")), ("c", 9, Some("9"))]);
    let mut levels = Levels::default();
    levels.0[1] = Arc::new(vec![Arc::clone(&upper)]);
    levels.0[2] = Arc::new(vec![table(&index, &[("a", 7, Some("7")), ("k", 7, None), ("m", 7, Some("7"))])]);
    levels.0[3] = Arc::new(vec![table(&index, &[("k", 5, Some("5")), ("p", 5, Some("5"))])]);
    index.install(&[], |_| levels, None).unwrap();
    let contents = || pairs(&index, (Bound::Unbounded, Bound::Unbounded), ReadAt::Newest, Direction::Forward);
    let before = contents();
    assert_eq!(before.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), [b"a", b"c", b"m", b"p"]);
    let choice = index.view().levels.choice(1, vec![upper]);
    index.merge_chosen(&choice, Revision::new(9)).unwrap();
    assert_eq!(contents(), before);
    assert_eq!(index.get(b"k", ReadAt::Newest).unwrap(), None);
}

/// A merge for which there is no space leaves none of its tables behind.
#[test]
fn what_a_failed_merge_has_written_is_removed() {
    let home = directory();
    let sim = SimDisk::default();
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    let index = open(&disk, home.path()).unwrap();
    for revision in 1..=5_u64 {
        for number in 0..40 {
            let key = Bytes::from(format!("key {number} {revision}"));
            index.write(Revision::new(revision), vec![IndexChange::Insert(key, Bytes::from(vec![7; 60]))]);
        }
        index.seal();
        index.flush(usize::MAX, Revision::new(revision)).unwrap();
    }
    let before = disk.list(home.path()).unwrap();
    for skip in 0.. {
        sim.fail_any(skip, Fault::Full);
        let merged = index.compact(Revision::new(5), false);
        if !sim.has_failed() {
            assert!(merged.unwrap() && skip > 10);
            return;
        }
        // After the new list has its name, its tables must stay.
        match merged {
            Ok(_) => return assert!(skip > 10, "only {skip} operations"),
            Err(_) if disk.list(home.path()).unwrap() != before => {
                let found = disk.list(home.path()).unwrap();
                let tables = found.iter().filter(|name| name.ends_with(".table")).count();
                let is_list_saved = !found.iter().any(|name| name == "MANIFEST.new");
                assert!(before.iter().all(|name| found.contains(name)), "{skip}: {found:?}");
                assert!(is_list_saved || tables == 5, "after {skip}: {found:?}");
            }
            Err(_) => {}
        }
    }
}

/// Readers see whole revisions while another thread writes, and others flush and merge.
#[test]
fn readers_see_every_revision_whole_through_flushes_and_merges() {
    let directory = directory();
    let index = open(&real(), directory.path()).unwrap();
    let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let key = |number: u64| Bytes::from(format!("key {number:03}"));
    let count = 50;
    std::thread::scope(|scope| {
        let reader = || {
            let mut reads = 0;
            while !stop.load(Ordering::Acquire) {
                let at = written.load(Ordering::Acquire);
                if at == 0 {
                    continue;
                }
                let snapshot = ReadAt::Snapshot(Revision::new(at));
                let expected = Bytes::from(at.to_string());
                for direction in [Direction::Forward, Direction::Backward] {
                    let found = pairs(&index, (Bound::Unbounded, Bound::Unbounded), snapshot, direction);
                    assert_eq!(found.len() as u64, count, "as of {at}");
                    assert!(found.iter().all(|(_, value)| *value == expected), "as of {at}");
                }
                let found = index.get(&key(at % count), snapshot).unwrap();
                assert_eq!(found, Some(expected));
                reads += 1;
            }
            assert!(reads > 0);
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        let keeper = scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                // Every revision stays readable.
                index.flush(usize::MAX, Revision::ZERO).unwrap();
                index.compact(Revision::ZERO, false).unwrap();
            }
        });
        for revision in 1..=400 {
            let value = Bytes::from(revision.to_string());
            let changes = (0..count).map(|number| IndexChange::Insert(key(number), value.clone()));
            index.write(Revision::new(revision), changes.collect());
            written.store(revision, Ordering::Release);
            if revision % 7 == 0 {
                index.seal();
            }
        }
        stop.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        keeper.join().unwrap();
    });
}

/// Writes stretches to an index and flushes each, and merges; says how many stretches were flushed, with what was in
/// the index after each.
fn flush_stretches(disk: &Arc<dyn Disk>, directory: &Path) -> (Vec<Contents>, Result<(), EngineError>) {
    let mut flushed = Vec::new();
    let mut work = || {
        let index = open(disk, directory)?;
        let mut contents = Contents::new();
        flushed.push(contents.clone());
        for revision in 1..=9_u64 {
            for number in 0..8 {
                let (key, value) =
                    (Bytes::from(format!("key {}", revision * 3 + number)), Bytes::from(vec![7; 60]));
                index.write(Revision::new(revision), vec![IndexChange::Insert(key.clone(), value.clone())]);
                contents.insert(key, value);
            }
            index.seal();
            // It may be there although it was not acknowledged.
            flushed.push(contents.clone());
            index.flush(usize::MAX, Revision::new(revision))?;
            while index.compact(Revision::new(revision), false)? {}
        }
        Ok(())
    };
    let result = work();
    (flushed, result)
}

#[test]
fn after_a_power_cut_at_any_moment_it_is_as_it_was_after_some_flush() {
    let home = directory();
    let directory = home.path();
    for cut in 0.. {
        for survival in [Survival::Synced, Survival::Prefix(cut as u64), Survival::Any(cut as u64)] {
            let sim = SimDisk::default();
            let disk: Arc<dyn Disk> = Arc::new(sim.clone());
            sim.cut_power_after(cut);
            let (flushed, result) = flush_stretches(&disk, directory);
            if !sim.is_off() {
                result.unwrap();
                assert!(cut > 100, "only {cut} operations");
                return;
            }
            sim.power_cycle(survival);
            let index = match open(&disk, directory) {
                Ok(index) => index,
                Err(error) => panic!("cut at {cut}, {survival:?}: {error}"),
            };
            let found: Contents =
                pairs(&index, (Bound::Unbounded, Bound::Unbounded), ReadAt::Newest, Direction::Forward)
                    .into_iter()
                    .collect();
            let acknowledged = flushed.len().saturating_sub(2);
            let fits = flushed.iter().skip(acknowledged).any(|contents| *contents == found);
            assert!(fits || flushed.is_empty(), "cut at {cut}, {survival:?}: {} keys", found.len());
        }
    }
}

#[test]
fn a_failure_of_the_disk_loses_nothing_that_was_there() {
    let home = directory();
    let directory = home.path();
    for fault in [Fault::Io, Fault::Full] {
        for skip in 0.. {
            let sim = SimDisk::default();
            let disk: Arc<dyn Disk> = Arc::new(sim.clone());
            sim.fail_any(skip, fault);
            let (flushed, result) = flush_stretches(&disk, directory);
            if !sim.has_failed() {
                result.unwrap();
                break;
            }
            let index = open(&disk, directory).unwrap();
            let found: Contents =
                pairs(&index, (Bound::Unbounded, Bound::Unbounded), ReadAt::Newest, Direction::Forward)
                    .into_iter()
                    .collect();
            let acknowledged = flushed.len().saturating_sub(2);
            let fits = flushed.iter().skip(acknowledged).any(|contents| *contents == found);
            assert!(fits || flushed.is_empty(), "{fault:?} after {skip} operations: {} keys", found.len());
        }
    }
}

/// An index of three flushed tables and merged ones, closed, with what is in it.
fn index() -> (TempDir, Contents) {
    let directory = directory();
    let (_, result) = flush_stretches(&real(), directory.path());
    result.unwrap();
    let contents = read(directory.path()).unwrap();
    (directory, contents)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The tables, the oldest first.
fn tables(directory: &Path) -> Vec<PathBuf> {
    let mut tables = files(directory);
    tables.retain(|path| path.extension().is_some_and(|kind| kind == "table"));
    tables
}

/// Opens the index, reading no more of it than it must, and reads everything.
fn read(directory: &Path) -> Result<Contents, EngineError> {
    let index = open(&real(), directory)?;
    let all = index.range(Bound::Unbounded, Bound::Unbounded, ReadAt::Newest);
    let contents = all.collect::<Result<Contents, _>>()?;
    for (key, value) in &contents {
        assert_eq!(index.get(key, ReadAt::Newest)?.as_ref(), Some(value));
    }
    Ok(contents)
}

#[test]
fn any_flipped_bit_is_found_at_open_or_when_it_is_read_and_no_file_is_deleted() {
    let (directory, contents) = index();
    let path = directory.path();
    let names = files(path);
    let (mut flips, mut found) = (0, 0);
    for file in &names {
        let bytes = fs::read(file).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, &flipped).unwrap();
            flips += 1;
            match read(path) {
                Ok(read) => assert_eq!(read, contents, "bit {bit} of {file:?}"),
                Err(EngineError::CorruptIndex { .. }) => found += 1,
                Err(error) => panic!("bit {bit} of {file:?}: {error}"),
            }
            let _ = fs::remove_file(path.join(DAMAGED_FILE_NAME));
            fs::write(file, &bytes).unwrap();
            assert_eq!(files(path), names, "bit {bit} of {file:?}");
        }
    }
    assert_eq!(found, flips, "every byte is under a checksum that is looked at");
    assert_eq!(read(path).unwrap(), contents);
}

#[test]
fn damage_that_was_found_is_remembered() {
    let (directory, _) = index();
    let path = directory.path();
    let table = tables(path).remove(0);
    let bytes = fs::read(&table).unwrap();
    let mut flipped = bytes.clone();
    flipped[20] ^= 1;
    fs::write(&table, flipped).unwrap();
    assert!(read(path).is_err());
    fs::write(&table, bytes).unwrap();
    let error = read(path).unwrap_err().to_string();
    assert!(error.contains("damaged before"), "{error}");
}

#[test]
fn the_newest_tables_are_checked_at_open() {
    let (directory, _) = index();
    let path = directory.path();
    let table = tables(path).pop().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[20] ^= 1;
    fs::write(&table, bytes).unwrap();
    assert!(open(&real(), path).is_ok(), "without a check it is found when it is read");
    assert!(matches!(LsmIndex::open(real(), path, CACHE_BYTES), Err(EngineError::CorruptIndex { .. })));
}

#[test]
fn a_missing_or_shortened_table_is_found_at_open_and_a_leftover_removed() {
    let (directory, contents) = index();
    let path = directory.path();
    fs::write(path.join("ffffffffffffffff.table"), b"a leftover").unwrap();
    assert_eq!(read(path).unwrap(), contents);
    assert!(!path.join("ffffffffffffffff.table").exists());
    let table = tables(path).remove(0);
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(read(path), Err(EngineError::CorruptIndex { .. })));
    fs::remove_file(&table).unwrap();
    let error = read(path).unwrap_err().to_string();
    assert!(error.contains("is missing"), "{error}");
}

#[test]
fn without_a_list_of_tables_nothing_is_touched() {
    let (directory, _) = index();
    let path = directory.path();
    fs::remove_file(path.join("MANIFEST")).unwrap();
    let before = files(path);
    assert!(matches!(read(path), Err(EngineError::CorruptIndex { .. })));
    assert_eq!(files(path), before);
}

#[test]
fn a_filter_lets_what_it_has_pass_and_little_else() {
    let mut dice = Dice(1);
    let mut hashes = |count: u64| (0..count).map(|_| dice.below(u64::MAX)).collect::<Vec<_>>();
    for count in [1, 10, 1000, 100_000] {
        let inside = hashes(count);
        let filter = Filter::decode(&Filter::of(&inside).encode()).unwrap();
        assert!(inside.iter().all(|hash| filter.may_contain(*hash)));
        let outside = hashes(20_000);
        let passed = outside.iter().filter(|hash| filter.may_contain(**hash)).count();
        assert!(passed < 500, "{passed} of 20000 passed a filter of {count}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_block_is_read_as_it_was_written(
        keys in proptest::collection::btree_set(vec(0..4_u8, 0..6), 1..30),
        revisions in vec(any::<u64>(), 30),
        wanted in vec(0..4_u8, 0..6),
    ) {
        let mut builder = BlockBuilder::default();
        for (number, (key, revision)) in keys.iter().zip(&revisions).enumerate() {
            let value = (number % 3 > 0).then(|| vec![7; number]);
            builder.push(key, *revision, value.as_deref());
        }
        let mut bytes = builder.finish();
        seal(&mut bytes);
        let block = Block::decode(unseal(bytes).unwrap().into()).unwrap();
        prop_assert_eq!(block.count(), keys.len());
        for (number, (key, revision)) in keys.iter().zip(&revisions).enumerate() {
            let entry = block.entry(number).unwrap();
            prop_assert_eq!(&[block.prefix(), entry.rest].concat(), key);
            prop_assert_eq!(entry.revision, *revision);
            prop_assert_eq!(entry.value.map(|range| range.len()), (number % 3 > 0).then_some(number));
        }
        let before = keys.iter().filter(|key| **key < wanted).count();
        prop_assert_eq!(block.lower_bound(&wanted).unwrap(), before);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..120), key in vec(any::<u8>(), 0..4)) {
        let _ = Manifest::decode(&bytes);
        let _ = Filter::decode(&bytes);
        let _ = unseal(bytes.clone());
        if let Ok(block) = Block::decode(bytes.into()) {
            for number in 0..block.count().min(50) {
                let _ = block.entry(number);
            }
            let _ = block.lower_bound(&key);
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written(
        seed: u64,
        next_id: u64,
        ids in vec((any::<u64>(), any::<u128>(), 0..LEVELS), 0..10),
        key in vec(any::<u8>(), 0..40),
    ) {
        let mut manifest = Manifest { seed, next_id, ..Manifest::default() };
        for (id, checksum, level) in ids {
            let (first, last) = (Bytes::from(key.clone()), Bytes::from_static(b"last"));
            let (len, index_at, filter_at, versions, removals) = (id / 2, id / 3, id / 4, id / 5, id / 6);
            let table = TableInfo { id, len, checksum, index_at, filter_at, versions, removals, first, last };
            manifest.levels[level].push(table);
        }
        let sim = SimDisk::default();
        manifest.save(&sim, Path::new("/")).unwrap();
        prop_assert_eq!(Manifest::load(&sim, Path::new("/")).unwrap(), Some(manifest));
    }
}
