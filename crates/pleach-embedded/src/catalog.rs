use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::{BufMut, Bytes};
use pleach_engine::{BucketConfig, BucketInfo, BucketName, EngineError, Revision, Timestamp};

use crate::consumers::Consumers;
use crate::feed::{Feed, Logged};
use crate::log::{BucketId, BucketSummary, take, take_u64};

/// One life of a bucket, from its creation to its deletion.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) id: BucketId,
    pub(crate) name: BucketName,
    pub(crate) created: Timestamp,
    pub(crate) created_at: Revision,
    pub(crate) feed: Feed,
    pub(crate) consumers: Consumers,
    config: RwLock<Configured>,
    /// Goes up with every change of `config`.
    config_changes: AtomicU64,
    last: AtomicU64,
    /// The newest change that was cleaned out of the log.
    dropped: AtomicU64,
    /// The newest revision at which a key was forgotten with all its records.
    forgotten: AtomicU64,
    deleted: AtomicBool,
}

/// A bucket's configuration, and where in the log it comes from.
#[derive(Debug)]
struct Configured {
    config: Arc<BucketConfig>,
    /// The revision that gave it.
    at: Revision,
    /// The revisions that changed how much history is kept: what the records between them leave behind
    /// depends on each.
    history_changes: Vec<Revision>,
}

impl Bucket {
    pub(crate) fn new(
        id: BucketId,
        name: BucketName,
        config: BucketConfig,
        created_at: Revision,
        created: Timestamp,
    ) -> Self {
        Self {
            id,
            name,
            created,
            created_at,
            feed: Feed::new(created_at.next()),
            consumers: Consumers::default(),
            config: RwLock::new(Configured {
                config: Arc::new(config),
                at: created_at,
                history_changes: Vec::new(),
            }),
            config_changes: AtomicU64::new(0),
            last: AtomicU64::new(created_at.get()),
            dropped: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            deleted: AtomicBool::new(false),
        }
    }

    pub(crate) fn config(&self) -> Arc<BucketConfig> {
        Arc::clone(&self.configured().config)
    }

    /// Gives it the configuration that the log has at `revision`.
    pub(crate) fn set_config(&self, config: BucketConfig, revision: Revision) {
        let mut configured = self.config.write().unwrap_or_else(PoisonError::into_inner);
        if configured.config.history != config.history {
            configured.history_changes.push(revision);
        }
        (configured.config, configured.at) = (Arc::new(config), revision);
        self.config_changes.fetch_add(1, Ordering::AcqRel);
    }

    /// How often its configuration was changed: whoever has seen this number need not ask for it again.
    pub(crate) fn config_changes(&self) -> u64 {
        self.config_changes.load(Ordering::Acquire)
    }

    /// Whether the record at `revision`, which gave it a configuration, still matters.
    pub(crate) fn is_configured_by(&self, revision: Revision) -> bool {
        let configured = self.configured();
        configured.at == revision || configured.history_changes.contains(&revision)
    }

    fn configured(&self) -> std::sync::RwLockReadGuard<'_, Configured> {
        self.config.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its newest record.
    pub(crate) fn last(&self) -> Revision {
        Revision::new(self.last.load(Ordering::Acquire))
    }

    pub(crate) fn set_last(&self, revision: Revision) {
        self.last.store(revision.get(), Ordering::Release);
    }

