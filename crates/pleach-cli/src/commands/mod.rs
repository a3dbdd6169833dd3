//! One file a command: its arguments, its help, what it does.

pub(crate) mod bucket;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod ls;
pub(crate) mod remove;
pub(crate) mod revert;
pub(crate) mod watch;
pub(crate) mod write;

use clap::Args;
use pleach::{BucketName, Key};

/// The entry a command is about: first its bucket, then its key.
#[derive(Args, Debug)]
pub(crate) struct EntryArgs {
    /// The bucket
    bucket: BucketName,

    /// The key: tokens of letters, digits and -/_= with dots between
    key: Key,
}

/// Reads `NAME=VALUE`.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
