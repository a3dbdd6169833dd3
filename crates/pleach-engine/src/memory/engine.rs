use std::fmt;
use std::num::NonZeroU8;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;

use super::state::State;
use super::watch::Watch;
use crate::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, CommitError, Committed,
    ConsumerInfo, ConsumerName, ConsumerStart, Direction, Engine, EngineError, Entry, Key, Page, Revision,
    ScanQuery, Selection, SteadyClock, SystemClock, Timestamp, WakeHook, WatchQuery, WatchStream,
};

/// How long the alarm sleeps at least, so that a clock that stands still does not keep it busy.
const ALARM_SLEEP_MIN: Duration = Duration::from_millis(2);

/// How long the alarm sleeps at most, so that a clock that jumped is noticed.
const ALARM_SLEEP_MAX: Duration = Duration::from_secs(1);

/// The engine that keeps everything in memory and every promise in the most obvious way.
///
/// Nothing outlives the process, so a commit is as durable as it can be once it is visible: buckets may
/// ask for synced commits. It needs no async runtime and no thread, except that one waits for the next
/// expiry while a watch is open and there is something to expire. Dropping the engine closes it.
pub struct MemoryEngine {
    shared: Arc<Shared>,
    /// Kept here because the clock holds it weakly.
    _on_jump: Arc<WakeHook>,
}

impl MemoryEngine {
    /// An empty store on the clock of the machine.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let shared = Arc::new(Shared {
            capabilities: Capabilities { persistent: false, ..Capabilities::complete("memory") },
            clock: SteadyClock::new(Arc::clone(&clock), Timestamp::default()),
            state: Mutex::new(State::new()),
            alarm: Condvar::new(),
        });
        let weak: Weak<Shared> = Arc::downgrade(&shared);
        let on_jump: Arc<WakeHook> = Arc::new(move || {
            if let Some(shared) = weak.upgrade() {
                shared.with_any(|_, _| ());
            }
        });
        clock.on_jump(Arc::downgrade(&on_jump));
        Self { shared, _on_jump: on_jump }
    }

    #[cfg(test)]
    pub(super) fn has_alarm(&self) -> bool {
        self.shared.lock().alarm.is_some()
    }
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, newest) = self.shared.with_any(|state, _| (state.buckets.len(), state.newest));
        f.debug_struct("MemoryEngine").field("buckets", &buckets).field("newest", &newest).finish()
    }
}

impl Drop for MemoryEngine {
    fn drop(&mut self) {
        self.shared.with_any(|state, _| state.close());
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.shared.with_open(|state, now| {
            config.check(&self.shared.capabilities)?;
            state.create_bucket(bucket, config, now)
        })
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.shared.with_open(|state, now| {
            config.check(&self.shared.capabilities)?;
            state.update_bucket(bucket, config, now)
        })
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        self.shared.with_open(|state, _| state.delete_bucket(bucket))
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
        self.shared.with_open(|state, _| Ok(state.info(state.bucket(bucket)?)))
    }

    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.shared
            .with_open(|state, _| Ok(state.buckets.values().map(|bucket| state.info(bucket)).collect()))
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.shared.with_open(|state, now| state.commit(bucket, batch, &self.shared.capabilities, now))
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        self.shared.with_open(|state, now| state.read(bucket, key, at, now))
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.shared.with_open(|state, _| Ok(state.bucket(bucket)?.history(key)))
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        self.shared.with_open(|state, now| state.scan(bucket, &query, now))
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.shared.with_open(|state, now| {
            let live = state.bucket(bucket)?.select(&selection, Direction::Forward, now);
            Ok(live.len() as u64)
        })
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        let shared = Arc::clone(&self.shared);
        let watch = self.shared.with_open(|state, now| Watch::begin(shared, state, bucket, query, now))?;
        Ok(Box::pin(watch))
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        self.shared.with_open(|state, _| state.compact_key(bucket, key, keep))
    }

    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.with_open(|state, now| state.create_consumer(bucket, consumer, start, now))
    }

    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
        self.shared.with_open(|state, _| Ok(state.bucket(bucket)?.consumers.values().cloned().collect()))
    }

    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.with_open(|state, _| state.bucket(bucket)?.consumer(consumer).cloned())
    }

    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        self.shared.with_open(|state, now| state.acknowledge(bucket, consumer, revision, now))
    }

    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.shared.with_open(|state, _| state.reset_consumer(bucket, consumer, start))
    }

    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError> {
        self.shared.with_open(|state, _| state.delete_consumer(bucket, consumer))
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.shared.with_any(|state, _| state.close());
        Ok(())
    }
}

/// What the engine, its watches and its alarm have in common.
pub(super) struct Shared {
    capabilities: Capabilities,
    clock: SteadyClock,
    state: Mutex<State>,
    alarm: Condvar,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Does `work` unless the engine is closed.
    fn with_open<T, E: From<EngineError>>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut State, Timestamp) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_any(
            |state, now| if state.closed { Err(EngineError::Closed.into()) } else { work(state, now) },
        )
    }

    /// Records what has expired, then does `work`. The time is taken under the lock, so that it never goes
    /// back from one revision to the next. Watchers are woken once the lock is released.
    pub(super) fn with_any<T>(self: &Arc<Self>, work: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut state = self.lock();
        let now = self.clock.now();
        state.record_due(now);
        let result = work(&mut state, now);
        let woken = std::mem::take(&mut state.woken);
        self.set_alarm(&mut state);
        drop(state);
        woken.into_iter().for_each(std::task::Waker::wake);
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in here is a bug, and the next call should not report another one instead.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a thread waits for the next expiry if anyone waits for news of it.
    fn set_alarm(self: &Arc<Self>, state: &mut State) {
        match (state.alarm, state.awaited_expiry()) {
            (Some(set), Some(awaited)) if awaited < set => self.alarm.notify_all(),
            (Some(_), None) => self.alarm.notify_all(),
            (None, Some(_)) => {
                let shared = Arc::clone(self);
                let thread = std::thread::Builder::new().name("pleach-memory-expiry".into());
                // Without the thread, expiry is still recorded by whichever call comes next.
                let started = thread.spawn(move || shared.run_alarm()).is_ok();
                state.alarm = started.then_some(Timestamp::MAX);
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn run_alarm(&self) {
        let mut state = self.lock();
        loop {
            let now = self.clock.now();
            state.record_due(now);
            let woken = std::mem::take(&mut state.woken);
            if !woken.is_empty() {
                drop(state);
                woken.into_iter().for_each(std::task::Waker::wake);
                state = self.lock();
                continue;
            }
            state.alarm = state.awaited_expiry();
            let Some(moment) = state.alarm else { return };
            let sleep = moment.since(now).clamp(ALARM_SLEEP_MIN, ALARM_SLEEP_MAX);
            let slept = self.alarm.wait_timeout(state, sleep);
            state = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
