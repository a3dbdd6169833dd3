use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use pleach::{
    Bucket, BucketName, Change, ConsumeOptions, ConsumerName, ConsumerStart, KeyFilter, Revision, WatchEvent,
    WatchOptions, WatchStart,
};

use super::duration;
use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::{Event, Record};
use crate::text;
use crate::wait::{self, Interrupt, Waited};

/// Prints changes as they are committed
#[derive(Args, Debug)]
#[command(
    after_help = "Changes come in order and exactly once. Ctrl-C ends the watch. With --from latest or history, a\n\
                  mark says when everything has been printed that was there at the beginning.\n\n\
                  With --consumer, the store remembers how far the watch has come, and the next one with that name\n\
                  goes on there. A change is acknowledged once it is printed; if a crash comes in between, it\n\
                  comes again. A new consumer begins with the oldest change that is kept, or where --from says.\n\n\
                  A `file:` store belongs to one process: while the watch runs, no other can write to it. What it\n\
                  shows is what was committed before, and what expires meanwhile. On NATS it shows what everyone\n\
                  commits, and goes on after the connection was lost.\n\n\
                  Examples:\n  pleach kv watch carts\n  pleach kv watch carts 'user.*' 'guest.>' --from latest\n  \
                  pleach --json kv watch carts --from 120 --count 10\n  pleach kv watch carts --from history --idle 1s\n  \
                  pleach --json kv watch orders --consumer mails --idle 1s"
)]
pub(crate) struct WatchArgs {
    /// The bucket
    bucket: BucketName,

    /// Only keys that pass any of these filters
    #[arg(value_name = "FILTER")]
    filters: Vec<KeyFilter>,

    /// Where to begin: now, latest (every value first), history (every kept record first), oldest (every
    /// kept change), or a revision [default: now; for a new consumer, oldest]
    #[arg(long, value_name = "WHERE")]
    from: Option<From>,

    /// Goes on where the consumer of this name was left, and creates it if there is none
    #[arg(long, value_name = "NAME")]
    consumer: Option<ConsumerName>,

    /// Ends after this many changes
    #[arg(long, value_name = "N", value_parser = changes)]
    count: Option<NonZeroU64>,

    /// Ends when nothing has come for this time, such as 2s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
}

fn changes(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "expected a whole number from 1 on".into())
}

#[derive(Clone, Copy, Debug)]
enum From {
    Now,
    Latest,
    History,
    Oldest,
    Revision(Revision),
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "now" => Self::Now,
            "latest" => Self::Latest,
            "history" => Self::History,
            "oldest" => Self::Oldest,
            revision => {
                let expected = "expected now, latest, history, oldest or a revision";
                Self::Revision(revision.parse().map_err(|_| expected)?)
            }
        })
    }
}

impl From {
    /// Where a watch begins.
    async fn watch(self, bucket: &Bucket) -> anyhow::Result<WatchStart> {
        Ok(match self {
            Self::Now => WatchStart::Now,
            Self::Latest => WatchStart::Latest,
            Self::History => WatchStart::History,
            Self::Oldest => WatchStart::Revision(bucket.info().await?.feed_floor),
            Self::Revision(revision) => WatchStart::Revision(revision),
        })
    }

    /// Where a consumer is created.
    fn consumer(self) -> anyhow::Result<ConsumerStart> {
        match self {
            Self::Now => Ok(ConsumerStart::Now),
            Self::Oldest => Ok(ConsumerStart::Oldest),
            Self::Revision(revision) => Ok(ConsumerStart::Revision(revision)),
            Self::Latest | Self::History => {
                let problem = Problem::invalid("a consumer is a place among changes, not among values");
                Err(problem.help("with --consumer, give --from now, oldest or a revision").into())
            }
        }
    }
}

