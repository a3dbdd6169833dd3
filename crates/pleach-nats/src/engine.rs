use std::collections::HashMap;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::SubscribeError;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::watch;

use pleach_engine::{
    At, Batch, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, CommitError, Committed,
    ConsumerInfo, ConsumerName, ConsumerStart, Engine, EngineError, Entry, Key, Page, PageSnapshots,
    Revision, ScanQuery, Selection, SystemClock, WatchQuery, WatchStream,
};

use crate::api::Api;
use crate::bucket::Bucket;
use crate::clock::ServerClock;
use crate::config::MESSAGE_OVERHEAD;
use crate::connected::Connected;
use crate::connection::{self, Denials, Link};
use crate::error::ApiError;
use crate::feed::End;
use crate::inbox::Inbox;
use crate::options::{NatsOptions, Reads, Scans, Storage};
use crate::runtime::{Background, pause};
use crate::scan::Snapshot;

/// Bytes of keys, values and headers in one batch: the server keeps a batch in memory until it is complete.
const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The shortest TTL that a server keeps, and how exactly.
const TTL_RESOLUTION: Duration = Duration::from_secs(1);

/// How long a server may take to start JetStream.
const START_MAX: Duration = Duration::from_secs(2);

/// How often it is asked meanwhile.
const START_EVERY: Duration = Duration::from_millis(50);

/// The engine on NATS JetStream. Dropping it closes it.
#[derive(Debug)]
pub struct NatsEngine {
    shared: Arc<Shared>,
    background: Arc<Background>,
}

/// What an engine's calls and its background work have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: NatsOptions,
    pub(crate) api: Api,
    /// Where answers of several messages arrive.
    pub(crate) inbox: Inbox,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) capabilities: Capabilities,
    pub(crate) buckets: Mutex<HashMap<BucketName, Arc<Bucket>>>,
    pub(crate) pages: Mutex<PageSnapshots<Snapshot>>,
    /// Tells this engine from others, whose page tokens must not work here.
    pub(crate) store: u64,
    /// How the connection is.
    pub(crate) link: watch::Receiver<Link>,
    /// Where background work runs.
    pub(crate) handle: Handle,
    is_closed: AtomicBool,
    commits: AtomicU64,
}

impl NatsEngine {
    /// Connects to servers, and checks that they can do what is needed.
    ///
    /// # Errors
    /// `Unreachable`, `Refused` by a server that is too old, or `Unsupported` without JetStream.
    pub async fn connect(options: NatsOptions) -> Result<Self, EngineError> {
        Self::connect_with_clock(options, Arc::new(SystemClock::new())).await
    }

    /// The same, with a clock that is corrected by what the servers say.
    ///
    /// # Errors
    /// As [`NatsEngine::connect`].
    pub async fn connect_with_clock(
        options: NatsOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EngineError> {
        let background = Background::start().map_err(|error| EngineError::Bug {
            what: format!("no threads can be started for the connection: {error}"),
        })?;
        Self::connect_in(options, clock, background).await
    }

    /// Connects on a Tokio runtime of the caller's, which must have its timers and its input and output enabled and must
    /// outlive the engine. That spares a change of threads in every call.
    ///
    /// # Errors
    /// As [`NatsEngine::connect`].
    pub async fn connect_on(options: NatsOptions, runtime: Handle) -> Result<Self, EngineError> {
        Self::connect_in(options, Arc::new(SystemClock::new()), Background::on(runtime)).await
    }

    async fn connect_in(
        options: NatsOptions,
        clock: Arc<dyn Clock>,
        background: Background,
    ) -> Result<Self, EngineError> {
        let background = Arc::new(background);
        let handle = background.handle().clone();
        let shared = background.run(Shared::connect(options, clock, handle)).await?;
        Ok(Self { shared: Arc::new(shared), background })
    }

    /// Says which server it is connected to now; another one after it had to reconnect.
    pub fn connected(&self) -> Connected {
        Connected::of(&self.shared.api.client.server_info())
    }

    /// Reads a key with another promise than the engine's own.
    ///
    /// # Errors
    /// As [`Engine::read`]; `FutureRevision` if the bucket has not come to the revision asked for.
    pub async fn read_with(
        &self,
        bucket: &BucketName,
        key: &Key,
        reads: Reads,
    ) -> Result<Option<Entry>, EngineError> {
        self.background.run(self.shared.read(bucket, key, At::Latest, reads)).await
    }
}

impl NatsEngine {
    /// Makes a read replica of a bucket: a stream that copies it, on the servers of this engine's account. Whoever shall
    /// read from it gives the bucket a [`BucketPlace`](crate::BucketPlace) in the stream `stream` and under the bucket's own subjects;
    /// what they write goes to the bucket itself, and what they read is a little behind it.
    ///
    /// # Errors
    /// `BucketNotFound`, or what the server could not do.
    pub async fn create_replica(&self, bucket: &BucketName, stream: &str) -> Result<(), EngineError> {
        self.background.run(self.shared.create_replica(bucket, stream)).await
    }
}

impl Shared {
    async fn connect(
        options: NatsOptions,
        clock: Arc<dyn Clock>,
        handle: Handle,
    ) -> Result<Self, EngineError> {
        let told = watch::Sender::new(Link::default());
        let link = told.subscribe();
        let denials = Denials::default();
        let client = connection::connect(&options, told, denials.clone()).await?;
        let capabilities = capabilities(&options, client.max_payload());
        let unreachable = |error: SubscribeError| EngineError::Unreachable { reason: error.to_string() };
        let inbox = Inbox::open(&client, &handle).await.map_err(unreachable)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| EngineError::Bug { what: error.to_string() })?;
        let shared = Self {
            api: Api::new(client, denials, &options),
            inbox,
            clock: Arc::new(ServerClock::new(clock)),
            capabilities,
            buckets: Mutex::new(HashMap::new()),
            pages: Mutex::new(PageSnapshots::default()),
            store: u64::from_le_bytes(random),
            link,
            handle,
            is_closed: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            options,
        };
        shared.check_account().await?;
        Ok(shared)
    }

