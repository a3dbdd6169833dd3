use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use pleach::{Bucket, Committed, Entry, Expectation, Expiry, Headers, Op, Operation, Revision};

use super::{EntryArgs, duration, name_and_value, revision};
use crate::app::App;
use crate::input::ValueArgs;
use crate::record::Record;

/// Gives a key a value, whatever it had before
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach kv put carts user.42 '3 apples'\n  pleach kv put sessions s.81 token --ttl 30m\n  \
                  pleach kv put images logo --file logo.png\n  date | pleach kv put notes today\n  \
                  pleach kv put carts user.42 '3 apples' --header Trace-Id=7f3a"
)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    entry: EntryArgs,

    #[command(flatten)]
    value: ValueArgs,

    #[command(flatten)]
    options: WriteOptions,
}

/// Gives a key a value if it has none
#[derive(Args, Debug)]
#[command(
    after_help = "A key that has a value already ends with exit code 4. Deleted and expired keys have none.\n\n\
                  Examples:\n  pleach kv create locks job.7 \"$HOSTNAME\" --ttl 1m\n  \
                  pleach kv create users ann --file ann.json"
)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    entry: EntryArgs,

    #[command(flatten)]
    value: ValueArgs,

    #[command(flatten)]
    options: WriteOptions,
}

/// Gives a key a value if nobody wrote it since a revision
#[derive(Args, Debug)]
#[command(
    after_help = "If the key's newest record is another one, nothing is written, and the exit code is 4.\n\n\
                  Examples:\n  pleach kv update carts user.42 '4 apples' --revision 7\n  \
                  pleach kv update users ann --file ann.json --revision 12"
)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    entry: EntryArgs,

    #[command(flatten)]
    value: ValueArgs,

    /// The revision that the key's newest record must have
    #[arg(long, value_name = "N", value_parser = revision)]
    revision: Revision,

    #[command(flatten)]
    options: WriteOptions,
}

/// How a value is written.
#[derive(Args, Debug)]
struct WriteOptions {
    /// The value is gone after this time, such as 30s, 5m, 12h or 7days
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,

    /// A small fact that travels with the value; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = name_and_value)]
    headers: Vec<(String, String)>,
}

impl PutArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        run(app, self.entry, self.value, self.options, Expectation::Any).await
    }
}

impl CreateArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        run(app, self.entry, self.value, self.options, Expectation::Absent).await
    }
}

impl UpdateArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        run(app, self.entry, self.value, self.options, Expectation::Revision(self.revision)).await
    }
}

async fn run(
    app: &mut App,
    entry: EntryArgs,
    value: ValueArgs,
    options: WriteOptions,
    expect: Expectation,
) -> anyhow::Result<()> {
    let mut headers = Headers::new();
    for (name, value) in &options.headers {
        headers.set(name, value)?;
    }
    // The value first: whoever types it or pipes it slowly shall not hold the store meanwhile.
    let value = value.read(&app.output)?;
    let expiry = options.ttl.map_or(Expiry::Bucket, Expiry::After);
    let bucket = app.bucket(&entry.bucket).await?;
    put(app, &bucket, Put { key: entry.key, value, expiry, headers, expect }).await
}

/// A value to be written.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) key: pleach::Key,
    pub(super) value: Bytes,
    pub(super) expiry: Expiry,
    pub(super) headers: Headers,
    pub(super) expect: Expectation,
}

/// Commits `put` and prints the record that it became.
pub(super) async fn put(app: &mut App, bucket: &Bucket, put: Put) -> anyhow::Result<()> {
    let Put { key, value, expiry, headers, expect } = put;
    let operation = Operation::put(key.clone(), value.clone())
        .expecting(expect)
        .expiring(expiry)
        .with_headers(headers.clone());
    let Committed { last: revision, time, .. } = bucket.commit(operation.into()).await?;
    if app.output.is_quiet() {
        return Ok(());
    }
    let expires = bucket.config().await?.expiry(time, expiry.moment(time));
    let entry = Entry { key, value, revision, time, expires, op: Op::Put, headers };
    let name = bucket.name();
    app.output.confirm(&Record::new(name, &entry), format!("{name}/{} is at revision {revision}", entry.key))
}
