use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pleach_engine::Timestamp;

/// Wakes a thread that otherwise sleeps, and tells others when it has done something.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    woken: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
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

    /// Wakes the thread, and waits a little for [`Signal::done`].
    pub(crate) fn wake_and_wait(&self, duration: Duration) {
        self.wake();
        drop(self.done.wait_timeout(self.lock(), duration));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
