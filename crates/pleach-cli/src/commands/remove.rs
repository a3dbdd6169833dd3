use bytes::Bytes;
use clap::Args;
use pleach::{Committed, Entry, Expectation, Headers, Op, Operation, Revision};

use super::{EntryArgs, revision};
use crate::app::App;
use crate::record::Record;

/// Deletes the value of a key and keeps its history
#[derive(Args, Debug)]
#[command(after_help = "A marker is left in the history, also if there was no value.\n\n\
                  Examples:\n  pleach kv del carts user.42\n  pleach kv del carts user.42 --revision 7")]
pub(crate) struct DelArgs {
    #[command(flatten)]
    entry: EntryArgs,

    /// Only if the key's newest record has this revision
    #[arg(long, value_name = "N", value_parser = revision)]
    revision: Option<Revision>,
}

/// Deletes the value of a key with all its history
#[derive(Args, Debug)]
#[command(after_help = "One marker is left, and nothing that was there before.\n\n\
                  Examples:\n  pleach kv purge carts user.42\n  pleach kv purge carts user.42 --revision 7")]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    entry: EntryArgs,

    /// Only if the key's newest record has this revision
    #[arg(long, value_name = "N", value_parser = revision)]
    revision: Option<Revision>,
}

impl DelArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let operation = Operation::delete(self.entry.key.clone());
        run(app, self.entry, operation, self.revision, Op::Delete).await
    }
}

impl PurgeArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let operation = Operation::purge(self.entry.key.clone());
        run(app, self.entry, operation, self.revision, Op::Purge).await
    }
}

async fn run(
    app: &mut App,
    entry: EntryArgs,
    operation: Operation,
    revision: Option<Revision>,
    op: Op,
) -> anyhow::Result<()> {
    let EntryArgs { bucket: name, key } = entry;
    let bucket = app.bucket(&name).await?;
    let expect = revision.map_or(Expectation::Any, Expectation::Revision);
    let Committed { last: revision, time, .. } = bucket.commit(operation.expecting(expect).into()).await?;
    let marker =
        Entry { key, value: Bytes::new(), revision, time, expires: None, op, headers: Headers::new() };
    let done = if op == Op::Purge { "purged" } else { "deleted" };
    app.output.confirm(
        &Record::new(&name, &marker),
        format!("{name}/{} is {done} at revision {revision}", marker.key),
    )
}
