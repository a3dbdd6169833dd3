use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pleach_engine::EngineError;

use crate::core::Core;

/// At most this many stretches of the index wait to be flushed before commits wait for them.
pub(crate) const SEALED_MAX: usize = 4;

/// At most this many runs of the index wait to be merged before commits wait for them.
pub(crate) const RUNS_MAX: usize = 30;

/// How often the thread looks around without being woken, and how late a buffered commit is synced at most.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Flushes and merges the index, and syncs what buckets were content to leave to the operating system.
#[derive(Debug)]
pub(crate) struct Upkeep {
    core: Arc<Core>,
}

impl Upkeep {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Works until the store is closed.
    pub(crate) fn run(&self) {
        while !self.core.health.is_closed() {
            self.core.upkeep.wait(UPKEEP_INTERVAL);
            if !self.core.health.is_poisoned() {
                self.step();
            }
        }
    }

    /// Does what is due once.
    pub(crate) fn step(&self) {
        let core = &*self.core;
        if let Err(error) = core.sync_log() {
            return core.health.poison(format!("its log could not be synced: {error}"));
        }
        let backlog = core.index.backlog();
        let mut result = Ok(());
        if backlog.sealed > 0 {
            result = core.flush_index(core.snapshots.oldest(core.elapsed()));
        }
        if result.is_ok() {
            result = self.compact();
        }
        match result {
            Ok(()) => core.health.set_obstacle(None),
            Err(EngineError::DiskFull { .. }) => core.health.set_obstacle(Some(PathBuf::from("the index"))),
            Err(error) => core.health.poison(format!("its index could not be written: {error}")),
        }
        core.upkeep.done();
        core.cleaner.wake();
    }

    /// Merges as long as that leaves fewer runs.
    fn compact(&self) -> Result<(), EngineError> {
        let core = &*self.core;
        loop {
            let runs = core.index.backlog().runs;
            if runs == 0 {
                return Ok(());
            }
            core.index.compact(core.snapshots.oldest(core.elapsed()))?;
            core.upkeep.done();
            if core.index.backlog().runs >= runs {
                return Ok(());
            }
        }
    }
}
