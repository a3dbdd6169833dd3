use bytes::Bytes;
use pleach_engine::{Headers, Key, Timestamp};

use super::*;
use crate::log::{Payload, RecordKind, SegmentId};

/// A commit of one record at `revision`, with a value of so many bytes.
fn commit(revision: u64, value_bytes: usize) -> Arc<Logged> {
    let (revision, time) = (Revision::new(revision), Timestamp::default());
    let payload = Payload::plain(Headers::new(), Bytes::from(vec![1; value_bytes]));
    let key = Key::parse("k").unwrap();
    let (kind, expires, index, faded) = (RecordKind::Put, None, 0, false);
    let record = Record { kind, key, revision, time, expires, payload, index, faded };
    let position = Position { segment: SegmentId::new(Revision::new(1)), offset: 80, len: 100 };
    let records = vec![(position, record)];
    Arc::new(Logged { kind: FrameKind::Commit, bucket: BucketId(1), size: 1, last: revision, records })
}

fn feed(start: u64) -> Feed {
    Feed::new(Revision::new(start))
}

/// The revisions from `from` on; where to go on from in the log, if the ring no longer has them.
fn after(feed: &Feed, from: u64, limit: usize) -> Result<Vec<u64>, u64> {
    match feed.after(Revision::new(from), limit) {
        Recent::Commits(commits) => Ok(commits.iter().map(|commit| commit.last.get()).collect()),
        Recent::Behind(start) => Err(start.get()),
    }
}

/// How many commits the ring holds, and how many bytes.
fn held(feed: &Feed) -> (usize, usize) {
    let ring = feed.lock();
    (ring.commits.len(), ring.bytes)
}

#[test]
fn a_watched_feed_gives_out_what_was_published_from_a_revision_on() {
    let feed = feed(2);
    let _tip = feed.subscribe();
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
    let _tip = feed.subscribe();
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
    let _tip = feed.subscribe();
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
    let tips = (feed.subscribe(), feed.subscribe());
    feed.publish(&commit(1, 10));
    feed.unsubscribe();
    assert_eq!((feed.watches(), held(&feed).0), (1, 1));
    feed.unsubscribe();
    assert_eq!((feed.watches(), held(&feed)), (0, (0, 0)));
    assert_eq!(after(&feed, 1, 9), Err(2));
    drop(tips);
}

#[test]
fn whoever_publishes_hears_whether_there_are_watches_to_wake() {
    let feed = feed(1);
    assert!(!feed.publish(&commit(1, 10)));
    let mut tip = feed.subscribe();
    tip.borrow_and_update();
    assert!(feed.publish(&commit(2, 10)));
    assert!(!tip.has_changed().unwrap(), "once for a whole group");
    feed.wake();
    assert!(tip.has_changed().unwrap());
}

#[test]
fn a_feed_that_starts_over_sends_its_watches_to_the_log() {
    let feed = feed(1);
    let _tip = feed.subscribe();
    feed.restart(Revision::new(8));
    assert_eq!(after(&feed, 7, 9), Err(8));
    assert_eq!(after(&feed, 8, 9), Ok(vec![]));
}
