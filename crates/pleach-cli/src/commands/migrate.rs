use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use pleach::migrate::{Advance, Begun, Finished, Loss, MigrateError, MigrateOptions, Migration, Plan};
use pleach::nats::{NatsOptions, Scans};
use pleach::stores::Extent;
use pleach::{BucketName, Clock as _, Error, ErrorKind, OpenOptions, Store, StoreUrl, SystemClock};
use serde_json::{Value, json};

use super::moved::Moved;
use super::records;
use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::{Opening, Progress};
use crate::record::JSON_VERSION;
use crate::size::Size;
use crate::text::{counted, short};
use crate::wait::{self, Interrupt};

/// How long to sleep when there is nothing to be done.
const NAP: Duration = Duration::from_millis(20);

/// How often progress is told to programs.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Copies buckets to another store, also while they are written to, and checks that nothing is missing
#[derive(Args, Debug)]
#[command(
    after_help = "First says what the target cannot keep, and stops there unless that is accepted. Then copies\n\
                  every bucket with its configuration, history, headers and remaining times to live, repeats\n\
                  what is changed meanwhile, and compares both sides by a digest of all live keys. Revisions\n\
                  and times are new in the target.\n\n\
                  Contracts move with their buckets, with decisions and overrides: they are in force in the\n\
                  target once everything is copied, and until then the target's buckets take nothing else.\n\
                  Name all buckets of a contract or none.\n\n\
                  How far it has come is kept in the target. Stopped or killed, it goes on with the same\n\
                  command, and once it is done the same command compares once more.\n\n\
                  To move without a long stop: run with --follow while programs go on writing. When the lag is\n\
                  near 0, stop the programs that write, end the command with Ctrl-C, and run it once more\n\
                  without --follow: it repeats the rest and compares. Then start the programs on the new store.\n\
                  A store in a directory belongs to one process, so nothing can write to it while this command\n\
                  reads it; a program that must not stop for so long migrates it with pleach::migrate itself.\n\n\
                  Examples:\n  \
                  pleach migrate --from file:./.pleach --to nats://localhost:4222 --dry-run\n  \
                  pleach migrate --from file:./.pleach --to nats://localhost:4222 --accept-loss\n  \
                  pleach migrate --from nats://localhost --to file:/srv/data carts orders=orders-2024 --follow"
)]
pub(crate) struct MigrateArgs {
    /// The store that is copied: `file:PATH`, or `nats://HOST` with its options
    #[arg(long, value_name = "URL")]
    from: String,

    /// The store to copy to, which is made if need be
    #[arg(long, value_name = "URL")]
    to: String,

    /// The buckets, each with another name for it if it shall have one; all if none is named
    #[arg(value_name = "BUCKET[=NAME]")]
    buckets: Vec<BucketPair>,

    /// Keeps only the newest N records of a key
    #[arg(long, value_name = "N", value_parser = records)]
    history: Option<NonZeroU8>,

    /// Goes on although the target cannot keep everything
    #[arg(long)]
    accept_loss: bool,

    /// Copies the entries alone: the contracts that own the buckets stay behind
    #[arg(long)]
    without_contracts: bool,

    /// Says what would be done and lost, and changes nothing
    #[arg(long)]
    dry_run: bool,

    /// Goes on repeating changes until Ctrl-C, and leaves the target to be completed later
    #[arg(long, conflicts_with = "dry_run")]
    follow: bool,
}

/// A bucket and its name in the target.
#[derive(Clone, Debug)]
struct BucketPair {
    from: BucketName,
    to: BucketName,
}

impl FromStr for BucketPair {
    type Err = pleach::InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, to) = text.split_once('=').unwrap_or((text, text));
        Ok(Self { from: BucketName::parse(from)?, to: BucketName::parse(to)? })
    }
}

