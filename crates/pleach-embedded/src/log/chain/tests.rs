use std::sync::Arc;

use super::*;
use crate::disk::Disk as _;
use crate::faults::SimDisk;
use crate::log::tests::{STORE, cleaned, names, segments_of};
use crate::log::{Log, LogReader};

fn open(disk: &SimDisk) -> Result<Log, EngineError> {
    Log::open(Arc::new(disk.clone()), Path::new("/log"), STORE)
}

/// A log of four segments with two commits each, the last of which is not finished.
fn four() -> (SimDisk, Arc<Log>) {
    let disk = SimDisk::default();
    let log = segments_of(&disk, &[1, 1, 1, 1], 2);
    assert_eq!(names(&log.segments()), [(1, 0), (3, 0), (5, 0), (7, 0)]);
    (disk, log)
}

/// The file that the error is about, and what is wrong.
fn refused(disk: &SimDisk) -> (String, String) {
    match open(disk) {
        Err(EngineError::Corrupt { path, what, .. }) => {
            (path.file_name().expect("a name").to_string_lossy().into_owned(), what)
        }
        other => panic!("{other:?}"),
    }
}

fn name(first: u64) -> String {
    SegmentId::new(Revision::new(first)).file_name()
}

#[test]
fn a_missing_segment_is_named() {
    for first in [1, 3, 5] {
        let (disk, log) = four();
        disk.remove(&log.directory.join(name(first))).unwrap();
        assert_eq!(refused(&disk), (name(first), "the segment is missing".into()));
    }
}

#[test]
fn a_shortened_or_lengthened_segment_is_named() {
    for change in [-1_i64, -60, -400, 8] {
        let (disk, log) = four();
        let second = &log.segments()[1];
        let mut bytes = disk.bytes(&second.path);
        let len = usize::try_from(i64::try_from(bytes.len()).unwrap() + change).unwrap();
        bytes.resize(len.max(80), 0);
        disk.place(&second.path, &bytes);
        assert_eq!(refused(&disk), (name(3), "the segment has lost its end".into()), "{change}");
    }
}

#[test]
fn a_cleaned_segment_sets_apart_all_that_it_was_made_from() {
    let (disk, log) = four();
    let run = &log.segments()[..2];
    cleaned(&log, run, |record| record.revision.get() == 4);
    let opened = open(&disk).unwrap();
    assert_eq!(names(&opened.segments()), [(1, 1), (5, 0), (7, 0)]);
    assert_eq!(names(&opened.replaced()), [(1, 0), (3, 0)]);
    assert!(opened.replaced().iter().all(|segment| segment.is_replaced()));
    assert!(opened.segments().iter().all(|segment| !segment.is_replaced()));
    opened.remove(&[run[0].id(), run[1].id()]).unwrap();
    assert!(!disk.has(&run[0].path) && !disk.has(&run[1].path));
    let opened = Arc::new(open(&disk).unwrap());
    assert_eq!((names(&opened.segments()).len(), opened.replaced().len()), (3, 0));
    let mut reader = LogReader::from(&opened, Revision::new(1));
    let mut found = Vec::new();
    while let Some((_, frame)) = reader.next().unwrap() {
        found.push(frame.header.first.get());
    }
    assert_eq!(found, [4, 5, 6, 7, 8]);
}

#[test]
fn a_segment_cleaned_twice_is_there_once() {
    let (disk, log) = four();
    let once = cleaned(&log, &log.segments()[..1], |_| true);
    cleaned(&log, &[once, Arc::clone(&log.segments()[1])], |_| false);
    let opened = open(&disk).unwrap();
    assert_eq!(names(&opened.segments()), [(1, 2), (5, 0), (7, 0)]);
    assert_eq!(names(&opened.replaced()), [(1, 0), (1, 1), (3, 0)]);
}

#[test]
fn a_cleaned_segment_that_has_lost_its_footer_is_named() {
    let (disk, log) = four();
    let new = cleaned(&log, &log.segments()[1..2], |_| true);
    let bytes = disk.bytes(&new.path);
    disk.place(&new.path, &bytes[..bytes.len() - 1]);
    assert_eq!(refused(&disk), (new.id().file_name(), "the segment has lost its end".into()));
}

#[test]
fn a_segment_missing_after_a_cleaned_one_is_named() {
    let (disk, log) = four();
    cleaned(&log, &log.segments()[..1], |_| true);
    disk.remove(&log.directory.join(name(3))).unwrap();
    assert_eq!(refused(&disk), (name(3), "the segment is missing".into()));
}
