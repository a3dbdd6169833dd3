use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pleach_engine::{EngineError, Revision};
use tempfile::TempDir;

use super::LsmIndex;
use crate::index::{Index as _, IndexChange, ReadAt};

const CACHE_BYTES: u64 = 64 * 1024;

type Contents = BTreeMap<Bytes, Bytes>;

/// A directory in memory, where that can be had: thousands of files are written.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// An index of three flushed tables, of which the middle one has more to it than its end, closed, with what is
/// in it.
fn index() -> (TempDir, Contents) {
    let directory = directory();
    let index = LsmIndex::open(directory.path(), CACHE_BYTES).unwrap();
    let mut contents = Contents::new();
    for revision in 1..=60_u64 {
        let key = Bytes::from(format!("key {:02}", revision * 7 % 40));
        let noise = xxhash_rust::xxh3::xxh3_128(&revision.to_le_bytes());
        let len = if (20..40).contains(&revision) { 900 } else { 10 };
        let value: Bytes =
            (0..len).map(|at| ((noise.rotate_left(at * 11) ^ u128::from(at)) & 0xff) as u8).collect();
        index.write(Revision::new(revision), vec![IndexChange::Insert(key.clone(), value.clone())]);
        contents.insert(key, value);
        if revision % 20 == 0 {
            index.seal();
            index.flush(Revision::new(revision)).unwrap();
        }
    }
    drop(index);
    (directory, contents)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The largest file of the index, of which the seal vouches for the end only.
fn large_table(directory: &Path) -> PathBuf {
    let tables = files(&directory.join("tables"));
    tables.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

/// Opens the index, reading no more of it than it must, and reads everything.
fn read(directory: &Path) -> Result<Contents, EngineError> {
    let index = LsmIndex::open_checking(directory, CACHE_BYTES, 0)?;
    let all = index.range(Bound::Unbounded, Bound::Unbounded, ReadAt::Newest);
    let contents = all.collect::<Result<Contents, _>>()?;
    for (key, value) in &contents {
        assert_eq!(index.get(key, ReadAt::Newest)?.as_ref(), Some(value));
    }
    Ok(contents)
}

/// Turns over one bit.
fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// Every bit of the first and last bytes of a file, and one in every byte between.
fn some_bits(len: usize) -> Vec<usize> {
    let edge = |bit: &usize| bit / 8 < 64 || bit / 8 + 512 >= len || bit % 8 == bit / 8 % 8;
    (0..len * 8).filter(edge).collect()
}

#[test]
fn any_flipped_bit_is_found_at_open_or_when_it_is_read_and_no_file_is_deleted() {
    let (directory, contents) = index();
    let path = directory.path();
    assert_eq!(read(path).unwrap(), contents);
    let names = files(path);
    let seal = fs::read(path.join("SEAL")).unwrap();
    let (mut flips, mut found) = (0, 0);
    for file in &names {
        let bytes = fs::read(file).unwrap();
        for bit in some_bits(bytes.len()) {
            flip(file, bit);
            flips += 1;
            match read(path) {
                Ok(read) => assert_eq!(read, contents, "bit {bit} of {file:?}"),
                Err(EngineError::CorruptIndex { .. }) => found += 1,
                Err(error) => panic!("bit {bit} of {file:?}: {error}"),
            }
            let _ = fs::remove_file(path.join("DAMAGED"));
            fs::write(path.join("SEAL"), &seal).unwrap();
            fs::write(file, &bytes).unwrap();
            assert_eq!(files(path), names, "bit {bit} of {file:?}");
        }
    }
    assert!(found > flips * 8 / 10, "only {found} of {flips} flips were found");
    assert_eq!(read(path).unwrap(), contents);
}

#[test]
fn a_table_that_no_seal_vouches_for_is_read_in_full_at_open() {
    let (directory, contents) = index();
    let path = directory.path();
    let table = large_table(path);
    let opens = || LsmIndex::open_checking(path, CACHE_BYTES, 0).map(drop);
    flip(&table, 4000);
    opens().expect("the seal vouches for it, and this part is found when it is read");
    assert!(matches!(read(path), Err(EngineError::CorruptIndex { .. })));
    fs::remove_file(path.join("DAMAGED")).unwrap();
    assert!(LsmIndex::open(path, CACHE_BYTES).is_err(), "as far as the reading goes, that is found as well");

    fs::remove_file(path.join("SEAL")).unwrap();
    assert!(matches!(opens(), Err(EngineError::CorruptIndex { .. })));
    flip(&table, 4000);
    assert_eq!(read(path).unwrap(), contents, "without a seal it is as good");
    assert!(path.join("SEAL").exists(), "and has one again");
}

/// A process that is killed between a flush and the seal after it leaves an old seal.
#[test]
fn an_old_seal_is_no_reason_to_build_the_index_anew() {
    let (directory, mut contents) = index();
    let path = directory.path();
    let old = fs::read(path.join("SEAL")).unwrap();
    let index = LsmIndex::open(path, CACHE_BYTES).unwrap();
    let (key, value) = (Bytes::from_static(b"new"), Bytes::from_static(b"value"));
    index.write(Revision::new(61), vec![IndexChange::Insert(key.clone(), value.clone())]);
    index.seal();
    index.flush(Revision::new(61)).unwrap();
    drop(index);
    assert_ne!(fs::read(path.join("SEAL")).unwrap(), old);
    fs::write(path.join("SEAL"), old).unwrap();
    contents.insert(key, value);
    assert_eq!(read(path).unwrap(), contents);
}

#[test]
fn files_that_no_list_names_are_left_alone() {
    let (directory, _) = index();
    let path = directory.path();
    fs::remove_file(path.join("current")).unwrap();
    let before = files(path);
    assert!(matches!(read(path), Err(EngineError::CorruptIndex { .. })));
    assert_eq!(files(path), before);
}

#[test]
fn a_missing_or_shortened_table_is_found_at_open() {
    let (directory, _) = index();
    let path = directory.path();
    let table = large_table(path);
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(read(path), Err(EngineError::CorruptIndex { .. })));
    fs::remove_file(&table).unwrap();
    let before = files(path);
    let error = read(path).unwrap_err().to_string();
    assert!(error.contains("is missing"), "{error}");
    assert_eq!(files(path), before);
}
