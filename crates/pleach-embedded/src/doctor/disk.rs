//! The disk and the system.

use std::time::Duration;

use super::text::{bytes, percent, time};
use super::{Advice, Severity};
use crate::status::Status;

/// With less space than this nothing can be counted on.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// With a smaller share of the disk than this it is time to act.
const FREE_SHARE_MIN: f64 = 0.05;

/// A process with a larger share of the files that it may open will soon be refused one.
const OPEN_FILES_SHARE_MAX: f64 = 0.8;

/// A sync should take less; and much less than the second.
const SYNC_NOTE: Duration = Duration::from_millis(20);
const SYNC_WARNING: Duration = Duration::from_millis(100);

/// So many syncs are needed to speak of them.
const SYNCS_MIN: u64 = 20;

pub(super) fn index_disk_full(status: &Status) -> Option<Advice> {
    let trouble = status.index.trouble.as_ref()?;
    Some(Advice::new(
        Severity::Problem,
        format!("the index cannot be written out: {trouble}"),
        "it stays in memory, and when that is full commits are refused",
        "free some space on the disk; it goes on by itself, and nothing is lost",
    ))
}

pub(super) fn nearly_full(status: &Status) -> Option<Advice> {
    let disk = status.disk.filter(|disk| disk.bytes > 0)?;
    let share = disk.free_bytes as f64 / disk.bytes as f64;
    let severity = match disk.free_bytes {
        free if free < FREE_BYTES_MIN => Severity::Problem,
        _ if share < FREE_SHARE_MIN => Severity::Warning,
        _ => return None,
    };
    Some(Advice::new(
        severity,
        format!("only {} of the disk are free, {}", bytes(disk.free_bytes), percent(share)),
        "cleaning and merging write before they remove, so they need room to free some",
        "free some space, or move the store; `pleach clean` gives back what is garbage",
    ))
}

pub(super) fn open_files(status: &Status) -> Option<Advice> {
    let (open, limit) = (status.process.open_files?, status.process.open_files_max?);
    (open as f64 > limit as f64 * OPEN_FILES_SHARE_MAX).then(|| {
        Advice::new(
            Severity::Warning,
            format!("the process has {open} files open, and may have {limit}"),
            "past that no file can be opened, and reads and commits fail",
            "raise the limit (`ulimit -n`), or look for files and sockets that the program leaves open",
        )
    })
}

pub(super) fn slow_syncs(status: &Status) -> Option<Advice> {
    let syncs = &status.commits.syncs;
    let latency = if syncs.minute.timed >= SYNCS_MIN { syncs.minute } else { syncs.all };
    if latency.timed < SYNCS_MIN {
        return None;
    }
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let severity = Advice::graded(millis(latency.p99), millis(SYNC_NOTE), millis(SYNC_WARNING))?;
    Some(Advice::new(
        severity,
        format!("the disk is slow to sync: one of a hundred takes more than {}", time(latency.p99)),
        "a commit is acknowledged once it is synced, so none is faster than that",
        "use a disk of its own or a faster one, commit from several threads or in batches so that one sync serves \
         many, or make buckets that can spare the last second `buffered`",
    ))
}

pub(super) fn unwritten_reports(status: &Status) -> Option<Advice> {
    let count = status.unwritten_reports;
    (count > 0).then(|| {
        Advice::new(
            Severity::Note,
            format!("the file status.json could not be written {count} times"),
            "what `pleach status` shows of an open store may be old",
            "see that the store's directory is writable and its disk not full",
        )
    })
}
