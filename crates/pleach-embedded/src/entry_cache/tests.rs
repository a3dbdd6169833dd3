use bytes::Bytes;
use pleach_engine::{Headers, Op, Revision, Timestamp};

use super::*;
use crate::log::{Payload, Position, SegmentId};

fn head(revision: u64, value: usize) -> Head {
    let position = Position { segment: SegmentId::new(Revision::new(1)), offset: 80, len: 100 };
    Head {
        op: Op::Put,
        revision: Revision::new(revision),
        time: Timestamp::default(),
        expires: None,
        position,
        payload: Payload::plain(Headers::new(), Bytes::from(vec![7; value])),
        inline: true,
        past: Vec::new(),
    }
}

#[test]
fn what_was_found_is_believed_until_its_key_is_written() {
    let cache = EntryCache::new(1024 * 1024).unwrap();
    let stamp = cache.get(b"key").unwrap_err();
    cache.leave(b"key", stamp, head(1, 10));
    assert_eq!(cache.get(b"key").unwrap(), head(1, 10));
    cache.written(b"key");
    assert!(cache.get(b"key").is_err());
}

#[test]
fn what_was_read_before_a_write_and_left_after_it_is_not_believed() {
    let cache = EntryCache::new(1024 * 1024).unwrap();
    let stamp = cache.get(b"key").unwrap_err();
    cache.written(b"key");
    cache.leave(b"key", stamp, head(1, 10));
    assert!(cache.get(b"key").is_err());
    let stamp = cache.written(b"key");
    cache.leave(b"key", stamp, head(3, 10));
    assert_eq!(cache.get(b"key").unwrap(), head(3, 10));
}

#[test]
fn it_stays_within_its_bytes_and_leaves_large_values_alone() {
    let cache = EntryCache::new(256 * 1024).unwrap();
    for number in 0..1000_u64 {
        let key = number.to_le_bytes();
        let stamp = cache.get(&key).unwrap_err();
        cache.leave(&key, stamp, head(1, 1000));
    }
    let kept = (0..1000_u64).filter(|number| cache.get(&number.to_le_bytes()).is_ok()).count();
    assert!((1..=256).contains(&kept), "{kept} of a thousand entries of a kilobyte");
    let stamp = cache.get(b"large").unwrap_err();
    cache.leave(b"large", stamp, head(1, ENTRY_BYTES_MAX + 1));
    assert!(cache.get(b"large").is_err());
}
