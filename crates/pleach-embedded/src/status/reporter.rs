use std::sync::Arc;
use std::time::Duration;

use super::{Status, file};
use crate::core::Core;
use crate::meters::{Counts, Sample};

/// How often the counters are sampled, and the status is written if anything has changed.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A store that is so large that it takes long to look over is looked over less often: so many times that pass between.
const REPORT_SHARE: u32 = 50;

/// How often what was used counts half as much as before.
const HALVING_INTERVAL: Duration = Duration::from_secs(30);

/// Samples the meters of a store, and tells others how it is doing.
///
/// It is a thread of its own, because it is while the others are busy that someone wants to know.
#[derive(Debug)]
pub(crate) struct Reporter {
    core: Arc<Core>,
    syncs: Counts,
    halved: Duration,
    /// What was known when the status was written last.
    reported: Option<(Sample, Option<String>, bool)>,
}

impl Reporter {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let halved = core.elapsed();
        core.meters.recent.add(Status::sample(&core), || Status::latencies(&core));
        Self { core, syncs: Counts::default(), halved, reported: None }
    }

    /// Works until the store is closed.
    pub(crate) fn run(mut self) {
        let core = Arc::clone(&self.core);
        let mut pause = REPORT_INTERVAL;
        loop {
            core.reporter.wait(pause);
            if core.health.is_closed() {
                return;
            }
            let started = core.elapsed();
            self.step();
            let cost = core.elapsed().saturating_sub(started);
            pause = REPORT_INTERVAL.max(cost * REPORT_SHARE);
        }
    }

    /// Takes a sample, if time has passed since the one before, and reports it.
    pub(crate) fn step(&mut self) {
        let core = &*self.core;
        let (now, meters) = (core.elapsed(), &core.meters);
        let before = meters.recent.last();
        if before.is_some_and(|before| now < before.at + REPORT_INTERVAL / 2) {
            return;
        }
        let syncs = core.log.syncs.counts();
        let sync_p99 = Duration::from_nanos(syncs.since(&self.syncs).per_mille(990));
        self.syncs = syncs;
        let sample = Sample { at: now, sync_p99, ..Status::sample(core) };
        meters.recent.add(sample, || Status::latencies(core));
        let oldest = core.snapshots.oldest(now);
        meters.note_oldest((oldest < core.snapshots.visible()).then_some(oldest), now);
        if now >= self.halved + HALVING_INTERVAL {
            self.halved = now;
            meters.hot_gets.halve();
            meters.hot_puts.halve();
        }
        // The moment and the last second's syncs change without anything else.
        let counters = Sample { at: Duration::ZERO, sync_p99: Duration::ZERO, ..sample };
        let known = Some((counters, core.health.cleaning_trouble(), core.health.is_poisoned()));
        if self.reported != known {
            self.reported = known;
            file::write(core, &Status::of(core));
        }
    }
}
