use std::num::NonZeroU8;

use bytes::Bytes;

use super::case::{Bucket, Case, filter, key, keys_of, told};
use super::refused;
use crate::{
    Direction, EngineError, Entry, ErrorKind, KeyRange, Operation, PAGE_BYTES_MAX, PAGE_ENTRIES_MAX,
    PageCursor, PageToken, ScanQuery, Selection, WatchStart,
};

pub(super) async fn a_page_has_a_token_exactly_if_more_is_left(case: Case) {
    let bucket = filled(&case, 5).await;
    for (limit, held, more) in
        [(4, 4, true), (5, 5, false), (6, 5, false), (1, 1, true), (PAGE_ENTRIES_MAX, 5, false)]
    {
        let page = bucket.scan(limited(limit)).await;
        assert_eq!((page.entries.len(), page.next.is_some()), (held, more), "limit {limit}");
    }
    // What follows is left only if it passes the selection.
    let selection = Selection { range: KeyRange::all(), filter: Some(filter("k.002")) };
    assert_eq!(bucket.scan(ScanQuery { selection, ..limited(1) }).await.next, None);
    bucket.delete("k.004").await;
    assert_eq!(bucket.scan(limited(4)).await.next, None);
}

pub(super) async fn page_limits_out_of_range_are_refused(case: Case) {
    let bucket = filled(&case, 2).await;
    for wrong in [0, PAGE_ENTRIES_MAX + 1, usize::MAX] {
        let result = bucket.try_scan(limited(wrong)).await;
        refused!(result, EngineError::PageLimit { limit, max: PAGE_ENTRIES_MAX } if limit == wrong);
    }
}

pub(super) async fn pages_together_hold_everything_once(case: Case) {
    let bucket = filled(&case, 50).await;
    bucket.put_all(&["a", "k", "k.01", "z"]).await;
    let mut selections = vec![Selection::all(), Selection::prefix("k.0"), Selection::filter(filter("*.*"))];
    selections.push(KeyRange::between("k.003", "k.040").into());
    for selection in selections {
        for direction in [Direction::Forward, Direction::Backward] {
            let query = ScanQuery { selection: selection.clone(), direction, ..ScanQuery::default() };
            let whole = bucket.scan(ScanQuery { limit: 1000, ..query.clone() }).await;
            assert_eq!(whole.next, None);
            for limit in [1, 7, 49] {
                assert_eq!(rest(&bucket, ScanQuery { limit, ..query.clone() }).await, whole.entries);
            }
        }
    }
}

pub(super) async fn the_limit_may_change_between_pages(case: Case) {
    let bucket = filled(&case, 10).await;
    let mut query = limited(2);
    let mut sizes = Vec::new();
    let mut keys = Vec::new();
    for limit in [2, 1, 5, 100] {
        query.limit = limit;
        let page = bucket.scan(query.clone()).await;
        sizes.push(page.entries.len());
        keys.extend(keys_of(&page.entries));
        query.page = page.next;
    }
    assert_eq!((sizes, query.page), (vec![2, 1, 5, 2], None));
    assert_eq!(keys, bucket.keys(Selection::all()).await);
}

pub(super) async fn pages_read_one_snapshot(case: Case) {
    for direction in [Direction::Forward, Direction::Backward] {
        let bucket = filled(&case, 9).await;
        let query = ScanQuery { direction, ..limited(3) };
        let expected = bucket.scan(ScanQuery { limit: 100, ..query.clone() }).await;
        let first = bucket.scan(query.clone()).await;
        // Before, at and after the place the first page ended at.
        bucket.put("k.000.new", "new").await;
        bucket.put("k.004.new", "new").await;
        bucket.put("k.003", "changed").await;
        bucket.put("k.005", "changed").await;
        bucket.delete("k.002").await;
        bucket.delete("k.004").await;
        bucket.purge("k.006").await;
        bucket.put("zz", "new").await;
        let second = bucket.scan(ScanQuery { page: first.next.clone(), ..query.clone() }).await;
        assert_eq!((first.revision, second.revision), (expected.revision, expected.revision));
        bucket.put("k.007", "changed").await;
        bucket.delete("k.001").await;
        let third = rest(&bucket, ScanQuery { page: second.next.clone(), ..query }).await;
        assert_eq!([first.entries, second.entries, third].concat(), expected.entries);
        assert_eq!(bucket.count(Selection::all()).await, 8, "a new scan sees what is there now");
    }
}

