use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads of the engine's own: one for the connection and one for whoever follows changes.
const THREADS: usize = 2;

/// Where an engine's connection and its background work live, whatever its callers run on.
#[derive(Debug)]
pub(crate) struct Background {
    handle: Handle,
    /// Threads of its own, if it has any.
    runtime: Mutex<Option<Runtime>>,
}

impl Background {
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("pleach-nats")
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) })
    }

    /// Takes the threads of someone else.
    pub(crate) fn on(handle: Handle) -> Self {
        Self { handle, runtime: Mutex::new(None) }
    }

    /// Awaits a future that finds the timers it needs wherever it is polled. It stays where it is: whoever calls has boxed
    /// all of this already.
    pub(crate) async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|context| {
            let _timers = self.handle.enter();
            future.as_mut().poll(context)
        })
        .await
    }

    /// The same as something that can be kept.
    pub(crate) fn running<F: Future>(&self, future: F) -> InBackground<F> {
        InBackground { handle: self.handle.clone(), future: Box::pin(future) }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let runtime = self.runtime.lock().ok().and_then(|mut runtime| runtime.take());
        if let Some(runtime) = runtime {
            // Waiting for threads would block whoever drops the engine, who may be one of them.
            runtime.shutdown_background();
        }
    }
}

/// A future that is polled by its caller, with the timers of the background threads.
pub(crate) struct InBackground<F> {
    handle: Handle,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for InBackground<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { handle, future } = &mut *self;
        let _timers = handle.enter();
        future.as_mut().poll(context)
    }
}

/// Waits, on the timers of the background threads.
#[allow(clippy::disallowed_methods, reason = "servers are real, and so is the time they take")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
