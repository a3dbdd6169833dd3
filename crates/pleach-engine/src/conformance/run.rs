use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::case::Case;
use super::{PROMISES, Promise, Subject};

/// How long an engine has to keep one promise.
const PROMISE_TIMEOUT: Duration = Duration::from_secs(600);

/// How long what a broken promise left running may go on.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many times longer a while is in each attempt. On a real clock a busy machine may let a value expire before the suite has
/// looked at it; an engine that breaks a promise breaks it at every scale.
const SCALES: [u32; 3] = [1, 3, 9];

/// Checks the promise called `name` on what `open` opens.
///
/// # Panics
/// If the promise is broken, and if there is none of that name.
pub fn check<F: Future<Output = Subject>>(name: &str, open: impl Fn() -> F) {
    let promise = PROMISES.iter().find(|promise| promise.name == name).expect("the macro names promises");
    let _told = Told(promise);
    let mut broken = None;
    for scale in SCALES {
        match attempt(promise, &open, scale) {
            Ok(()) => return,
            Err(Broken { panic, is_timed }) => {
                broken = Some(panic);
                if !is_timed {
                    break;
                }
            }
        }
    }
    if let Some(panic) = broken {
        resume_unwind(panic);
    }
}

/// How an attempt failed, and whether it depends on time that passes by itself.
struct Broken {
    panic: Box<dyn Any + Send>,
    is_timed: bool,
}

fn attempt<F: Future<Output = Subject>>(
    promise: &Promise,
    open: impl Fn() -> F,
    scale: u32,
) -> Result<(), Broken> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let is_timed = Arc::new(AtomicBool::new(false));
    let opened = async {
        let mut subject = open().await;
        subject.pause *= scale;
        subject.is_timed = Arc::clone(&is_timed);
        subject
    };
    let kept = catch_unwind(AssertUnwindSafe(|| runtime.block_on(keep(promise, opened))));
    // A race that was lost may have left threads in the engine: they must not hold up the message.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    kept.map_err(|panic| Broken { panic, is_timed: is_timed.load(Ordering::Relaxed) })
}

#[allow(clippy::print_stdout, reason = "a skipped promise is said aloud")]
async fn keep(promise: &Promise, open: impl Future<Output = Subject>) {
    let case = Case::new(open.await);
    if let Some(need) = promise.needs.iter().find(|need| !need.is_met_by(case.capabilities())) {
        println!("skipped: {}: needs {need}", promise.name);
        return;
    }
    let kept = tokio::time::timeout(PROMISE_TIMEOUT, (promise.run)(case)).await;
    assert!(kept.is_ok(), "not kept within {PROMISE_TIMEOUT:?}");
}

/// Tells which promise it was if it is broken.
struct Told<'a>(&'a Promise);

impl Drop for Told<'_> {
    #[allow(clippy::print_stderr, reason = "a failed test says which promise is broken")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Promise { number, name, text, .. } = self.0;
            eprintln!("broken promise {number}, {name}: {text}");
        }
    }
}
