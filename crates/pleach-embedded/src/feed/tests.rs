use bytes::Bytes;
use futures_util::FutureExt;
use pleach_engine::{Headers, Key, Timestamp};

use super::*;
use crate::log::{Payload, RecordKind, SegmentId};

/// A commit of one record of the key `k` at `revision`, with a value of so many bytes.
fn commit(revision: u64, value_bytes: usize) -> Arc<Logged> {
    commit_of("k", revision, value_bytes)
}

fn commit_of(key: &str, revision: u64, value_bytes: usize) -> Arc<Logged> {
    let (revision, time) = (Revision::new(revision), Timestamp::default());
    let payload = Payload::plain(Headers::new(), Bytes::from(vec![1; value_bytes]));
    let key = Key::parse(key).unwrap();
    let (kind, expires, index, faded) = (RecordKind::Put, None, 0, false);
    let record = Record { kind, key, revision, time, expires, payload, index, faded };
    let position = Position { segment: SegmentId::new(Revision::new(1)), offset: 80, len: 100 };
    let records = vec![(position, record)];
    Arc::new(Logged { kind: FrameKind::Commit, bucket: BucketId(1), size: 1, last: revision, records })
}

fn feed(start: u64) -> Feed {
    Feed::new(Revision::new(start))
}

/// The revisions from `from` on, for someone who has just begun to watch; where to go on from in the log, if
/// the ring no longer has them.
fn after(feed: &Feed, from: u64, limit: usize) -> Result<Vec<u64>, u64> {
    let watcher = feed.subscribe(&[]);
    let next = next(feed, &watcher, from, limit);
    let mut ring = feed.lock();
    // Not by its end, which may free the ring.
    ring.watches[watcher.id] = None;
    ring.gaps.push(watcher.id);
    next.map_err(|(_, ring)| ring)
}

fn next(feed: &Feed, watcher: &Watcher, from: u64, limit: usize) -> Result<Vec<u64>, (u64, u64)> {
    match feed.next(watcher, Revision::new(from), limit) {
        Recent::Commits(commits) => Ok(commits.iter().map(|commit| commit.last.get()).collect()),
        Recent::Behind { from, ring } => Err((from.get(), ring.get())),
    }
}

fn subscribe(feed: &Feed, filter: &str) -> Watcher {
    feed.subscribe(&[KeyFilter::parse(filter).unwrap()])
}

/// Whether it was woken since the last time.
fn is_woken(watcher: &Watcher) -> bool {
    watcher.woken().now_or_never().is_some()
}

/// How many commits the ring holds, and how many bytes.
fn held(feed: &Feed) -> (usize, usize) {
    let ring = feed.lock();
    (ring.commits.len(), ring.bytes)
}

#[test]
fn a_watched_feed_gives_out_what_was_published_from_a_revision_on() {
    let feed = feed(2);
    let _watcher = feed.subscribe(&[]);
    for revision in [3, 5, 6] {
        feed.publish(&commit(revision, 10));
    }
    assert_eq!(after(&feed, 2, 10), Ok(vec![3, 5, 6]));
    assert_eq!(after(&feed, 4, 10), Ok(vec![5, 6]), "gaps are normal");
    assert_eq!(after(&feed, 3, 2), Ok(vec![3, 5]));
    assert_eq!(after(&feed, 7, 10), Ok(vec![]));
    assert_eq!(after(&feed, 1, 10), Err(2));
}

#[test]
fn a_feed_that_nobody_watches_keeps_nothing() {
    let feed = feed(2);
    feed.publish(&commit(3, 10));
    assert_eq!(held(&feed).0, 0);
    assert_eq!(after(&feed, 3, 10), Err(4), "it is in the log");
    assert_eq!(after(&feed, 4, 10), Ok(vec![]));
}

#[test]
fn a_ring_is_bounded_in_commits() {
    let feed = feed(1);
    let _watcher = feed.subscribe(&[]);
    let count = RING_COMMITS_MAX as u64 + 5;
    for revision in 1..=count {
        feed.publish(&commit(revision, 1));
    }
    assert_eq!(held(&feed).0, RING_COMMITS_MAX);
    assert_eq!(after(&feed, 5, 1), Err(6));
    assert_eq!(after(&feed, 6, 1), Ok(vec![6]));
    assert_eq!(after(&feed, count, 9), Ok(vec![count]));
}

#[test]
fn a_ring_is_bounded_in_bytes_even_for_one_large_commit() {
    let feed = feed(1);
    let _watcher = feed.subscribe(&[]);
    for revision in 1..=8 {
        feed.publish(&commit(revision, RING_BYTES_MAX / 4));
        let ring = feed.lock();
        assert!(ring.bytes <= RING_BYTES_MAX);
        assert_eq!(ring.bytes, ring.commits.iter().map(|commit| commit.bytes()).sum::<usize>());
    }
    assert_eq!(after(&feed, 5, 9), Err(6));
    assert_eq!(after(&feed, 6, 9), Ok(vec![6, 7, 8]));
    feed.publish(&commit(9, RING_BYTES_MAX + 1));
    assert_eq!(after(&feed, 9, 9), Err(10), "it is read from the log");
    assert_eq!(held(&feed), (0, 0));
}