    /// Checks that JetStream is there. A server that has just started may take a moment to say so.
    async fn check_account(&self) -> Result<(), EngineError> {
        let started = self.clock.elapsed();
        loop {
            match self.patiently_unless_silent(|| self.api.account()).await {
                Ok(()) => return Ok(()),
                Err(ApiError::NoResponders) if self.clock.elapsed().saturating_sub(started) < START_MAX => {
                    pause(START_EVERY).await;
                }
                Err(ApiError::NoResponders) => {
                    let what = "JetStream: no server answers for it, or not under this domain or prefix";
                    return Err(EngineError::Unsupported { what });
                }
                Err(error) => return Err(error.refused("show its JetStream account")),
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed() { Err(EngineError::Closed) } else { Ok(()) }
    }

    /// The name of a commit, which no other has, of this engine or another.
    pub(crate) fn next_id(&self) -> String {
        format!("{:016x}{:x}", self.store, self.commits.fetch_add(1, Ordering::Relaxed))
    }

    async fn compact_key(&self, name: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        let bucket = self.bucket(name).await?;
        let (stream, subject) = (&bucket.names.stream, bucket.names.subject(key));
        self.in_bucket(&bucket, "compact a key", || self.api.purge(stream, &subject, keep.get().into())).await
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let buckets = std::mem::take(&mut *self.buckets.lock().unwrap_or_else(PoisonError::into_inner));
        for bucket in buckets.into_values() {
            if let Some(feed) = bucket.running_feed() {
                feed.end(End::Closed);
            }
        }
        *self.pages.lock().unwrap_or_else(PoisonError::into_inner) = PageSnapshots::default();
    }
}

fn capabilities(options: &NatsOptions, payload_bytes_max: usize) -> Capabilities {
    let payload_bytes_max = u32::try_from(payload_bytes_max).unwrap_or(u32::MAX);
    Capabilities {
        batch_bytes_max: BATCH_BYTES_MAX,
        value_bytes_max: payload_bytes_max.saturating_sub(MESSAGE_OVERHEAD).max(1),
        ttl_resolution: TTL_RESOLUTION,
        synced_commits: options.servers_sync,
        reads_own_writes: options.reads != Reads::Any,
        linearizable_reads: false,
        expired_history: false,
        snapshot_scans: options.scans == Scans::Cached,
        complete_feed: false,
        persistent: options.storage == Storage::File,
        sole_writer: false,
        ..Capabilities::complete("nats")
    }
}

impl Drop for NatsEngine {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[async_trait]
impl Engine for NatsEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.background.run(self.shared.create_bucket(bucket, config)).await
    }

    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.background.run(self.shared.update_bucket(bucket, config)).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError> {
        self.background.run(self.shared.delete_bucket(bucket)).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError> {
        self.background
            .run(async {
                let (bucket, last) = self.shared.look(bucket).await?;
                let listed = self.shared.last_listed(&bucket, last).await?;
                let info = self.shared.describe(&bucket, last).await?;
                Ok(BucketInfo { last_revision: Revision::new(listed), ..info })
            })
            .await
    }

    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.background.run(self.shared.buckets()).await
    }

    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError> {
        self.background.run(self.shared.commit(bucket, batch)).await
    }

    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError> {
        self.background.run(self.shared.read(bucket, key, at, self.shared.options.reads)).await
    }

    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError> {
        self.background.run(self.shared.history(bucket, key)).await
    }

    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError> {
        self.background.run(self.shared.scan(bucket, query)).await
    }

    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError> {
        self.background.run(self.shared.count(bucket, selection)).await
    }

    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError> {
        self.background.run(self.shared.watch(&self.background, bucket, query)).await
    }

    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError> {
        self.background.run(self.shared.compact_key(bucket, key, keep)).await
    }

    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.background.run(self.shared.create_consumer(bucket, consumer, start)).await
    }

    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError> {
        self.background.run(self.shared.consumers(bucket)).await
    }

    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError> {
        self.background.run(self.shared.consumer(bucket, consumer)).await
    }

    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError> {
        self.background.run(self.shared.acknowledge(bucket, consumer, revision)).await
    }

    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError> {
        self.background.run(self.shared.reset_consumer(bucket, consumer, start)).await
    }

    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError> {
        self.background.run(self.shared.delete_consumer(bucket, consumer)).await
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.shared.close();
        Ok(())
    }
}
