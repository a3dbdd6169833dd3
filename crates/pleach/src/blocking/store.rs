#[cfg(feature = "embedded")]
use std::path::Path;
use std::sync::Arc;

use pleach_contract::Contract;
use pleach_engine::{BucketConfig, BucketInfo, Capabilities, Clock, Engine, Timestamp};

use super::{Bucket, Contracts, Service, block_on};
use crate::{Error, IntoBucketName, IntoStoreUrl, OpenOptions, Origin};

/// The blocking form of [`Store`](crate::Store). Start here.
#[derive(Clone, Debug)]
pub struct Store {
    store: crate::Store,
}

impl Store {
    /// See [`Store::open`](crate::Store::open).
    #[cfg(feature = "embedded")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        block_on(crate::Store::open(path)).map(Self::from)
    }

    /// See [`Store::open_with`](crate::Store::open_with).
    #[cfg(feature = "embedded")]
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        block_on(crate::Store::open_with(path, options)).map(Self::from)
    }

    /// See [`Store::in_memory`](crate::Store::in_memory).
    pub fn in_memory() -> Self {
        crate::Store::in_memory().into()
    }

    /// See [`Store::in_memory_with`](crate::Store::in_memory_with).
    pub fn in_memory_with(clock: Arc<dyn Clock>) -> Self {
        crate::Store::in_memory_with(clock).into()
    }

    /// See [`Store::connect`](crate::Store::connect).
    pub fn connect(url: impl IntoStoreUrl) -> Result<Self, Error> {
        block_on(crate::Store::connect(url)).map(Self::from)
    }

    /// See [`Store::connect_with`](crate::Store::connect_with).
    pub fn connect_with(url: impl IntoStoreUrl, options: OpenOptions) -> Result<Self, Error> {
        block_on(crate::Store::connect_with(url, options)).map(Self::from)
    }

    /// See [`Store::connect_nats`](crate::Store::connect_nats).
    #[cfg(feature = "nats")]
    pub fn connect_nats(options: crate::nats::NatsOptions) -> Result<Self, Error> {
        block_on(crate::Store::connect_nats(options)).map(Self::from)
    }

    /// See [`Store::create_replica`](crate::Store::create_replica).
    #[cfg(feature = "nats")]
    pub fn create_replica(&self, bucket: impl IntoBucketName, stream: &str) -> Result<(), Error> {
        block_on(self.store.create_replica(bucket, stream))
    }

    /// See [`Store::with_connection_origin`](crate::Store::with_connection_origin).
    #[cfg(feature = "nats")]
    pub fn with_connection_origin(&self, address: crate::OriginAddress) -> Result<Self, Error> {
        self.store.with_connection_origin(address).map(Self::from)
    }

    /// See [`Store::with_engine`](crate::Store::with_engine).
    pub fn with_engine(engine: Arc<dyn Engine>) -> Self {
        crate::Store::with_engine(engine).into()
    }

    /// See [`Store::with_engine_and_clock`](crate::Store::with_engine_and_clock).
    pub fn with_engine_and_clock(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        crate::Store::with_engine_and_clock(engine, clock).into()
    }

    /// See [`Store::with_origin`](crate::Store::with_origin).
    pub fn with_origin(&self, origin: &Origin) -> Result<Self, Error> {
        self.store.with_origin(origin).map(Self::from)
    }

    /// See [`Store::contracts`](crate::Store::contracts).
    pub fn contracts(&self) -> Contracts {
        self.store.contracts().into()
    }

    /// See [`Store::service`](crate::Store::service).
    pub fn service(&self, contract: &Contract) -> Result<Service, Error> {
        block_on(self.store.service(contract)).map(Service::from)
    }

    /// See [`Store::break_glass`](crate::Store::break_glass).
    pub fn break_glass(&self, who: &str, why: &str) -> Result<Self, Error> {
        self.store.break_glass(who, why).map(Self::from)
    }

    /// See [`Store::for_copies`](crate::Store::for_copies).
    #[must_use]
    pub fn for_copies(&self) -> Self {
        self.store.for_copies().into()
    }

    /// See [`Store::bucket`](crate::Store::bucket).
    pub fn bucket(&self, name: impl IntoBucketName) -> Result<Bucket, Error> {
        block_on(self.store.bucket(name)).map(Bucket::from)
    }

    /// See [`Store::create_bucket`](crate::Store::create_bucket).
    pub fn create_bucket(&self, name: impl IntoBucketName) -> Result<Bucket, Error> {
        block_on(self.store.create_bucket(name)).map(Bucket::from)
    }

    /// See [`Store::create_bucket_with`](crate::Store::create_bucket_with).
    pub fn create_bucket_with(
        &self,
        name: impl IntoBucketName,
        config: BucketConfig,
    ) -> Result<Bucket, Error> {
        block_on(self.store.create_bucket_with(name, config)).map(Bucket::from)
    }

    /// See [`Store::update_bucket`](crate::Store::update_bucket).
    pub fn update_bucket(
        &self,
        name: impl IntoBucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, Error> {
        block_on(self.store.update_bucket(name, config))
    }

    /// See [`Store::delete_bucket`](crate::Store::delete_bucket).
    pub fn delete_bucket(&self, name: impl IntoBucketName) -> Result<(), Error> {
        block_on(self.store.delete_bucket(name))
    }

    /// See [`Store::buckets`](crate::Store::buckets).
    pub fn buckets(&self) -> Result<Vec<BucketInfo>, Error> {
        block_on(self.store.buckets())
    }

    /// See [`Store::capabilities`](crate::Store::capabilities).
    pub fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    /// See [`Store::now`](crate::Store::now).
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// See [`Store::status`](crate::Store::status).
    #[cfg(feature = "embedded")]
    pub fn status(&self) -> Result<crate::status::Status, Error> {
        block_on(self.store.status())
    }

    /// See [`Store::close`](crate::Store::close).
    pub fn close(&self) -> Result<(), Error> {
        block_on(self.store.close())
    }

    /// The async form of the same store.
    pub fn as_async(&self) -> &crate::Store {
        &self.store
    }
}

impl From<crate::Store> for Store {
    fn from(store: crate::Store) -> Self {
        Self { store }
    }
}
