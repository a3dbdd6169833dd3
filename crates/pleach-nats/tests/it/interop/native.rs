use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use super::client::{Client, Seen};
use crate::servers::{self, SOON};

/// The key-value client of async-nats.
pub(super) struct Native {
    context: jetstream::Context,
    bucket: Option<kv::Store>,
    watch: Option<kv::Watch>,
}

impl Native {
    pub(super) async fn connect() -> Self {
        Self { context: servers::context().await, bucket: None, watch: None }
    }

    fn bucket(&self) -> &kv::Store {
        self.bucket.as_ref().expect("a bucket was taken")
    }
}

impl Client for Native {
    async fn create_bucket(&mut self, bucket: &str, history: u8, markers: Option<Duration>) {
        let config = kv::Config {
            bucket: bucket.to_owned(),
            history: history.into(),
            limit_markers: markers,
            ..kv::Config::default()
        };
        self.bucket = Some(self.context.create_key_value(config).await.unwrap());
    }

    async fn bind(&mut self, bucket: &str) {
        self.bucket = Some(self.context.get_key_value(bucket).await.unwrap());
    }

    async fn put(&mut self, key: &str, value: &str) -> u64 {
        self.bucket().put(key, bytes(value)).await.unwrap()
    }

    async fn create(&mut self, key: &str, value: &str, ttl: Option<Duration>) -> Option<u64> {
        let created = match ttl {
            Some(ttl) => self.bucket().create_with_ttl(key, bytes(value), ttl).await,
            None => self.bucket().create(key, bytes(value)).await,
        };
        match created {
            Ok(revision) => Some(revision),
            Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => None,
            Err(error) => panic!("{key} was not created: {error:?}"),
        }
    }

    async fn update(&mut self, key: &str, value: &str, revision: u64) -> Option<u64> {
        match self.bucket().update(key, bytes(value), revision).await {
            Ok(revision) => Some(revision),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => None,
            Err(error) => panic!("{key} was not updated: {error:?}"),
        }
    }

    async fn delete(&mut self, key: &str) {
        self.bucket().delete(key).await.unwrap();
    }

    async fn purge(&mut self, key: &str) {
        self.bucket().purge(key).await.unwrap();
    }

    async fn get(&mut self, key: &str) -> Option<Seen> {
        let entry = self.bucket().entry(key).await.unwrap().map(shown);
        entry.filter(|entry| entry.operation == "put")
    }

    async fn keys(&mut self) -> BTreeSet<String> {
        self.bucket().keys().await.unwrap().try_collect().await.unwrap()
    }

    async fn history(&mut self, key: &str) -> Vec<Seen> {
        self.bucket().history(key).await.unwrap().map_ok(shown).try_collect().await.unwrap()
    }

    async fn watch(&mut self) {
        self.watch = Some(self.bucket().watch_all().await.unwrap());
    }

    async fn seen(&mut self, count: usize) -> Vec<Seen> {
        let watch = self.watch.as_mut().expect("it watches");
        let changes = watch.take(count).map_ok(shown).try_collect();
        tokio::time::timeout(SOON, changes).await.expect("they come soon").unwrap()
    }
}

fn shown(entry: kv::Entry) -> Seen {
    let operation = match entry.operation {
        kv::Operation::Put => "put",
        kv::Operation::Delete => "delete",
        kv::Operation::Purge => "purge",
    };
    Seen {
        operation: operation.to_owned(),
        key: entry.key,
        revision: entry.revision,
        value: String::from_utf8(entry.value.to_vec()).unwrap(),
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
