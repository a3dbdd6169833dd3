//! How the store is used.

use std::time::Duration;

use super::text::{bytes, names, percent, time};
use super::{Advice, Severity};
use crate::status::{HotSpot, Status};

/// A scan that takes longer than this holds up cleaning and merging.
const SNAPSHOT_NOTE: Duration = Duration::from_secs(2 * 60);
const SNAPSHOT_WARNING: Duration = Duration::from_secs(10 * 60);

/// Of what is kept for a consumer, it may be behind this share.
const BEHIND_SHARE_MAX: f64 = 0.5;

/// A consumer that has not moved on for so long, though there is something to see, is forgotten by someone.
const IDLE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A key with more of the traffic than this.
const KEY_SHARE_MAX: f64 = 0.2;

/// A prefix with more than this, but not with everything: then it is just how keys begin here.
const PREFIX_SHARE_MIN: f64 = 0.5;
const PREFIX_SHARE_MAX: f64 = 0.9;

pub(super) fn old_snapshot(status: &Status) -> Option<Advice> {
    let held = status.oldest_snapshot?;
    let severity =
        Advice::graded(held.age.as_secs_f64(), SNAPSHOT_NOTE.as_secs_f64(), SNAPSHOT_WARNING.as_secs_f64())?;
    Some(Advice::new(
        severity,
        format!("someone has held a snapshot at revision {} for {}", held.revision, time(held.age)),
        "what was overwritten since cannot be merged or cleaned away",
        "end scans and watches that are left unread, and scan by pages",
    ))
}

pub(super) fn consumer_lost(status: &Status) -> Option<Advice> {
    let lost = status.consumers.iter().find(|consumer| consumer.lost)?;
    let (bucket, name) = (&lost.bucket, &lost.name);
    Some(Advice::new(
        Severity::Problem,
        format!("consumer {name} of bucket {bucket} has missed changes: it waits for revision {}", lost.next),
        "it was behind by more than is kept for it, so what it has yet to see is gone",
        format!(
            "read the latest values with `pleach kv export {bucket}`, then `pleach consumer reset {bucket} {name} --to \
             oldest`; or delete it with `pleach consumer rm {bucket} {name}`"
        ),
    ))
}

pub(super) fn consumer_behind(status: &Status) -> Option<Advice> {
    let is_behind = |bytes: u64, limit: u64| limit > 0 && bytes as f64 > limit as f64 * BEHIND_SHARE_MAX;
    let mut consumers = status.consumers.iter().filter(|consumer| !consumer.lost);
    let slow = consumers.find(|consumer| is_behind(consumer.bytes, consumer.bytes_max))?;
    let (bucket, name) = (&slow.bucket, &slow.name);
    let (behind, limit) = (bytes(slow.bytes), bytes(slow.bytes_max));
    Some(Advice::new(
        Severity::Warning,
        format!("consumer {name} of bucket {bucket} is {behind} behind, and past {limit} it misses changes"),
        "changes are kept for it, which takes space, but not without end",
        format!("let it catch up; if nobody uses it any more: `pleach consumer rm {bucket} {name}`"),
    ))
}

pub(super) fn consumer_idle(status: &Status) -> Option<Advice> {
    let is_idle = |idle: Option<Duration>| idle.is_some_and(|idle| idle > IDLE_MAX);
    let mut consumers = status.consumers.iter().filter(|consumer| !consumer.lost && consumer.revisions > 0);
    let idle = consumers.find(|consumer| is_idle(consumer.idle))?;
    let (bucket, name, since) = (&idle.bucket, &idle.name, time(idle.idle.unwrap_or_default()));
    Some(Advice::new(
        Severity::Note,
        format!("consumer {name} of bucket {bucket} has not moved on for {since}"),
        "changes that it has yet to see are kept for it",
        format!("see that its program runs, or delete it: `pleach consumer rm {bucket} {name}`"),
    ))
}

pub(super) fn hot_get_key(status: &Status) -> Option<Advice> {
    let spot = hottest(&status.hot.get_keys)?;
    Some(Advice::new(
        Severity::Note,
        format!("{} of all gets are for one key: {}/{}", percent(spot.share), spot.bucket, spot.key),
        "a key that everybody reads is best read from the memory of whoever reads it",
        "keep it in the application: `Bucket::cached` follows a bucket by a watch",
    ))
}

pub(super) fn hot_put_key(status: &Status) -> Option<Advice> {
    let spot = hottest(&status.hot.put_keys)?;
    Some(Advice::new(
        Severity::Note,
        format!("{} of all puts are to one key: {}/{}", percent(spot.share), spot.bucket, spot.key),
        "whoever updates it by its revision loses races with all others, and each put makes the one before garbage",
        "spread a counter over several keys and add them up when reading; put several changes into one batch",
    ))
}

pub(super) fn hot_prefix(status: &Status) -> Option<Advice> {
    let is_hot = |spot: &&HotSpot| (PREFIX_SHARE_MIN..PREFIX_SHARE_MAX).contains(&spot.share);
    let find = |spots: &'_ [HotSpot]| spots.iter().find(is_hot).cloned();
    let (spot, what) = find(&status.hot.put_prefixes)
        .map(|spot| (spot, "puts are to"))
        .or_else(|| find(&status.hot.get_prefixes).map(|spot| (spot, "gets are for")))?;
    Some(Advice::new(
        Severity::Note,
        format!("{} of all {what} keys that begin with {}/{}", percent(spot.share), spot.bucket, spot.key),
        "one user, tenant or moment takes most of the store's time",
        "see whether that is meant; if not, give it a store of its own or a limit",
    ))
}

fn hottest(spots: &[HotSpot]) -> Option<&HotSpot> {
    spots.first().filter(|spot| spot.share > KEY_SHARE_MAX)
}

pub(super) fn buffered(status: &Status) -> Option<Advice> {
    let buckets: Vec<_> = status.buckets.iter().filter(|bucket| bucket.buffered).collect();
    (!buckets.is_empty()).then(|| {
        let names = names(buckets.iter().map(|bucket| bucket.name.as_str()));
        Advice::new(
            Severity::Note,
            format!("a power cut may lose the last second of what was committed to {names}"),
            "these buckets are `buffered`: their commits are not synced before they are acknowledged",
            "nothing, if that is meant; else `pleach kv bucket edit BUCKET --durability synced`",
        )
    })
}

pub(super) fn feed_for_ever(status: &Status) -> Option<Advice> {
    let buckets: Vec<_> = status.buckets.iter().filter(|bucket| bucket.feed_for_ever).collect();
    (!buckets.is_empty()).then(|| {
        let names = names(buckets.iter().map(|bucket| bucket.name.as_str()));
        Advice::new(
            Severity::Note,
            format!("every change of {names} is kept for ever"),
            "neither time nor size limits their feed, so the log only grows",
            "nothing, if that is meant; else `pleach kv bucket edit BUCKET --feed-time TIME --feed-bytes SIZE`",
        )
    })
}