    /// Notes that `logged`, if it is a commit to this bucket, is what readers see by now.
    pub(crate) fn advance(&self, logged: &Logged) {
        let newest = logged.records.iter().rev().find(|(_, record)| record.kind.op().is_some());
        if let Some((_, record)) = newest {
            self.set_last(record.revision);
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    pub(crate) fn not_found(&self) -> EngineError {
        EngineError::BucketNotFound { bucket: self.name.clone() }
    }

    /// The oldest revision a watch can start from.
    pub(crate) fn feed_floor(&self) -> Revision {
        let dropped = self.dropped.load(Ordering::Acquire);
        if dropped == 0 { self.created_at } else { self.created_at.max(Revision::new(dropped).next()) }
    }

    /// Says that changes up to `revision` may be missing from the log.
    pub(crate) fn raise_floor(&self, revision: Revision) {
        self.dropped.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// The newest revision at which a key was forgotten with all its records.
    pub(crate) fn forgotten(&self) -> Revision {
        Revision::new(self.forgotten.load(Ordering::Acquire))
    }

    pub(crate) fn forget_at(&self, revision: Revision) {
        self.forgotten.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// Takes up what a segment says about it, which may no longer be in its records.
    pub(crate) fn take_up(&self, summary: &BucketSummary) {
        self.last.fetch_max(summary.last.get(), Ordering::AcqRel);
        self.raise_floor(summary.dropped);
        self.forget_at(summary.forgotten);
    }

    /// Describes it.
    pub(crate) fn info(&self) -> BucketInfo {
        BucketInfo {
            name: self.name.clone(),
            config: (*self.config()).clone(),
            created: self.created,
            last_revision: self.last(),
            feed_floor: self.feed_floor(),
            watches: self.feed.watches(),
        }
    }

    /// Its state as the index keeps it.
    pub(crate) fn encode(&self) -> Result<Bytes, EngineError> {
        let mut bytes = Vec::new();
        bytes.put_u64_le(self.id.0.into());
        bytes.put_u64_le(self.created_at.get());
        bytes.put_u64_le(self.created.as_micros());
        bytes.put_u64_le(self.last().get());
        bytes.put_u64_le(self.forgotten().get());
        let configured = self.configured();
        bytes.put_u64_le(configured.at.get());
        bytes.put_u64_le(configured.history_changes.len() as u64);
        configured.history_changes.iter().for_each(|revision| bytes.put_u64_le(revision.get()));
        bytes.extend(encode_config(&configured.config)?);
        Ok(bytes.into())
    }

    /// Reads what [`Bucket::encode`] wrote under the key of `name`; none means damage.
    pub(crate) fn decode(name: &[u8], mut bytes: Bytes) -> Option<Self> {
        let name = BucketName::parse(std::str::from_utf8(name).ok()?).ok()?;
        let id = BucketId(u32::try_from(take_u64(&mut bytes)?).ok()?);
        let created_at = Revision::new(take_u64(&mut bytes)?);
        let created = Timestamp::from_micros(take_u64(&mut bytes)?);
        let last = Revision::new(take_u64(&mut bytes)?);
        // Nothing comes after the last revision there is, so no bucket begins with it.
        created_at.get().checked_add(1)?;
        let forgotten = Revision::new(take_u64(&mut bytes)?);
        let at = Revision::new(take_u64(&mut bytes)?);
        let changes = (0..take_u64(&mut bytes)?).map(|_| take_u64(&mut bytes).map(Revision::new));
        let history_changes = changes.collect::<Option<Vec<_>>>()?;
        let len = bytes.len();
        let config = Arc::new(decode_config(&take(&mut bytes, len)?)?);
        let mut bucket = Self::new(id, name, (*config).clone(), created_at, created);
        bucket.config = RwLock::new(Configured { config, at, history_changes });
        bucket.set_last(last);
        bucket.forget_at(forgotten);
        Some(bucket)
    }
}

/// A configuration as the log and the index keep it.
pub(crate) fn encode_config(config: &BucketConfig) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(config).map_err(|error| EngineError::Bug { what: error.to_string() })
}

/// Reads what [`encode_config`] wrote; none means damage.
pub(crate) fn decode_config(bytes: &[u8]) -> Option<BucketConfig> {
    serde_json::from_slice(bytes).ok()
}

/// The buckets there are.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    buckets: RwLock<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    by_name: BTreeMap<BucketName, Arc<Bucket>>,
    by_id: HashMap<BucketId, Arc<Bucket>>,
    next: BucketId,
}

impl Catalog {
    /// The buckets, and the number for the next one.
    pub(crate) fn new(buckets: Vec<Arc<Bucket>>, next: BucketId) -> Self {
        let by_id = buckets.iter().map(|bucket| (bucket.id, Arc::clone(bucket))).collect();
        let by_name = buckets.into_iter().map(|bucket| (bucket.name.clone(), bucket)).collect();
        Self { buckets: RwLock::new(Buckets { by_name, by_id, next }) }
    }

    /// # Errors
    /// `BucketNotFound`.
    pub(crate) fn get(&self, name: &BucketName) -> Result<Arc<Bucket>, EngineError> {
        self.find(name).ok_or_else(|| EngineError::BucketNotFound { bucket: name.clone() })
    }

    pub(crate) fn find(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.lock_read().by_name.get(name).cloned()
    }

    pub(crate) fn by_id(&self, id: BucketId) -> Option<Arc<Bucket>> {
        self.lock_read().by_id.get(&id).cloned()
    }

    /// Every bucket, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Bucket>> {
        self.lock_read().by_name.values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock_read().by_name.len()
    }

    /// The number for the next bucket.
    pub(crate) fn next_id(&self) -> BucketId {
        self.lock_read().next
    }

    /// Says that numbers below `next` have been used.
    pub(crate) fn raise_next_id(&self, next: BucketId) {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        buckets.next = buckets.next.max(next);
    }

    pub(crate) fn add(&self, bucket: Arc<Bucket>) {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        buckets.next = buckets.next.max(BucketId(bucket.id.0.saturating_add(1)));
        buckets.by_id.insert(bucket.id, Arc::clone(&bucket));
        buckets.by_name.insert(bucket.name.clone(), bucket);
    }

    /// Takes a bucket out and marks it as deleted.
    pub(crate) fn remove(&self, bucket: &Bucket) {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        buckets.by_id.remove(&bucket.id);
        buckets.by_name.remove(&bucket.name);
        bucket.deleted.store(true, Ordering::Release);
    }

    fn lock_read(&self) -> std::sync::RwLockReadGuard<'_, Buckets> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner)
    }
}
