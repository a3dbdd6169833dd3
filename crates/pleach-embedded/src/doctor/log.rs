//! The log, and what it takes of the disk.

use super::text::{bytes, percent};
use super::{Advice, Severity};
use crate::status::Status;

/// A log smaller than this is not worth the words.
const LOG_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// The cleaner begins at a fifth; more than this means that it does not keep up.
const GARBAGE_SHARE_MAX: f64 = 0.4;

/// Old segments that wait to be removed, and their share of the log.
const REPLACED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const REPLACED_SHARE_MAX: f64 = 0.5;

/// On the disk for each byte that is needed.
const AMPLIFICATION_NOTE: f64 = 2.5;
const AMPLIFICATION_WARNING: f64 = 4.0;

/// About two seconds of reading.
const REPLAY_BYTES_MAX: u64 = 384 * 1024 * 1024;

pub(super) fn cleaning_trouble(status: &Status) -> Option<Advice> {
    let trouble = status.log.trouble.as_ref()?;
    Some(Advice::new(
        Severity::Warning,
        format!("the log cannot be cleaned: {trouble}"),
        "what is overwritten keeps its space, and the log grows",
        "if the disk is full, free some space; else close the store and see what is damaged with `pleach verify`",
    ))
}

pub(super) fn cleaning_off(status: &Status) -> Option<Advice> {
    let log = &status.log;
    (!log.cleaning && log.bytes >= LOG_BYTES_MIN).then(|| {
        Advice::new(
            Severity::Warning,
            format!("the log has {} and is not cleaned", bytes(log.bytes)),
            "it was opened with `Settings::clean` off, so overwritten records keep their space",
            "open it with `Settings::clean`, or close it and run `pleach clean` now and then",
        )
    })
}

pub(super) fn garbage(status: &Status) -> Option<Advice> {
    let log = &status.log;
    if log.bytes < LOG_BYTES_MIN {
        return None;
    }
    let share = log.garbage_bytes as f64 / log.bytes as f64;
    (share > GARBAGE_SHARE_MAX).then(|| {
        Advice::new(
            Severity::Warning,
            format!("{} of the log are garbage: {}", percent(share), bytes(log.garbage_bytes)),
            "records are overwritten faster than they are cleaned away, or nobody had the store open to clean it",
            "raise `Settings::clean_bytes_per_second`, or close the store and run `pleach clean`",
        )
    })
}

pub(super) fn old_segments(status: &Status) -> Option<Advice> {
    let log = &status.log;
    let share = log.replaced_bytes as f64 / log.bytes.max(1) as f64;
    (log.replaced_bytes > REPLACED_BYTES_MAX && share > REPLACED_SHARE_MAX).then(|| {
        let why = match status.oldest_snapshot {
            Some(held) => {
                format!("someone holds a snapshot at revision {} that may need them", held.revision)
            }
            None => "the index has yet to be written out past the moment they were cleaned".into(),
        };
        Advice::new(
            Severity::Warning,
            format!("{} of cleaned segments wait to be removed", bytes(log.replaced_bytes)),
            why,
            "end scans and watches that are left unread",
        )
    })
}

pub(super) fn amplification(status: &Status) -> Option<Advice> {
    let space = status.amplification.space.filter(|_| status.log.bytes >= LOG_BYTES_MIN)?;
    let severity = Advice::graded(space, AMPLIFICATION_NOTE, AMPLIFICATION_WARNING)?;
    Some(Advice::new(
        severity,
        format!("the store takes {space:.1} times the space of what must be kept"),
        "garbage that is not yet cleaned, old segments that wait, and the index add up to that",
        "see the findings about garbage and old segments; `pleach clean` gives back what it can",
    ))
}

pub(super) fn long_replay(status: &Status) -> Option<Advice> {
    let replay = status.index.replay_bytes;
    (replay > REPLAY_BYTES_MAX).then(|| {
        Advice::new(
            Severity::Note,
            format!("after a crash {} of the log would have to be read again", bytes(replay)),
            "that much was committed since the index was last written out",
            "nothing, unless opening must be quick: a clean close writes the index out",
        )
    })
}
