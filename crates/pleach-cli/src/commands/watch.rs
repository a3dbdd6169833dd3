use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use pleach::{BucketName, Change, KeyFilter, Revision, WatchEvent, WatchOptions, WatchStart};

use super::duration;
use crate::app::App;
use crate::output::Output;
use crate::record::{Event, Record};
use crate::text;
use crate::wait::{self, Interrupt, Waited};

/// Prints changes as they are committed
#[derive(Args, Debug)]
#[command(
    after_help = "Changes come in order and exactly once. Ctrl-C ends the watch. With --from latest or history, a\n\
                  mark says when everything has been printed that was there at the beginning.\n\n\
                  A `file:` store belongs to one process: while the watch runs, no other can write to it. What it\n\
                  shows is what was committed before, and what expires meanwhile.\n\n\
                  Examples:\n  pleach kv watch carts\n  pleach kv watch carts 'user.*' 'guest.>' --from latest\n  \
                  pleach --json kv watch carts --from 120 --count 10\n  pleach kv watch carts --from history --idle 1s"
)]
pub(crate) struct WatchArgs {
    /// The bucket
    bucket: BucketName,

    /// Only keys that pass any of these filters
    #[arg(value_name = "FILTER")]
    filters: Vec<KeyFilter>,

    /// Where to begin: now, latest (every value first), history (every kept record first), or a revision
    #[arg(long, value_name = "WHERE", default_value = "now")]
    from: From,

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
struct From(WatchStart);

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "now" => WatchStart::Now,
            "latest" => WatchStart::Latest,
            "history" => WatchStart::History,
            revision => {
                let revision: Result<Revision, _> = revision.parse();
                WatchStart::Revision(revision.map_err(|_| "expected now, latest, history or a revision")?)
            }
        }))
    }
}

impl WatchArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let bucket = app.bucket(&self.bucket).await?;
        let interrupt = Interrupt::catch()?;
        let From(start) = self.from;
        let mut watch = bucket.watch_with(WatchOptions { filters: self.filters, start }).await?;
        let mut left = self.count.map(NonZeroU64::get);
        while left != Some(0) {
            let event = match wait::next(&mut watch, self.idle, &interrupt) {
                Waited::Item(event) => event?,
                Waited::Ended | Waited::Idle | Waited::Interrupted => break,
            };
            match event {
                WatchEvent::Change(change) => {
                    print_change(&mut app.output, &self.bucket, &change)?;
                    left = left.map(|left| left - 1);
                }
                WatchEvent::InitialDone { revision } => print_mark(&mut app.output, &self.bucket, revision)?,
            }
            // Whoever reads this waits for every line.
            app.output.flush()?;
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
