use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use pleach::{Bucket, BucketName, Entry, ErrorKind, ScanOptions, WatchEvent, WatchOptions, WatchStart};
use serde::Serialize;

use crate::app::App;
use crate::destination::Destination;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::Progress;
use crate::record::{BucketObject, Event, Record};
use crate::text::counted;
use crate::wait::{self, Interrupt, Waited};

/// Writes buckets as JSON lines that `import` reads
#[derive(Args, Debug)]
#[command(
    after_help = "Each bucket is a line with its configuration, then a line for each entry, from one snapshot.\n\
                  Without a bucket, all are exported. With -o, a file appears when it is complete.\n\n\
                  Examples:\n  pleach kv export -o backup.ndjson\n  pleach kv export carts --history | gzip > carts.gz\n  \
                  pleach kv export carts | pleach --store file:./copy kv import --create-buckets"
)]
pub(crate) struct ExportArgs {
    /// The buckets; all if none is named
    #[arg(value_name = "BUCKET")]
    buckets: Vec<BucketName>,

    /// Every kept record of every key, markers too, instead of the latest values
    #[arg(long)]
    history: bool,

    /// Writes to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let store = app.store().await?;
        let mut names = self.buckets;
        if names.is_empty() {
            names = store.buckets().await?.into_iter().map(|info| info.name).collect();
            // Nobody could import what a store knows about its contracts: only its authority writes that.
            names.retain(|name| name.as_str() != pleach::stores::SYSTEM_BUCKET);
        }
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let mut buckets = Vec::with_capacity(names.len());
        for name in &names {
            buckets.push(store.bucket(name).await?);
        }
        let Some(path) = self.output else {
            let mut sink = Sink::Stdout(&mut app.output);
            export(&buckets, self.history, &mut sink).await?;
            return Ok(());
        };
        // Half an export shall not be taken for a whole one: the file appears when it is complete.
        let mut sink = Sink::File(Destination::create(&path)?, &app.output);
        let records = export(&buckets, self.history, &mut sink).await?;
        sink.finish()?;
        let event = Event::new("exported").count("buckets", names.len() as u64).count("records", records);
        let are = if records == 1 { "is" } else { "are" };
        let (records, buckets) =
            (counted(records, "record", "records"), counted(names.len() as u64, "bucket", "buckets"));
        app.output.confirm(&event, format!("{records} of {buckets} {are} in {}", path.display()))
    }
}

async fn export(buckets: &[Bucket], history: bool, sink: &mut Sink<'_>) -> anyhow::Result<u64> {
    let mut records = 0;
    for bucket in buckets {
        let status = bucket.status().await?;
        sink.object(&BucketObject::config(&status.info))?;
        let progress = Progress::entries(status.entries, sink.output());
        progress.say(bucket.name().as_str());
        let mut write = |entry: &Entry| {
            records += 1;
            progress.step();
            sink.object(&Record::new(bucket.name(), entry))
        };
        if history {
            export_history(bucket, &mut write).await?;
        } else {
            let mut scan = bucket.scan_with(ScanOptions::default());
            while let Some(entry) = scan.next().await? {
                write(&entry)?;
            }
        }
    }
    Ok(records)
}

/// Every kept record: what a watch with history delivers before its mark.
async fn export_history(
    bucket: &Bucket,
    write: &mut impl FnMut(&Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let options = WatchOptions { start: WatchStart::History, ..WatchOptions::default() };
    let mut watch = bucket.watch_with(options).await?;
    while let Waited::Item(event) = wait::next(&mut watch, None, &Interrupt::never()) {
        match event? {
            WatchEvent::Change(change) => write(&change.entry)?,
            WatchEvent::InitialDone { .. } => return Ok(()),
        }
    }
    Err(Problem::new(ErrorKind::Bug, "the watch ended before everything was exported").into())
}

/// Where an export goes.
#[derive(Debug)]
enum Sink<'a> {
    Stdout(&'a mut Output),
    File(Destination, &'a Output),
}

impl Sink<'_> {
    fn object(&mut self, object: &impl Serialize) -> anyhow::Result<()> {
        match self {
            Self::Stdout(output) => output.object(object),
            Self::File(file, _) => {
                let line = serde_json::to_string(object)?;
                writeln!(file, "{line}").context("cannot write the export").context(full_disk())
            }
        }
    }

    fn output(&self) -> &Output {
        match self {
            Self::Stdout(output) => output,
            Self::File(_, output) => output,
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(_) => Ok(()),
            Self::File(file, _) => file.finish(),
        }
    }
}

/// The path with something after its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn full_disk() -> Problem {
    Problem::new(ErrorKind::Unavailable, "the export is not complete")
        .help("free some space, and export again")
}
