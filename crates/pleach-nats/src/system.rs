use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use pleach_engine::{
    Batch, BucketConfig, BucketName, CommitError, EngineError, Expectation, Key, Operation, Revision,
};

use crate::bucket::Bucket;
use crate::config;
use crate::engine::Shared;
use crate::error::number;
use crate::names::Names;
use crate::runtime::pause;

/// The bucket in which a store keeps what it must know of its buckets, also of those that are gone.
const SYSTEM_BUCKET: &str = "_pleach";

/// How often to look whether servers have agreed on a new bucket.
const AGREE_EVERY: Duration = Duration::from_millis(20);

/// What is remembered of a bucket's name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// The newest revision of the bucket of this name that was deleted last: its namesake must go on after it.
    #[serde(default)]
    revision: u64,
    /// The configuration of the bucket that is there, should another client lose that of its stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<BucketConfig>,
    /// What tells that bucket from its namesakes.
    #[serde(default)]
    identity: u64,
}

/// The store's own records.
impl Shared {
    pub(crate) fn check_name(&self, name: &BucketName) -> Result<(), EngineError> {
        if name.as_str() == SYSTEM_BUCKET {
            return Err(EngineError::Refused {
                action: format!("use {name} as a bucket"),
                reason: "the store keeps its own records there".to_owned(),
            });
        }
        Ok(())
    }

    /// The bucket of the store's own records, which is made when it is first needed.
    pub(crate) async fn system(&self) -> Result<Arc<Bucket>, EngineError> {
        let name = system_bucket()?;
        match self.bucket(&name).await {
            Err(EngineError::BucketNotFound { .. }) => {}
            found => return found,
        }
        let names = Names::new(&self.options, &name);
        let stream = config::new_stream(&names, &BucketConfig::plain(&self.capabilities), &self.options, 2);
        match self.patiently(|| self.api.create(&names.stream, &stream)).await {
            Ok(_) => {}
            Err(error) if error.is(number::NAME_IN_USE) => {}
            Err(error) => return Err(error.refused("create the bucket of the store's own records")),
        }
        // Servers of a cluster agree on what is there, and take a moment for it.
        let started = self.clock.elapsed();
        loop {
            match self.look(&name).await {
                Err(EngineError::BucketNotFound { .. })
                    if self.clock.elapsed().saturating_sub(started) < self.options.patience =>
                {
                    pause(AGREE_EVERY).await;
                }
                found => return found.map(|(bucket, _)| bucket),
            }
        }
    }

    /// The newest revision of the last bucket of this name that was deleted.
    pub(crate) async fn lineage(&self, name: &BucketName) -> Result<u64, EngineError> {
        let system = self.system().await?;
        Ok(self.remembered(&system, name).await?.0.revision)
    }

    /// The configuration that a bucket was given, if it was given one by us.
    pub(crate) async fn remembered_config(
        &self,
        name: &BucketName,
        identity: u64,
    ) -> Result<Option<BucketConfig>, EngineError> {
        let system = match self.bucket(&system_bucket()?).await {
            Ok(system) => system,
            Err(EngineError::BucketNotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (remembered, _) = self.remembered(&system, name).await?;
        Ok(remembered.config.filter(|_| remembered.identity == identity))
    }

    /// What is remembered of a bucket's name, and since when.
    pub(crate) async fn remembered(
        &self,
        system: &Bucket,
        name: &BucketName,
    ) -> Result<(Remembered, Option<Revision>), EngineError> {
        let key = system_key(&format!("bucket.{name}"))?;
        let record = self.newest_at_leader(system, &key).await?;
        let Some(change) = record.and_then(|record| record.into_change(&system.names)) else {
            return Ok((Remembered::default(), None));
        };
        let remembered = serde_json::from_slice(&change.entry.value).unwrap_or_default();
        Ok((remembered, Some(change.entry.revision)))
    }

    /// Remembers the configuration of a bucket that is there.
    pub(crate) async fn remember(
        &self,
        name: &BucketName,
        identity: u64,
        config: &BucketConfig,
    ) -> Result<(), EngineError> {
        let change = |remembered: &mut Remembered| {
            (remembered.identity, remembered.config) = (identity, Some(config.clone()));
        };
        self.change_remembered(name, change).await
    }

    /// Remembers the last revision of a bucket that is about to go. What is remembered of a namesake stays.
    pub(crate) async fn remember_end(
        &self,
        name: &BucketName,
        identity: u64,
        revision: u64,
    ) -> Result<(), EngineError> {
        let change = |remembered: &mut Remembered| {
            remembered.revision = remembered.revision.max(revision);
            if remembered.identity == identity {
                (remembered.identity, remembered.config) = (0, None);
            }
        };
        self.change_remembered(name, change).await
    }

    async fn change_remembered(
        &self,
        name: &BucketName,
        change: impl Fn(&mut Remembered),
    ) -> Result<(), EngineError> {
        let system = self.system().await?;
        loop {
            let (mut remembered, seen) = self.remembered(&system, name).await?;
            change(&mut remembered);
            let value = serde_json::to_vec(&remembered).map_err(|error| bug(&error))?;
            let put = Operation::put(system_key(&format!("bucket.{name}"))?, value);
            let put = put.expecting(seen.map_or(Expectation::Absent, Expectation::Revision));
            match self.commit_to(&system, Batch::from(put)).await {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Engine(error)) => return Err(error),
            }
        }
    }
}

fn system_bucket() -> Result<BucketName, EngineError> {
    BucketName::parse(SYSTEM_BUCKET).map_err(|error| bug(&error))
}

/// A key of the store's own records.
pub(crate) fn system_key(text: &str) -> Result<Key, EngineError> {
    Key::parse_reserved(text).map_err(|error| bug(&error))
}

pub(crate) fn bug(what: &dyn std::fmt::Display) -> EngineError {
    EngineError::Bug { what: what.to_string() }
}
