use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{EngineError, Timestamp};

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
            result = core.index.flush(core.snapshots.oldest(core.elapsed()));
        }
        if result.is_ok() && core.index.backlog().runs > 0 {
            result = core.index.compact(core.snapshots.oldest(core.elapsed()));
        }
        match result {
            Ok(()) => core.health.set_obstacle(None),
            Err(EngineError::DiskFull { .. }) => core.health.set_obstacle(Some(PathBuf::from("the index"))),
            Err(error) => core.health.poison(format!("its index could not be written: {error}")),
        }
        core.upkeep.done();
    }
}

/// Wakes a thread that otherwise sleeps.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    woken: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    raised: bool,
    /// The moment the thread sleeps until.
    until: Option<Timestamp>,
}

impl Signal {
    pub(crate) fn wake(&self) {
        self.lock().raised = true;
        self.woken.notify_all();
    }

    /// Wakes the thread if it would sleep past `moment`.
    pub(crate) fn wake_by(&self, moment: Timestamp) {
        let mut state = self.lock();
        if state.until.is_none_or(|until| moment < until) {
            state.raised = true;
            drop(state);
            self.woken.notify_all();
        }
    }

    /// Sleeps until woken, or for `duration`.
    pub(crate) fn wait(&self, duration: Duration) {
        let state = self.lock();
        let result = self.woken.wait_timeout_while(state, duration, |state| !state.raised);
        result.unwrap_or_else(PoisonError::into_inner).0.raised = false;
    }

    /// Notes the moment the thread is about to sleep until.
    pub(crate) fn sleeping_until(&self, moment: Option<Timestamp>) {
        self.lock().until = moment;
    }

    /// Says that some work was done, to those who wait for it.
    pub(crate) fn done(&self) {
        self.done.notify_all();
    }

    /// Waits a little for [`Signal::done`].
    pub(crate) fn wait_done(&self, duration: Duration) {
        let state = self.lock();
        drop(self.done.wait_timeout(state, duration));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
