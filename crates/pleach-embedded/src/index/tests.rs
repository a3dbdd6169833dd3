use std::ops::Bound;

use bytes::Bytes;
use pleach_engine::{BucketConfig, BucketName, Headers, Key, Op, Revision, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::catalog::Bucket;
use crate::faults::SimDisk;
use crate::log::{BucketId, Payload, Position, SegmentId, StoreId};

fn keys() -> impl Strategy<Value = Key> {
    "[-a-zA-Z0-9/_=]{1,6}(\\.[a-z0-9]{1,3}){0,2}".prop_map(|text| Key::parse_reserved(text).unwrap())
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_micros)
}

/// Numbers of every length.
fn numbers() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

/// A revision, and where its record is: in a segment that does not begin after it.
fn places() -> impl Strategy<Value = (Revision, Position)> {
    let place = |(revision, before, generation, offset, len): (u64, u64, u32, u64, u32)| {
        let segment = SegmentId { first: Revision::new(revision - before.min(revision)), generation };
        (Revision::new(revision), Position { segment, offset, len })
    };
    let generations = prop_oneof![Just(0), any::<u32>()];
    (numbers(), numbers(), generations, numbers(), any::<u32>()).prop_map(place)
}

fn heads() -> impl Strategy<Value = Head> {
    let ops = prop_oneof![Just(Op::Put), Just(Op::Delete), Just(Op::Purge), Just(Op::Expire)];
    let payload = (vec(any::<u8>(), 0..300), any::<bool>(), 0..3).prop_map(|(value, named, form)| {
        let mut headers = Headers::new();
        if named {
            headers.set("origin", "a test").unwrap();
        }
        match form {
            0 => Payload::plain(headers, Bytes::new()),
            1 => Payload::plain(headers, value.into()),
            _ => Payload::compressed(headers, Bytes::from(vec![1; 200])),
        }
    });
    let past = places().prop_map(|(revision, position)| Past { revision, position });
    (ops, places(), times(), option::of(times()), payload, vec(past, 0..64)).prop_map(
        |(op, (revision, position), time, expires, payload, past)| {
            let inline = !payload.value.is_empty();
            Head { op, revision, time, expires, position, payload, inline, past }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_head_is_read_as_it_was_written(head in heads()) {
        prop_assert_eq!(Head::decode(&head.encode()), Some(head));
    }

    #[test]
    fn a_shortened_head_is_damage_unless_only_its_value_is_shorter(head in heads()) {
        let bytes = head.encode();
        let value = head.payload.value.len();
        for len in 0..bytes.len() - value {
            prop_assert_eq!(Head::decode(&bytes.slice(..len)), None, "{} bytes", len);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..120), name in vec(any::<u8>(), 0..8)) {
        let bytes = Bytes::from(bytes);
        let _ = Head::decode(&bytes);
        let _ = Meta::decode(bytes.clone());
        let _ = Bucket::decode(&name, bytes.clone());
        let _ = decode_expiry_key(&bytes);
        let _ = key_of_head(&bytes);
    }

    #[test]
    fn a_meta_is_read_as_it_was_written(store: [u8; 16], applied: u64, time in times(), next: u32) {
        let (applied, built_over) = (Revision::new(applied), Revision::new(applied / 2));
        let meta = Meta { store: StoreId(store), applied, time, next_bucket: BucketId(next), built_over };
        let bytes = meta.encode();
        prop_assert_eq!(Meta::decode(bytes.clone()), Some(meta));
        prop_assert_eq!(Meta::decode([&bytes[..], &[0]].concat().into()), None);
        for len in 0..bytes.len() {
            prop_assert_eq!(Meta::decode(bytes.slice(..len)), None);
        }
    }

    #[test]
    fn a_bucket_is_read_as_it_was_written(id: u32, created in times(), created_at in 0..u64::MAX, last: u64, history in 1..=64_u8) {
        let config = BucketConfig { history: history.try_into().unwrap(), ..BucketConfig::default() };
        let name = BucketName::parse("b").unwrap();
        let bucket = Bucket::new(BucketId(id), name, config, Revision::new(created_at), created);
        bucket.set_last(Revision::new(last));
        let bytes = bucket.encode().unwrap();
        let read = Bucket::decode(b"b", bytes.clone()).unwrap();
        prop_assert_eq!(read.encode().unwrap(), bytes.clone());
        prop_assert_eq!(read.info(), bucket.info());
        prop_assert!(Bucket::decode(b"not a name", bytes.clone()).is_none());
        for len in 0..bytes.len() {
            prop_assert!(Bucket::decode(b"b", bytes.slice(..len)).is_none());
        }
    }

    #[test]
    fn notes_about_expiry_sort_by_time_and_come_apart_again(a in (times(), any::<u32>(), keys()), b in (times(), any::<u32>(), keys())) {
        let note = |(at, bucket, key): &(Timestamp, u32, Key)| IndexKey::expiry(*at, BucketId(*bucket), key);
        prop_assert_eq!(note(&a).cmp(&note(&b)), (a.0, a.1, a.2.as_bytes()).cmp(&(b.0, b.1, b.2.as_bytes())));
        prop_assert_eq!(decode_expiry_key(&note(&a)), Some((a.0, BucketId(a.1), a.2.clone())));
        prop_assert_eq!(note(&a) >= IndexKey::expiries_from(b.0), a.0 >= b.0);
    }

    #[test]
    fn heads_of_a_bucket_stand_together_in_the_order_of_their_keys(
        a in (any::<u32>(), keys()),
        b in (any::<u32>(), keys()),
        bucket: u32,
    ) {
        let head = |(bucket, key): &(u32, Key)| IndexKey::head(BucketId(*bucket), key.as_bytes());
        prop_assert_eq!(head(&a).cmp(&head(&b)), (a.0, a.1.as_bytes()).cmp(&(b.0, b.1.as_bytes())));
        prop_assert_eq!(key_of_head(&head(&a)), Some(a.1.clone()));
        for bucket in [bucket, a.0, u32::MAX] {
            let prefix = IndexKey::head(BucketId(bucket), &[]);
            let inside = prefix <= head(&a) && head(&a) < IndexKey::after(&prefix);
            prop_assert_eq!(inside, bucket == a.0);
        }
        let others = [
            IndexKey::meta(),
            IndexKey::bucket(&BucketName::parse("b").unwrap()),
            IndexKey::expiry(Timestamp::default(), BucketId(a.0), &a.1),
        ];
        let prefix = IndexKey::head(BucketId(a.0), &[]);
        for other in others {
            prop_assert!(other < prefix || other >= IndexKey::after(&prefix), "{:?}", other);
        }
    }
}

/// Reads a variable-length number as part of a head.
fn revision_of(number: &[u8]) -> Option<u64> {
    let head = [&[0], number, &[0; 8], &[0, 0, 0, 0]].concat();
    Head::decode(&head.into()).map(|head| head.revision.get())
}

#[test]
fn numbers_of_every_length_are_read_and_longer_ones_refused() {
    for bits in 0..64 {
        for number in [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, u64::MAX] {
            let position = Position { segment: SegmentId::new(Revision::ZERO), offset: 0, len: 0 };
            let (revision, time) = (Revision::new(number), Timestamp::default());
            let (payload, past) = (Payload::default(), Vec::new());
            let (op, expires, inline) = (Op::Put, None, true);
            let head = Head { op, revision, time, expires, position, payload, inline, past };
            assert_eq!(Head::decode(&head.encode()), Some(head));
        }
    }
    assert_eq!(revision_of(&[0x7f]), Some(127));
    assert_eq!(revision_of(&[0x80, 0x01]), Some(128));
    let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(revision_of(&largest), Some(u64::MAX));
    let mut too_large = largest;
    too_large[9] = 0x02;
    assert_eq!(revision_of(&too_large), None, "sixty-five bits");
    assert_eq!(revision_of(&[0x80; 11]), None, "no end");
    assert_eq!(Head::decode(&Bytes::from_static(&[0, 0x80])), None, "the end in the middle");
}

#[test]
fn a_head_with_more_history_than_there_can_be_is_damage() {
    const PAST: u8 = 16;
    let head = |count: u8| {
        [&[PAST, 1][..], &[0; 8], &[1, 1, 1, 1], &[count], &vec![1; 5 * usize::from(count)]].concat()
    };
    assert_eq!(Head::decode(&head(64).into()).map(|head| head.past.len()), Some(64));
    assert_eq!(Head::decode(&head(65).into()), None);
}

#[test]
fn a_bucket_that_begins_after_all_revisions_is_damage() {
    let name = BucketName::parse("b").unwrap();
    let bucket =
        Bucket::new(BucketId(1), name, BucketConfig::default(), Revision::ZERO, Timestamp::default());
    let mut bytes = bucket.encode().unwrap().to_vec();
    bytes[8..16].fill(0xff);
    assert!(Bucket::decode(b"b", bytes.into()).is_none());
}

fn insert(key: &'static str, value: &'static str) -> IndexChange {
    IndexChange::Insert(Bytes::from_static(key.as_bytes()), Bytes::from_static(value.as_bytes()))
}

/// Everything in an index as of some moment.
fn contents(index: &dyn Index, at: ReadAt) -> Vec<(Bytes, Bytes)> {
    index.range(Bound::Unbounded, Bound::Unbounded, at).map(Result::unwrap).collect()
}

/// Every form of index, empty. The directory is for the one that needs it.
fn homes(directory: &tempfile::TempDir) -> [Box<dyn IndexHome>; 2] {
    [Box::new(IndexDirectory::of(directory.path())), Box::new(MemoryHome::new(SimDisk::default()))]
}

#[test]
fn a_snapshot_stays_the_same_through_writes_flushes_and_merges() {
    let directory = tempfile::tempdir().unwrap();
    for home in homes(&directory) {
        let index = home.open(1024 * 1024).unwrap();
        let held = Revision::new(2);
        index.write(Revision::new(1), vec![insert("a", "1"), insert("b", "1")]);
        index.write(held, vec![insert("b", "2")]);
        let before = contents(&*index, ReadAt::Snapshot(held));
        assert_eq!(before, [("a".into(), "1".into()), ("b".into(), "2".into())]);
        for revision in 3..8 {
            index.write(Revision::new(revision), vec![insert("b", "later"), IndexChange::Remove("a".into())]);
            index.seal();
            index.flush(usize::MAX, held).unwrap();
            index.compact(held, false).unwrap();
            assert_eq!(
                contents(&*index, ReadAt::Snapshot(held)),
                before,
                "{home:?} after revision {revision}"
            );
        }
        assert_eq!(contents(&*index, ReadAt::Newest), [("b".into(), "later".into())]);
    }
}

#[test]
fn an_index_holds_after_opening_what_was_sealed_and_flushed() {
    let directory = tempfile::tempdir().unwrap();
    for home in homes(&directory) {
        let index = home.open(1024 * 1024).unwrap();
        index.write(Revision::new(1), vec![insert("a", "1")]);
        index.seal();
        index.write(Revision::new(2), vec![insert("b", "2")]);
        index.flush(usize::MAX, Revision::new(1)).unwrap();
        assert_eq!(index.backlog().sealed, 0);
        drop(index);
        let index = home.open(1024 * 1024).unwrap();
        assert_eq!(contents(&*index, ReadAt::Newest), [("a".into(), "1".into())], "{home:?}");
    }
}

#[test]
fn an_index_that_was_set_aside_leaves_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    for home in homes(&directory) {
        let index = home.open(1024 * 1024).unwrap();
        index.write(Revision::new(1), vec![insert("a", "1")]);
        index.seal();
        index.flush(usize::MAX, Revision::new(1)).unwrap();
        drop(index);
        home.set_aside().unwrap();
        assert_eq!(contents(&*home.open(1024 * 1024).unwrap(), ReadAt::Newest), [], "{home:?}");
    }
}