#[test]
fn the_last_watch_to_go_frees_the_ring() {
    let feed = feed(1);
    let (one, other) = (feed.subscribe(&[]), subscribe(&feed, "k"));
    feed.publish(&commit(1, 10));
    feed.unsubscribe(&one);
    assert_eq!((feed.watches(), held(&feed).0), (1, 1));
    feed.unsubscribe(&other);
    assert_eq!((feed.watches(), held(&feed)), (0, (0, 0)));
    assert_eq!(after(&feed, 1, 9), Err(2));
}

#[test]
fn only_those_that_a_commit_is_about_are_woken() {
    let feed = feed(1);
    assert!(!feed.publish(&commit(1, 10)), "there is nobody");
    let (all, a, b) = (feed.subscribe(&[]), subscribe(&feed, "a.*"), subscribe(&feed, "b.*"));
    for watcher in [&all, &a, &b] {
        assert_eq!(next(&feed, watcher, 2, 9), Ok(vec![]), "it has caught up");
    }
    assert!(feed.publish(&commit_of("a.1", 2, 10)));
    assert!(!is_woken(&a), "once for a whole group");
    feed.wake();
    assert_eq!([&all, &a, &b].map(is_woken), [true, true, false]);
    feed.wake();
    assert_eq!([&all, &a, &b].map(is_woken), [false; 3], "they were told");
    feed.wake_all();
    assert_eq!([&all, &a, &b].map(is_woken), [true; 3]);
}

#[test]
fn a_watch_is_told_from_the_first_to_the_last_record_that_is_for_it() {
    let feed = feed(1);
    let watcher = subscribe(&feed, "k");
    assert_eq!(next(&feed, &watcher, 1, 9), Ok(vec![]));
    // Published between two looks of the watch, which has seen them: nothing is left.
    feed.publish(&commit(1, 10));
    assert_eq!(next(&feed, &watcher, 2, 9), Ok(vec![]));
    for revision in 2..=9 {
        feed.publish(&commit(revision, 10));
    }
    assert_eq!(next(&feed, &watcher, 2, 3), Ok(vec![2, 3, 4]));
    feed.publish(&commit_of("other", 10, RING_BYTES_MAX - 50));
    assert_eq!(next(&feed, &watcher, 5, 3).map_err(|(from, _)| from), Err(5), "the rest is in the log");
    assert_eq!(next(&feed, &watcher, 10, 3), Ok(vec![10]), "it is behind, and looks at everything");
    assert_eq!(next(&feed, &watcher, 11, 3), Ok(vec![]));
    feed.unsubscribe(&watcher);
    let other = subscribe(&feed, "k");
    assert_eq!(other.id, watcher.id, "its number is free");
    assert_eq!(feed.watches(), 1);
}

#[test]
fn one_that_has_not_caught_up_is_not_woken_and_misses_nothing() {
    let feed = feed(1);
    let watcher = subscribe(&feed, "k");
    assert!(!feed.publish(&commit(1, 10)));
    assert_eq!(next(&feed, &watcher, 1, 9), Ok(vec![1]));
    assert!(feed.publish(&commit(2, 10)));
    feed.wake();
    assert!(!feed.publish(&commit(3, 10)), "it was woken");
    assert_eq!(next(&feed, &watcher, 2, 1), Ok(vec![2]));
    assert!(!feed.publish(&commit(4, 10)), "it has not seen everything");
    assert_eq!(next(&feed, &watcher, 3, 9), Ok(vec![3, 4]));
    assert_eq!(next(&feed, &watcher, 5, 9), Ok(vec![]));
}

#[test]
fn what_a_watch_is_not_about_is_passed_over() {
    let feed = feed(1);
    let watcher = subscribe(&feed, "k");
    assert_eq!(next(&feed, &watcher, 1, 9), Ok(vec![]));
    for revision in 1..=9 {
        feed.publish(&commit_of(if [4, 6].contains(&revision) { "k" } else { "other" }, revision, 10));
    }
    assert_eq!(next(&feed, &watcher, 1, 9), Ok(vec![4, 5, 6]), "from the first to the last that is for it");
    assert_eq!(next(&feed, &watcher, 7, 9), Ok(vec![]));
    for revision in 10..=20 {
        feed.publish(&commit_of("other", revision, RING_BYTES_MAX / 2 - 200));
    }
    assert_eq!(next(&feed, &watcher, 7, 9), Ok(vec![]), "though the ring has moved on");
    feed.publish(&commit(21, RING_BYTES_MAX + 1));
    assert_eq!(next(&feed, &watcher, 7, 9), Err((21, 22)), "it need not read what came between");
    feed.publish(&commit_of("other", 22, 10));
    assert_eq!(next(&feed, &watcher, 22, 9), Ok(vec![22]), "whoever is behind looks at everything");
}

#[test]
fn a_feed_that_starts_over_sends_its_watches_to_the_log() {
    let feed = feed(1);
    let _watcher = feed.subscribe(&[]);
    feed.restart(Revision::new(8));
    assert_eq!(after(&feed, 7, 9), Err(8));
    assert_eq!(after(&feed, 8, 9), Ok(vec![]));
}
