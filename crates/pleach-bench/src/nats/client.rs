use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::kv;
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _};
use pleach::{Bucket, KeyRange, Revision, ScanQuery, Selection, WatchOptions, WatchStart};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::keys::KeyText;
use crate::process::now;

/// Whose figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientName {
    Pleach,
    Plain,
}

impl ClientName {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pleach => "Pleach on NATS",
            Self::Plain => "async-nats KV",
        }
    }
}

/// Keys with their values.
pub(crate) type Records = Vec<(String, Bytes)>;

/// How long a list of the plain client may take: a list of no keys never ends, and a replica that is behind may have none.
const LIST_MAX: Duration = Duration::from_secs(20);

/// How long servers may take to be able to answer again, and how often they are asked meanwhile.
const RECOVERY_MAX: Duration = Duration::from_secs(180);
pub(super) const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What both clients can do, each in the best way that it has.
pub(crate) trait Client: Clone + Send + Sync + 'static {
    /// How long a read may miss what was written before it. A client that promises to read its own writes has zero.
    const BEHIND_MAX: Duration;

    /// Puts a value; returns its revision.
    fn put(&self, key: &str, value: Bytes) -> impl Future<Output = Result<u64>> + Send;
    /// The value of a key and its revision.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<(u64, Bytes)>>> + Send;
    /// Puts a value if the key is at this revision; returns the new one.
    fn update(&self, key: &str, value: Bytes, seen: u64) -> impl Future<Output = Result<u64>> + Send;
    /// Puts values that belong together.
    fn batch(&self, records: Vec<(KeyText, Bytes)>) -> impl Future<Output = Result<()>> + Send;
    /// Puts values of which all are there or none.
    fn atomic_batch(&self, records: Vec<(KeyText, Bytes)>) -> impl Future<Output = Result<()>> + Send;
    /// Puts values as quickly as it can.
    fn load(&self, records: Vec<(KeyText, Bytes)>) -> impl Future<Output = Result<()>> + Send;
    /// The entries whose keys begin with `prefix`, which ends with a dot, in the order of their keys.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Records>> + Send;
    /// The next `limit` entries after `key`, in the order of their keys.
    fn page(&self, key: &str, limit: usize) -> impl Future<Output = Result<Records>> + Send;
    /// Keeps an ordered copy of what changes from now on, by tasks of its own if it needs any.
    fn keep_copy(&self) -> impl Future<Output = Result<Option<JoinHandle<()>>>> + Send;
    /// Counts every change of the bucket from now on. `newest` is the newest revision of the bucket.
    fn watch(
        &self,
        heard: Arc<AtomicU64>,
        newest: u64,
    ) -> impl Future<Output = Result<JoinHandle<()>>> + Send;
}

/// Pleach, through its library.
#[derive(Clone, Debug)]
pub(crate) struct Pleach(pub(crate) Bucket);

impl Client for Pleach {
    const BEHIND_MAX: Duration = Duration::ZERO;

    async fn put(&self, key: &str, value: Bytes) -> Result<u64> {
        Ok(self.0.put(key, value).await?.get())
    }

    async fn get(&self, key: &str) -> Result<Option<(u64, Bytes)>> {
        Ok(self.0.get(key).await?.map(|entry| (entry.revision.get(), entry.value)))
    }

    async fn update(&self, key: &str, value: Bytes, seen: u64) -> Result<u64> {
        Ok(self.0.update(key, value, Revision::new(seen)).await?.get())
    }

    async fn batch(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        let batch = self.0.batch();
        let batch = records.into_iter().fold(batch, |batch, (key, value)| batch.put(key.as_str(), value));
        batch.commit().await?;
        Ok(())
    }

    async fn atomic_batch(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        self.batch(records).await
    }

    async fn load(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        self.batch(records).await
    }

    async fn list(&self, prefix: &str) -> Result<Records> {
        let entries = self.0.scan(Selection::prefix(prefix))?.collect().await?;
        Ok(entries.into_iter().map(|entry| (entry.key.to_string(), entry.value)).collect())
    }

    async fn page(&self, key: &str, limit: usize) -> Result<Records> {
        let range = KeyRange { start: Bound::Excluded(key.as_bytes().to_vec()), end: Bound::Unbounded };
        let query = ScanQuery { selection: Selection::range(range), limit, ..ScanQuery::default() };
        let page = self.0.scan_page(query).await?;
        Ok(page.entries.into_iter().map(|entry| (entry.key.to_string(), entry.value)).collect())
    }

    /// It has one since the first list.
    async fn keep_copy(&self) -> Result<Option<JoinHandle<()>>> {
        Ok(None)
    }

    async fn watch(&self, heard: Arc<AtomicU64>, _newest: u64) -> Result<JoinHandle<()>> {
        let options = WatchOptions { start: WatchStart::Now, ..WatchOptions::default() };
        let mut watch = self.0.watch_with(options).await?;
        let count = async move {
            while let Ok(Some(_)) = watch.next_change().await {
                heard.fetch_add(1, Ordering::AcqRel);
            }
        };
        Ok(tokio::runtime::Handle::current().spawn(count))
    }
}

/// The key-value client of async-nats.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) store: kv::Store,
    /// For what its key-value part does not have.
    pub(crate) client: async_nats::Client,
    pub(crate) batches: Arc<AtomicU64>,
}

