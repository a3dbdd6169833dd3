use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// In so many cells a tally is kept, so that threads which count at the same time rarely meet.
const CELLS: usize = 16;

/// Of the first so many in each cell all are samples, so that short uses are seen, too.
const ALL_SAMPLED: u64 = 64;

/// Counts what many threads do.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    cells: [Cell64; CELLS],
}

/// A cache line, so that cells do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cell64(AtomicU64);

impl Tally {
    /// Counts one more, and says whether it is to be looked at closely, as about one of `every` is.
    pub(crate) fn add_sampling(&self, every: u64) -> bool {
        let before = self.cells[cell_of_thread()].0.fetch_add(1, Ordering::Relaxed);
        before < ALL_SAMPLED || is_sample(before, every)
    }

    pub(crate) fn total(&self) -> u64 {
        self.cells.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }
}

/// Whether the operation of this number is one of the samples. They come at irregular distances: whoever does the same
/// things in turn must not be seen doing always the same one.
fn is_sample(number: u64, every: u64) -> bool {
    // The multiples of the golden ratio spread evenly, also those of every n-th number.
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    number.wrapping_mul(GOLDEN_RATIO) < u64::MAX / every
}

fn cell_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static CELL: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    CELL.with(|cell| match cell.get() {
        usize::MAX => {
            let new = THREADS.fetch_add(1, Ordering::Relaxed) % CELLS;
            cell.set(new);
            new
        }
        known => known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_the_right_share_is_sampled() {
        let tally = Tally::default();
        let sampled: usize = std::thread::scope(|scope| {
            let count = || (0..100_000).filter(|_| tally.add_sampling(32)).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(tally.total(), 400_000);
        assert!((12_000..13_500).contains(&sampled), "{sampled}");
    }

    #[test]
    fn what_is_done_in_turn_is_sampled_evenly() {
        for period in [2, 3, 16, 32, 64, 100] {
            let mut seen = vec![0_u32; period];
            (0..640_000_usize).filter(|n| is_sample(*n as u64, 64)).for_each(|n| seen[n % period] += 1);
            let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
            assert!(*most <= least * 3 / 2 + 4, "in turns of {period}: {seen:?}");
        }
    }
}
