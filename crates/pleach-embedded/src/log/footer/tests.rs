use std::path::Path;
use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::faults::SimDisk;
use crate::log::tests::{segment_header, segments_of};
use crate::log::{Log, SegmentId};

fn summaries() -> impl Strategy<Value = BucketSummary> {
    any::<[u64; 6]>().prop_map(|[records, bytes, last, time, dropped, forgotten]| BucketSummary {
        records,
        bytes,
        last: Revision::new(last),
        time: Timestamp::from_micros(time),
        dropped: Revision::new(dropped),
        forgotten: Revision::new(forgotten),
    })
}

fn footers() -> impl Strategy<Value = Footer> {
    let buckets = btree_map(any::<u32>().prop_map(BucketId), summaries(), 0..4);
    let strides = vec((any::<u64>().prop_map(Revision::new), any::<u64>()), 0..4);
    // There is room for a revision after the last one.
    (0..u64::MAX / 2, any::<u64>(), any::<u32>(), any::<u64>(), buckets, strides).prop_map(
        |(last, cleaned_at, next_bucket, shadow_bytes, buckets, strides)| Footer {
            last: Revision::new(last),
            cleaned_at: Revision::new(cleaned_at),
            index_at: Revision::new(cleaned_at / 2),
            time: Timestamp::from_micros(shadow_bytes),
            next_bucket: BucketId(next_bucket),
            shadow_bytes,
            buckets,
            strides,
        },
    )
}

fn decode(bytes: &[u8], binding: Binding, offset: u64) -> Option<Footer> {
    Footer::in_frame(&Bytes::copy_from_slice(bytes), binding, offset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_footer_is_read_as_it_was_written(footer in footers(), salt: u64, offset in 0..1_u64 << 40) {
        let binding = Binding::new(salt);
        let bytes = footer.encode(binding, offset);
        prop_assert_eq!(decode(&bytes, binding, offset), Some(footer));
        let trailer = bytes.len() - usize::try_from(Footer::TRAILER_BYTES).unwrap();
        prop_assert_eq!(Footer::place(Bytes::copy_from_slice(&bytes[trailer..]), binding), Some(offset));
        prop_assert_eq!(decode(&bytes, binding, offset + 8), None, "it is bound to its place");
        prop_assert_eq!(decode(&bytes, Binding::new(!salt), offset), None, "it is bound to its segment");
        let frame = [&bytes[..], &[0; 8]].concat();
        prop_assert_eq!(decode(&frame, binding, offset), None, "it ends where the segment does");
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..300), offset: u32) {
        let binding = Binding::new(1);
        let _ = Footer::decode(&Bytes::copy_from_slice(&bytes), 0);
        let _ = decode(&bytes, binding, offset.into());
        let _ = Footer::place(Bytes::copy_from_slice(&bytes), binding);
        if bytes.len() >= 4 {
            // Nonsense under a right checksum.
            let mut body = bytes;
            let checksum = crc32fast::hash(&body[4..]);
            body[..4].copy_from_slice(&checksum.to_le_bytes());
            let _ = Footer::decode(&body.into(), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_flipped_bit_of_a_footer_is_noticed(footer in footers(), salt: u64) {
        let (binding, offset) = (Binding::new(salt), 80);
        let mut bytes = footer.encode(binding, offset);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&bytes, binding, offset), None, "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..len], binding, offset), None, "{} bytes", len);
        }
    }
}

#[test]
fn a_finished_segment_is_opened_with_its_footer() {
    let disk = SimDisk::default();
    let log = segments_of(&disk, &[1, 2], 3);
    let first = &log.segments()[0];
    let found = Segment::open(&disk, first.path.clone()).unwrap();
    assert_eq!(found.footer(), first.footer());
    let footer = found.footer().unwrap();
    assert_eq!((footer.last, footer.cleaned_at), (Revision::new(3), Revision::ZERO));
    let bucket = footer.buckets[&BucketId(1)];
    assert_eq!((bucket.records, bucket.last, bucket.time.as_micros()), (3, Revision::new(3), 3));
    assert_eq!(footer.buckets.len(), 1);
    assert_eq!(footer.strides, [(Revision::new(1), first.header.len())]);
    assert!(log.segments()[1].footer().is_none(), "it is not finished");
}

#[test]
fn a_segment_whose_footer_is_damaged_anywhere_is_opened_without_one() {
    let whole = SimDisk::default();
    let log = segments_of(&whole, &[1, 2], 1);
    let (first, path) = (log.segments().remove(0), Path::new("/log/damaged.log"));
    let bytes = whole.bytes(&first.path);
    let footer = first.footer().unwrap().encode(first.binding(), 0).len();
    for at in bytes.len() - footer..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let disk = SimDisk::default();
        disk.place(path, &damaged);
        assert_eq!(Segment::open(&disk, path.into()).unwrap().footer(), None, "byte {at}");
    }
}

/// A trailer that points anywhere must not be followed out of the segment.
#[test]
fn a_trailer_that_points_outside_its_segment_is_none() {
    let header = segment_header(7);
    let binding = Binding::new(7);
    for place in [0, header.len() - 8, 81, 1 << 50, 1 << 63] {
        let footer = Footer::empty(Revision::new(1)).encode(binding, place);
        let bytes = [&header.encode()[..], &footer].concat();
        let disk = SimDisk::default();
        disk.place(Path::new("/log/x.log"), &bytes);
        assert_eq!(Segment::open(&disk, "/log/x.log".into()).unwrap().footer(), None, "{place}");
    }
}

#[test]
fn reading_for_a_revision_begins_at_the_last_stride_before_it() {
    let strides = vec![(Revision::new(5), 80), (Revision::new(9), 1000)];
    let footer = Footer { strides, ..Footer::default() };
    let at = |revision| footer.offset_for(Revision::new(revision));
    assert_eq!([at(4), at(5), at(8), at(9), at(99)], [None, Some(80), Some(80), Some(1000), Some(1000)]);
}

#[test]
fn a_footer_fits_what_it_was_made_from_and_nothing_else() {
    let counted = footer_of_segment();
    assert!(counted.fits(&counted));
    let known = |change: fn(&mut Footer)| {
        let mut footer = counted.clone();
        change(&mut footer);
        footer.fits(&counted)
    };
    assert!(known(|footer| footer.last = Revision::new(9)), "records at its end are gone");
    assert!(known(|footer| *footer.buckets.entry(BucketId(8)).or_default() = BucketSummary::default()));
    assert!(known(|footer| bucket_in(footer).dropped = Revision::new(2)));
    assert!(!known(|footer| footer.last = Revision::new(1)));
    assert!(!known(|footer| footer.buckets.clear()));
    assert!(!known(|footer| bucket_in(footer).records -= 1));
    assert!(!known(|footer| bucket_in(footer).last = Revision::new(1)));
    assert!(!known(|footer| footer.strides.clear()));
    assert!(!known(|footer| footer.shadow_bytes += 1));
}

fn footer_of_segment() -> Footer {
    let log: Arc<Log> = segments_of(&SimDisk::default(), &[1, 2], 3);
    let segment = log.segments().remove(0);
    assert_eq!(segment.id(), SegmentId::new(Revision::new(1)));
    segment.footer().cloned().expect("it is finished")
}

fn bucket_in(footer: &mut Footer) -> &mut BucketSummary {
    footer.buckets.entry(BucketId(1)).or_default()
}
