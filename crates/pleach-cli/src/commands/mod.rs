//! One file a command: its arguments, its help, what it does.

pub(crate) mod bucket;
pub(crate) mod clean;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod consumer;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod ls;
pub(crate) mod migrate;
mod moved;
pub(crate) mod rebuild;
pub(crate) mod remove;
pub(crate) mod revert;
pub(crate) mod salvage;
pub(crate) mod status;
mod typed;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod write;

use std::num::NonZeroU8;
use std::time::Duration;

use clap::Args;
use pleach::{BucketName, HISTORY_MAX, Key, Revision};

/// The entry a command is about: first its bucket, then its key.
#[derive(Args, Debug)]
pub(crate) struct EntryArgs {
    /// The bucket
    bucket: BucketName,

    /// The key: tokens of letters, digits and -/_= with dots between
    key: Key,
}

/// Reads a revision.
fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| "a revision is a whole number, as `pleach kv history` shows it".into())
}

/// Reads how many records of a key to keep.
fn records(text: &str) -> Result<NonZeroU8, String> {
    let records = text.parse().ok().filter(|records: &NonZeroU8| records.get() <= HISTORY_MAX);
    records.ok_or_else(|| format!("expected a number from 1 to {HISTORY_MAX}"))
}

/// Reads a length of time.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "a time is a number and a unit, such as 500ms, 30s, 5m, 12h or 7days".into())
}

/// Reads `NAME=VALUE`.
pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
