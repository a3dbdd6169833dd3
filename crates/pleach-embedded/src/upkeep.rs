use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pleach_engine::{EngineError, Revision};

use crate::core::{Core, IndexWork};

/// At most this many stretches of the index wait to be flushed before commits wait for them.
pub(crate) const SEALED_MAX: usize = 4;

/// At most this many runs of the index wait to be merged before commits wait for them.
pub(crate) const RUNS_MAX: usize = 30;

/// How often the thread looks around without being woken, and how late a buffered commit is synced at most.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// As long as no more than this is written, a store counts as at rest.
const RESTING_BYTES_MAX: u64 = 256 * 1024;

/// Flushes the index, and syncs what buckets were content to leave to the operating system. Merging, which takes
/// longer, is done on a thread of its own, so that no flush waits for it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    core: Arc<Core>,
}

impl Upkeep {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Syncs and flushes until the store is closed.
    pub(crate) fn run(&self) {
        while !self.core.health.is_closed() {
            self.core.upkeep.wait(UPKEEP_INTERVAL);
            if !self.core.health.is_poisoned() {
                self.flush();
                self.core.merging.wake();
            }
        }
    }

    /// Merges until the store is closed.
    pub(crate) fn run_merges(&self) {
        let (mut written_before, mut rest_since) = (0, Duration::ZERO);
        while !self.core.health.is_closed() {
            self.core.merging.wait(UPKEEP_INTERVAL);
            let (written, now) = (self.core.written_log.load(Ordering::Acquire), self.core.elapsed());
            if written.saturating_sub(written_before) > RESTING_BYTES_MAX {
                (written_before, rest_since) = (written, now);
            }
            let is_busy = now.saturating_sub(rest_since) < UPKEEP_INTERVAL;
            while !self.core.health.is_poisoned() && !self.core.health.is_closed() && self.merge(is_busy) {}
        }
    }

    /// Does what is due once.
    #[cfg(test)]
    pub(crate) fn step(&self) {
        self.flush();
        while !self.core.health.is_poisoned() && self.merge(false) {}
    }

    fn flush(&self) {
        let core = &*self.core;
        if let Err(error) = core.sync_log() {
            return core.health.poison(format!("its log could not be synced: {error}"));
        }
        let started = core.elapsed();
        let flushed = if core.index.backlog().sealed == 0 { Ok(()) } else { core.flush_index(self.oldest()) };
        self.count_time(&core.meters.flush_micros, started);
        self.note(IndexWork::Flush, flushed);
        core.cleaner.wake();
    }

    /// Merges once, and says whether there was something to merge.
    fn merge(&self, is_busy: bool) -> bool {
        let started = self.core.elapsed();
        let merged = self.core.index.compact(self.oldest(), is_busy);
        self.count_time(&self.core.meters.merge_micros, started);
        let more = matches!(merged, Ok(true));
        self.note(IndexWork::Merge, merged.map(drop));
        more
    }

    /// Takes account of how it went.
    fn note(&self, work: IndexWork, result: Result<(), EngineError>) {
        let core = &*self.core;
        match result {
            Ok(()) => core.health.set_obstacle(work, None),
            Err(EngineError::DiskFull { .. }) => {
                core.health.set_obstacle(work, Some(PathBuf::from("the index")))
            }
            Err(error) => core.health.poison(format!("its index could not be written: {error}")),
        }
        core.upkeep.done();
    }

    fn count_time(&self, micros: &AtomicU64, started: Duration) {
        let taken = self.core.elapsed().saturating_sub(started).as_micros();
        micros.fetch_add(u64::try_from(taken).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn oldest(&self) -> Revision {
        self.core.snapshots.oldest(self.core.elapsed())
    }
}
