//! What it costs on NATS that a commit carries the check of its bucket's fence: puts with and without the check, by turns.

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use pleach::{Batch, BucketConfig, BucketName, Check, CommitError, Engine, Expectation, Key, Operation};
use pleach_nats::{NatsEngine, NatsOptions};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::{Servers, near, runtime};
use crate::args::FenceArguments;
use crate::output::{progress, show};
use crate::process::now;
use crate::work::seconds;

/// How many callers put at once.
const CALLERS: [usize; 3] = [1, 16, 64];

/// The keys of a fence. No two commits of one process check the same at once, as long as there are enough.
const LANES: usize = 64;

/// What a call commits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    /// The same, expecting the revision that its caller has written last.
    Update,
}

/// Measures it and prints a table.
pub(crate) fn run(arguments: &FenceArguments) -> Result<()> {
    let servers = Servers::start(arguments.cluster);
    let time = seconds(arguments.seconds.unwrap_or(if arguments.small { 0.1 } else { 3.0 }));
    let repeat = if arguments.small { 1 } else { 5 };
    let table = runtime()?.block_on(measure(servers.urls(), time, repeat))?;
    show(&table);
    Ok(())
}

async fn measure(urls: Vec<String>, time: Duration, repeat: usize) -> Result<String> {
    let replicas = u8::try_from(urls.len()).ok().and_then(NonZeroU8::new).unwrap_or(NonZeroU8::MIN);
    let options = NatsOptions { servers: near(&urls), replicas, ..NatsOptions::default() };
    let engine: Arc<dyn Engine> = Arc::new(NatsEngine::connect_on(options, Handle::current()).await?);
    let bucket = BucketName::parse("fenced")?;
    engine.create_bucket(&bucket, BucketConfig::plain(engine.capabilities())).await?;
    let mut table = String::from(
        "| commit | callers | without, /s | with the check, /s | ratio |\n|---|---|---|---|---|\n",
    );
    for kind in [Kind::Put, Kind::Update] {
        for callers in CALLERS {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for repetition in 1..=repeat {
                progress(&format!("{repetition}/{repeat} {} by {callers}", kind.title()));
                without.push(rate(&engine, &bucket, kind, callers, false, time).await?);
                with.push(rate(&engine, &bucket, kind, callers, true, time).await?);
            }
            let (without, with) = (median(without), median(with));
            let ratio = with / without;
            table.push_str(&format!(
                "| {} | {callers} | {without:.0} | {with:.0} | {ratio:.2} |\n",
                kind.title()
            ));
        }
    }
    Ok(table)
}

impl Kind {
    const fn title(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Update => "update",
        }
    }
}

/// How many commits a second `callers` make together.
async fn rate(
    engine: &Arc<dyn Engine>,
    bucket: &BucketName,
    kind: Kind,
    callers: usize,
    is_checked: bool,
    time: Duration,
) -> Result<f64> {
    let mut tasks = JoinSet::new();
    let started = now();
    for caller in 0..callers {
        let (engine, bucket) = (Arc::clone(engine), bucket.clone());
        tasks.spawn(async move { commit_for(&*engine, &bucket, kind, caller, is_checked, time).await });
    }
    let mut commits = 0;
    while let Some(done) = tasks.join_next().await {
        commits += done??;
    }
    Ok(f64::from(commits) / (now() - started).as_secs_f64())
}

async fn commit_for(
    engine: &dyn Engine,
    bucket: &BucketName,
    kind: Kind,
    caller: usize,
    is_checked: bool,
    time: Duration,
) -> Result<u32> {
    let key = Key::parse(format!("k{caller}"))?;
    let value = vec![b'v'; 100];
    let mut seen = engine.commit(bucket, Batch::new().put(key.clone(), value.clone())).await?.last;
    let (started, mut commits) = (now(), 0);
    while now() - started < time {
        let expect = if kind == Kind::Put { Expectation::Any } else { Expectation::Revision(seen) };
        let mut batch = Batch::from(Operation::put(key.clone(), value.clone()).expecting(expect));
        if is_checked {
            let lane = caller % LANES;
            batch.push_check(Check::absent(Key::parse_reserved(format!("_kv.guard.{lane:02}"))?));
        }
        match engine.commit(bucket, batch).await {
            Ok(committed) => seen = committed.last,
            Err(CommitError::Conflict(conflict)) => bail!("nobody else writes {}", conflict.key),
            Err(CommitError::Engine(error)) => return Err(error.into()),
        }
        commits += 1;
    }
    Ok(commits)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}
