//! Pleach on NATS side by side with the plain key-value client of async-nats: the same work, from the same process,
//! on buckets of the same servers.

mod client;
pub(crate) mod fence;
mod report;
mod row;
mod work;

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::{self, kv};
use pleach::Store;
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::{Cluster, Server};
use tokio::runtime::{Handle, Runtime};

use client::{Client, ClientName, Plain, Pleach};
use report::{Measured, NatsReport, NatsSettings};
pub(crate) use row::NatsRow;
use work::Work;

use crate::args::NatsArguments;
use crate::machine::{Machine, commit};
use crate::output::{progress, show};
use crate::process::now;
use crate::work::seconds;

/// How many threads run the callers' tasks, and both clients.
const RUNTIME_THREADS: usize = 2;

/// How long servers may take to change leaders, and how often they are asked meanwhile.
const LEAD_MAX: Duration = Duration::from_secs(180);
const LEAD_EVERY: Duration = Duration::from_millis(500);

/// How long both clients wait for an answer: on a busy machine servers are slow, and no figure may fail for that.
const ANSWER_MAX: Duration = Duration::from_secs(60);

const KEYS: u64 = 1_000_000;
const KEYS_SMALL: u64 = 2000;
const WATCHERS: u64 = 100;
const CHANGES: u64 = 5000;
const CHANGES_SMALL: u64 = 100;

/// The servers that both clients talk to.
enum Servers {
    One(Server),
    Three(Cluster),
}

impl Servers {
    fn start(is_cluster: bool) -> Self {
        if is_cluster { Self::Three(Cluster::start()) } else { Self::One(Server::start()) }
    }

    fn urls(&self) -> Vec<String> {
        match self {
            Self::One(server) => vec![server.url()],
            Self::Three(cluster) => cluster.urls(),
        }
    }
}

/// Measures all of it and prints a table.
pub(crate) fn run(arguments: &NatsArguments) -> Result<()> {
    let servers = Servers::start(arguments.cluster);
    let runtime = runtime()?;
    let report = runtime.block_on(measure(arguments, servers.urls()))?;
    show(&report.table());
    if let Some(path) = &arguments.json {
        report.save(path)?;
    }
    if let Some(directory) = &arguments.charts {
        report.draw(directory)?;
    }
    Ok(())
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(RUNTIME_THREADS).enable_all().build().context("no threads can be started")
}

async fn measure(arguments: &NatsArguments, urls: Vec<String>) -> Result<NatsReport> {
    let is_small = arguments.small;
    let keys = arguments.keys.unwrap_or(if is_small { KEYS_SMALL } else { KEYS });
    let repeat = arguments.repeat.unwrap_or(if is_small { 1 } else { 3 });
    let time = arguments.seconds.unwrap_or(if is_small { 0.1 } else { 3.0 });
    let servers = urls.len();
    let pleach = Work {
        client: pleach(urls.clone(), arguments.own_threads).await?,
        keys,
        value_bytes: arguments.value,
        time: seconds(time),
        watchers: WATCHERS,
        changes: if is_small { CHANGES_SMALL } else { CHANGES },
        check: is_small,
    };
    let plain = with(&pleach, plain(urls).await?);
    if servers > 1 {
        lead(&plain.client).await?;
    }
    load(&pleach, ClientName::Pleach).await?;
    load(&plain, ClientName::Plain).await?;
    // The server has forgotten the blocks of whoever was loaded first, and would read them again for each put.
    pleach.measure(NatsRow::Put64).await?;
    plain.measure(NatsRow::Put64).await?;
    let mut settings = NatsSettings {
        servers,
        keys,
        value_bytes: arguments.value,
        seconds: time,
        repeat,
        own_threads: arguments.own_threads,
        watchers: WATCHERS,
        cache_seconds: None,
    };
    let rows = if arguments.rows.is_empty() { NatsRow::ALL.to_vec() } else { arguments.rows.clone() };
    let mut runs = Vec::new();
    for row in rows {
        if row.needs_copy() && settings.cache_seconds.is_none() {
            let started = now();
            pleach.client.page("t", 1).await?;
            settings.cache_seconds = Some((now() - started).as_secs_f64());
        }
        for repetition in 1..=repeat {
            progress(&format!("{repetition}/{repeat} {}", row.title()));
            let mut add = |client, per_second| {
                runs.push(Measured { client, row, repetition: Some(repetition), per_second });
            };
            add(ClientName::Pleach, pleach.measure(row).await.context(ClientName::Pleach.title())?);
            add(ClientName::Plain, plain.measure(row).await.context(ClientName::Plain.title())?);
        }
    }
    let mut report =
        NatsReport { machine: Machine::here(), commit: commit(), settings, runs, medians: Vec::new() };
    report.finish();
    Ok(report)
}

