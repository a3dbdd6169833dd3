use std::sync::{Mutex, PoisonError, TryLockError};

use super::sketch::{Counter, Sketch};
use crate::log::BucketId;

/// Prefixes of up to so many tokens are counted.
const PREFIX_TOKENS_MAX: usize = 3;

/// A share of the traffic below this is not worth naming, in percent: a key, and a prefix. A prefix is counted
/// three times as often, so it needs more to be certain.
const KEY_PERCENT_MIN: u64 = 5;
const PREFIX_PERCENT_MIN: u64 = 10;

/// So many must have been counted before anything is said.
const SAMPLES_MIN: u64 = 48;

/// So many are named.
const NAMED_MAX: usize = 8;

/// A prefix of which nearly all traffic goes to a longer one says nothing more, in percent.
const EXPLAINED_PERCENT: u64 = 90;

/// Which keys and prefixes are in use just now, from samples.
#[derive(Debug, Default)]
pub(crate) struct Hot {
    state: Mutex<Sketches>,
}

#[derive(Debug, Default)]
struct Sketches {
    keys: Sketch,
    prefixes: Sketch,
}

/// A key or a prefix and its share of what was counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) bucket: BucketId,
    pub(crate) text: String,
    pub(crate) share: f64,
}

impl Hot {
    /// Counts a key; one that comes while another is counted is left out, so that nobody waits.
    pub(crate) fn add(&self, bucket: BucketId, key: &[u8]) {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        state.keys.add(bucket, key);
        let dots = key.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
        for dot in dots.take(PREFIX_TOKENS_MAX) {
            state.prefixes.add(bucket, &key[..dot]);
        }
    }

    /// Lets what was counted so far weigh half as much.
    pub(crate) fn halve(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keys.halve();
        state.prefixes.halve();
    }

    /// The keys, and then the prefixes, with the largest shares.
    pub(crate) fn shares(&self) -> (Vec<Share>, Vec<Share>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let total = state.keys.total();
        if total < SAMPLES_MIN {
            return (Vec::new(), Vec::new());
        }
        let keys = state.keys.frequent(total * KEY_PERCENT_MIN / 100);
        let prefixes = state.prefixes.frequent(total * PREFIX_PERCENT_MIN / 100);
        drop(state);
        let is_explained = |short: &Counter| {
            let within = |long: &Counter| {
                long.bucket == short.bucket
                    && long.text.len() > short.text.len()
                    && long.text.starts_with(&short.text)
                    && long.text[short.text.len()] == b'.'
            };
            let much = short.certain() * EXPLAINED_PERCENT / 100;
            prefixes.iter().chain(&keys).any(|long| within(long) && long.certain() >= much)
        };
        let prefixes = prefixes.iter().filter(|prefix| !is_explained(prefix)).map(|one| share(one, total));
        (
            keys.iter().take(NAMED_MAX).map(|one| share(one, total)).collect(),
            prefixes.take(NAMED_MAX).collect(),
        )
    }
}

fn share(counter: &Counter, total: u64) -> Share {
    let text = String::from_utf8_lossy(&counter.text).into_owned();
    Share { bucket: counter.bucket, text, share: (counter.certain() as f64 / total as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(keys: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
        let hot = Hot::default();
        keys.into_iter().for_each(|key| hot.add(BucketId(1), key.as_bytes()));
        let text = |shares: Vec<Share>| shares.into_iter().map(|share| share.text).collect();
        let (keys, prefixes) = hot.shares();
        (text(keys), text(prefixes))
    }

    #[test]
    fn a_hot_key_among_many_others_is_named() {
        let keys = (0..3000).map(|n| if n % 3 == 0 { "counter".into() } else { format!("k{n}") });
        assert_eq!(counted(keys), (vec!["counter".to_owned()], Vec::new()));
    }

    #[test]
    fn a_hot_prefix_is_named_once_and_not_by_the_shorter_one_that_has_nothing_else() {
        let keys = (0..3000).map(|n| if n % 2 == 0 { format!("t.big.event.{n}") } else { format!("t{n}.x") });
        assert_eq!(counted(keys), (Vec::new(), vec!["t.big.event".to_owned()]));
        let keys = (0..3000).map(|n| if n % 2 == 0 { format!("t.big.{n}") } else { format!("t.{n}.x") });
        assert_eq!(counted(keys).1, ["t".to_owned(), "t.big".to_owned()]);
    }

    #[test]
    fn even_use_names_nothing() {
        let keys = (0..20_000).map(|n| format!("user{}.cart", n * 7919 % 5003));
        assert_eq!(counted(keys), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_handful_of_operations_proves_nothing() {
        assert_eq!(counted((0..10).map(|_| "k".into())), (Vec::new(), Vec::new()));
    }
}
