use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pleach::{Bucket, Clock, ManualClock, Store, Timestamp};

/// No test takes longer.
pub(crate) const TEST_TIME_MAX: Duration = Duration::from_secs(600);

/// A new store and the clock it runs by.
pub(crate) struct Given {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    /// Removed with the store's directory after the store.
    #[cfg(feature = "embedded")]
    _directory: Option<tempfile::TempDir>,
}

impl Given {
    pub(crate) fn in_memory() -> Self {
        let clock = noon();
        Self {
            store: Store::in_memory_with(Arc::clone(&clock) as Arc<dyn Clock>),
            clock,
            #[cfg(feature = "embedded")]
            _directory: None,
        }
    }

    #[cfg(feature = "embedded")]
    pub(crate) async fn in_a_directory() -> Self {
        let clock = noon();
        let directory = tempfile::tempdir().unwrap();
        let options = pleach::OpenOptions {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..pleach::OpenOptions::default()
        };
        let store = Store::open_with(directory.path(), options).await.unwrap();
        Self { store, clock, _directory: Some(directory) }
    }

    /// On a server that all tests share. Its time passes by itself, whatever the clock here says.
    #[cfg(feature = "nats")]
    pub(crate) async fn on_nats() -> Self {
        Self {
            store: Store::connect_nats(crate::nats::options()).await.unwrap(),
            clock: noon(),
            #[cfg(feature = "embedded")]
            _directory: None,
        }
    }

    /// A bucket that keeps five records of a key.
    pub(crate) async fn bucket(&self) -> Bucket {
        let config = pleach::BucketConfig { history: 5.try_into().unwrap(), ..Default::default() };
        self.store.create_bucket_with("carts", config).await.unwrap()
    }
}

fn noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap()))
}

/// Runs a test on a thread of its own, and fails if it hangs.
pub(crate) fn run(test: impl Future<Output = ()> + Send + 'static) {
    within(TEST_TIME_MAX, move || pollster::block_on(test));
}

/// Runs `work` on a thread of its own, and fails if it takes longer than `limit`.
pub(crate) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let _ = done.send(work());
    });
    match finished.recv_timeout(limit) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.unwrap().join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("it sends its result"),
        },
    }
}

/// Waits until `holds`, which some other thread is about to bring about.
pub(crate) async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    for _ in 0..180_000 {
        if holds().await {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come true");
}

/// The keys and values, to be compared with.
pub(crate) fn shown(entries: &[pleach::Entry]) -> Vec<String> {
    let text = |entry: &pleach::Entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value));
    entries.iter().map(text).collect()
}
