use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pleach_engine::{EngineError, Headers, Key, Revision, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::record::{FLAG_HEADERS, FLAG_LZ4};
use super::segment::SegmentHeader;
use super::*;
use crate::faults::{DiskOp, Fault, SimDisk, Survival};
use crate::fields::Fields;

const KINDS: [RecordKind; 10] = [
    RecordKind::Put,
    RecordKind::Delete,
    RecordKind::Purge,
    RecordKind::Expire,
    RecordKind::Compact,
    RecordKind::CreateBucket,
    RecordKind::UpdateBucket,
    RecordKind::DeleteBucket,
    RecordKind::SetConsumer,
    RecordKind::DeleteConsumer,
];

pub(super) const STORE: StoreId = StoreId([7; 16]);

/// Where the first frame of a segment begins.
const HEADER_LEN: usize = SegmentHeader::BYTES_MAX;
const HEADER_BYTES: u64 = HEADER_LEN as u64;

fn keys() -> impl Strategy<Value = Key> {
    "[-a-zA-Z0-9/_=]{1,12}(\\.[a-z0-9]{1,6}){0,3}".prop_map(|text| Key::parse_reserved(text).unwrap())
}

fn payloads() -> impl Strategy<Value = Payload> {
    let headers = btree_map("[a-zA-Z0-9_-]{1,10}", "[ -~äß☃]{0,20}", 0..4).prop_map(|pairs| {
        let mut headers = Headers::new();
        pairs.iter().for_each(|(name, value)| headers.set(name, value).unwrap());
        headers
    });
    // Some values compress well, some do not.
    let values =
        prop_oneof![vec(any::<u8>(), 0..200), (any::<u8>(), 0..3000_usize).prop_map(|(b, n)| vec![b; n])];
    (headers, values, any::<bool>()).prop_map(|(headers, value, compressed)| {
        if compressed {
            Payload::compressed(headers, value.into())
        } else {
            Payload::plain(headers, value.into())
        }
    })
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_micros)
}

/// The records of a batch that begins at `first`, some of which may be gone.
fn records(first: u64) -> impl Strategy<Value = Vec<Record>> {
    let record =
        (0..KINDS.len(), keys(), times(), proptest::option::of(times()), payloads(), any::<[bool; 2]>());
    vec(record, 0..5).prop_map(move |records| {
        let numbered = records.into_iter().zip(0_u16..).filter(|((.., [kept, _]), _)| *kept);
        numbered
            .map(|((kind, key, time, expires, payload, [_, faded]), index)| {
                let revision = Revision::new(first + u64::from(index));
                Record { kind: KINDS[kind], key, revision, time, expires, payload, index, faded }
            })
            .collect()
    })
}

pub(super) fn header(kind: FrameKind, first: u64, durable: u64, size: u16) -> FrameHeader {
    let (first, durable) = (Revision::new(first), Revision::new(durable));
    FrameHeader { kind, body_len: 0, records: 0, first, durable, bucket: BucketId(3), size }
}

fn decode(bytes: &[u8], salt: u64, offset: u64) -> Option<Frame> {
    let bytes = Bytes::copy_from_slice(bytes);
    let binding = Binding { salt };
    let header = FrameHeader::decode(&bytes, binding.of(offset, Revision::ZERO))?;
    let end = FrameHeader::BYTES + header.body_len as usize;
    let body = (end <= bytes.len()).then(|| bytes.slice(FrameHeader::BYTES..end))?;
    let frame = Frame::from_body(header, &body, binding, offset);
    agrees(frame.as_ref(), SoundFrame::from_body(header, &body, binding, offset));
    frame
}

