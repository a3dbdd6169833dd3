use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use pleach::stores::{ApplyOptions, Contracts, PlanOptions};
use pleach::{Batch, Bucket, Key, Store};
use pleach_contract::{Contract, Notation};
use pollster::block_on;

use crate::process::now;
use crate::random::mix;

/// How many entries are in a batch while the store is filled.
const BATCH: usize = 500;

/// How long calls are timed while nothing else goes on.
const IDLE: Duration = Duration::from_secs(2);

/// What a plan costs, and what others feel of it.
#[derive(Debug)]
pub(super) struct Planned {
    /// Entries that a plan looks at in a second.
    pub(super) entries_a_second: f64,
    /// The 99th percentile of a get while nothing else goes on, and while a plan scans.
    pub(super) get_p99: (Duration, Duration),
    /// The same of a put.
    pub(super) put_p99: (Duration, Duration),
}

/// Plans a change that has to look at every one of `entries` small values, alone and beside someone who gets and puts.
pub(super) fn measure(entries: u64) -> Result<Planned> {
    let directory = tempfile::tempdir()?;
    let store = block_on(Store::open(directory.path().join("store")))?;
    let contracts = store.contracts();
    let plan = block_on(contracts.plan(&contract("")?, PlanOptions::default()))?;
    let applied = block_on(contracts.apply(&plan, ApplyOptions::by("bench")))?;
    let bucket = block_on(store.bucket(&applied.bindings["cases"].bucket))?;
    fill(&bucket, entries)?;
    let took = scan(&contracts, entries, "a")?;
    let (get, put) = timed(&bucket, entries, || now_after(IDLE))?;
    let beside = AtomicBool::new(true);
    let (busy_get, busy_put) = std::thread::scope(|scope| {
        let planner = scope.spawn(|| {
            // Several, so that there is always one under way.
            let done = ["b", "c", "d"].iter().try_for_each(|name| scan(&contracts, entries, name).map(drop));
            beside.store(false, Ordering::SeqCst);
            done
        });
        let felt = timed(&bucket, entries, || || beside.load(Ordering::SeqCst))?;
        planner.join().map_err(|_| anyhow!("the planner has panicked"))??;
        anyhow::Ok(felt)
    })?;
    block_on(store.close())?;
    Ok(Planned {
        entries_a_second: entries as f64 / took.as_secs_f64(),
        get_p99: (get, busy_get),
        put_p99: (put, busy_put),
    })
}

/// One plan of a change that asks every value; another `name` makes it another change.
fn scan(contracts: &Contracts, entries: u64, name: &str) -> Result<Duration> {
    let started = now();
    let plan = block_on(contracts.plan(&contract(name)?, PlanOptions::default()))?;
    let took = now() - started;
    ensure!(plan.scans["cases"].entries == entries, "it was to look at all of them: {:?}", plan.scans);
    Ok(took)
}

/// The contract, or one that says more about a field.
fn contract(longest: &str) -> Result<Contract> {
    let length = if longest.is_empty() {
        String::new()
    } else {
        format!(", maxLength: {}", 100 + longest.as_bytes()[0])
    };
    let text = format!(
        "format: pleach.contract.v1\nid: acme.cases@v1\nkind: service\ndisplayName: Cases\ndescription: Cases\n\
         schemas:\n  Case:\n    type: object\n    required: [status, title]\n    properties:\n      \
         status: {{enum: [OPEN, CLOSED]}}\n      title: {{type: string{length}}}\n\
         resources: {{kv: {{cases: {{purpose: Cases, schema: {{schema: Case}}}}}}}}\n"
    );
    Ok(Contract::parse(text.as_bytes(), Notation::Yaml).map_err(|problems| anyhow!("{problems}"))?.contract)
}

fn fill(bucket: &Bucket, entries: u64) -> Result<()> {
    for first in (0..entries).step_by(BATCH) {
        let mut batch = Batch::new();
        for number in first..(first + BATCH as u64).min(entries) {
            batch = batch.put(key(number)?, value(number));
        }
        block_on(bucket.commit(batch))?;
    }
    Ok(())
}

fn key(number: u64) -> Result<Key> {
    Ok(Key::parse(format!("case.{number:012}"))?)
}

fn value(number: u64) -> String {
    format!(r#"{{"status":"OPEN","title":"a fence that is {number} inches too high"}}"#)
}

/// The 99th percentile of gets and of puts as long as it goes on.
fn timed<G: Fn() -> bool>(
    bucket: &Bucket,
    entries: u64,
    goes_on: impl FnOnce() -> G,
) -> Result<(Duration, Duration)> {
    let (mut gets, mut puts) = (Vec::new(), Vec::new());
    let goes_on = goes_on();
    let mut round = 0;
    while goes_on() {
        round += 1;
        let number = mix(round) % entries;
        let key = key(number)?;
        let started = now();
        block_on(bucket.get(&key))?;
        let between = now();
        block_on(bucket.put(&key, value(number)))?;
        gets.push(between - started);
        puts.push(now() - between);
    }
    Ok((p99(gets), p99(puts)))
}

fn now_after(time: Duration) -> impl Fn() -> bool {
    let started = now();
    move || now() - started < time
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).or(times.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_and_what_others_feel_of_it_are_measured() {
        let planned = measure(2000).unwrap();
        assert!(planned.entries_a_second > 0.0);
        assert!(planned.get_p99.0 > Duration::ZERO && planned.put_p99.1 > Duration::ZERO);
    }
}
