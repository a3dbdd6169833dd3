use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pleach_contract::Contract;
use pleach_engine::{
    At, BucketConfig, BucketInfo, BucketName, Capabilities, Clock, Engine, EngineError, Entry, Headers, Key,
    MemoryEngine, Reads, SystemClock, Timestamp,
};
use pleach_stores::{BindOptions, Contracts, Guarded, Keeper, Service};

use crate::origin::Source;

#[cfg(not(feature = "embedded"))]
use crate::url::InvalidUrl;
use crate::{Bucket, Error, IntoBucketName, IntoStoreUrl, OpenOptions, Origin, StoreUrl};

/// A store: a set of buckets on one engine. Start here.
///
/// It is a handle, cheap to clone; all clones are the same store. The store closes when the last handle on
/// it and its buckets is gone, or with [`Store::close`], which also reports what went wrong.
#[derive(Clone)]
pub struct Store {
    engine: Arc<Guarded>,
    clock: Arc<dyn Clock>,
    /// Added to every entry written through this handle.
    pub(crate) origin: Source,
    /// The engine once more, if it is one that tells how it is doing.
    #[cfg(feature = "embedded")]
    embedded: Option<Arc<pleach_embedded::EmbeddedEngine>>,
    /// The engine once more, if it is one that has servers to choose from.
    #[cfg(feature = "nats")]
    pub(crate) nats: Option<Arc<pleach_nats::NatsEngine>>,
}