pub(super) async fn pages_agree_on_what_has_expired(case: Case) {
    let (bucket, ttl) = (case.bucket().await, case.a_while(3));
    for at in ["a", "b", "c", "d"] {
        bucket.put_for(at, at, ttl).await;
    }
    let first = bucket.scan(limited(2)).await;
    case.advance(2 * ttl).await;
    assert_eq!(bucket.count(Selection::all()).await, 0);
    let rest = rest(&bucket, ScanQuery { page: first.next.clone(), ..limited(1) }).await;
    assert_eq!(keys_of(&[first.entries, rest].concat()), ["a", "b", "c", "d"]);
}

pub(super) async fn pages_outlive_a_change_of_history(case: Case) {
    let bucket = case.bucket_with_history(5).await;
    bucket.put_all(&["a", "b", "c"]).await;
    let first = bucket.scan(limited(1)).await;
    bucket.put("b", "changed").await;
    bucket.update(|config| config.history = NonZeroU8::MIN).await;
    bucket.put("c", "changed").await;
    bucket.compact("b", 1).await;
    let rest = rest(&bucket, ScanQuery { page: first.next, ..limited(1) }).await;
    assert_eq!(rest.iter().map(told).collect::<Vec<_>>(), ["put b=b", "put c=c"]);
}

pub(super) async fn a_page_token_can_be_used_again(case: Case) {
    let bucket = filled(&case, 6).await;
    let first = bucket.scan(limited(2)).await;
    let query = ScanQuery { page: first.next, ..limited(2) };
    let once = bucket.scan(query.clone()).await;
    rest(&bucket, ScanQuery { page: once.next.clone(), ..limited(2) }).await;
    bucket.delete("k.003").await;
    let again = bucket.scan(query.clone()).await;
    assert_eq!((&again.entries, again.revision), (&once.entries, once.revision));
    let larger = bucket.scan(ScanQuery { limit: 3, ..query }).await;
    assert_eq!(keys_of(&larger.entries), ["k.002", "k.003", "k.004"]);
}

pub(super) async fn a_page_token_survives_its_text(case: Case) {
    let bucket = filled(&case, 3).await;
    let text = bucket.scan(limited(2)).await.next.unwrap().to_string();
    let page: PageToken = text.parse().unwrap();
    assert_eq!(keys_of(&rest(&bucket, ScanQuery { page: Some(page), ..limited(2) }).await), ["k.002"]);
}

pub(super) async fn a_page_token_is_bound_to_its_query(case: Case) {
    let bucket = filled(&case, 5).await;
    let query = ScanQuery { selection: Selection::prefix("k."), ..limited(2) };
    let query = ScanQuery { page: bucket.scan(query.clone()).await.next, ..query };
    let others = [
        ScanQuery { selection: Selection::prefix("k.0"), ..query.clone() },
        ScanQuery { selection: filter("k.*").into(), ..query.clone() },
        ScanQuery { selection: Selection::all(), ..query.clone() },
        ScanQuery { direction: Direction::Backward, ..query.clone() },
        ScanQuery { keys_only: true, ..query.clone() },
    ];
    for other in others {
        refused!(bucket.try_scan(other).await, EngineError::InvalidPageToken { .. });
    }
    assert_eq!(rest(&bucket, query).await.len(), 3);
}

pub(super) async fn a_page_token_is_bound_to_its_bucket(case: Case) {
    let (bucket, other) = (filled(&case, 5).await, filled(&case, 5).await);
    let query = ScanQuery { page: bucket.scan(limited(2)).await.next, ..limited(2) };
    refused!(other.try_scan(query.clone()).await, EngineError::InvalidPageToken { .. });
    bucket.recreate().await;
    bucket.put_all(&["k.001", "k.002", "k.003"]).await;
    refused!(bucket.try_scan(query).await, EngineError::InvalidPageToken { .. });
}

