use std::sync::Arc;
use std::time::Duration;

use pleach_contract::{Contract, StoreKind};
use pleach_engine::{BucketConfig, BucketName, Capabilities, Clock, Engine, EngineError, InvalidName};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::DynamicStore;
use super::typed::{MapStore, ValueStore};
use super::{Principal, StateAdmin, StateContract, StateError, VALUE_BYTES_MAX};
use crate::{Contracts, Guarded};

/// The bucket with the entries of all principals.
pub const STATE_BUCKET: &str = "pleach_state";

/// How long the feed of the bucket keeps changes at least. Short, since what was erased is in it until then.
const FEED_TIME: Duration = Duration::from_secs(60 * 60);

/// The state of all principals in a store: a handle, cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    /// The way in for sessions.
    pub(super) engine: Guarded,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bucket: BucketName,
}

impl State {
    /// The state in the store behind a guarded engine; its bucket is made if need be.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn open(engine: &Guarded) -> Result<Self, StateError> {
        let (engine, clock) = (engine.for_state(), Arc::clone(&engine.shared().clock));
        let bucket = name(STATE_BUCKET)?;
        let config = config(engine.capabilities());
        ensure(&engine, &bucket, config).await?;
        Ok(Self { shared: Arc::new(Shared { engine, clock, bucket }) })
    }

    /// The stores that a contract declares, ready for sessions. The store must have accepted the contract: it is in force,
    /// or it was and what it writes is still accepted, as while a new version is rolled out.
    ///
    /// # Errors
    /// [`StateError::Authority`] if the contract was never accepted here, is not in force yet, or is outdated.
    pub async fn contract(&self, contract: &Contract) -> Result<StateContract, StateError> {
        let engine = &self.shared.engine;
        Contracts::of(engine).bind_state(contract).await?;
        StateContract::new(contract, &engine.shared().validators)
    }

    /// A session of a principal that was authenticated, under a contract.
    pub fn session(&self, principal: Principal, contract: &StateContract) -> Session {
        Session { state: self.clone(), principal, contract: contract.clone() }
    }

    /// The way in for administrators; every act of theirs is recorded with who acts and why.
    ///
    /// # Errors
    /// [`StateError::NotAccountable`] if either is left empty, or what the engine could not do.
    pub async fn admin(&self, who: &str, why: &str) -> Result<StateAdmin, StateError> {
        StateAdmin::open(self.clone(), who, why).await
    }
}

/// A principal under a contract: reaches its own entries in the stores that the contract declares, and nothing else.
#[derive(Clone, Debug)]
pub struct Session {
    state: State,
    principal: Principal,
    contract: StateContract,
}

impl Session {
    /// Whose session it is.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The contract it is under.
    pub fn contract(&self) -> &StateContract {
        &self.contract
    }

    /// A store of any kind, by its name, with JSON values: for doors, and programs that learn of stores when they run.
    ///
    /// # Errors
    /// [`StateError::UndeclaredStore`].
    pub fn store(&self, name: &str) -> Result<DynamicStore, StateError> {
        let compiled = self.contract.store(name)?;
        Ok(DynamicStore::new(self.state.clone(), &self.principal, self.contract.id(), compiled))
    }

    /// A store of one value.
    ///
    /// # Errors
    /// [`StateError::UndeclaredStore`], or [`StateError::WrongKind`] if it is a map.
    pub fn value<T: Serialize + DeserializeOwned>(&self, name: &str) -> Result<ValueStore<T>, StateError> {
        let store = self.store(name)?;
        store.require(StoreKind::Value)?;
        Ok(ValueStore::new(store))
    }

    /// A map of values under keys.
    ///
    /// # Errors
    /// [`StateError::UndeclaredStore`], or [`StateError::WrongKind`] if it holds one value.
    pub fn map<T: Serialize + DeserializeOwned>(&self, name: &str) -> Result<MapStore<T>, StateError> {
        let store = self.store(name)?;
        store.require(StoreKind::Map)?;
        Ok(MapStore::new(store))
    }
}

/// Finds a bucket, or makes it. One that is there keeps its configuration: an operator may have changed it.
pub(super) async fn ensure(
    engine: &dyn Engine,
    bucket: &BucketName,
    config: BucketConfig,
) -> Result<(), EngineError> {
    match engine.bucket(bucket).await {
        Ok(_) => return Ok(()),
        Err(EngineError::BucketNotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    match engine.create_bucket(bucket, config).await {
        // Someone else was faster, with a configuration of their own.
        Ok(_) | Err(EngineError::BucketExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(super) fn name(text: &str) -> Result<BucketName, StateError> {
    let bug = |error: InvalidName| EngineError::Bug { what: format!("{text} cannot be a bucket: {error}") };
    Ok(BucketName::parse(text).map_err(bug)?)
}

fn config(capabilities: &Capabilities) -> BucketConfig {
    let value_bytes_max = u32::try_from(VALUE_BYTES_MAX).unwrap_or(u32::MAX);
    BucketConfig { value_bytes_max, feed_time: Some(FEED_TIME), ..BucketConfig::plain(capabilities) }
}
