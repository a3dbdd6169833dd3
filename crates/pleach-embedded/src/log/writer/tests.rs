use std::path::{Path, PathBuf};

use super::*;
use crate::faults::{Fault, SimDisk};
use crate::log::LogReader;
use crate::log::tests::{append, header, names, put, segment_header, writer};

/// How many commits can be read.
fn count(log: &Arc<Log>) -> u64 {
    let mut reader = LogReader::from(log, Revision::new(1));
    let mut count = 0;
    while let Some((_, frame)) = reader.next().expect("a sound log") {
        count += u64::from(frame.header.kind == FrameKind::Commit);
    }
    count
}

#[test]
fn a_segment_that_is_followed_by_another_ends_with_its_footer() {
    let disk = SimDisk::default();
    let (mut writer, log) = writer(&disk, 100);
    for bucket in [1, 2, 1] {
        let record = put(writer.last().next().get(), 0);
        writer.append(FrameKind::Commit, BucketId(bucket), &[record]);
        writer.write(true).unwrap();
    }
    let (first, len) = (log.segments().remove(0), log.segments()[0].len());
    writer.roll_if_full().unwrap();
    let footer = first.footer().expect("it is finished").clone();
    assert_eq!(first.len(), len + footer.encode(first.binding(), len).len() as u64);
    assert_eq!(
        footer.buckets.iter().map(|(id, bucket)| (id.0, bucket.records)).collect::<Vec<_>>(),
        [(1, 2), (2, 1)]
    );
    assert_eq!(footer.buckets.values().map(|bucket| bucket.bytes).sum::<u64>(), len - first.header.len());
    let found = Segment::open(&disk, first.path.clone()).unwrap();
    assert_eq!(found.footer(), Some(&footer));
}

#[test]
fn a_footer_also_knows_what_was_written_before_a_clean_close() {
    let disk = SimDisk::default();
    let (mut first, _) = writer(&disk, 10_000);
    append(&mut first, 2);
    first.write(true).unwrap();
    first.close().unwrap();
    let (mut second, log) = writer(&disk, 100);
    append(&mut second, 1);
    second.write(true).unwrap();
    second.roll_if_full().unwrap();
    let segments = log.segments();
    assert_eq!(names(&segments), [(1, 0), (4, 0)]);
    assert_eq!(segments[0].footer().unwrap().buckets[&BucketId(1)].records, 3);
}

/// Whichever step of it fails for want of space, a log that cannot start a new segment loses nothing, and goes on
/// unless it is not known what is on the disk.
#[test]
fn a_log_without_space_for_a_new_segment_goes_on() {
    let (mut refused, mut poisoned) = (0, 0);
    for step in 0.. {
        let disk = SimDisk::default();
        let (mut first, log) = writer(&disk, 100);
        append(&mut first, 2);
        first.write(true).unwrap();
        disk.fail_any(step, Fault::Full);
        let rolled = first.roll_if_full();
        if !disk.has_failed() {
            break;
        }
        let mut commits = 1;
        match rolled {
            Err(WriteError::Poisoned(_)) => poisoned += 1,
            Ok(()) | Err(WriteError::Refused(_)) => {
                refused += 1;
                append(&mut first, 1);
                first.write(true).unwrap();
                first.roll_if_full().unwrap();
                append(&mut first, 1);
                first.write(true).unwrap();
                commits += 2;
                assert_eq!((count(&log), log.segments().len()), (commits, 2), "step {step}");
            }
        }
        drop((first, log));
        disk.power_cycle(crate::faults::Survival::Synced);
        let (mut second, log) = writer(&disk, 100);
        assert_eq!(count(&log), commits, "step {step}");
        append(&mut second, 1);
        second.write(true).unwrap();
        assert_eq!(count(&writer(&disk, 100).1), commits + 1, "step {step}");
    }
    // The new file, its header, its sync, the footer and the new name are refused. What nobody knows after it has
    // failed is the sync of the old segment, and that of the directory.
    assert_eq!((refused, poisoned), (5, 2));
}

#[test]
fn a_full_disk_refuses_a_new_segment_until_there_is_space() {
    let disk = SimDisk::default();
    let (mut writer, log) = writer(&disk, 100);
    append(&mut writer, 2);
    writer.write(true).unwrap();
    disk.set_full(true);
    for _ in 0..3 {
        assert!(matches!(writer.roll_if_full(), Err(WriteError::Refused(_))));
        append(&mut writer, 1);
        assert!(matches!(writer.write(true), Err(WriteError::Refused(_))));
    }
    disk.set_full(false);
    append(&mut writer, 1);
    writer.write(true).unwrap();
    writer.roll_if_full().unwrap();
    assert_eq!((count(&log), log.segments().len()), (2, 2));
}

