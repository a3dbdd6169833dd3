use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use pleach::stores::{ContractRecords, Extent, TransferLine};
use pleach::{
    Bucket, BucketName, Entry, ErrorKind, ScanOptions, Store, WatchEvent, WatchOptions, WatchStart,
};
use serde::Serialize;

use crate::app::App;
use crate::destination::Destination;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::Progress;
use crate::record::{BucketObject, EXPORTED, Event, JSON_VERSION, Record};
use crate::text::counted;
use crate::wait::{self, Interrupt, Waited};

/// Writes buckets as JSON lines that `import` reads
#[derive(Args, Debug)]
#[command(
    after_help = "Each bucket is a line with its configuration, then a line for each entry, from one snapshot.\n\
                  Without a bucket, all are exported, what users and devices have stored included. With -o, a file appears when it is complete.\n\n\
                  Contracts come first, with decisions and overrides, if all their buckets are exported: then\n\
                  import restores them. Name all buckets of a contract or none, or add --without-contracts.\n\n\
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

    /// The entries alone: the contracts that own the buckets are left out
    #[arg(long)]
    without_contracts: bool,

    /// Writes to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let mut store = app.store().await?;
        let mut names = self.buckets;
        let contracts = match self.without_contracts {
            true => ExportedContracts::none(&store.for_copies()),
            false => ExportedContracts::read(&store.for_copies(), &names).await?,
        };
        if names.is_empty() {
            // A copy of all there is has what users and devices have stored, too; by name that is not to be had.
            store = store.for_copies();
            names = store.buckets().await?.into_iter().map(|info| info.name).collect();
            // Its records are lines of their own.
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
            export(&buckets, &contracts, self.history, &mut sink).await?;
            return Ok(());
        };
        // Half an export shall not be taken for a whole one: the file appears when it is complete.
        let mut sink = Sink::File(Destination::create(&path)?, &app.output);
        let records = export(&buckets, &contracts, self.history, &mut sink).await?;
        sink.finish()?;
        let event = Event::new(EXPORTED).count("buckets", names.len() as u64).count("records", records);
        let are = if records == 1 { "is" } else { "are" };
        let (records, buckets) =
            (counted(records, "record", "records"), counted(names.len() as u64, "bucket", "buckets"));
        app.output.confirm(&event, format!("{records} of {buckets} {are} in {}", path.display()))
    }
}

async fn export(
    buckets: &[Bucket],
    contracts: &ExportedContracts,
    history: bool,
    sink: &mut Sink<'_>,
) -> anyhow::Result<u64> {
    let mut records = 0;
    contracts.write(sink)?;
    for bucket in buckets {
        let status = bucket.status().await?;
        sink.object(&BucketObject::config(&status.info))?;
        let progress = Progress::entries(status.entries, sink.output());
        progress.say(bucket.name().as_str());
        let mut write = |entry: &Entry| {
            // Records of the store itself name revisions of this store, and mean nothing in another.
            if entry.key.is_reserved() {
                return Ok(());
            }
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
    contracts.check_unchanged().await?;
    contracts.write_end(buckets.len(), records, sink)?;
    Ok(records)
}

/// The records about contracts that are exported with the buckets.
#[derive(Debug)]
struct ExportedContracts {
    store: Store,
    /// None if they are left out.
    extent: Option<Extent>,
    records: ContractRecords,
}

impl ExportedContracts {
    fn none(store: &Store) -> Self {
        Self { store: store.clone(), extent: None, records: ContractRecords::default() }
    }

    /// Those of some buckets, or of the whole store if none is named.
    async fn read(store: &Store, names: &[BucketName]) -> anyhow::Result<Self> {
        let extent = match names.is_empty() {
            true => Extent::Store,
            false => Extent::Buckets(names.iter().cloned().collect()),
        };
        let records = store.contracts().records(&extent).await?;
        Ok(Self { store: store.clone(), extent: Some(extent), records })
    }

    fn write(&self, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        self.records.to_lines().iter().try_for_each(|line| sink.object(&SystemLine { v: JSON_VERSION, line }))
    }

    /// Marks the end, so that an import never takes a part of an export with contracts for the whole.
    fn write_end(&self, buckets: usize, records: u64, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        sink.object(&Event::new(EXPORTED).count("buckets", buckets as u64).count("records", records))
    }

    /// Fails if a contract was applied since: the entries may be of either version.
    async fn check_unchanged(&self) -> anyhow::Result<()> {
        let Some(extent) = &self.extent else { return Ok(()) };
        if self.store.contracts().records(extent).await? == self.records {
            return Ok(());
        }
        let problem = Problem::new(ErrorKind::Conflict, "the contracts changed during the export");
        Err(problem.help("export again").into())
    }
}

/// A record about contracts as a line.
#[derive(Debug, Serialize)]
struct SystemLine<'a> {
    v: u64,
    #[serde(flatten)]
    line: &'a TransferLine,
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