/// Both ways to read a frame find the same.
fn agrees(frame: Option<&Frame>, sound: Option<SoundFrame>) {
    let Some(frame) = frame else { return };
    let mut sound = sound.expect("its checksums are right");
    for (_, record) in frame.records.iter().filter(|(_, record)| record.kind.op().is_some()) {
        assert!(
            sound.has(|fields, revision| revision == record.revision && fields.key == record.key.as_bytes())
        );
        let change = sound.next_if(|fields, _| fields.kind.op().is_some()).unwrap().expect("another change");
        let (headers, value) = record.payload.clone().into_value().unwrap();
        let found = (&change.entry.key, change.entry.revision, change.entry.time, &change.entry.headers);
        assert_eq!(found, (&record.key, record.revision, record.time, &headers));
        assert_eq!((change.entry.value, Some(change.entry.op)), (value, record.kind.op()));
    }
    assert_eq!(sound.next_if(|fields, _| fields.kind.op().is_some()), Ok(None));
}

pub(super) fn put(at: u64, index: u16) -> Record {
    Record {
        kind: RecordKind::Put,
        key: Key::parse("a.key").unwrap(),
        revision: Revision::new(at),
        time: Timestamp::from_micros(at),
        expires: None,
        payload: Payload::plain(Headers::new(), Bytes::from(format!("value {at}"))),
        index,
        faded: false,
    }
}

pub(super) fn segment_header(salt: u64) -> SegmentHeader {
    let (format, id) = (SegmentHeader::FORMAT, SegmentId::new(Revision::new(1)));
    SegmentHeader { format, store: STORE, id, salt, previous: None }
}

/// A log of one segment, which holds `body` behind its header.
fn log_with(body: &[u8], salt: u64) -> (SimDisk, PathBuf, Arc<Log>) {
    let disk = SimDisk::default();
    let directory = Path::new("/log");
    let path = directory.join(SegmentId::new(Revision::new(1)).file_name());
    let header = segment_header(salt);
    disk.place(&path, &[&header.encode(), body].concat());
    let log = Log::open(Arc::new(disk.clone()), directory, STORE).unwrap();
    (disk, path, Arc::new(log))
}