impl MigrateArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let (from, to) = (parse(&self.from)?, parse(&self.to)?);
        let (origin, destination) = (place(&from)?, place(&to)?);
        let scratch = scratch(&to).filter(|_| self.dry_run);
        let source = open(from, false, app).await?;
        let target = match &scratch {
            _ if origin == destination => source.clone(),
            Some(path) => Store::open(path).await?,
            None => open(to, true, app).await?,
        };
        let done = self.migrate(&source, &target, origin, app).await;
        let closed = target.close().await.and(source.close().await);
        if let Some(path) = scratch {
            // It is only a place to look at what such a store can do; what is left of it harms nobody.
            let _ = std::fs::remove_dir_all(path);
        }
        done.and(closed.map_err(Into::into))
    }

    async fn migrate(
        &self,
        source: &Store,
        target: &Store,
        origin: String,
        app: &mut App,
    ) -> anyhow::Result<()> {
        let options = MigrateOptions {
            origin,
            history: self.history,
            accept_loss: self.accept_loss,
            without_contracts: self.without_contracts,
        };
        let pairs = self.pairs(source).await?;
        // First, since what it refuses cannot be helped by another bucket name.
        let moved = Moved::plan(source, target, self.extent(), names(&pairs)).await?;
        let mut plans = Vec::new();
        for BucketPair { from, to } in pairs {
            let plan = Plan::make(source, target, &from, &to, &options).await?;
            print_plan(&plan, &mut app.output)?;
            plans.push(plan);
        }
        moved.print(&mut app.output).await?;
        print_notes(&plans, &mut app.output)?;
        app.output.flush()?;
        if let Some(plan) = plans.iter().find(|plan| !plan.losses.is_empty() && !self.accept_loss) {
            let (bucket, losses) = (plan.source.name.clone(), plan.losses.clone());
            return Err(Error::from(MigrateError::Loss { bucket, losses }).into());
        }
        if self.dry_run {
            return Ok(());
        }
        let entries = plans.iter().map(|plan| plan.entries).sum::<Option<u64>>();
        moved.begin().await?;
        let mut migrations = Vec::new();
        for plan in plans {
            migrations.push(Migration::begin(source, target, plan, &options).await?);
        }
        let interrupt = Interrupt::catch()?;
        let mut teller = Teller::new(entries.filter(|_| !self.follow), &app.output, &migrations);
        let is_done = self.advance(&mut migrations, &interrupt, &mut teller, &mut app.output).await?;
        drop(teller);
        if is_done {
            finish(migrations, &mut app.output).await?;
            return moved.finish(&mut app.output).await;
        }
        self.stopped(&migrations, &mut app.output)
    }

    /// Which contracts move; none if they stay behind.
    fn extent(&self) -> Option<Extent> {
        let named = || self.buckets.iter().map(|pair| pair.from.clone()).collect();
        let extent = if self.buckets.is_empty() { Extent::Store } else { Extent::Buckets(named()) };
        (!self.without_contracts).then_some(extent)
    }

    async fn pairs(&self, source: &Store) -> anyhow::Result<Vec<BucketPair>> {
        if !self.buckets.is_empty() {
            return Ok(self.buckets.clone());
        }
        let names = source.buckets().await?.into_iter().map(|info| info.name);
        // Its records move by themselves, after all buckets.
        let names = names.filter(|name| name.as_str() != pleach::stores::SYSTEM_BUCKET);
        let pairs: Vec<_> = names.map(|name| BucketPair { from: name.clone(), to: name }).collect();
        if pairs.is_empty() && source.contracts().lineages().await?.is_empty() {
            let problem = Problem::not_found("there is no bucket in the source");
            return Err(problem.help("name another store with --from").into());
        }
        Ok(pairs)
    }

    /// Works until everything is copied and repeated, or someone asks to stop. Says whether it is all done.
    async fn advance(
        &self,
        migrations: &mut [Migration],
        interrupt: &Interrupt,
        teller: &mut Teller,
        output: &mut Output,
    ) -> anyhow::Result<bool> {
        while !interrupt.has_come() {
            let (mut worked, mut caught_up, mut lags, mut is_copying) = (false, true, 0, false);
            for migration in &mut *migrations {
                // One is copied at a time; those that are copied follow their sources meanwhile.
                if is_copying {
                    break;
                }
                match migration.advance().await? {
                    Advance::Worked => (worked, caught_up) = (true, false),
                    Advance::Waiting { lag, caught_up: is_there } => {
                        lags += lag;
                        caught_up &= is_there;
                    }
                }
                is_copying = migration.progress().phase != "follow";
            }
            teller.tell(migrations, lags, output)?;
            if caught_up && !is_copying && !self.follow {
                return Ok(true);
            }
            if !worked && !wait::sleep(NAP, interrupt) {
                break;
            }
        }
        Ok(false)
    }

    fn stopped(&self, migrations: &[Migration], output: &mut Output) -> anyhow::Result<()> {
        let copied = migrations.iter().filter(|migration| migration.progress().phase == "follow").count();
        let object = json!({
            "v": JSON_VERSION, "event": "stopped", "buckets": migrations.len(), "following": copied,
        });
        let buckets = counted(migrations.len() as u64, "bucket", "buckets");
        output.confirm(&object, format!("stopped: {copied} of {buckets} copied, none completed"))?;
        output.note("go on with the same command; without --follow it completes them");
        if self.follow {
            return Ok(());
        }
        output.flush()?;
        let problem =
            Problem::new(ErrorKind::Unavailable, "the migration was stopped before it was complete");
        Err(problem.help("do the same again: it goes on where it was").into())
    }
}

