use std::ops::Bound;

use super::case::{Bucket, Case, filter, keys_of};
use crate::{Direction, KeyFilter, KeyRange, Op, ScanQuery, Selection};

/// In byte order.
const KEYS: [&str; 16] =
    ["-", "-a", "/", "0", "10", "9", "=", "A", "Z.a", "_", "a", "a-b", "a.b", "a.b.c", "a/b", "aa"];

pub(super) async fn scans_are_in_byte_order(case: Case) {
    let bucket = filled(&case).await;
    assert_eq!(bucket.keys(Selection::all()).await, KEYS);
    let entries = bucket.scan(ScanQuery::default()).await.entries;
    assert!(entries.iter().all(|entry| entry.op == Op::Put && entry.value == entry.key.as_str().as_bytes()));
}

pub(super) async fn scans_go_backwards(case: Case) {
    let bucket = filled(&case).await;
    for selection in selections() {
        let forward = bucket.keys(selection.clone()).await;
        let mut backward = backwards(&bucket, selection).await;
        backward.reverse();
        assert_eq!(backward, forward);
    }
    assert_eq!(backwards(&bucket, Selection::prefix("a.")).await, ["a.b.c", "a.b"]);
}

pub(super) async fn prefixes_may_end_inside_a_token(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["user", "user.1", "user.10.cart", "user.11", "user.2", "users.1", "usez"]).await;
    assert_eq!(bucket.keys(Selection::prefix("user.1")).await, ["user.1", "user.10.cart", "user.11"]);
    assert_eq!(
        bucket.keys(Selection::prefix("user.")).await,
        ["user.1", "user.10.cart", "user.11", "user.2"]
    );
    assert_eq!(bucket.count(Selection::prefix("user")).await, 6);
    assert_eq!(bucket.keys(Selection::prefix("users.1")).await, ["users.1"]);
    assert_eq!(bucket.keys(Selection::prefix("user.10.cart.")).await, [""; 0]);
    assert_eq!(bucket.count(Selection::prefix("")).await, 7);
    assert_eq!(bucket.count(Selection::prefix([0xff, 0xff])).await, 0);
}

pub(super) async fn ranges_include_and_exclude_their_ends(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c", "d"]).await;
    let (b, d) = (|| b"b".to_vec(), || b"d".to_vec());
    let keys = async |start, end| bucket.keys(KeyRange { start, end }).await.concat();
    assert_eq!(keys(Bound::Included(b()), Bound::Included(d())).await, "bcd");
    assert_eq!(keys(Bound::Included(b()), Bound::Excluded(d())).await, "bc");
    assert_eq!(keys(Bound::Excluded(b()), Bound::Included(d())).await, "cd");
    assert_eq!(keys(Bound::Excluded(b()), Bound::Excluded(d())).await, "c");
    assert_eq!(keys(Bound::Unbounded, Bound::Included(b())).await, "ab");
    assert_eq!(keys(Bound::Excluded(b()), Bound::Unbounded).await, "cd");
    assert_eq!(bucket.keys(KeyRange::only("b")).await, ["b"]);
    // Ends need not be keys, and need not be there.
    assert_eq!(keys(Bound::Included(b"b\0".to_vec()), Bound::Excluded(b"c\xff".to_vec())).await, "c");
    assert_eq!(bucket.keys(KeyRange::between("", "b.")).await, ["a", "b"]);
}

pub(super) async fn empty_and_inverted_ranges_hold_nothing(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c"]).await;
    let b = || b"b".to_vec();
    let mut empty =
        vec![KeyRange::between("b", "b"), KeyRange::between("c", "a"), KeyRange::between("x", "z")];
    empty.push(KeyRange { start: Bound::Excluded(b()), end: Bound::Excluded(b()) });
    empty.push(KeyRange { start: Bound::Excluded(b()), end: Bound::Included(b()) });
    empty.push(KeyRange { start: Bound::Included(b"z".to_vec()), end: Bound::Included(b()) });
    for range in empty {
        assert_eq!(bucket.keys(range.clone()).await, [""; 0], "{range:?}");
        assert_eq!(backwards(&bucket, range.clone().into()).await, [""; 0], "{range:?}");
        assert_eq!(bucket.count(range.clone()).await, 0, "{range:?}");
        let selection = Selection { range, filter: Some(filter("b")) };
        assert_eq!(bucket.count(selection).await, 0);
    }
}

pub(super) async fn a_star_stands_for_one_token(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "a.b", "a.b.c", "a.bb.c", "a.c", "b", "x.b.c"]).await;
    for (pattern, keys) in [
        ("*", "a b"),
        ("a.*", "a.b a.c"),
        ("a.*.c", "a.b.c a.bb.c"),
        ("*.b.*", "a.b.c x.b.c"),
        ("*.*", "a.b a.c"),
        ("*.*.*.*", ""),
        ("a.b", "a.b"),
    ] {
        assert_eq!(bucket.keys(filter(pattern)).await.join(" "), keys, "{pattern}");
    }
}

