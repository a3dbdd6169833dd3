use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::case::Case;
use super::{PROMISES, Promise, Subject};

/// How long an engine has to keep one promise.
const PROMISE_TIMEOUT: Duration = Duration::from_secs(120);

/// How long what a broken promise left running may go on.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks the promise called `name` on what `open` opens.
///
/// # Panics
/// If the promise is broken, and if there is none of that name.
pub fn check<F: Future<Output = Subject>>(name: &str, open: impl FnOnce() -> F) {
    let promise = PROMISES.iter().find(|promise| promise.name == name).expect("the macro names promises");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let _told = Told(promise);
    let kept = catch_unwind(AssertUnwindSafe(|| runtime.block_on(keep(promise, open))));
    // A race that was lost may have left threads in the engine: they must not hold up the message.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    kept.unwrap_or_else(|broken| resume_unwind(broken));
}

#[allow(clippy::print_stdout, reason = "a skipped promise is said aloud")]
async fn keep<F: Future<Output = Subject>>(promise: &Promise, open: impl FnOnce() -> F) {
    let case = Case::new(open().await);
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
