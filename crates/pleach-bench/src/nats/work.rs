use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use tokio::task::{JoinHandle, JoinSet};

use super::NatsRow;
use super::client::{AGAIN_AFTER, Client, Records};
use crate::keys::KeyText;
use crate::process::now;
use crate::random::Random;
use crate::value;

/// Callers at once, in the rows of many.
const CALLERS: u64 = 64;

/// Keys that a prefix has.
const PREFIX_KEYS: u64 = 1000;

/// Entries of a page.
const PAGE_ENTRIES: usize = 100;

/// Entries loaded at once by each of several callers.
const LOAD_ENTRIES: u64 = 500;
const LOAD_CALLERS: u64 = 4;

/// How long the last changes may take to reach their watchers.
const DELIVERY_MAX: Duration = Duration::from_secs(300);

/// What is measured, and with how much.
#[derive(Clone, Debug)]
pub(super) struct Work<C> {
    pub(super) client: C,
    pub(super) keys: u64,
    pub(super) value_bytes: usize,
    pub(super) time: Duration,
    /// Watchers, and puts for them to hear of.
    pub(super) watchers: u64,
    pub(super) changes: u64,
    /// Whether everything that is read is checked.
    pub(super) check: bool,
}

impl<C: Client> Work<C> {
    /// Puts every key once.
    pub(super) async fn load(&self) -> Result<()> {
        let mut callers = JoinSet::new();
        for caller in 0..LOAD_CALLERS {
            let work = self.clone();
            callers.spawn(async move {
                let mut first = caller * LOAD_ENTRIES;
                while first < work.keys {
                    let indices = first..work.keys.min(first + LOAD_ENTRIES);
                    work.client.load(indices.map(|index| work.record(index, 1)).collect()).await?;
                    first += LOAD_CALLERS * LOAD_ENTRIES;
                }
                anyhow::Ok(())
            });
        }
        all(callers).await
    }

    /// How many a second.
    pub(super) async fn measure(&self, row: NatsRow) -> Result<f64> {
        match row {
            NatsRow::Put1 => self.many(1, Self::puts).await,
            NatsRow::Put64 | NatsRow::FollowedPut64 => self.many(CALLERS, Self::puts).await,
            NatsRow::Get1 => self.many(1, Self::gets).await,
            NatsRow::Get64 => self.many(CALLERS, Self::gets).await,
            NatsRow::Missing64 => self.many(CALLERS, Self::misses).await,
            NatsRow::Update1 => self.many(1, Self::updates).await,
            NatsRow::Update64 => self.many(CALLERS, Self::updates).await,
            NatsRow::Batch100 => self.many(1, |work, caller| work.batches(caller, 100, false)).await,
            NatsRow::Batch1000 => self.many(1, |work, caller| work.batches(caller, 1000, false)).await,
            NatsRow::Atomic100 => self.many(1, |work, caller| work.batches(caller, 100, true)).await,
            NatsRow::List => self.many(1, Self::lists).await,
            NatsRow::Page => self.many(1, Self::pages).await,
            NatsRow::CopiedPut64 => {
                let copy = self.client.keep_copy().await?;
                let rate = self.many(CALLERS, Self::puts).await;
                copy.iter().for_each(JoinHandle::abort);
                rate
            }
            NatsRow::FanOut => self.fan_out().await,
        }
    }

