use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::keys::{KeyText, Spread};
use crate::peers::Peer;
use crate::process::now;
use crate::random::Random;
use crate::value;

/// Many callers at work for a while.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) callers: usize,
    pub(crate) time: Duration,
    pub(crate) spread: Spread,
    /// Whether every other step is a get.
    pub(crate) mixed: bool,
    pub(crate) value_bytes: usize,
    /// Gives each caller keys of its own and has it remember what it wrote, so that it can be checked.
    pub(crate) check: bool,
}

/// What a caller does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Reads `key`.
    Get,
    /// Puts `value` at `key`, durably.
    Put,
}

/// One of the callers: makes up its steps and measures them.
#[derive(Debug)]
pub(crate) struct Caller {
    drive: Arc<Drive>,
    number: u64,
    random: Random,
    deadline: Instant,
    started: Instant,
    step: Step,
    index: u64,
    version: u64,
    pub(crate) key: KeyText,
    pub(crate) value: Vec<u8>,
    /// Of every step, in nanoseconds.
    pub(crate) latencies: Vec<u64>,
    pub(crate) puts: u64,
    /// The version it wrote last, by index, if that is to be checked.
    pub(crate) wrote: HashMap<u64, u64>,
}

impl Caller {
    pub(crate) fn new(drive: &Arc<Drive>, number: usize) -> Self {
        let started = now();
        let number = number as u64;
        Self {
            drive: Arc::clone(drive),
            number,
            random: Random::new(0xca11 + number),
            deadline: started + drive.time,
            started,
            step: Step::Get,
            index: 0,
            version: 0,
            key: KeyText::of(0),
            value: vec![0; drive.value_bytes],
            latencies: Vec::new(),
            puts: 0,
            wrote: HashMap::new(),
        }
    }

    /// The next step, with `key` and `value` filled for it; none if time is over.
    pub(crate) fn next(&mut self) -> Option<Step> {
        self.step = match self.step {
            Step::Put if self.drive.mixed => Step::Get,
            Step::Put | Step::Get => Step::Put,
        };
        self.index = self.drive.spread.pick(&mut self.random);
        if self.drive.check
            && let Spread::Uniform(count) = self.drive.spread
        {
            let (callers, index) = (self.drive.callers as u64, self.index);
            let own = index - index % callers + self.number;
            self.index = if own < count { own } else { own - callers };
        }
        self.key = KeyText::of(self.index);
        if matches!(self.step, Step::Put) {
            self.version = self.random.next();
            value::fill(&mut self.value, self.index, self.version);
        }
        self.started = now();
        (self.started < self.deadline).then_some(self.step)
    }

    /// The step is done.
    pub(crate) fn done(&mut self) {
        let took = now() - self.started;
        self.latencies.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        if matches!(self.step, Step::Put) {
            self.puts += 1;
            if self.drive.check {
                self.wrote.insert(self.index, self.version);
            }
        }
    }

    /// The get found this value.
    pub(crate) fn saw(&self, value: &[u8]) -> Result<()> {
        if self.drive.check {
            value::check(&self.key, value, self.drive.value_bytes)?;
        }
        black_box(value);
        Ok(())
    }

    /// The get found nothing, though every key has a value.
    pub(crate) fn saw_nothing(&self) -> Result<()> {
        bail!("{} has no value", self.key.as_str())
    }
}

/// Runs each caller in a thread of its own.
pub(crate) fn drive_threads<P: Peer + ?Sized>(peer: &P, drive: &Arc<Drive>) -> Result<Vec<Caller>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..drive.callers)
            .map(|number| scope.spawn(move || call(peer, Caller::new(drive, number))))
            .collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a caller broke"))?);
        joined.collect()
    })
}

fn call<P: Peer + ?Sized>(peer: &P, mut caller: Caller) -> Result<Caller> {
    while let Some(step) = caller.next() {
        match step {
            Step::Get => {
                let mut seen = Ok(());
                if !peer.get(&caller.key, &mut |_, _, value| seen = caller.saw(value))? {
                    caller.saw_nothing()?;
                }
                seen?;
            }
            Step::Put => peer.put(&caller.key, &caller.value)?,
        }
        caller.done();
    }
    Ok(caller)
}