fn names(pairs: &[BucketPair]) -> BTreeMap<BucketName, BucketName> {
    pairs.iter().map(|pair| (pair.from.clone(), pair.to.clone())).collect()
}

async fn finish(migrations: Vec<Migration>, output: &mut Output) -> anyhow::Result<()> {
    for migration in migrations {
        let (from, to) = (migration.plan().source.name.clone(), migration.plan().target.clone());
        let Finished { verified, progress, consumers_kept, consumers_reset } = migration.cut_over().await?;
        let object = json!({
            "v": JSON_VERSION, "event": "migrated", "bucket": from.as_str(), "target": to.as_str(),
            "keys": verified.keys, "records": verified.records, "bytes": verified.bytes,
            "source_sha256": verified.source_digest, "target_sha256": verified.target_digest,
            "written": progress.records,
            "consumers_kept": consumers_kept, "consumers_reset": consumers_reset,
        });
        let keys = counted(verified.keys, "key", "keys");
        let records = counted(verified.records, "record", "records");
        let bytes = Size(verified.bytes);
        let line = format!(
            "{from} → {to}: {keys} with {records} ({bytes}) are the same on both sides\n  sha256 {}",
            verified.target_digest
        );
        output.confirm(&object, line)?;
        output.flush()?;
        if consumers_reset > 0 {
            let consumers = counted(consumers_reset as u64, "consumer", "consumers");
            output.note(format!("{consumers} of {to} had not seen everything, and will see all of it again"));
        }
    }
    Ok(())
}

fn print_plan(plan: &Plan, output: &mut Output) -> anyhow::Result<()> {
    let begun = match plan.begun {
        Begun::No => "no",
        Begun::Yes => "yes",
        Begun::Done => "done",
    };
    let objects = |losses: &[Loss]| -> Vec<Value> {
        losses.iter().map(|loss| json!({ "what": loss.what, "message": loss.message })).collect()
    };
    let (from, to) = (plan.source.name.as_str(), plan.target.as_str());
    let object = json!({
        "v": JSON_VERSION, "event": "plan", "bucket": from, "target": to, "begun": begun,
        "entries": plan.entries, "config": plan.config,
        "losses": objects(&plan.losses), "notes": objects(&plan.notes),
    });
    let entries =
        plan.entries.map_or_else(String::new, |count| format!(", {}", counted(count, "entry", "entries")));
    let state = match plan.begun {
        Begun::No => "",
        Begun::Yes => ", goes on",
        Begun::Done => ", done before: only compared",
    };
    let mut text = format!("{from} → {to}{entries}{state}");
    for loss in &plan.losses {
        text.push_str(&format!("\n  lost: {}", loss.message));
    }
    output.confirm(&object, text)
}

/// What is true of every bucket is said to people once.
fn print_notes(plans: &[Plan], output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() || output.is_quiet() {
        return Ok(());
    }
    for note in plans.first().into_iter().flat_map(|plan| &plan.notes) {
        output.line(format_args!("note: {}", note.message))?;
    }
    Ok(())
}

