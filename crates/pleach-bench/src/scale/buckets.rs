use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use pleach::Bucket;
use pollster::block_on;

use super::{Costs, open};
use crate::keys::KeyText;
use crate::peers::Peer as _;
use crate::process::now;
use crate::random::Random;
use crate::work::{Sizes, seconds};

const WRITERS: u64 = 64;
const KEYS: u64 = 1000;
const VALUE_BYTES: usize = 100;

/// What so many buckets cost, in one store, with writers that pick one at random.
pub(super) fn measure(directory: &Path, count: u64, sizes: &Sizes) -> Result<Costs> {
    let mut costs = Costs::new();
    let peer = open(directory)?;
    let started = now();
    let mut buckets = Vec::new();
    for number in 0..count {
        buckets.push(block_on(peer.store().create_bucket(format!("bucket-{number}")))?);
    }
    costs.insert("create a bucket, ms", (now() - started).as_secs_f64() * 1e3 / whole(count));
    let buckets = Arc::new(buckets);
    let (puts, deadline) = (Arc::new(AtomicU64::new(0)), now() + seconds(sizes.write_seconds));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| write(Arc::clone(&buckets), number, deadline, Arc::clone(&puts)))
        .map(|writer| peer.runtime().spawn(writer))
        .collect();
    for writer in writers {
        block_on(writer)??;
    }
    let rate = whole(puts.load(Ordering::Relaxed)) / sizes.write_seconds;
    costs.insert("durable put with 64 writers, µs of the clock", 1e6 / rate);
    let (mut random, mut gets) = (Random::new(1), 0);
    let (started, deadline) = (now(), now() + seconds(sizes.read_seconds));
    while now() < deadline {
        let bucket = pick(&buckets, &mut random);
        block_on(bucket.get(KeyText::of(random.below(KEYS)).as_str()))?;
        gets += 1;
    }
    costs.insert("get, µs", (now() - started).as_secs_f64() * 1e6 / whole(gets));
    drop(buckets);
    Box::new(peer).close()?;
    let started = now();
    Box::new(open(directory)?).close()?;
    costs.insert("reopen and close, ms", (now() - started).as_secs_f64() * 1e3);
    Ok(costs)
}

async fn write(buckets: Arc<Vec<Bucket>>, seed: u64, deadline: Instant, puts: Arc<AtomicU64>) -> Result<()> {
    let mut random = Random::new(seed);
    while now() < deadline {
        let key = KeyText::of(random.below(KEYS));
        pick(&buckets, &mut random).put(key.as_str(), vec![7; VALUE_BYTES]).await?;
        puts.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn pick<'a>(buckets: &'a [Bucket], random: &mut Random) -> &'a Bucket {
    let number = usize::try_from(random.below(buckets.len() as u64)).unwrap_or(0);
    &buckets[number]
}

fn whole(count: u64) -> f64 {
    count as f64
}
