use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{Engine, ManualClock};

/// Lets this much time pass for the engine.
type Advance = Box<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the suite is run on: an engine that holds an empty store, and a way to let time pass for it.
pub struct Subject {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) advance: Advance,
    /// A while that is short for the suite and long for the engine.
    pub(super) pause: Duration,
    /// Whether time stands still unless the suite lets it pass.
    pub(super) exact: bool,
    /// Whether the promise has asked how long a while is, on a clock that goes on by itself.
    pub(super) is_timed: Arc<AtomicBool>,
    _keep: Vec<Box<dyn Any + Send>>,
}

impl Subject {
    /// An engine on a clock that moves only when told to.
    pub fn with_manual_clock(engine: Arc<dyn Engine>, clock: Arc<ManualClock>) -> Self {
        let advance: Advance = Box::new(move |duration| {
            clock.advance(duration);
            Box::pin(std::future::ready(()))
        });
        let pause = engine.capabilities().ttl_resolution.max(Duration::from_secs(1));
        Self { engine, advance, pause, exact: true, is_timed: Arc::default(), _keep: Vec::new() }
    }

    /// An engine on a clock that cannot be moved: the suite sleeps where time must pass.
    #[allow(clippy::disallowed_methods, reason = "the clock of such an engine is the real one")]
    pub fn with_real_clock(engine: Arc<dyn Engine>) -> Self {
        let resolution = engine.capabilities().ttl_resolution;
        let advance: Advance = Box::new(move |duration| Box::pin(tokio::time::sleep(duration + resolution)));
        let pause = (2 * resolution).max(Duration::from_millis(400));
        Self { engine, advance, pause, exact: false, is_timed: Arc::default(), _keep: Vec::new() }
    }

    /// The same, which keeps something alive until its promise has been checked, such as a directory.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any + Send) -> Self {
        self._keep.push(Box::new(keep));
        self
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("engine", &self.engine).finish_non_exhaustive()
    }
}