impl WatchArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let bucket = app.bucket(&self.bucket).await?;
        let interrupt = Interrupt::catch()?;
        match &self.consumer {
            None => self.watch(app, bucket, &interrupt).await,
            Some(consumer) => self.consume(app, bucket, consumer, &interrupt).await,
        }
    }

    async fn watch(&self, app: &mut App, bucket: Bucket, interrupt: &Interrupt) -> anyhow::Result<()> {
        let start = self.from.unwrap_or(From::Now).watch(&bucket).await?;
        let filters = self.filters.clone();
        let newest = bucket.info().await?.last_revision;
        // What was there before comes first, however long a busy machine takes for it.
        let mut on_its_way = match &start {
            WatchStart::Latest | WatchStart::History => Some(wait::KNOWN_MAX),
            WatchStart::Revision(from) if filters.is_empty() && *from <= newest => Some(wait::LIKELY_MAX),
            _ => None,
        };
        let mut watch = bucket.watch_with(WatchOptions { filters, start }).await?;
        let mut left = self.count.map(NonZeroU64::get);
        while left != Some(0) {
            let patience = wait::patience(self.idle, on_its_way);
            let event = match wait::next(&mut watch, patience, interrupt) {
                Waited::Item(event) => event?,
                Waited::Ended | Waited::Idle | Waited::Interrupted => break,
            };
            match event {
                WatchEvent::Change(change) => {
                    print_change(&mut app.output, &self.bucket, &change)?;
                    left = left.map(|left| left - 1);
                    // The end of initial values is told by a mark, and the end of older changes by their revision.
                    on_its_way =
                        on_its_way.filter(|most| *most == wait::KNOWN_MAX || change.entry.revision < newest);
                }
                WatchEvent::InitialDone { revision } => {
                    print_mark(&mut app.output, &self.bucket, revision)?;
                    on_its_way = None;
                }
            }
            // Whoever reads this waits for every line.
            app.output.flush()?;
        }
        Ok(())
    }

    async fn consume(
        &self,
        app: &mut App,
        bucket: Bucket,
        consumer: &ConsumerName,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let start = self.from.unwrap_or(From::Oldest).consumer()?;
        let filters = self.filters.clone();
        let newest = bucket.info().await?.last_revision;
        let is_filtered = !filters.is_empty();
        let name = consumer;
        let mut consumer = bucket.consume_with(name, ConsumeOptions { start, filters }).await?;
        let is_behind = !is_filtered && bucket.consumer(name).await?.lag > 0;
        let mut on_its_way = is_behind.then_some(wait::LIKELY_MAX);
        let mut left = self.count.map(NonZeroU64::get);
        while left != Some(0) {
            let patience = wait::patience(self.idle, on_its_way);
            let change = match wait::next(&mut consumer, patience, interrupt) {
                Waited::Item(change) => change?,
                Waited::Ended | Waited::Idle | Waited::Interrupted => break,
            };
            print_change(&mut app.output, &self.bucket, &change)?;
            // What its reader has not got is not done with.
            app.output.flush()?;
            consumer.ack(&change).await?;
            on_its_way = on_its_way.filter(|_| change.entry.revision < newest);
            left = left.map(|left| left - 1);
        }
        Ok(())
    }
}

fn print_change(output: &mut Output, bucket: &BucketName, change: &Change) -> anyhow::Result<()> {
    let entry = &change.entry;
    if output.is_json() {
        return output.object(&Record::new(bucket, entry).in_batch(change.batch));
    }
    let revision = format!("{:>8}", entry.revision);
    let op = format!("{:<6}", entry.op);
    let paint = output.paint();
    let op = if entry.op.is_put() { op } else { paint.red(&op) };
    let value = if entry.op.is_put() { text::shown(&entry.value) } else { String::new() };
    let line = format!(
        "{}  {}  {op}  {}  {value}",
        paint.dim(&revision),
        entry.time,
        paint.bold(entry.key.as_str())
    );
    output.line(line.trim_end())
}

fn print_mark(output: &mut Output, bucket: &BucketName, revision: Revision) -> anyhow::Result<()> {
    if output.is_json() {
        return output.object(&Event::new("initial_done").bucket(bucket).revision(revision));
    }
    if output.is_quiet() {
        return Ok(());
    }
    let mark =
        output.paint().dim(&format!("-- that was everything as of revision {revision}; now the changes"));
    output.line(mark)
}
