use super::*;
use crate::faults::SimDisk;
use crate::log::tests::{cleaned, segments_of};

/// The first revisions of the frames that are left to read.
fn rest(reader: &mut LogReader) -> Result<Vec<u64>, EngineError> {
    let mut found = Vec::new();
    while let Some((_, frame)) = reader.next()? {
        found.push(frame.header.first.get());
    }
    Ok(found)
}

/// Makes a segment unreadable.
fn spoil(segment: &Segment) {
    segment.file.truncate(segment.header.len() + 1).expect("it is shortened");
}

#[test]
fn a_reader_of_a_bucket_does_not_look_into_segments_without_it() {
    let log = segments_of(&SimDisk::default(), &[1, 2, 1, 2], 2);
    let mut all = LogReader::of_bucket(&log, BucketId(2), Revision::new(1));
    assert_eq!(rest(&mut all).unwrap(), [3, 4, 7, 8]);
    assert_eq!(all.reached(), Revision::new(9));
    spoil(&log.segments()[1]);
    let mut one = LogReader::of_bucket(&log, BucketId(1), Revision::new(1));
    assert_eq!(rest(&mut one).unwrap(), [1, 2, 5, 6]);
    assert!(
        rest(&mut LogReader::from(&log, Revision::new(1))).is_err(),
        "what it did not read is unreadable"
    );
}

#[test]
fn a_reader_begins_at_any_revision() {
    let log = segments_of(&SimDisk::default(), &[1, 1, 1], 3);
    for from in 1..=10 {
        let found = rest(&mut LogReader::from(&log, Revision::new(from))).unwrap();
        assert_eq!(found, (from..10).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_goes_on_in_what_takes_the_place_of_its_segment() {
    for read in 0..=6_usize {
        let disk = SimDisk::default();
        let log = segments_of(&disk, &[1, 1, 1], 3);
        let mut reader = LogReader::from(&log, Revision::new(1));
        let mut found: Vec<_> =
            (0..read).map(|_| reader.next().unwrap().unwrap().1.header.first.get()).collect();
        let run = log.segments()[..2].to_vec();
        let new = cleaned(&log, &run, |record| record.revision.get() % 2 == 0);
        log.replace(&run, new);
        log.remove(&[run[0].id(), run[1].id()]).unwrap();
        run.iter().for_each(|segment| spoil(segment));
        found.extend(rest(&mut reader).unwrap());
        // What it has read stays read, and from then on it sees what was kept.
        let expected: Vec<_> = (1..10).filter(|at| *at <= read as u64 || *at > 6 || at % 2 == 0).collect();
        assert_eq!(found, expected, "after {read} frames");
    }
}

#[test]
fn a_record_in_a_segment_that_was_removed_is_looked_for_elsewhere() {
    let disk = SimDisk::default();
    let log = segments_of(&disk, &[1, 1], 1);
    let old = log.segments().remove(0);
    let mut reader = LogReader::from(&log, Revision::new(1));
    let (segment, frame) = reader.next().unwrap().unwrap();
    let (offset, record) = &frame.records[0];
    let len = u32::try_from(record.encoded_len()).unwrap();
    let position = crate::log::Position { segment, offset: *offset, len };
    let read = || log.read(position, &record.key, record.revision);
    log.replace(&[Arc::clone(&old)], cleaned(&log, &[Arc::clone(&old)], |_| true));
    assert_eq!(read().unwrap().as_ref(), Some(record), "it is there as long as someone may need it");
    log.remove(&[old.id()]).unwrap();
    spoil(&old);
    assert_eq!(read().unwrap().as_ref(), Some(record), "it is in what took the place of its segment");
    let new = log.segments().remove(0);
    log.replace(&[Arc::clone(&new)], cleaned(&log, &[Arc::clone(&new)], |_| false));
    log.remove(&[new.id()]).unwrap();
    assert_eq!(read().unwrap(), None, "nobody needed it");
}
