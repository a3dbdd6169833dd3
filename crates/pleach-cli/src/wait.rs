use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use anyhow::Context as _;
use futures_core::Stream;
use pleach::{Clock as _, SystemClock};

/// Ctrl-C, or a polite request to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Never.
    pub(crate) fn never() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// From now on Ctrl-C does not end the process, but what this thread waits for.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let interrupt = Self::never();
        let (flag, waiting) = (Arc::clone(&interrupt.0), thread::current());
        let handler = move || {
            flag.store(true, Ordering::SeqCst);
            waiting.unpark();
        };
        ctrlc::set_handler(handler).context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    /// What becomes true when someone asks to stop.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether someone has asked to stop.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited<T> {
    /// There is something.
    Item(T),
    /// There will be nothing more.
    Ended,
    /// There was nothing for the given time.
    Idle,
    /// Someone asked to stop.
    Interrupted,
}

/// How long a stream may need for the next item that it is known to have, on a machine that is busy.
pub(crate) const KNOWN_MAX: Duration = Duration::from_secs(60);

/// The same where an item is likely, but not certain.
pub(crate) const LIKELY_MAX: Duration = Duration::from_secs(2);

/// How long to wait for an item: `--idle` counts when nothing is known to be on its way.
pub(crate) fn patience(idle: Option<Duration>, on_its_way: Option<Duration>) -> Option<Duration> {
    idle.map(|idle| on_its_way.map_or(idle, |most| idle.max(most)))
}

/// Waits for the next item of a stream: at most `idle`, if given, and only until interrupted.
pub(crate) fn next<S: Stream + Unpin>(
    stream: &mut S,
    idle: Option<Duration>,
    interrupt: &Interrupt,
) -> Waited<S::Item> {
    let clock = SystemClock::new();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if interrupt.has_come() {
            return Waited::Interrupted;
        }
        match Pin::new(&mut *stream).poll_next(&mut context) {
            Poll::Ready(Some(item)) => return Waited::Item(item),
            Poll::Ready(None) => return Waited::Ended,
            Poll::Pending => {}
        }
        // Unparking a thread that is not parked yet makes its next park return at once, so nothing is missed.
        match idle.map(|idle| idle.saturating_sub(clock.elapsed())) {
            Some(Duration::ZERO) => return Waited::Idle,
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

/// Sleeps; says whether nobody asked to stop meanwhile.
pub(crate) fn sleep(time: Duration, interrupt: &Interrupt) -> bool {
    let clock = SystemClock::new();
    while !interrupt.has_come() {
        match time.saturating_sub(clock.elapsed()) {
            Duration::ZERO => return true,
            left => thread::park_timeout(left),
        }
    }
    false
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields the numbers from 1 on, each after having made its reader wait once, and ends or stops after 3.
    struct Slow {
        next: u8,
        ready: bool,
        ends: bool,
    }

    impl Stream for Slow {
        type Item = u8;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u8>> {
            if self.next > 3 {
                return if self.ends { Poll::Ready(None) } else { Poll::Pending };
            }
            if !self.ready {
                self.ready = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.ready = false;
            self.next += 1;
            Poll::Ready(Some(self.next - 1))
        }
    }

    fn drain(ends: bool, idle: Option<Duration>, interrupt: &Interrupt) -> (Vec<u8>, Waited<u8>) {
        let mut stream = Slow { next: 1, ready: false, ends };
        let mut seen = Vec::new();
        loop {
            match next(&mut stream, idle, interrupt) {
                Waited::Item(item) => seen.push(item),
                other => return (seen, other),
            }
        }
    }

    #[test]
    fn a_wait_sees_every_item_and_the_end() {
        assert_eq!(drain(true, None, &Interrupt::never()), (vec![1, 2, 3], Waited::Ended));
    }

    #[test]
    fn a_wait_ends_when_nothing_comes_for_the_idle_time() {
        let idle = Some(Duration::from_millis(5));
        assert_eq!(drain(false, idle, &Interrupt::never()), (vec![1, 2, 3], Waited::Idle));
    }

    #[test]
    fn an_interrupt_comes_first() {
        let interrupt = Interrupt::never();
        interrupt.0.store(true, Ordering::SeqCst);
        assert_eq!(drain(false, None, &interrupt), (vec![], Waited::Interrupted));
    }
}