/// The machine stopped between the end of a segment and the beginning of the next.
#[test]
fn a_log_whose_last_segment_is_finished_goes_on_in_a_new_one() {
    let disk = SimDisk::default();
    let (mut first, log) = writer(&disk, 100);
    append(&mut first, 2);
    first.write(true).unwrap();
    first.roll_if_full().unwrap();
    let (old, new) = (log.segments().remove(0), log.segments().remove(1));
    crate::disk::Disk::remove(&disk, &new.path).unwrap();
    let before = disk.bytes(&old.path);
    let (mut second, log) = writer(&disk, 100);
    assert_eq!(names(&log.segments()), [(1, 0), (3, 0)]);
    append(&mut second, 1);
    second.write(true).unwrap();
    assert_eq!(disk.bytes(&old.path), before);
    assert_eq!(count(&writer(&disk, 100).1), 2);
}

#[test]
fn a_segment_of_the_first_format_is_never_appended_to() {
    for (frames, closed) in [(0, false), (0, true), (3, false), (3, true)] {
        let disk = SimDisk::default();
        let path = PathBuf::from("/log").join(SegmentId::new(Revision::new(1)).file_name());
        let old = SegmentHeader { format: 1, ..segment_header(5) };
        let mut bytes = old.encode();
        for revision in 1..=frames {
            let (header, offset) = (header(FrameKind::Commit, revision, revision - 1, 1), bytes.len() as u64);
            Frame::encode(header, &[put(revision, 0)], &mut bytes, crate::log::Binding::new(5), offset);
        }
        if closed {
            let (header, offset) = (header(FrameKind::Mark, frames, frames, 0), bytes.len() as u64);
            Frame::encode(header, &[], &mut bytes, crate::log::Binding::new(5), offset);
        }
        disk.place(&path, &bytes);
        let (mut first, _) = writer(&disk, 10_000);
        append(&mut first, 1);
        first.write(true).unwrap();
        first.close().unwrap();
        let segment = Segment::open(&disk, path.clone()).unwrap();
        if frames > 0 {
            assert_eq!(disk.bytes(&path), bytes, "the old segment is as it was");
            let (_, log) = writer(&disk, 10_000);
            assert_eq!(names(&log.segments()), [(1, 0), (4, 0)]);
            assert_eq!(log.segments()[1].header.previous, Some((Revision::new(1), bytes.len() as u64)));
        } else {
            assert_eq!(
                segment.header.format,
                SegmentHeader::FORMAT,
                "an empty one gave its place to a new one"
            );
        }
        assert_eq!(count(&writer(&disk, 10_000).1), frames + 1);
    }
}

#[test]
fn frames_of_another_log_keep_their_revisions() {
    let disk = SimDisk::default();
    let (mut copy, log) = writer(&disk, 10_000);
    let skipped = FrameHeader { size: u16::MAX, ..header(FrameKind::Upkeep, 1, 0, 0) };
    copy.append_as(skipped, &[]);
    let kept = put(u64::from(u16::MAX) + 2, 1);
    let first = Revision::new(u64::from(u16::MAX) + 1);
    copy.append_as(
        FrameHeader { first, size: 3, ..header(FrameKind::Commit, 1, 0, 0) },
        std::slice::from_ref(&kept),
    );
    copy.write(true).unwrap();
    assert_eq!(copy.last(), Revision::new(u64::from(u16::MAX) + 3));
    let mut reader = LogReader::from(&log, Revision::new(2));
    assert_eq!(reader.next().unwrap().unwrap().1.header.kind, FrameKind::Upkeep);
    let (_, frame) = reader.next().unwrap().unwrap();
    assert_eq!((frame.header.first, frame.header.size), (first, 3));
    assert_eq!(frame.records[0].1, kept);
    assert_eq!(writer(&disk, 10_000).0.last(), copy.last());
    assert!(disk.has(Path::new("/log/00000000000000000001.log")));
}

#[test]
fn what_is_inherited_is_in_the_footer_of_the_segment_that_it_ends() {
    let disk = SimDisk::default();
    let (mut writer, log) = writer(&disk, 10_000);
    let gone = BucketSummary { dropped: Revision::new(7), ..BucketSummary::default() };
    let inherited = BTreeMap::from([(BucketId(1), gone), (BucketId(4), gone)]);
    writer.inherit(&inherited, BucketId(9)).unwrap();
    assert_eq!(log.segments().len(), 1, "a segment with nothing in it has no end");
    append(&mut writer, 1);
    writer.write(true).unwrap();
    writer.inherit(&inherited, BucketId(9)).unwrap();
    assert_eq!(log.segments().len(), 2);
    let found = Segment::open(&disk, log.segments()[0].path.clone()).unwrap();
    let footer = found.footer().unwrap();
    assert_eq!(footer.next_bucket, BucketId(9));
    let summary = |id| (footer.buckets[&BucketId(id)].records, footer.buckets[&BucketId(id)].dropped.get());
    assert_eq!((summary(1), summary(4)), ((1, 7), (0, 7)));
}
