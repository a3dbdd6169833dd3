use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use pleach::BucketConfig;
use pollster::block_on;

use super::{Costs, open};
use crate::peers::Peer as _;
use crate::process::{memory_bytes, now};
use crate::value;

/// How often each is done; the median counts.
const TIMES: usize = 5;

/// What values of so many MiB cost.
pub(super) fn measure(directory: &Path, mebibytes: u64) -> Result<Costs> {
    let bytes = u32::try_from(mebibytes * 1024 * 1024)?;
    let peer = open(directory)?;
    let config = BucketConfig { value_bytes_max: bytes, ..BucketConfig::default() };
    let bucket = block_on(peer.store().create_bucket_with("large", config))?;
    let mut filled = vec![0; usize::try_from(bytes)?];
    value::fill(&mut filled, 1, 1);
    let large = Bytes::from(filled);
    let mut watch = block_on(bucket.watch(">"))?;
    let (mut puts, mut gets, mut deliveries) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..TIMES {
        let key = format!("large.{number}");
        let started = now();
        block_on(bucket.put(&key, &large))?;
        puts.push(now() - started);
        let change = block_on(watch.next_change())?;
        deliveries.push(now() - started);
        ensure!(change.is_some_and(|change| change.entry.value == large), "a watch delivered another value");
        let started = now();
        let entry = block_on(bucket.get(&key))?;
        gets.push(now() - started);
        ensure!(entry.is_some_and(|entry| entry.value == large), "a get answered with another value");
    }
    let mut costs = Costs::new();
    let each =
        [("durable put, ms a MiB", puts), ("get, ms a MiB", gets), ("put to delivery, ms a MiB", deliveries)];
    for (name, mut times) in each {
        times.sort_unstable();
        costs.insert(name, milliseconds(times[TIMES / 2]) / f64::from(u32::try_from(mebibytes)?));
    }
    if let Some((_, most)) = memory_bytes() {
        costs.insert("memory at most, MiB", f64::from(u32::try_from(most / 1024 / 1024)?));
    }
    drop((watch, bucket));
    Box::new(peer).close()?;
    Ok(costs)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
