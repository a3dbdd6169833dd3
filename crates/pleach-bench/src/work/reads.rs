use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use super::load::per_second;
use super::{Stage, seconds};
use crate::keys::{KeyText, Spread};
use crate::process::now;
use crate::random::Random;
use crate::row::Row;
use crate::value;

/// How skewed the reads of hot keys are.
pub(super) const HOT_SKEW: f64 = 0.99;

/// How many entries a scan reads.
const SCAN_ENTRIES: usize = 100;

/// How many calls are made between looks at the clock.
const CALLS_PER_LOOK: u64 = 16;

impl Stage<'_> {
    pub(super) fn hot_get(&mut self) -> Result<()> {
        let spread = Spread::zipf(self.run.keys, HOT_SKEW);
        for (threads, row) in [(1, Row::HotGet1), (2, Row::HotGet2)] {
            let rate = self.measure(threads, |stage, random| stage.get(spread.pick(random)))?;
            self.figures.insert(row, rate);
        }
        Ok(())
    }

    pub(super) fn random_get(&mut self) -> Result<()> {
        let keys = self.run.keys;
        let rate = self.measure(1, |stage, random| stage.get(random.below(keys)))?;
        self.figures.insert(Row::RandomGet, rate);
        Ok(())
    }

    pub(super) fn missing(&mut self) -> Result<()> {
        let keys = self.run.keys;
        let rate = self.measure(1, |stage, random| {
            let key = KeyText::missing(random.below(keys));
            let found = stage.peer.get(&key, &mut |_, _, _| ())?;
            ensure!(!found, "{} has a value though nobody wrote one", key.as_str());
            Ok(())
        })?;
        self.figures.insert(Row::Missing, rate);
        Ok(())
    }

    pub(super) fn scan(&mut self) -> Result<()> {
        let starts = self.run.keys.saturating_sub(SCAN_ENTRIES as u64) + 1;
        let rate = self.measure(1, |stage, random| stage.scan_once(random.below(starts)))?;
        self.figures.insert(Row::Scan100, rate);
        Ok(())
    }

    pub(super) fn feed(&mut self) -> Result<()> {
        if self.run.sizes.check {
            self.check_feed()?;
        }
        let started = now();
        let count = self.peer.replay(&mut |revision, key, value| {
            black_box((revision, key, value));
        })?;
        let took = now() - started;
        if let Some(count) = count {
            self.figures.insert(Row::Feed, per_second(count, took));
            ensure!(count == self.puts, "the feed has {count} changes after {} puts", self.puts);
        }
        Ok(())
    }

    fn get(&self, index: u64) -> Result<()> {
        let key = KeyText::of(index);
        let mut checked = Ok(());
        let found = self.peer.get(&key, &mut |_, key, value| {
            if self.run.sizes.check {
                checked = value::check(key, value, self.run.value_bytes).map(|_| ());
            }
            black_box(value);
        })?;
        ensure!(found, "{} has no value", key.as_str());
        checked
    }

    fn scan_once(&self, start: u64) -> Result<()> {
        let (mut next, mut checked) = (start, Ok(()));
        let count = self.peer.scan(&KeyText::of(start), SCAN_ENTRIES, &mut |_, key, value| {
            if self.run.sizes.check && checked.is_ok() {
                checked = value::check(key, value, self.run.value_bytes).map(|_| ());
                if *key != *KeyText::of(next) {
                    checked = Err(anyhow!("the scan skipped {}", KeyText::of(next).as_str()));
                }
            }
            next += 1;
            black_box((key, value));
        })?;
        let expected = SCAN_ENTRIES.min(usize::try_from(self.run.keys - start)?);
        ensure!(count == expected, "a scan found {count} entries instead of {expected}");
        checked
    }

    /// How many calls of `call` so many threads make a second, after a while that is not counted.
    fn measure(&self, threads: u64, call: impl Fn(&Self, &mut Random) -> Result<()> + Sync) -> Result<f64> {
        let (warm, time) = (seconds(self.run.sizes.warm_seconds), seconds(self.run.sizes.read_seconds));
        let work = |thread: u64| -> Result<f64> {
            let mut random = Random::new(0x4ead + thread);
            repeat(warm, || call(self, &mut random))?;
            repeat(time, || call(self, &mut random))
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            let rates =
                running.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a reader broke"))?);
            rates.sum()
        })
    }
}

/// Calls again and again for `time`, and returns how often that is a second.
fn repeat(time: Duration, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let started = now();
    let mut calls = 0;
    loop {
        for _ in 0..CALLS_PER_LOOK {
            call()?;
        }
        calls += CALLS_PER_LOOK;
        let took = now() - started;
        if took >= time {
            return Ok(per_second(calls, took));
        }
    }
}