/// The same work for another client.
fn with<C>(work: &Work<Pleach>, client: C) -> Work<C> {
    let Work { keys, value_bytes, time, watchers, changes, check, .. } = *work;
    Work { client, keys, value_bytes, time, watchers, changes, check }
}

async fn load<C: Client>(work: &Work<C>, client: ClientName) -> Result<()> {
    let started = now();
    work.load().await.context(client.title())?;
    progress(&format!("{} loaded in {:.1} s", client.title(), (now() - started).as_secs_f64()));
    Ok(())
}

async fn pleach(servers: Vec<String>, own_threads: bool) -> Result<Pleach> {
    let replicas = u8::try_from(servers.len()).ok().and_then(NonZeroU8::new).unwrap_or(NonZeroU8::MIN);
    let options = NatsOptions {
        servers: near(&servers),
        replicas,
        request_timeout: ANSWER_MAX,
        patience: ANSWER_MAX,
        ..NatsOptions::default()
    };
    let engine = match own_threads {
        true => NatsEngine::connect(options).await?,
        false => NatsEngine::connect_on(options, Handle::current()).await?,
    };
    Ok(Pleach(Store::with_engine(Arc::new(engine)).create_bucket("ours").await?))
}

async fn plain(servers: Vec<String>) -> Result<Plain> {
    let num_replicas = servers.len();
    let options = async_nats::ConnectOptions::new().request_timeout(Some(ANSWER_MAX));
    let client = options.connection_timeout(ANSWER_MAX).connect(near(&servers)).await?;
    let mut context = jetstream::new(client.clone());
    context.set_timeout(ANSWER_MAX);
    let config = kv::Config { bucket: "plain".to_owned(), num_replicas, ..kv::Config::default() };
    let store = context.create_key_value(config).await?;
    Ok(Plain { store, client, batches: Arc::default() })
}

/// The one server that both clients are connected to: another would answer sooner or later than theirs.
fn near(servers: &[String]) -> Vec<String> {
    servers.iter().take(1).cloned().collect()
}

/// Has that server lead both buckets, for the same reason.
async fn lead(plain: &Plain) -> Result<()> {
    let client = &plain.client;
    let server = client.server_info().server_name;
    for stream in ["KV_ours", "KV_plain"] {
        let started = now();
        loop {
            let info = client.request(format!("$JS.API.STREAM.INFO.{stream}"), "".into()).await?;
            let info: serde_json::Value = serde_json::from_slice(&info.payload)?;
            if info["cluster"]["leader"].as_str() == Some(&server) {
                break;
            }
            ensure!(now() - started < LEAD_MAX, "{server} does not come to lead {stream}");
            let asked = serde_json::json!({ "placement": { "preferred": server } }).to_string();
            client.request(format!("$JS.API.STREAM.LEADER.STEPDOWN.{stream}"), asked.into()).await?;
            tokio::task::spawn_blocking(|| std::thread::sleep(LEAD_EVERY)).await?;
        }
    }
    Ok(())
}
