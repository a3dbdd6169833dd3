use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::run::{End, Run, Seen, Story};

/// How many seeds run with the other tests.
const SEEDS: u64 = 3000;

/// How much of a story is shown when it ends badly.
const SHOWN_LINES: usize = 60;

/// How much of each line: values are long, and say little.
const SHOWN_CHARS: usize = 400;

/// The seeds to run instead of the usual ones, as `cargo xtask sim` says: "first..end".
const SEEDS_VARIABLE: &str = "PLEACH_SIM_SEEDS";

/// What happens in so many seeds, or they are not worth their time.
const EVENTS: [&str; 19] = [
    "answered",
    "full",
    "unknown",
    "damaged",
    "power cut",
    "opened",
    "fails to open",
    "unknown found",
    "buffered lost",
    "cleaned",
    "forgot",
    "removed",
    "watch compacted",
    "snapshot given up",
    "history held",
    "history of cleaned segments",
    "rebuilt",
    "rebuilt without the faded",
    "old index",
];

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS_VARIABLE) else { return 0..SEEDS };
    let (first, end) = text.split_once("..").expect("a range such as 0..100");
    first.parse().expect("a number")..end.parse().expect("a number")
}

/// Runs a seed; an error is the end of its story.
fn run(seed: u64) -> Result<End, String> {
    let story = Story::default();
    let told = Story::clone(&story);
    catch_unwind(AssertUnwindSafe(|| Run::new(seed, told).finish())).map_err(|panic| {
        crate::random::seeded::set(None);
        let story = story.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = &story[story.len().saturating_sub(SHOWN_LINES)..];
        let shown: Vec<String> = shown.iter().map(|line| line.chars().take(SHOWN_CHARS).collect()).collect();
        let text = panic.downcast_ref::<&str>().copied();
        let cause = panic.downcast_ref::<String>().map(String::as_str).or(text).unwrap_or_default();
        format!(
            "{}\n{cause}\nseed {seed} fails; to see it again: cargo xtask sim --seed {seed}",
            shown.join("\n")
        )
    })
}

#[test]
fn whatever_fails_the_store_keeps_what_it_acknowledged() {
    let (seeds, failed, seen) = (seeds(), AtomicBool::new(false), Mutex::new(Seen::new()));
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            match run(seed) {
                Ok(end) => {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    end.seen.into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
                }
                Err(story) => {
                    failed.store(true, Ordering::Relaxed);
                    return Some(story);
                }
            }
        }
        None
    };
    let stories: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(stories.is_empty(), "{}", stories.join("\n\n"));
    let seen = seen.into_inner().unwrap();
    if seeds.end - seeds.start >= SEEDS {
        let missing: Vec<_> =
            EVENTS.iter().filter(|what| seen.get(*what).is_none_or(|count| *count == 0)).collect();
        assert!(missing.is_empty(), "no seed came to {missing:?}: {seen:?}");
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..20 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(run(0), run(1), "another seed is another story");
}
