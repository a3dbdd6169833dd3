use pleach_contract::Digest;
use pleach_engine::{BucketName, Committed, Key};
use pleach_stores::{KvBatch, KvError, KvWriteError, Read, RetainCursor, Retained};
use serde_json::Value;

use super::{Keyspace, block_on};

/// The blocking form of [`Service`](pleach_stores::Service).
///
/// ```
/// use pleach::blocking::Store;
/// use pleach::contract::{Contract, Notation};
/// use pleach::stores::{ApplyOptions, PlanOptions, Read};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Note { text: String }
///
/// let text = r#"
/// format: pleach.contract.v1
/// id: acme.notes@v1
/// kind: app
/// displayName: Notes
/// description: Notes of people
/// schemas:
///   Note: {type: object, properties: {text: {type: string}}, required: [text]}
/// resources:
///   kv:
///     notes:
///       purpose: All notes
///       schema: {schema: Note}
///       keyspaces: {note: {key: "u.{user}.{number:uint(4)}", access: {of: {given: [user], range: number}}}}
/// "#;
/// let contract = Contract::parse(text.as_bytes(), Notation::Yaml)?.contract;
/// let store = Store::in_memory();
/// let plan = store.contracts().plan(&contract, PlanOptions::default())?;
/// store.contracts().apply(&plan, ApplyOptions::by("ann"))?;
///
/// let notes = store.service(&contract)?.kv("notes")?.keyspace::<Note>("note")?;
/// notes.create(&["ann".into(), 1_u64.into()], &Note { text: "milk".into() })?;
/// for note in notes.query("of", &["ann".into()])?.entries {
///     match note? {
///         Read::Current(note) => println!("{}: {}", note.key, note.value.text),
///         Read::MigrationRequired(old) => println!("{} is of version {}", old.key, old.version),
///     }
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    service: pleach_stores::Service,
}

impl Service {
    /// See [`Service::kv`](pleach_stores::Service::kv).
    pub fn kv(&self, alias: &str) -> Result<KvStore, KvError> {
        self.service.kv(alias).map(KvStore::from)
    }

    /// See [`Service::find`](pleach_stores::Service::find).
    pub fn find(&self, alias: &str) -> Option<KvStore> {
        self.service.find(alias).map(KvStore::from)
    }

    /// See [`Service::aliases`](pleach_stores::Service::aliases).
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.service.aliases()
    }

    /// The async form of the same service.
    pub fn as_async(&self) -> &pleach_stores::Service {
        &self.service
    }
}

impl From<pleach_stores::Service> for Service {
    fn from(service: pleach_stores::Service) -> Self {
        Self { service }
    }
}

/// The blocking form of [`KvStore`](pleach_stores::KvStore).
#[derive(Clone, Debug)]
pub struct KvStore {
    store: pleach_stores::KvStore,
}

impl KvStore {
    /// See [`KvStore::alias`](pleach_stores::KvStore::alias).
    pub fn alias(&self) -> &str {
        self.store.alias()
    }

    /// See [`KvStore::bucket`](pleach_stores::KvStore::bucket).
    pub fn bucket(&self) -> &BucketName {
        self.store.bucket()
    }

    /// See [`KvStore::digest`](pleach_stores::KvStore::digest).
    pub fn digest(&self) -> &Digest {
        self.store.digest()
    }

    /// See [`KvStore::traced`](pleach_stores::KvStore::traced).
    pub fn traced(&self, id: &str) -> Result<Self, KvError> {
        self.store.traced(id).map(Self::from)
    }

    /// See [`KvStore::keyspace`](pleach_stores::KvStore::keyspace).
    pub fn keyspace<T>(&self, name: &str) -> Result<Keyspace<T>, KvError> {
        self.store.keyspace(name).map(Keyspace::from)
    }

    /// See [`KvStore::entries`](pleach_stores::KvStore::entries).
    pub fn entries<T>(&self) -> Result<Keyspace<T>, KvError> {
        self.store.entries().map(Keyspace::from)
    }

    /// See [`KvStore::keyspace_of`](pleach_stores::KvStore::keyspace_of).
    pub fn keyspace_of(&self, key: &Key) -> Result<Keyspace<Value>, KvError> {
        self.store.keyspace_of(key).map(Keyspace::from)
    }

    /// See [`KvStore::get`](pleach_stores::KvStore::get).
    pub fn get(&self, key: &Key) -> Result<Option<Read<Value>>, KvError> {
        block_on(self.store.get(key))
    }

    /// See [`KvStore::retain`](pleach_stores::KvStore::retain).
    pub fn retain(&self, from: Option<RetainCursor>) -> Result<Retained, KvError> {
        block_on(self.store.retain(from))
    }

    /// Commits the batch that `build` makes: `store.batch(|batch| batch.put(cases.as_async(), "a", &case))`.
    pub fn batch(&self, build: impl FnOnce(KvBatch) -> KvBatch) -> Result<Committed, KvWriteError> {
        block_on(build(self.store.batch()).commit())
    }

    /// The async form of the same resource.
    pub fn as_async(&self) -> &pleach_stores::KvStore {
        &self.store
    }
}

impl From<pleach_stores::KvStore> for KvStore {
    fn from(store: pleach_stores::KvStore) -> Self {
        Self { store }
    }
}