    /// Has callers do something until the time is over, each at least once; returns how many a second were done.
    async fn many<F>(&self, callers: u64, act: impl Fn(Self, Caller) -> F) -> Result<f64>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let done = Arc::new(AtomicU64::new(0));
        let started = now();
        let mut running = JoinSet::new();
        for number in 0..callers {
            let caller = Caller {
                number,
                random: Random::new(number + 1),
                deadline: started + self.time,
                done: Arc::clone(&done),
            };
            running.spawn(act(self.clone(), caller));
        }
        all(running).await?;
        Ok(whole(done.load(Ordering::Acquire)) / (now() - started).as_secs_f64())
    }

    async fn puts(self, mut caller: Caller) -> Result<()> {
        loop {
            let (key, value) = self.record(caller.random.below(self.keys), caller.random.next());
            self.client.put(key.as_str(), value).await?;
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    async fn gets(self, mut caller: Caller) -> Result<()> {
        loop {
            let key = KeyText::of(caller.random.below(self.keys));
            self.read(|| async {
                let found = self.client.get(key.as_str()).await?;
                let (_, found) = found.with_context(|| format!("{} is missing", key.as_str()))?;
                self.check(key.as_str(), &found)
            })
            .await?;
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    async fn misses(self, mut caller: Caller) -> Result<()> {
        loop {
            let key = KeyText::of(self.keys + caller.random.below(self.keys));
            ensure!(self.client.get(key.as_str()).await?.is_none(), "{} is there", key.as_str());
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    /// Each caller has a key of its own, so that nobody loses a race.
    async fn updates(self, mut caller: Caller) -> Result<()> {
        let index = caller.number * (self.keys / CALLERS);
        // A put tells the revision of its key for certain; a replica that is behind would read an older one.
        let (key, value) = self.record(index, caller.random.next());
        let mut seen = self.client.put(key.as_str(), value).await?;
        loop {
            let (key, value) = self.record(index, caller.random.next());
            let revision = self.client.update(key.as_str(), value, seen).await?;
            ensure!(revision > seen, "revision {revision} came after {seen}");
            seen = revision;
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    async fn batches(self, mut caller: Caller, entries: u64, atomic: bool) -> Result<()> {
        loop {
            let first = caller.random.below(self.keys - entries);
            let version = caller.random.next();
            let records = (first..first + entries).map(|index| self.record(index, version)).collect();
            match atomic {
                true => self.client.atomic_batch(records).await?,
                false => self.client.batch(records).await?,
            }
            if self.check && !atomic {
                let (last, value) = self.record(first + entries - 1, version);
                self.read(|| async {
                    let (_, found) = self.client.get(last.as_str()).await?.context("a key is missing")?;
                    ensure!(found == value, "a batch is not there");
                    Ok(())
                })
                .await?;
            }
            if caller.is_over(entries) {
                return Ok(());
            }
        }
    }

    async fn lists(self, mut caller: Caller) -> Result<()> {
        loop {
            let first = caller.random.below(self.keys / PREFIX_KEYS) * PREFIX_KEYS;
            let key = KeyText::of(first);
            let prefix = key.as_str().split_inclusive('.').take(2).collect::<String>();
            self.read(|| async { self.check_records(&self.client.list(&prefix).await?, first, PREFIX_KEYS) })
                .await?;
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    async fn pages(self, mut caller: Caller) -> Result<()> {
        loop {
            let after = caller.random.below(self.keys - PAGE_ENTRIES as u64);
            let count = (PAGE_ENTRIES as u64).min(self.keys - after - 1);
            self.read(|| async {
                let found = self.client.page(KeyText::of(after).as_str(), PAGE_ENTRIES).await?;
                self.check_records(&found, after + 1, count)
            })
            .await?;
            if caller.is_over(1) {
                return Ok(());
            }
        }
    }

    /// Puts while everyone watches, and waits until everyone has heard of everything.
    async fn fan_out(&self) -> Result<f64> {
        let heard = Arc::new(AtomicU64::new(0));
        let (key, value) = self.record(0, 0);
        let newest = self.client.put(key.as_str(), value).await?;
        let mut watches = Vec::new();
        for _ in 0..self.watchers {
            watches.push(self.client.watch(Arc::clone(&heard), newest).await?);
        }
        let started = now();
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let work = self.clone();
            callers.spawn(async move {
                for number in (caller..work.changes).step_by(64) {
                    let (key, value) = work.record(number % work.keys, number);
                    work.client.put(key.as_str(), value).await?;
                }
                anyhow::Ok(())
            });
        }
        all(callers).await?;
        let all = self.changes * self.watchers;
        while heard.load(Ordering::Acquire) < all {
            ensure!(now() - started < DELIVERY_MAX, "not every change was delivered");
            tokio::task::yield_now().await;
        }
        let took = now() - started;
        watches.iter().for_each(JoinHandle::abort);
        ensure!(heard.load(Ordering::Acquire) == all, "changes were delivered more than once");
        Ok(whole(all) / took.as_secs_f64())
    }

    /// Reads and checks; as long as this client's reads may be behind its writes, a failed check is repeated.
    #[allow(clippy::disallowed_methods, reason = "a replica catches up in real time")]
    async fn read<F>(&self, attempt: impl Fn() -> F + Send + Sync) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send,
    {
        let started = now();
        loop {
            match attempt().await {
                Err(_) if now() - started < C::BEHIND_MAX => tokio::time::sleep(AGAIN_AFTER).await,
                done => return done,
            }
        }
    }

    fn record(&self, index: u64, version: u64) -> (KeyText, Bytes) {
        let mut value = vec![0; self.value_bytes];
        value::fill(&mut value, index, version);
        (KeyText::of(index), value.into())
    }

    fn check(&self, key: &str, value: &[u8]) -> Result<()> {
        if self.check {
            value::check(key.as_bytes(), value, self.value_bytes)?;
        }
        Ok(())
    }

    /// Checks that these are the `count` entries from the one with the index `first` on.
    fn check_records(&self, found: &Records, first: u64, count: u64) -> Result<()> {
        ensure!(found.len() as u64 == count, "{} entries were found instead of {count}", found.len());
        for ((key, value), index) in found.iter().zip(first..) {
            ensure!(key == KeyText::of(index).as_str(), "{key} is where another key should be");
            self.check(key, value)?;
        }
        Ok(())
    }
}

/// One of several who do the same.
#[derive(Debug)]
struct Caller {
    number: u64,
    random: Random,
    deadline: std::time::Instant,
    done: Arc<AtomicU64>,
}

impl Caller {
    /// Counts what was done; tells whether the time is over.
    fn is_over(&self, done: u64) -> bool {
        self.done.fetch_add(done, Ordering::AcqRel);
        now() >= self.deadline
    }
}

async fn all(mut running: JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = running.join_next().await {
        ended.context("a caller ended")??;
    }
    Ok(())
}

fn whole(count: u64) -> f64 {
    count as f64
}
