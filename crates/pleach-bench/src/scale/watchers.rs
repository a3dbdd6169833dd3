use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pleach::{Bucket, Watch};
use pollster::block_on;

use super::{Costs, open};
use crate::peers::Peer as _;
use crate::process::{memory_bytes, now};
use crate::random::Random;
use crate::work::{Sizes, seconds};

const WRITERS: u64 = 64;
const VALUE_BYTES: usize = 100;

/// How long the last changes may take to reach their watchers.
const DELIVERY_MAX: Duration = Duration::from_secs(60);

/// What so many watchers cost, each on a prefix of its own, while 64 writers put durably under those prefixes. Every
/// put is delivered to one of them.
pub(super) fn measure(directory: &Path, count: u64, sizes: &Sizes) -> Result<Costs> {
    let peer = open(directory)?;
    let memory_before = memory_bytes();
    let delivered = Arc::new(AtomicU64::new(0));
    let mut watches = Vec::new();
    for number in 0..count {
        let watch = block_on(peer.bucket().watch(format!("w.{number:05}.>")))?;
        watches.push(peer.runtime().spawn(hear(watch, Arc::clone(&delivered))));
    }
    let puts = Arc::new(AtomicU64::new(0));
    let (started, deadline) = (now(), now() + seconds(sizes.write_seconds));
    let writers: Vec<_> = (0..WRITERS)
        .map(|seed| write(peer.bucket().clone(), count.max(1), seed, deadline, Arc::clone(&puts)))
        .map(|writer| peer.runtime().spawn(writer))
        .collect();
    for writer in writers {
        block_on(writer)??;
    }
    let written = now();
    let puts = puts.load(Ordering::Relaxed);
    let mut costs = Costs::new();
    costs.insert("durable puts a second", whole(puts) / (written - started).as_secs_f64());
    if count > 0 {
        while delivered.load(Ordering::Acquire) < puts {
            ensure!(now() - written < DELIVERY_MAX, "not every change was delivered");
            std::thread::sleep(Duration::from_millis(1));
        }
        costs.insert("deliveries a second", whole(puts) / (now() - started).as_secs_f64());
        costs.insert("last delivery after the last put, ms", (now() - written).as_secs_f64() * 1e3);
    }
    if let Some(((after, _), (before, _))) = memory_bytes().zip(memory_before) {
        costs.insert("memory more than before, MiB", whole(after.saturating_sub(before)) / 1024.0 / 1024.0);
    }
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    Box::new(peer).close()?;
    Ok(costs)
}

async fn hear(mut watch: Watch, delivered: Arc<AtomicU64>) {
    while let Ok(Some(_)) = watch.next_change().await {
        delivered.fetch_add(1, Ordering::AcqRel);
    }
}

async fn write(
    bucket: Bucket,
    prefixes: u64,
    seed: u64,
    deadline: Instant,
    puts: Arc<AtomicU64>,
) -> Result<()> {
    let mut random = Random::new(seed);
    while now() < deadline {
        let key = format!("w.{:05}.item.{}", random.below(prefixes), random.below(100));
        bucket.put(key, vec![7; VALUE_BYTES]).await?;
        puts.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn whole(count: u64) -> f64 {
    count as f64
}
