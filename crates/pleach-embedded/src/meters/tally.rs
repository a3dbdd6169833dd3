use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many threads of a process count in a cell of their own; further ones share one more cell.
const OWN_CELLS: usize = 63;

/// Of the first so many in each cell all are samples, so that short uses are seen, too.
const ALL_SAMPLED: u64 = 64;

/// Counts what many threads do.
#[derive(Debug)]
pub(crate) struct Tally {
    cells: [Cell; OWN_CELLS + 1],
}

/// Takes cache lines of its own, so that threads do not slow each other down.
#[derive(Debug)]
#[repr(align(128))]
struct Cell(AtomicU64);

impl Default for Tally {
    fn default() -> Self {
        Self { cells: [const { Cell(AtomicU64::new(0)) }; OWN_CELLS + 1] }
    }
}

impl Tally {
    /// Counts one more, and says whether it is to be looked at closely, as about one of `every` is.
    pub(crate) fn add_sampling(&self, every: u64) -> bool {
        let before = self.add(1);
        before < ALL_SAMPLED || is_sample(before, every)
    }

    /// Counts so many more, and says how many this cell had before.
    pub(crate) fn add(&self, count: u64) -> u64 {
        let at = CELL.try_with(|own| own.0).unwrap_or(OWN_CELLS);
        let Cell(cell) = &self.cells[at];
        if at < OWN_CELLS {
            // Nobody else writes to it, so this need not be one operation, which would take ten times as long.
            let before = cell.load(Ordering::Relaxed);
            cell.store(before + count, Ordering::Relaxed);
            before
        } else {
            cell.fetch_add(count, Ordering::Relaxed)
        }
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

thread_local! {
    static CELL: OwnCell = OwnCell::take();
}

/// The cell of a thread, in every tally, until it ends.
struct OwnCell(usize);

/// Cells whose threads have ended, and how many there ever were.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static TAKEN: AtomicUsize = AtomicUsize::new(0);

impl OwnCell {
    fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| TAKEN.fetch_add(1, Ordering::Relaxed).min(OWN_CELLS)))
    }
}

impl Drop for OwnCell {
    fn drop(&mut self) {
        if self.0 < OWN_CELLS {
            // The lock also lets the next owner see what this one has counted.
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_the_right_share_is_sampled() {
        let tally = Tally::default();
        let count = || (0..100_000).filter(|_| tally.add_sampling(32)).count();
        let sampled: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(tally.total(), 400_000);
        assert!((12_000..13_500).contains(&sampled), "{sampled}");
    }

    #[test]
    fn more_threads_than_cells_are_all_counted() {
        let tally = Tally::default();
        // All at once, so that some must share, and then again in cells that have become free.
        for _ in 0..3 {
            let all_there = std::sync::Barrier::new(2 * OWN_CELLS);
            std::thread::scope(|scope| {
                for _ in 0..2 * OWN_CELLS {
                    scope.spawn(|| {
                        tally.add_sampling(32);
                        all_there.wait();
                        for _ in 1..1000 {
                            tally.add_sampling(32);
                        }
                    });
                }
            });
        }
        assert_eq!(tally.total(), 3 * 2 * OWN_CELLS as u64 * 1000);
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
