use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// So many threads can count without getting into each other's way.
const STRIPES: usize = 8;

/// A number that many threads count up: each has a place of its own, as far as there are enough.
#[derive(Debug, Default)]
pub(super) struct Counter([Stripe; STRIPES]);

/// Alone in its line of the processor's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0[stripe()].0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
}

/// What an index has done since it was opened.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) gets: Counter,
    /// Tables whose filter let a look-up pass.
    pub(super) tables_looked_at: Counter,
    pub(super) filter_skips: Counter,
    pub(super) filter_false_passes: Counter,
    pub(super) block_hits: Counter,
    pub(super) block_reads: Counter,
    pub(super) flushes: Counter,
    pub(super) flushed_bytes: Counter,
    pub(super) merges: Counter,
    pub(super) merge_read_bytes: Counter,
    pub(super) merge_written_bytes: Counter,
}
