use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

/// A record as every client shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Seen {
    /// `put`, `delete` or `purge`, and `expire` where that is told apart.
    pub(super) operation: String,
    pub(super) key: String,
    pub(super) revision: u64,
    pub(super) value: String,
}

impl Seen {
    pub(super) fn put(key: &str, revision: u64, value: &str) -> Self {
        Self { operation: "put".into(), key: key.into(), revision, value: value.into() }
    }

    pub(super) fn gone(operation: &str, key: &str, revision: u64) -> Self {
        Self { operation: operation.into(), key: key.into(), revision, value: String::new() }
    }
}

/// Another client of the same servers, with one bucket. What it cannot do fails the test.
pub(super) trait Client {
    /// Makes a bucket and takes it. With `markers`, values may expire, and leave a marker for so long.
    async fn create_bucket(&mut self, bucket: &str, history: u8, markers: Option<Duration>);
    /// Takes a bucket that is there.
    async fn bind(&mut self, bucket: &str);
    async fn put(&mut self, key: &str, value: &str) -> u64;
    /// None if the key is there.
    async fn create(&mut self, key: &str, value: &str, ttl: Option<Duration>) -> Option<u64>;
    /// None if the key is not at this revision.
    async fn update(&mut self, key: &str, value: &str, revision: u64) -> Option<u64>;
    async fn delete(&mut self, key: &str);
    async fn purge(&mut self, key: &str);
    async fn get(&mut self, key: &str) -> Option<Seen>;
    async fn keys(&mut self) -> BTreeSet<String>;
    async fn history(&mut self, key: &str) -> Vec<Seen>;
    /// Follows all changes from now on.
    async fn watch(&mut self);
    /// The next changes it has seen.
    async fn seen(&mut self, count: usize) -> Vec<Seen>;
}