/// Frames of one record each from revision 1 on, written one after the other; each was synced before the next.
fn frames(count: u64, salt: u64) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for revision in 1..=count {
        starts.push(bytes.len());
        let offset = HEADER_BYTES + bytes.len() as u64;
        let header = header(FrameKind::Commit, revision, revision - 1, 1);
        Frame::encode(header, &[put(revision, 0)], &mut bytes, Binding { salt }, offset);
    }
    (bytes, starts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_frame_is_read_as_it_was_written(
        records in records(100),
        salt: u64,
        offset in (0..1_u64 << 40).prop_map(|offset| offset * 8),
        durable: u64,
        bucket: u32,
    ) {
        let size = records.last().map_or(0, |record| record.index + 1);
        for kind in [FrameKind::Commit, FrameKind::Bucket, FrameKind::Mark, FrameKind::Upkeep, FrameKind::Consumer] {
            let written = FrameHeader { bucket: BucketId(bucket), ..header(kind, 100, durable, size) };
            let mut bytes = vec![9; 16];
            let (_, places) = Frame::encode(written, &records, &mut bytes, Binding { salt }, offset);
            let frame = decode(&bytes[16..], salt, offset).expect("a frame");
            let read = FrameHeader { body_len: 0, records: 0, ..frame.header };
            prop_assert_eq!(read, written);
            prop_assert_eq!(frame.header.frame_len(), bytes.len() as u64 - 16);
            prop_assert_eq!(bytes.len() % 8, 0);
            let found: Vec<_> = frame.records.iter().map(|(at, record)| (*at, record.encoded_len())).collect();
            prop_assert_eq!(found, places);
            prop_assert_eq!(frame.records.into_iter().map(|(_, record)| record).collect::<Vec<_>>(), records.clone());
        }
    }

    #[test]
    fn a_frame_elsewhere_is_no_frame(records in records(100), salt: u64, other: u64, offset in 0..1_u64 << 40, moved in 1..1000_u64) {
        let mut bytes = Vec::new();
        Frame::encode(header(FrameKind::Commit, 100, 0, 5), &records, &mut bytes, Binding { salt }, offset);
        prop_assert!(decode(&bytes, salt, offset).is_some());
        prop_assert!(decode(&bytes, salt, offset + moved).is_none());
        prop_assert!(decode(&bytes, salt ^ other.max(1), offset).is_none());
    }

    #[test]
    fn a_record_of_another_revision_is_not_taken_for_it(record in records(100), salt: u64, offset: u64, other in 1..1000_u64) {
        for record in record {
            let (binding, mut bytes) = (Binding { salt }, Vec::new());
            record.encode(&mut bytes, binding.of(offset, record.revision));
            let (bytes, revision) = (Bytes::from(bytes), record.revision);
            let later = revision.plus(other);
            prop_assert!(Record::decode(&bytes, later, binding.of(offset, later)).is_none());
            prop_assert_eq!(Record::decode(&bytes, revision, binding.of(offset, revision)), Some(record));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200), fields: [u64; 2], small: [u16; 2], flags: u8) {
        let bytes = Bytes::from(bytes);
        let binding = Binding { salt: fields[0] };
        let _ = FrameHeader::decode(&bytes, 0);
        let _ = Record::decode(&bytes, Revision::new(fields[0]), 0);
        let _ = Payload::decode(Fields(&bytes), flags, Bytes::copy_from_slice).map(Payload::into_value);
        let _ = SegmentHeader::decode(&bytes, Path::new("x"));
        let header = FrameHeader { records: small[0], ..header(FrameKind::Commit, fields[1], 0, small[1]) };
        let _ = Frame::from_body(header, &bytes, binding, 64);
        let _ = SoundFrame::from_body(header, &bytes, binding, 64);
    }

    #[test]
    fn nonsense_under_a_right_checksum_is_read_without_a_panic(mut bytes in vec(any::<u8>(), 22..200), kind in 0..12_u8, flags in 0..16_u8) {
        let len = u32::try_from(bytes.len()).unwrap();
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        (bytes[18], bytes[19], bytes[21]) = (kind, flags, 0);
        let checksum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        if let Some(record) = Record::decode(&bytes.clone().into(), Revision::new(1), 0) {
            let mut again = Vec::new();
            record.encode(&mut again, 0);
            prop_assert!(again.len() <= bytes.len());
            let _ = record.payload.into_value();
        }

        let mut frame = vec![0; FrameHeader::BYTES];
        let rest = bytes.len().min(32);
        frame[8..8 + rest].copy_from_slice(&bytes[bytes.len() - rest..]);
        frame[..4].copy_from_slice(b"PLfr");
        frame[12] = kind;
        let checksum = crc32fast::hash(&frame[8..]);
        frame[4..8].copy_from_slice(&checksum.to_le_bytes());
        if let Some(header) = FrameHeader::decode(&frame, 0) {
            prop_assert!(header.frame_len() >= FrameHeader::BYTES as u64);
            prop_assert!(header.last() >= header.first);
        }
    }

    #[test]
    fn a_segment_header_is_read_as_it_was_written(store: [u8; 16], first: u64, generation: u32, salt: u64, previous in proptest::option::of((1..=u64::MAX, any::<u64>()))) {
        let previous = previous.map(|(first, len)| (Revision::new(first), len));
        let id = SegmentId { first: Revision::new(first), generation };
        for format in 1..=SegmentHeader::FORMAT {
            // The first format knows no generations, and has two bytes that no checksum is over.
            let id = if format == 1 { SegmentId::new(id.first) } else { id };
            let header = SegmentHeader { format, store: StoreId(store), id, salt, previous };
            let bytes = header.encode();
            prop_assert_eq!(bytes.len() as u64, header.len());
            prop_assert_eq!(SegmentHeader::decode(&bytes, Path::new("x")).unwrap(), header);
            for at in (0..bytes.len()).filter(|at| format > 1 || !(10..12).contains(at)) {
                for bit in 0..8 {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    prop_assert!(SegmentHeader::decode(&flipped, Path::new("x")).is_err(), "byte {}", at);
                }
            }
            for len in 0..bytes.len() {
                prop_assert!(SegmentHeader::decode(&bytes[..len], Path::new("x")).is_err());
            }
        }
    }

    #[test]
    fn garbage_behind_the_last_frame_is_cut_off_and_kept(count in 0..3_u64, garbage in vec(any::<u8>(), 0..300), salt: u64) {
        let (bytes, _) = frames(count, salt);
        let (disk, path, log) = log_with(&[&bytes[..], &garbage].concat(), salt);
        let segment = log.last_segment().unwrap();
        let tail = Tail::recover(&log, &segment, Revision::ZERO).expect("no frame, so no damage");
        let end = HEADER_LEN + bytes.len();
        prop_assert_eq!(tail.last.get(), count);
        prop_assert_eq!((tail.empty, tail.clean), (count == 0, false));
        prop_assert_eq!(&disk.bytes(&path)[HEADER_LEN..], bytes);
        prop_assert_eq!(segment.len(), end as u64);
        let kept = PathBuf::from(format!("{}.cut-{end}", path.display()));
        if garbage.iter().any(|byte| *byte != 0) {
            prop_assert_eq!(disk.bytes(&kept), garbage);
        } else {
            prop_assert!(!disk.has(&kept));
        }
    }

    #[test]
    fn a_value_that_lies_about_its_length_is_refused(value in vec(any::<u8>(), 64..500), raw_len: u32) {
        let mut bytes = raw_len.to_le_bytes().to_vec();
        bytes.extend(lz4_flex::block::compress(&value));
        // Far above the largest value there can be: refused before anything is set aside for it.
        let decoded = Payload::decode(Fields(&bytes), FLAG_LZ4, Bytes::copy_from_slice);
        prop_assert_eq!(decoded.is_some(), raw_len <= VALUE_BYTES_MAX);
        if raw_len as usize != value.len() {
            prop_assert!(decoded.and_then(Payload::into_value).is_none());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_flipped_bit_of_a_frame_is_noticed(records in records(100), salt: u64) {
        let mut bytes = Vec::new();
        let size = records.last().map_or(0, |record| record.index + 1);
        let (_, places) = Frame::encode(header(FrameKind::Commit, 100, 0, size), &records, &mut bytes, Binding { salt }, 64);
        let end = places.last().map_or(FrameHeader::BYTES, |(at, len)| usize::try_from(*at).unwrap() - 64 + len);
        for at in 0..end {
            let bit = 1 << (at % 8);
            for mask in [bit, 0x80 ^ bit, 0xff] {
                bytes[at] ^= mask;
                prop_assert!(mask == 0 || decode(&bytes, salt, 64).is_none(), "byte {} of {}", at, end);
                bytes[at] ^= mask;
            }
        }
        prop_assert!(decode(&bytes, salt, 64).is_some());
    }
}

#[test]
fn every_single_flipped_bit_of_a_synced_frame_is_reported_and_nothing_is_cut() {
    let (bytes, starts) = frames(3, 11);
    for at in 0..starts[2] {
        let frame = starts.iter().rposition(|start| *start <= at).unwrap();
        // The record's value ends a frame; up to seven bytes of padding follow.
        let end = starts[frame] + FrameHeader::BYTES + put(1 + frame as u64, 0).encoded_len();
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let (disk, path, log) = log_with(&damaged, 11);
            let result = Tail::recover(&log, &log.last_segment().unwrap(), Revision::ZERO);
            if at >= end {
                assert_eq!(result.expect("padding carries nothing").last, Revision::new(3));
                continue;
            }
            let Err(EngineError::Corrupt { offset, .. }) = result else { panic!("byte {at}: {result:?}") };
            assert_eq!(offset, HEADER_BYTES + starts[frame] as u64);
            assert_eq!(&disk.bytes(&path)[HEADER_LEN..], damaged, "nothing is repaired by deletion");
        }
    }
}

#[test]
fn a_tail_cut_at_any_byte_ends_with_the_last_whole_frame() {
    let (bytes, starts) = frames(3, 11);
    for len in 0..bytes.len() {
        let (_, _, log) = log_with(&bytes[..len], 11);
        let tail = Tail::recover(&log, &log.last_segment().unwrap(), Revision::ZERO).unwrap();
        let whole = starts[1..].iter().filter(|start| **start <= len).count() as u64;
        assert_eq!(tail.last.get(), whole, "{len} bytes");
    }
}

#[test]
fn frames_left_over_from_a_segment_before_are_not_replayed() {
    let (bytes, _) = frames(3, 11);
    let (_, _, log) = log_with(&bytes, 12);
    let tail = Tail::recover(&log, &log.last_segment().unwrap(), Revision::ZERO).unwrap();
    assert!(tail.empty);
}

#[test]
fn a_segment_of_a_newer_format_is_not_called_damaged() {
    let mut bytes = segment_header(1).encode();
    bytes[8] = 3;
    let error = SegmentHeader::decode(&bytes, Path::new("x")).unwrap_err();
    assert!(matches!(error, EngineError::UnknownFormat { found: 3, supported: 2, .. }), "{error}");
}

#[test]
fn a_headers_block_that_ends_inside_a_header_is_refused() {
    for block in [&[1, 0, 1][..], &[4, 0, 1, 0, 1, 0], &[5, 0, 1, 0, 0, 0, b'!']] {
        assert!(Payload::decode(Fields(block), FLAG_HEADERS, Bytes::copy_from_slice).is_none(), "{block:?}");
    }
    assert!(
        Payload::decode(Fields(&[5, 0, 1, 0, 0, 0, b'n']), FLAG_HEADERS, Bytes::copy_from_slice).is_some()
    );
}

/// A writer on an empty log, with segments of `segment_bytes`.
pub(super) fn writer(disk: &SimDisk, segment_bytes: u64) -> (LogWriter, Arc<Log>) {
    let log = Arc::new(Log::open(Arc::new(disk.clone()), Path::new("/log"), STORE).unwrap());
    let tail = log.last_segment().map(|segment| Tail::recover(&log, &segment, Revision::ZERO).unwrap());
    (LogWriter::after(&log, tail, segment_bytes).unwrap(), log)
}

pub(super) fn append(writer: &mut LogWriter, count: u16) -> Vec<Position> {
    let first = writer.last().next();
    let records: Vec<_> = (0..count).map(|index| put(first.plus(index.into()).get(), index)).collect();
    writer.append(FrameKind::Commit, BucketId(1), &records)
}

/// A log of as many segments as there are buckets in `segments`, the last of which is not finished; each holds
/// `count` commits of one record to its bucket.
pub(super) fn segments_of(disk: &SimDisk, segments: &[u32], count: u64) -> Arc<Log> {
    let (mut writer, log) = writer(disk, 100);
    for (number, bucket) in segments.iter().enumerate() {
        for _ in 0..count {
            let record = put(writer.last().next().get(), 0);
            writer.append(FrameKind::Commit, BucketId(*bucket), &[record]);
            writer.write(true).unwrap();
        }
        if number + 1 < segments.len() {
            writer.roll_if_full().unwrap();
        }
    }
    log
}

/// A segment that takes the place of `run`, with those of its records that are to be kept; not yet in the log.
pub(crate) fn cleaned(log: &Log, run: &[Arc<Segment>], keep: impl Fn(&Record) -> bool) -> Arc<Segment> {
    let generation = run.iter().map(|segment| segment.id().generation).max().unwrap() + 1;
    let id = SegmentId { first: run[0].first(), generation };
    let new = SegmentHeader { id, salt: 99, ..run[0].header };
    let new = Segment::prepare(&*log.disk, &log.directory, SegmentHeader { format: 2, ..new }).unwrap();
    let (mut footer, mut bytes) = (Footer::empty(id.first), Vec::new());
    for segment in run {
        let mut frames = SegmentFrames::of(segment);
        while let Some((_, frame)) = frames.next().unwrap() {
            footer.last = footer.last.max(frame.header.last());
            let records: Vec<_> = frame.records.into_iter().map(|(_, record)| record).filter(&keep).collect();
            let offset = new.len() + bytes.len() as u64;
            if !records.is_empty() {
                let (header, _) = Frame::encode(frame.header, &records, &mut bytes, new.binding(), offset);
                footer.add(&FrameSummary::new(header, offset, &records));
            }
        }
    }
    bytes.extend(footer.encode(new.binding(), new.len() + bytes.len() as u64));
    new.file.write_at(&bytes, new.len()).unwrap();
    new.set_len(new.len() + bytes.len() as u64);
    new.sync().unwrap();
    new.finish(footer);
    new.publish(&*log.disk).unwrap();
    Arc::new(new)
}

/// The names of segments, and how often they were cleaned.
pub(super) fn names(segments: &[Arc<Segment>]) -> Vec<(u64, u32)> {
    segments.iter().map(|segment| (segment.first().get(), segment.id().generation)).collect()
}

#[test]
fn a_segment_has_one_name_and_no_other_name_is_taken_for_it() {
    for (first, generation, name) in [
        (1, 0, "00000000000000000001.log"),
        (1, 3, "00000000000000000001-3.log"),
        (u64::MAX, u32::MAX, "18446744073709551615-4294967295.log"),
    ] {
        let id = SegmentId { first: Revision::new(first), generation };
        assert_eq!((id.file_name().as_str(), SegmentId::parse(name)), (name, Some(id)));
    }
    for name in [
        "1.log",
        "00000000000000000001",
        "00000000000000000001.tmp",
        "00000000000000000001-0.log",
        "00000000000000000001-03.log",
        "00000000000000000001-+3.log",
        "00000000000000000001-.log",
        "00000000000000000001-3-4.log",
        "+0000000000000000001.log",
        "00000000000000000001-4294967296.log",
        "18446744073709551616.log",
        "00000000000000000001.log.cut-80",
    ] {
        assert_eq!(SegmentId::parse(name), None, "{name}");
    }
}

#[test]
fn what_was_written_is_read_across_segments() {
    let disk = SimDisk::default();
    let (mut writer, log) = writer(&disk, 100);
    let mut positions = Vec::new();
    for count in 1..6 {
        positions.extend(append(&mut writer, count));
        writer.write(true).unwrap();
        writer.roll_if_full().unwrap();
    }
    assert_eq!(log.segments().len(), 6);
    let key = Key::parse("a.key").unwrap();
    for (position, revision) in positions.iter().zip(1..) {
        let record = log.read(*position, &key, Revision::new(revision)).unwrap().unwrap();
        assert_eq!(record.payload.value, format!("value {revision}"));
        assert!(log.read(*position, &Key::parse("another").unwrap(), Revision::new(revision)).is_err());
    }
    let mut reader = LogReader::from(&log, Revision::new(1));
    let mut last = Revision::ZERO;
    while let Some((_, frame)) = reader.next().unwrap() {
        assert_eq!(frame.header.first, last.next());
        last = frame.header.last();
    }
    assert_eq!(last.get(), 15);
}

#[test]
fn a_log_goes_on_in_its_segment_after_a_clean_close_only() {
    let disk = SimDisk::default();
    let (mut first, _) = writer(&disk, 10_000);
    append(&mut first, 2);
    first.write(true).unwrap();
    first.close().unwrap();
    let (mut second, log) = writer(&disk, 10_000);
    assert_eq!((second.last().get(), log.segments().len()), (2, 1));
    append(&mut second, 1);
    second.write(true).unwrap();
    let (third, log) = writer(&disk, 10_000);
    assert_eq!((third.last().get(), log.segments().len()), (3, 2));
}

/// Marks that a failed sync had lost were once written behind, and what was behind was lost with them.
#[test]
fn what_is_written_after_a_clean_close_takes_the_place_of_the_mark() {
    let disk = SimDisk::default();
    let path = PathBuf::from("/log").join(SegmentId::new(Revision::new(1)).file_name());
    let (mut first, _) = writer(&disk, 10_000);
    append(&mut first, 1);
    first.write(true).unwrap();
    let marked_from = disk.bytes(&path).len();
    disk.fail(DiskOp::Sync, 0, Fault::Io);
    assert!(first.close().is_err(), "the mark is lost");
    let (mut second, _) = writer(&disk, 10_000);
    assert_eq!(append(&mut second, 1)[0].offset, (marked_from + FrameHeader::BYTES) as u64);
    second.write(true).unwrap();
    disk.power_cycle(Survival::Synced);
    assert_eq!(writer(&disk, 10_000).0.last(), Revision::new(2), "what was acknowledged is there");
}

#[test]
fn a_segment_that_still_ends_with_a_mark_is_not_followed_by_another() {
    let disk = SimDisk::default();
    let (mut first, _) = writer(&disk, 1);
    append(&mut first, 1);
    first.write(true).unwrap();
    first.close().unwrap();
    let (mut second, _) = writer(&disk, 1);
    second.roll_if_full().unwrap();
    assert_eq!(writer(&disk, 1).1.segments().len(), 1);
    append(&mut second, 1);
    second.write(true).unwrap();
    second.roll_if_full().unwrap();
    assert_eq!(writer(&disk, 1).0.last(), Revision::new(2), "the chain of segments holds");
}

/// A log was once taken for durable because it could be read.
#[test]
fn what_a_failed_sync_lost_is_written_again_when_the_log_is_opened() {
    let disk = SimDisk::default();
    let (mut first, _) = writer(&disk, 10_000);
    append(&mut first, 1);
    first.write(true).unwrap();
    append(&mut first, 2);
    disk.fail(DiskOp::Sync, 0, Fault::Io);
    assert!(first.write(true).is_err());
    let (mut second, _) = writer(&disk, 10_000);
    assert_eq!(second.last(), Revision::new(3), "it can still be read");
    append(&mut second, 1);
    second.write(true).unwrap();
    disk.power_cycle(Survival::Synced);
    assert_eq!(writer(&disk, 10_000).0.last(), Revision::new(4));
}

/// Such a segment was once given its own name as that of the segment before it, and the store did not open
/// again.
#[test]
fn a_segment_with_marks_only_and_a_torn_write_gives_its_place_to_a_new_one() {
    let disk = SimDisk::default();
    writer(&disk, 10_000).0.close().unwrap();
    let (mut torn, log) = writer(&disk, 10_000);
    append(&mut torn, 1);
    torn.write(true).unwrap();
    let segment = log.last_segment().unwrap();
    segment.file.truncate(segment.len() - 8).unwrap();
    for _ in 0..3 {
        let (writer, log) = writer(&disk, 10_000);
        assert_eq!((writer.last().get(), log.segments().len()), (0, 1));
    }
}

#[test]
fn a_sync_that_failed_for_another_thread_fails_for_the_writer_too() {
    let disk = SimDisk::default();
    let (mut writer, log) = writer(&disk, 10_000);
    append(&mut writer, 1);
    writer.write(false).unwrap();
    disk.fail(DiskOp::Sync, 0, Fault::Io);
    assert!(log.last_segment().unwrap().sync().is_err());
    append(&mut writer, 1);
    assert!(matches!(writer.write(true), Err(WriteError::Poisoned(_))), "the operating system says it once");
}

#[test]
fn nothing_is_written_after_a_failure_that_leaves_the_disk_unknown() {
    for op in [DiskOp::Write, DiskOp::Sync] {
        let disk = SimDisk::default();
        let (mut writer, _) = writer(&disk, 10_000);
        append(&mut writer, 1);
        disk.fail(op, 0, Fault::Io);
        assert!(matches!(writer.write(true), Err(WriteError::Poisoned(_))));
        let writes = disk.writes();
        append(&mut writer, 1);
        assert!(matches!(writer.write(true), Err(WriteError::Poisoned(_))));
        assert!(matches!(writer.roll_if_full(), Ok(()) | Err(WriteError::Poisoned(_))));
        assert_eq!(disk.writes(), writes, "{op:?}");
    }
}