pub(super) async fn a_greater_sign_stands_for_one_token_or_more(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "a-b", "a.b", "a.b.c", "a.b.c.d", "aa.b", "b.b.c"]).await;
    for (pattern, keys) in [
        (">", "a a-b a.b a.b.c a.b.c.d aa.b b.b.c"),
        ("a.>", "a.b a.b.c a.b.c.d"),
        ("a.b.>", "a.b.c a.b.c.d"),
        ("*.b.>", "a.b.c a.b.c.d b.b.c"),
        ("*.>", "a.b a.b.c a.b.c.d aa.b b.b.c"),
        ("c.>", ""),
    ] {
        assert_eq!(bucket.keys(filter(pattern)).await.join(" "), keys, "{pattern}");
    }
}

pub(super) async fn a_filter_and_a_range_narrow_each_other(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a.1.x", "a.1.y", "a.2.x", "a.3.x", "b.1.x"]).await;
    let narrowed = |range| Selection { range, filter: Some(filter("a.*.x")) };
    assert_eq!(bucket.keys(narrowed(KeyRange::all())).await, ["a.1.x", "a.2.x", "a.3.x"]);
    assert_eq!(bucket.keys(narrowed(KeyRange::between("a.1.y", "a.3.x"))).await, ["a.2.x"]);
    assert_eq!(bucket.keys(narrowed(KeyRange::prefix("b."))).await, [""; 0]);
    assert_eq!(bucket.count(narrowed(KeyRange::prefix("a.3"))).await, 1);
}

pub(super) async fn scans_hold_live_entries_only(case: Case) {
    let bucket = case.bucket_with_history(5).await;
    bucket.put_all(&["a", "b", "c", "d"]).await;
    let newest = bucket.put("a", "2").await;
    bucket.delete("b").await;
    bucket.purge("c").await;
    bucket.delete("never").await;
    let page = bucket.scan(ScanQuery::default()).await;
    assert_eq!(keys_of(&page.entries), ["a", "d"]);
    assert_eq!(page.entries[0].revision, newest);
    assert_eq!(bucket.count(Selection::all()).await, 2);
}

pub(super) async fn keys_only_leaves_values_out(case: Case) {
    let bucket = filled(&case).await;
    let whole = bucket.scan(ScanQuery::default()).await;
    let bare = bucket.scan(ScanQuery { keys_only: true, ..ScanQuery::default() }).await;
    assert!(bare.entries.iter().all(|entry| entry.value.is_empty()));
    let mut expected = whole.entries;
    expected.iter_mut().for_each(|entry| entry.value.clear());
    assert_eq!(bare.entries, expected);
}

pub(super) async fn counts_agree_with_scans(case: Case) {
    let bucket = filled(&case).await;
    bucket.delete("a.b").await;
    bucket.purge("9").await;
    for selection in selections() {
        let keys = bucket.keys(selection.clone()).await;
        assert_eq!(bucket.count(selection.clone()).await, keys.len() as u64, "{selection:?}");
        let expected = KEYS.into_iter().filter(|at| !["a.b", "9"].contains(at));
        let expected = expected.filter(|at| selection.contains(&super::case::key(at)));
        assert_eq!(keys, expected.collect::<Vec<_>>(), "{selection:?}");
    }
}

pub(super) async fn a_scan_of_an_empty_bucket_is_one_empty_page(case: Case) {
    let bucket = case.bucket().await;
    for direction in [Direction::Forward, Direction::Backward] {
        let page = bucket.scan(ScanQuery { direction, limit: 1, ..ScanQuery::default() }).await;
        assert_eq!((page.entries, page.next), (Vec::new(), None));
    }
    bucket.put("a", "1").await;
    bucket.delete("a").await;
    assert_eq!(bucket.scan(ScanQuery::default()).await.next, None);
}

/// A bucket with [`KEYS`], written in another order.
async fn filled(case: &Case) -> Bucket {
    let bucket = case.bucket().await;
    for step in 0..KEYS.len() {
        let at = KEYS[step * 7 % KEYS.len()];
        bucket.put(at, at).await;
    }
    bucket
}

fn selections() -> Vec<Selection> {
    let mut selections = vec![Selection::all()];
    selections.extend(["a", "a.", "-", "Z", "zz"].map(Selection::prefix));
    selections.extend(["*", "a.>", "*.b", "*.*.c", "a", ">"].map(|text| Selection::filter(filter(text))));
    selections.extend([("-a", "a"), ("0", "A"), ("a", "a.b"), ("b", "a")].map(|(start, end)| {
        let range = KeyRange::between(start, end);
        Selection { range, filter: Some(KeyFilter::all()) }
    }));
    selections
}

async fn backwards(bucket: &Bucket, selection: Selection) -> Vec<String> {
    let query = ScanQuery { selection, direction: Direction::Backward, limit: 1000, ..ScanQuery::default() };
    keys_of(&bucket.scan(query).await.entries)
}
