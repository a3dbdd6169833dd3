//! What is in the way of commits.

use std::time::Duration;

use super::text::{bytes, percent, time};
use super::{Advice, Severity};
use crate::pressure::StallCause;
use crate::status::Status;

/// If commits were made to wait for more than this share of the last minute, that is felt.
const STALLED_SHARE_MAX: f64 = 0.05;

/// Three quarters of what may wait at all.
const WAITING_BYTES_MAX: u64 = 192 * 1024 * 1024;

/// Written to the disk for each byte of a commit; and so much must have been committed to speak of it.
const AMPLIFICATION_NOTE: f64 = 6.0;
const AMPLIFICATION_WARNING: f64 = 12.0;
const WRITTEN_BYTES_MIN: u64 = 64 * 1024 * 1024;

pub(super) fn read_only(status: &Status) -> Option<Advice> {
    let reason = status.read_only.as_ref()?;
    Some(Advice::new(
        Severity::Problem,
        format!("the store takes no more writes: {reason}"),
        "after a write that failed nobody knows what is on the disk, until it is read again",
        "mend the disk, then close the store and open it again; `pleach verify` tells whether anything is damaged",
    ))
}

pub(super) fn stalled_by_flushes(status: &Status) -> Option<Advice> {
    let what = stalled(status, StallCause::IndexFlush)?;
    Some(Advice::new(
        Severity::Warning,
        what,
        "commits come faster than the disk takes the index",
        "write less at once, or use a faster disk; a larger `Settings::memtable_bytes` evens out bursts",
    ))
}

pub(super) fn stalled_by_merges(status: &Status) -> Option<Advice> {
    let what = stalled(status, StallCause::IndexMerge)?;
    Some(Advice::new(
        Severity::Warning,
        what,
        "small parts of the index are made faster than they are merged, and each makes reads slower",
        "write less at once, or use a faster disk; write keys in order where you can choose",
    ))
}

pub(super) fn stalled_by_cleaning(status: &Status) -> Option<Advice> {
    let what = stalled(status, StallCause::LogCleaning)?;
    Some(Advice::new(
        Severity::Warning,
        what,
        "records are overwritten faster than the cleaner, which may use so many bytes a second, gives their space back",
        "raise `Settings::clean_bytes_per_second`, overwrite less often, or keep less history",
    ))
}

/// What to say if commits wait for `cause` now, or have for a good part of the last minute.
fn stalled(status: &Status, cause: StallCause) -> Option<String> {
    let stall = status.stalls.iter().find(|stall| stall.cause == cause)?;
    if let Some(now) = stall.now {
        return Some(format!("each group of commits waits {} because {cause}", time(now)));
    }
    let minute: Duration = status.rates.stalled.iter().sum();
    let span = u32::try_from(status.rates.stalled.len()).ok().filter(|span| *span > 0)?;
    let share = minute.as_secs_f64() / f64::from(span);
    // Which cause it was in that minute is not kept: the one that took most since the store was opened is named.
    let is_main = status.stalls.iter().all(|other| other.time <= stall.time);
    (share > STALLED_SHARE_MAX && is_main).then(|| {
        format!("commits were made to wait for {} of the last minute because {cause}", percent(share))
    })
}

pub(super) fn commits_queue_up(status: &Status) -> Option<Advice> {
    let commits = &status.commits;
    (commits.waiting_bytes > WAITING_BYTES_MAX).then(|| {
        let (count, size) = (commits.waiting, bytes(commits.waiting_bytes));
        Advice::new(
            Severity::Warning,
            format!("{count} commits with {size} wait to be written"),
            "callers write faster than the disk takes it, and soon have to wait before they are let in at all",
            "let fewer callers write at once, or in smaller batches",
        )
    })
}

pub(super) fn amplification(status: &Status) -> Option<Advice> {
    let write = status.amplification.write.filter(|_| status.log.written_bytes >= WRITTEN_BYTES_MIN)?;
    let severity = Advice::graded(write, AMPLIFICATION_NOTE, AMPLIFICATION_WARNING)?;
    let (log, index) = (&status.log, &status.index);
    let index_written = index.flushed_bytes + index.merge_written_bytes;
    let (why, next) = if log.rewritten_bytes > index_written {
        (
            "most of it is cleaning: what is live and what is overwritten lie side by side in the log",
            "keep what changes all the time in a store of its own, or clean more seldom with a larger disk",
        )
    } else {
        (
            "most of it is merging the index: its keys come in no order, and there are many",
            "write in larger batches, with keys in order where you can choose, or raise `Settings::memtable_bytes`",
        )
    };
    let what = format!("for each byte that is committed, {write:.1} are written to the disk");
    Some(Advice::new(severity, what, why, next))
}
