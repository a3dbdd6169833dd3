use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use pleach_engine::{EngineError, Entry, WatchEvent};

use super::view::{Full, Phase, View};
use crate::{Bucket, Error, Watch};

/// How long it waits before it builds a cache anew the first time.
const REBUILD_DELAY_MIN: Duration = Duration::from_millis(5);

/// How long it waits at most, after many attempts that failed.
const REBUILD_DELAY_MAX: Duration = Duration::from_secs(1);

/// The thread that follows a watch for one cache. Dropping it stops the thread and waits for that, so that
/// nothing of the store is held any longer.
#[derive(Debug)]
pub(super) struct Driver {
    /// Ends the thread's wait for the watch.
    abort: AbortHandle,
    /// Ends the thread's delays, by being dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    pub(super) fn start(bucket: Bucket, watch: Watch, view: Arc<View>) -> Result<Self, Error> {
        let (abort, registration) = AbortHandle::new_pair();
        let (stop, stopped) = mpsc::channel();
        let stop_following = Stop { aborted: abort.clone(), stopped };
        let name = bucket.name().clone();
        let follow = move || {
            let _broken = ClearOnPanic(Arc::clone(&view));
            // Aborting drops the future, and with it the watch and the handle on the store.
            let _ =
                pollster::block_on(Abortable::new(drive(bucket, watch, view, stop_following), registration));
        };
        let thread = thread::Builder::new().name("pleach-cache".into()).spawn(follow);
        let thread = thread.map_err(|source| Error::NoThread { bucket: name, source })?;
        Ok(Self { abort, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.abort.abort();
        drop(self.stop.take());
        // The thread itself drops it if it wakes a task that is dropped then. It cannot wait for itself.
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        if let Some(thread) = self.thread.take().filter(is_other) {
            // A panic of the thread has been told to whoever waits for the cache.
            let _ = thread.join();
        }
    }
}

/// How the thread hears that it shall stop.
struct Stop {
    /// Aborting ends a wait; while a watch always has another event, there is none to end.
    aborted: AbortHandle,
    /// Disconnected, it ends a delay.
    stopped: Receiver<()>,
}

/// Follows one watch after another until the cache can never be ready again.
async fn drive(bucket: Bucket, watch: Watch, view: Arc<View>, stop: Stop) {
    let mut watch = Ok(watch);
    let mut delay = REBUILD_DELAY_MIN;
    loop {
        let end = match watch {
            Ok(watch) => follow(watch, &view, &stop.aborted).await,
            Err(error) => End::Lost(error),
        };
        if view.phase() == Phase::Ready {
            delay = REBUILD_DELAY_MIN;
        }
        let phase = phase_after(&end);
        view.clear(phase);
        if phase != Phase::Building {
            return;
        }
        // This thread has nothing else to do, so it may wait as threads do.
        if stop.stopped.recv_timeout(delay) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        delay = (delay * 2).min(REBUILD_DELAY_MAX);
        watch = bucket.watch_with(super::latest()).await;
    }
}

enum End {
    Full,
    Stopped,
    Lost(Error),
}

async fn follow(mut watch: Watch, view: &View, aborted: &AbortHandle) -> End {
    let mut initial = true;
    let mut batch: Vec<Entry> = Vec::new();
    while !aborted.is_aborted() {
        match watch.next().await {
            Ok(Some(WatchEvent::Change(change))) => {
                batch.push(change.entry);
                // Nobody sees the initial values before they are complete; later batches appear whole.
                if (initial || change.batch.is_last()) && matches!(view.apply(batch.drain(..)), Err(Full)) {
                    return End::Full;
                }
            }
            Ok(Some(WatchEvent::InitialDone { revision })) => {
                initial = false;
                view.initial_done(revision);
            }
            Ok(None) => return End::Lost(EngineError::Closed.into()),
            Err(error) => return End::Lost(error),
        }
    }
    End::Stopped
}

fn phase_after(end: &End) -> Phase {
    match end {
        End::Full => Phase::Full,
        End::Lost(Error::Engine(EngineError::BucketNotFound { .. })) => Phase::BucketGone,
        End::Lost(Error::Engine(EngineError::Closed)) | End::Stopped => Phase::Closed,
        End::Lost(_) => Phase::Building,
    }
}

/// Nothing may be answered from a view that is no longer followed.
struct ClearOnPanic(Arc<View>);

impl Drop for ClearOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.clear(Phase::Broken);
        }
    }
}