/// Tells how far it is: people on stderr, programs on stdout.
struct Teller {
    clock: SystemClock,
    told: Duration,
    progress: Progress,
    records_before: u64,
}

impl Teller {
    fn new(entries: Option<u64>, output: &Output, migrations: &[Migration]) -> Self {
        let progress = match entries {
            Some(entries) => Progress::entries(entries, output),
            None => Progress::bytes(None, output),
        };
        let records_before = migrations.iter().map(|migration| migration.progress().records).sum();
        Self { clock: SystemClock::new(), told: Duration::ZERO, progress, records_before }
    }

    fn tell(&mut self, migrations: &[Migration], lag: u64, output: &mut Output) -> anyhow::Result<()> {
        let elapsed = self.clock.elapsed();
        let all = migrations.iter().map(Migration::progress);
        let (records, bytes) = all.fold((0, 0), |sum, one| (sum.0 + one.records, sum.1 + one.bytes));
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = records.saturating_sub(self.records_before).saturating_mul(1000) / millis;
        self.progress.reach(records);
        self.progress.say(format!("{}, {}/s, {lag} behind", Size(bytes), short(rate)));
        if !output.is_json() || output.is_quiet() || elapsed.saturating_sub(self.told) < TELL_EVERY {
            return Ok(());
        }
        self.told = elapsed;
        let phases: Vec<Value> = migrations
            .iter()
            .map(|migration| {
                let (plan, progress) = (migration.plan(), migration.progress());
                json!({ "bucket": plan.source.name.as_str(), "phase": progress.phase, "records": progress.records })
            })
            .collect();
        let object = json!({
            "v": JSON_VERSION, "event": "progress", "records": records, "bytes": bytes,
            "records_per_second": rate, "lag": lag, "buckets": phases,
        });
        output.object(&object)?;
        output.flush()
    }
}

fn parse(url: &str) -> Result<StoreUrl, Error> {
    StoreUrl::parse(url).map_err(Error::Url)
}

/// Opens one of the two stores.
async fn open(url: StoreUrl, create: bool, app: &App) -> anyhow::Result<Store> {
    match url {
        StoreUrl::Nats(url) => {
            let mut options = url.options().clone();
            app.credentials().add_to(&mut options)?;
            if !url.to_string().contains("scans=") {
                // A copy of a whole bucket in memory would be a limit to the size of buckets.
                options.scans = Scans::Direct;
            }
            Ok(Store::connect_nats(options).await?)
        }
        StoreUrl::File(path) if !create && !path.exists() => {
            let problem = Problem::not_found(format!("there is no store at {}", path.display()));
            Err(problem.help("name the store to be copied with --from").into())
        }
        url => {
            let progress = Some(Opening::shown_on(&app.output));
            Ok(Store::connect_with(url, OpenOptions { create, progress, ..OpenOptions::default() }).await?)
        }
    }
}

/// Where a store is, in a form that is the same from every directory and has no secrets.
fn place(url: &StoreUrl) -> anyhow::Result<String> {
    match url {
        StoreUrl::File(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            Ok(format!("file:{}", path.display()))
        }
        StoreUrl::Nats(url) => {
            let NatsOptions { servers, domain, api_prefix, namespace, .. } = url.options();
            let names = [domain.as_deref(), api_prefix.as_deref()].map(Option::unwrap_or_default).join("/");
            Ok(format!("{}/{namespace}{}", servers.join(","), names.trim_end_matches('/')))
        }
        _ => {
            let problem = Problem::new(ErrorKind::Unsupported, "a store in memory is gone with the command");
            Err(problem.help("name a store with file:PATH or nats://HOST").into())
        }
    }
}

/// A directory for a store that shall only be looked at, if that at `url` is not there yet.
fn scratch(url: &StoreUrl) -> Option<PathBuf> {
    match url {
        StoreUrl::File(path) if !path.exists() => {
            let name = format!("pleach-dry-run-{}", std::process::id());
            Some(std::env::temp_dir().join(name))
        }
        _ => None,
    }
}
