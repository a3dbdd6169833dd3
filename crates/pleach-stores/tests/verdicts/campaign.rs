//! Many cases, one after the other, and what is told of those that fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;
use crate::judge::Judge;
use crate::play::{How, play};
use crate::shrink::shrunk;
use crate::story::Story;
use crate::tally::Tally;

/// How many cases are tried if nobody says how many. A case is a contract that is planned over what is stored; the story of a
/// seed has some of them, one after the other.
const CASES: u64 = 10_000;

/// How many failures are told before a campaign stops.
const FAILURES_MAX: usize = 3;

/// The number in an environment variable: see `cargo xtask verdicts`.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text}")))
}

/// Plays the story of a seed.
fn run(seed: u64, tally: &mut Tally) -> Result<(), (Story, Failure)> {
    let judge = Judge::default();
    let story = Story::of(seed, &judge);
    tally.stories += 1;
    play(&story, &judge, How::default(), tally).map_err(|failure| (story, failure))
}

fn told(seed: u64, (story, failure): (Story, Failure)) -> String {
    let (story, failure) = shrunk(story, failure, How::default());
    let Failure { kind, text } = failure;
    format!("{kind:?}: {text}\n\n{story}\nto see it again: cargo xtask verdicts --seed {seed}\n")
}

#[test]
fn no_plan_called_safe_makes_anything_stored_unreadable() {
    if let Some(seed) = setting("PLEACH_VERDICTS_SEED") {
        if let Err(failed) = run(seed, &mut Tally::default()) {
            panic!("{}", told(seed, failed));
        }
        return;
    }
    let cases = setting("PLEACH_VERDICTS_CASES").unwrap_or(CASES);
    let from = setting("PLEACH_VERDICTS_FROM").unwrap_or(0);
    let failures_max =
        setting("PLEACH_VERDICTS_FAILURES").map_or(FAILURES_MAX, |max| usize::try_from(max).unwrap());
    let (next, played) = (AtomicU64::new(from), AtomicU64::new(0));
    let sum = Mutex::new(Tally::default());
    let failures = Mutex::new(Vec::new());
    let work = || {
        let mut tally = Tally::default();
        while played.load(Ordering::Relaxed) < cases && failures.lock().unwrap().len() < failures_max {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let before = tally.plans;
            if let Err(failed) = run(seed, &mut tally) {
                let text = told(seed, failed);
                failures.lock().unwrap().push(text);
            }
            played.fetch_add(tally.plans - before, Ordering::Relaxed);
        }
        sum.lock().unwrap().add(&tally);
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (sum, failures) = (sum.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{sum}");
    assert!(failures.is_empty(), "{} cases failed\n\n{}", failures.len(), failures.join("\n---\n\n"));
    // A campaign in which nothing is safe, or nothing dangerous, shows nothing.
    assert!(cases < 1000 || (sum.safe > sum.plans / 4 && sum.dangerous > sum.plans / 10), "{sum}");
}