pub(super) async fn a_page_token_is_bound_to_its_store(case: Case) {
    let bucket = filled(&case, 5).await;
    let mut cursor = PageCursor::decode(&bucket.scan(limited(2)).await.next.unwrap()).unwrap();
    cursor.store ^= 1;
    let query = ScanQuery { page: Some(cursor.encode()), ..limited(2) };
    refused!(bucket.try_scan(query).await, EngineError::InvalidPageToken { .. });
}

pub(super) async fn a_token_without_its_snapshot_reads_nothing(case: Case) {
    let bucket = filled(&case, 5).await;
    let mut cursor = PageCursor::decode(&bucket.scan(limited(2)).await.next.unwrap()).unwrap();
    cursor.snapshot = u64::MAX;
    let result = bucket.try_scan(ScanQuery { page: Some(cursor.encode()), ..limited(2) }).await;
    refused!(result, error if matches!(error.kind(), ErrorKind::Compacted | ErrorKind::Invalid));
}

pub(super) async fn a_page_of_large_values_is_cut(case: Case) {
    let size = case.config().value_bytes_max.min(case.capabilities().value_bytes_max) as usize;
    let bucket = case.bucket().await;
    let count = PAGE_BYTES_MAX / size + 3;
    for n in 0..count {
        bucket
            .commit(Operation::put(key(&format!("k{n:04}")), Bytes::from(vec![n.to_le_bytes()[0]; size])))
            .await;
    }
    let query = limited(PAGE_ENTRIES_MAX.min(count));
    let first = bucket.scan(query.clone()).await;
    let bytes: usize = first.entries.iter().map(|entry| entry.value.len()).sum();
    assert!(bytes <= PAGE_BYTES_MAX + size, "a page of {bytes} bytes");
    assert!(!first.entries.is_empty() && first.entries.len() < count);
    let held = first.entries.len() + rest(&bucket, ScanQuery { page: first.next, ..query }).await.len();
    assert_eq!(held, count);
}

pub(super) async fn many_open_scans_stay_right(case: Case) {
    let bucket = filled(&case, 3).await;
    let mut open = Vec::new();
    for round in 0..300 {
        bucket.put("k.002", &round.to_string()).await;
        open.push((round, bucket.scan(limited(2)).await.next));
    }
    let mut held = 0;
    for (round, page) in open {
        match bucket.try_scan(ScanQuery { page, ..limited(2) }).await {
            Ok(page) => {
                held += 1;
                assert_eq!(page.entries.iter().map(told).collect::<Vec<_>>(), [format!("put k.002={round}")]);
            }
            Err(EngineError::Compacted { .. }) => {}
            Err(other) => panic!("expected a page or Compacted, got {other:?}"),
        }
    }
    assert!(held > 0, "the newest scans are still open");
}

pub(super) async fn a_watch_goes_on_from_a_scan(case: Case) {
    let bucket = filled(&case, 3).await;
    let first = bucket.scan(limited(2)).await;
    bucket.put("k.002", "after").await;
    bucket.delete("k.000").await;
    let rest = rest(&bucket, ScanQuery { page: first.next, ..limited(2) }).await;
    assert_eq!(rest.iter().map(told).collect::<Vec<_>>(), ["put k.002=k.002"]);
    let mut watch = bucket.watch(WatchStart::Revision(first.revision.next())).await;
    assert_eq!(watch.take(2).await, ["put k.002=after", "delete k.000"]);
}

/// A bucket with `count` keys from `k.000` on.
async fn filled(case: &Case, count: usize) -> Bucket {
    let bucket = case.bucket().await;
    for n in 0..count {
        let at = format!("k.{n:03}");
        bucket.put(&at, &at).await;
    }
    bucket
}

fn limited(limit: usize) -> ScanQuery {
    ScanQuery { limit, ..ScanQuery::default() }
}

/// The entries of this page and all that follow.
async fn rest(bucket: &Bucket, mut query: ScanQuery) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let page = bucket.scan(query.clone()).await;
        assert!(page.entries.len() <= query.limit);
        assert!(!page.entries.is_empty() || page.next.is_none(), "a page with a token holds something");
        entries.extend(page.entries);
        assert!(entries.len() <= 10_000, "the pages never end");
        query.page = page.next;
        if query.page.is_none() {
            return entries;
        }
    }
}