/// Repeats what servers did not do, for example while they choose a leader: the plain client leaves that to its caller.
#[allow(clippy::disallowed_methods, reason = "servers recover in real time")]
async fn retried<T, F>(act: impl Fn() -> F + Send + Sync) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
    T: Send,
{
    let started = now();
    loop {
        match act().await {
            Err(_) if now() - started < RECOVERY_MAX => sleep(AGAIN_AFTER).await,
            done => return done,
        }
    }
}

impl Plain {
    async fn try_atomic_batch(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        let batch = format!("plain-{}", self.batches.fetch_add(1, Ordering::Relaxed));
        let last = records.len();
        for (place, (key, value)) in (1..).zip(records) {
            let subject = format!("$KV.ours.{}", key.as_str());
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Nats-Batch-Id", batch.as_str());
            headers.insert("Nats-Batch-Sequence", place.to_string());
            if place < last {
                self.client.publish_with_headers(subject, headers, value).await?;
                continue;
            }
            headers.insert("Nats-Batch-Commit", "1");
            let answer = self.client.request_with_headers(subject, headers, value).await?;
            let text = String::from_utf8_lossy(&answer.payload);
            ensure!(!text.contains("\"error\""), "the batch was refused: {text}");
        }
        Ok(())
    }
}

impl Client for Plain {
    /// Any replica of a bucket answers reads and lists, also one that is behind. NATS sets no bound; this one is generous.
    const BEHIND_MAX: Duration = Duration::from_secs(180);

    async fn put(&self, key: &str, value: Bytes) -> Result<u64> {
        retried(|| async { Ok(self.store.put(key, value.clone()).await?) }).await
    }

    async fn get(&self, key: &str) -> Result<Option<(u64, Bytes)>> {
        Ok(self.store.entry(key).await?.map(|entry| (entry.revision, entry.value)))
    }

    async fn update(&self, key: &str, value: Bytes, seen: u64) -> Result<u64> {
        match self.store.update(key, value.clone(), seen).await {
            Ok(revision) => Ok(revision),
            // Its answer may have been lost, and then it cannot be repeated; a put tells where the key is now.
            Err(_) => self.put(key, value).await,
        }
    }

    /// One by one: it has nothing else.
    async fn batch(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        for (key, value) in records {
            self.put(key.as_str(), value).await?;
        }
        Ok(())
    }

    /// By hand, in the way of JetStream, which the key-value client does not know: into the bucket of Pleach, whose stream takes it.
    async fn atomic_batch(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        retried(|| self.try_atomic_batch(records.clone())).await
    }

    async fn load(&self, records: Vec<(KeyText, Bytes)>) -> Result<()> {
        try_join_all(
            records.into_iter().map(|(key, value)| async move { self.put(key.as_str(), value).await }),
        )
        .await?;
        Ok(())
    }

    /// By a watch that ends when everything that was there has come: its list of keys has no filter.
    async fn list(&self, prefix: &str) -> Result<Records> {
        let mut watch = self.store.watch_with_history(format!("{prefix}>")).await?;
        let all = async {
            let mut records = Records::new();
            while let Some(entry) = watch.next().await {
                let entry = entry?;
                if entry.operation == kv::Operation::Put {
                    records.push((entry.key, entry.value));
                }
                if entry.delta == 0 {
                    break;
                }
            }
            anyhow::Ok(records)
        };
        let mut records = timeout(LIST_MAX, all).await.context("a list did not end")??;
        records.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(records)
    }

    /// From a list of all keys, which come in the order in which they were written last.
    async fn page(&self, key: &str, limit: usize) -> Result<Records> {
        let mut keys: Vec<String> = self.store.keys().await?.try_collect().await?;
        keys.retain(|listed| listed.as_str() > key);
        keys.sort_unstable();
        keys.truncate(limit);
        let read = |key: String| async move {
            let (_, value) = self.get(&key).await?.with_context(|| format!("{key} is gone"))?;
            anyhow::Ok((key, value))
        };
        try_join_all(keys.into_iter().map(read)).await
    }

    /// By a watch, in the hands of whoever needs it.
    async fn keep_copy(&self) -> Result<Option<JoinHandle<()>>> {
        let mut watch = retried(|| async { Ok(self.store.watch_all().await?) }).await?;
        let copy = async move {
            let mut entries = BTreeMap::new();
            while let Some(Ok(entry)) = watch.next().await {
                match entry.operation {
                    kv::Operation::Put => entries.insert(entry.key, (entry.revision, entry.value)),
                    kv::Operation::Delete | kv::Operation::Purge => entries.remove(&entry.key),
                };
            }
        };
        Ok(Some(tokio::runtime::Handle::current().spawn(copy)))
    }

    /// A watch of the plain client that lost its consumer starts again at the first record of the bucket if it has seen none,
    /// and one on a replica that is behind starts with older records: neither is a change from now on.
    async fn watch(&self, heard: Arc<AtomicU64>, newest: u64) -> Result<JoinHandle<()>> {
        let mut watch =
            retried(|| async { Ok(self.store.watch_all_from_revision(newest + 1).await?) }).await?;
        let count = async move {
            let mut seen = newest;
            while let Some(Ok(entry)) = watch.next().await {
                if entry.revision > seen {
                    seen = entry.revision;
                    heard.fetch_add(1, Ordering::AcqRel);
                }
            }
        };
        Ok(tokio::runtime::Handle::current().spawn(count))
    }
}