impl Store {
    /// Opens the store in a directory, and creates both if need be.
    ///
    /// # Errors
    /// If the directory holds something else, is in use, or cannot be read or written.
    #[cfg(feature = "embedded")]
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, OpenOptions::default()).await
    }

    /// [`Store::open`], with options.
    ///
    /// # Errors
    /// Those of [`Store::open`], and if there is no store and none shall be created.
    #[cfg(feature = "embedded")]
    pub async fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        Self::open_file(path.as_ref(), options).await
    }

    /// Makes an empty store in the memory of this process.
    pub fn in_memory() -> Self {
        Self::in_memory_with(Arc::new(SystemClock::new()))
    }

    /// Makes an empty store in the memory of this process that takes the time from `clock`.
    pub fn in_memory_with(clock: Arc<dyn Clock>) -> Self {
        Self::with_engine_and_clock(Arc::new(MemoryEngine::with_clock(Arc::clone(&clock))), clock)
    }

    /// Opens the store that `url` names: `file:PATH`, `mem:`, or with the feature `nats` one on NATS servers, such as
    /// `nats://one,two,three?replicas=3`.
    ///
    /// # Errors
    /// [`Error::Url`] for any other, or why the engine could not open it.
    pub async fn connect(url: impl IntoStoreUrl) -> Result<Self, Error> {
        Self::connect_with(url, OpenOptions::default()).await
    }

    /// [`Store::connect`], with options.
    ///
    /// # Errors
    /// Those of [`Store::connect`], and if there is no store and none shall be created.
    pub async fn connect_with(url: impl IntoStoreUrl, options: OpenOptions) -> Result<Self, Error> {
        match url.into_store_url()? {
            StoreUrl::Memory => Ok(Self::in_memory_with(options.clock)),
            StoreUrl::File(path) => Self::open_file(&path, options).await,
            #[cfg(feature = "nats")]
            StoreUrl::Nats(url) => Self::connect_nats_with(url.options().clone(), options.clock).await,
        }
    }

    /// A store on any engine, with the clock of the machine.
    pub fn with_engine(engine: Arc<dyn Engine>) -> Self {
        Self::with_engine_and_clock(engine, Arc::new(SystemClock::new()))
    }

    /// A store on any engine, with the clock that the engine has.
    pub fn with_engine_and_clock(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine: Arc::new(Guarded::new(engine, Arc::clone(&clock))),
            clock,
            origin: Source::Fixed(Headers::new()),
            #[cfg(feature = "embedded")]
            embedded: None,
            #[cfg(feature = "nats")]
            nats: None,
        }
    }

    /// The same store, with `origin` in the headers of whatever is written through its buckets and services. State, which
    /// belongs to users and devices, carries none.
    ///
    /// # Errors
    /// [`Error::Header`] if a part of `origin` cannot be a header.
    pub fn with_origin(&self, origin: &Origin) -> Result<Self, Error> {
        Ok(Self { origin: Source::Fixed(origin.headers()?), ..self.clone() })
    }

    /// The contracts of this store: what a new one would do to it, and the way there.
    pub fn contracts(&self) -> Contracts {
        Contracts::of(&self.engine)
    }

    /// The resources of the contract that the code was written for, with types: it must be in force here, or have been
    /// and still be accepted.
    ///
    /// ```
    /// use pleach::contract::{Contract, Notation};
    /// use pleach::Store;
    /// use pleach::stores::{ApplyOptions, PlanOptions, Read};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Note { text: String }
    ///
    /// # pollster::block_on(async {
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
    ///     notes: {purpose: All notes, schema: {schema: Note}, keyspaces: {note: {key: "u.{user}.{number:uint(4)}"}}}
    /// "#;
    /// let contract = Contract::parse(text.as_bytes(), Notation::Yaml)?.contract;
    /// let store = Store::in_memory();
    /// let plan = store.contracts().plan(&contract, PlanOptions::default()).await?;
    /// store.contracts().apply(&plan, ApplyOptions::by("ann")).await?;
    ///
    /// let notes = store.service(&contract).await?.kv("notes")?.keyspace::<Note>("note")?;
    /// notes.create(&["ann".into(), 1_u64.into()], &Note { text: "milk".into() }).await?;
    /// match notes.get("u.ann.0001").await? {
    ///     Some(Read::Current(note)) => assert_eq!(note.value.text, "milk"),
    ///     Some(Read::MigrationRequired(old)) => panic!("it is of version {}", old.version),
    ///     None => panic!("it was created"),
    /// }
    /// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// If it is not, or what the engine could not do.
    pub async fn service(&self, contract: &Contract) -> Result<Service, Error> {
        let options = BindOptions { mark: self.origin.mark() };
        Ok(Service::bind_with(&self.engine, contract, options).await?)
    }

    /// The same store, past the guards of its contracts: what is done through it to a bucket that a contract owns is
    /// not refused but recorded, with who and why. The records are [`Contracts::broken_glass`].
    ///
    /// # Errors
    /// If it is not said who or why.
    pub fn break_glass(&self, who: &str, why: &str) -> Result<Self, Error> {
        Ok(Self { engine: Arc::new(self.engine.break_glass(who, why)?), ..self.clone() })
    }

    /// The same store for copies of whole buckets, as [`migrate`](crate::migrate), an export and an import make them: what users
    /// and devices have stored is read and written as it is, which is refused through other handles. Contracts are kept all
    /// the same.
    #[must_use]
    pub fn for_copies(&self) -> Self {
        Self { engine: Arc::new(self.engine.for_copies()), ..self.clone() }
    }

    /// Finds a bucket.
    ///
    /// # Errors
    /// `BucketNotFound`, `StoreOwned` for what users and devices have stored, or what the engine could not do.
    pub async fn bucket(&self, name: impl IntoBucketName) -> Result<Bucket, Error> {
        let name = name.into_bucket_name()?;
        self.engine.may_read(&name)?;
        let info = self.engine.bucket(&name).await?;
        Ok(Bucket::new(self.clone(), info.name))
    }

    /// Creates a bucket with the plainest configuration its engine can keep, or finds it there with it.
    ///
    /// # Errors
    /// `BucketExists` if it is there with another configuration, or what the engine could not do.
    pub async fn create_bucket(&self, name: impl IntoBucketName) -> Result<Bucket, Error> {
        self.create_bucket_with(name, BucketConfig::plain(self.engine.capabilities())).await
    }

    /// Creates a bucket, or finds it there with this very configuration.
    ///
    /// # Errors
    /// `BucketExists` if it is there with another configuration, or what the engine could not do.
    pub async fn create_bucket_with(
        &self,
        name: impl IntoBucketName,
        config: BucketConfig,
    ) -> Result<Bucket, Error> {
        let info = self.engine.create_bucket(&name.into_bucket_name()?, config).await?;
        Ok(Bucket::new(self.clone(), info.name))
    }

    /// Gives a bucket another configuration, which holds at once for everything in it.
    ///
    /// # Errors
    /// `BucketNotFound`, or what the engine could not do.
    pub async fn update_bucket(
        &self,
        name: impl IntoBucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, Error> {
        Ok(self.engine.update_bucket(&name.into_bucket_name()?, config).await?)
    }

    /// Deletes a bucket with everything in it.
    ///
    /// # Errors
    /// `BucketNotFound`, or what the engine could not do.
    pub async fn delete_bucket(&self, name: impl IntoBucketName) -> Result<(), Error> {
        Ok(self.engine.delete_bucket(&name.into_bucket_name()?).await?)
    }

    /// Describes every bucket, by name.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn buckets(&self) -> Result<Vec<BucketInfo>, Error> {
        Ok(self.engine.buckets().await?)
    }

    /// What works on this store's engine.
    pub fn capabilities(&self) -> &Capabilities {
        self.engine.capabilities()
    }

    /// The time, by this store's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How the store is doing: times, sizes, what waits and why, and what is used most. Also of one that was closed.
    ///
    /// # Errors
    /// `Unsupported` if the store is not in a directory that this handle opened.
    #[cfg(feature = "embedded")]
    pub async fn status(&self) -> Result<crate::status::Status, Error> {
        let Some(engine) = self.embedded.clone() else {
            return Err(EngineError::Unsupported { what: "status" }.into());
        };
        Ok(::blocking::unblock(move || engine.status()).await)
    }

    /// Finishes what was acknowledged and lets go of everything; other calls then say `Closed`.
    ///
    /// # Errors
    /// What the engine could not finish.
    pub async fn close(&self) -> Result<(), Error> {
        Ok(self.engine.close().await?)
    }

    /// The same store for a part of the library that keeps records of its own under reserved keys.
    pub(crate) fn keeping(&self, keeper: Keeper) -> Self {
        Self { engine: Arc::new(self.engine.keeping(keeper)), ..self.clone() }
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    pub(crate) fn guarded(&self) -> &Guarded {
        &self.engine
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn origin(&self) -> &Source {
        &self.origin
    }

    /// Reads a key with another promise than the store's own, if its engine can keep that.
    pub(crate) async fn read_with(
        &self,
        bucket: &BucketName,
        key: &Key,
        reads: Reads,
    ) -> Result<Option<Entry>, EngineError> {
        self.engine.may_read(bucket)?;
        #[cfg(feature = "nats")]
        if let Some(nats) = &self.nats {
            return nats.read_with(bucket, key, reads).await;
        }
        let can = self.capabilities();
        let is_kept = match reads {
            Reads::Any => true,
            Reads::OwnWrites => can.reads_own_writes,
            Reads::AtLeast(_) | Reads::Leader => can.linearizable_reads,
        };
        if !is_kept {
            return Err(EngineError::Unsupported { what: "reads that promise more than its own" });
        }
        if let Reads::AtLeast(revision) = reads {
            // Nothing is behind, so only a revision that nobody can have seen is refused.
            let then = self.engine.read(bucket, key, At::Revision(revision)).await;
            if let Err(error @ EngineError::FutureRevision { .. }) = then {
                return Err(error);
            }
        }
        self.engine.read(bucket, key, At::Latest).await
    }

    #[cfg(feature = "embedded")]
    async fn open_file(path: &Path, options: OpenOptions) -> Result<Self, Error> {
        let clock = Arc::clone(&options.clock);
        let engine = crate::embedded::open(path.to_owned(), options).await?;
        let embedded = Some(Arc::clone(&engine));
        Ok(Self { embedded, ..Self::with_engine_and_clock(engine, clock) })
    }

    #[cfg(not(feature = "embedded"))]
    async fn open_file(_path: &Path, _options: OpenOptions) -> Result<Self, Error> {
        Err(Error::Url(InvalidUrl::UnknownScheme { scheme: "file".into() }))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("engine", &self.capabilities().engine).finish_non_exhaustive()
    }
}
