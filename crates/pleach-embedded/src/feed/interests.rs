use std::collections::HashMap;
use std::str::Split;

use pleach_engine::KeyFilter;

/// The number of a watch of a bucket, which no other has as long as it lasts.
pub(crate) type WatchId = usize;

/// Which watches are about which keys: a tree of the tokens of their filters. Finding those of a key takes as
/// long as there are branches of the tree that it passes, at least one for each of its tokens, not as there are watches.
#[derive(Debug, Default)]
pub(super) struct Interests {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    tokens: HashMap<Box<str>, Node>,
    /// What follows a `*`.
    any: Option<Box<Node>>,
    /// Filters that end here.
    here: Vec<WatchId>,
    /// Filters that go on with a `>`.
    rest: Vec<WatchId>,
}

impl Interests {
    /// Adds a watch that is about keys that pass any of `filters`.
    pub(super) fn add(&mut self, watch: WatchId, filters: &[KeyFilter]) {
        for filter in filters {
            self.root.add(watch, filter.as_str());
        }
    }

    /// Takes away what [`Interests::add`] added.
    pub(super) fn remove(&mut self, watch: WatchId, filters: &[KeyFilter]) {
        for filter in filters {
            self.root.remove(watch, filter.as_str().split('.'));
        }
    }

    /// Tells the watches that are about `key`: one that has several filters perhaps several times.
    pub(super) fn of(&self, key: &str, tell: &mut impl FnMut(WatchId)) {
        self.root.find(key.split('.'), tell);
    }
}

impl Node {
    fn add(&mut self, watch: WatchId, filter: &str) {
        let mut node = self;
        for token in filter.split('.') {
            node = match token {
                ">" => return node.rest.push(watch),
                "*" => node.any.get_or_insert_default(),
                token => node.tokens.entry(token.into()).or_default(),
            };
        }
        node.here.push(watch);
    }

    /// Leaves no node behind that says nothing.
    fn remove(&mut self, watch: WatchId, mut tokens: Split<'_, char>) {
        match tokens.next() {
            None => forget(&mut self.here, watch),
            Some(">") => forget(&mut self.rest, watch),
            Some("*") => {
                if let Some(any) = &mut self.any {
                    any.remove(watch, tokens);
                    if any.is_empty() {
                        self.any = None;
                    }
                }
            }
            Some(token) => {
                if let Some(node) = self.tokens.get_mut(token) {
                    node.remove(watch, tokens);
                    if node.is_empty() {
                        self.tokens.remove(token);
                    }
                }
            }
        }
    }

    fn find(&self, mut tokens: Split<'_, char>, tell: &mut impl FnMut(WatchId)) {
        let Some(token) = tokens.next() else {
            return self.here.iter().copied().for_each(tell);
        };
        self.rest.iter().copied().for_each(&mut *tell);
        if let Some(any) = &self.any {
            any.find(tokens.clone(), tell);
        }
        if let Some(node) = self.tokens.get(token) {
            node.find(tokens, tell);
        }
    }

    fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.any.is_none() && self.here.is_empty() && self.rest.is_empty()
    }
}

fn forget(watches: &mut Vec<WatchId>, watch: WatchId) {
    if let Some(place) = watches.iter().position(|known| *known == watch) {
        watches.swap_remove(place);
    }
}

#[cfg(test)]
mod tests {
    use pleach_engine::Key;
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]", 1..4).prop_map(|tokens| tokens.join("."))
    }

    fn filters() -> impl Strategy<Value = Vec<KeyFilter>> {
        let filter =
            (prop::collection::vec("[ab*]", 0..4), prop::bool::ANY).prop_map(|(mut tokens, rest)| {
                if rest || tokens.is_empty() {
                    tokens.push(">".into());
                }
                KeyFilter::parse(tokens.join(".")).unwrap()
            });
        prop::collection::vec(filter, 0..3)
    }

    proptest! {
        #[test]
        fn those_are_found_whose_filters_a_key_passes(
            watches in prop::collection::vec((filters(), prop::bool::ANY), 0..8),
            key in keys(),
        ) {
            let mut interests = Interests::default();
            for (id, (filters, _)) in watches.iter().enumerate() {
                interests.add(id, filters);
            }
            for (id, (filters, stays)) in watches.iter().enumerate() {
                if !stays {
                    interests.remove(id, filters);
                }
            }
            let mut found = Vec::new();
            interests.of(&key, &mut |id| found.push(id));
            found.sort_unstable();
            found.dedup();
            let key = Key::parse(&key).unwrap();
            let passes = |filters: &[KeyFilter]| filters.iter().any(|filter| filter.matches(&key));
            let expected: Vec<WatchId> = (0..)
                .zip(&watches)
                .filter(|(_, (filters, stays))| *stays && passes(filters))
                .map(|(id, _)| id)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_taken_away_leaves_nothing_behind() {
        let filters: Vec<KeyFilter> =
            ["a.*.b", "a.>", "*.*", "a", "a"].iter().map(|text| KeyFilter::parse(text).unwrap()).collect();
        let mut interests = Interests::default();
        for id in 0..3 {
            interests.add(id, &filters);
        }
        assert!(!interests.root.is_empty());
        for id in [1, 0, 2] {
            interests.remove(id, &filters);
        }
        assert!(interests.root.is_empty());
    }
}
