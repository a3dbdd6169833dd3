use std::io::BufRead;

use anyhow::{Context as _, ensure};
use pleach::stores::{Arrival, ContractRecords, OWNER_METADATA, OwnerState, TransferLine};
use pleach::{BucketConfig, BucketName, Capabilities, EngineError, Error, ErrorKind, Store};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::ImportArgs;
use super::lines::Lines;
use crate::failure::Problem;
use crate::record::JSON_VERSION;

/// The contracts at the beginning of an export, and what becomes of them.
#[derive(Debug)]
pub(super) struct Restored {
    store: Store,
    records: ContractRecords,
    /// The entries alone are imported.
    is_without: bool,
}

/// What tells a record about contracts from the rest.
#[derive(Debug, Deserialize)]
struct MaybeSystem {
    system: Option<IgnoredAny>,
}

impl Restored {
    /// Reads the records about contracts, and leaves the input at the line after them.
    pub(super) fn read<R: BufRead>(
        lines: &mut Lines<R>,
        store: &Store,
        is_without: bool,
    ) -> anyhow::Result<Self> {
        let mut found = Vec::new();
        while let Some(text) = lines.peek()? {
            let is_ours = serde_json::from_slice::<MaybeSystem>(text).is_ok_and(|line| line.system.is_some());
            if !is_ours {
                break;
            }
            let line = parse(text).with_context(|| format!("line {} cannot be imported", lines.number()));
            let bad =
                || Problem::invalid("the contracts in the input cannot be read").help("export them again");
            found.push(line.with_context(bad)?);
            lines.take();
        }
        let records = match found.is_empty() {
            true => ContractRecords::default(),
            false => ContractRecords::from_lines(found).map_err(Error::Contract)?,
        };
        Ok(Self { store: store.clone(), records, is_without })
    }

    /// Whether there is nothing to restore.
    fn is_nothing(&self) -> bool {
        self.is_without || self.records.is_empty()
    }

    /// How many contracts are restored.
    pub(super) fn count(&self) -> usize {
        if self.is_without { 0 } else { self.records.lineages.len() }
    }

    /// Refuses what cannot be restored, before anything is written.
    pub(super) async fn check(&self, args: &ImportArgs) -> anyhow::Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        let contracts = self.store.contracts();
        if contracts.can_take(&self.records).await.map_err(Error::Contract)? == Arrival::Done {
            return Ok(());
        }
        if !args.create_buckets {
            let problem = Problem::invalid("the input has contracts, which are restored with their buckets");
            let help = "add --create-buckets, or import the entries alone with --without-contracts";
            return Err(problem.help(help).into());
        }
        for (bucket, owner) in self.records.buckets() {
            let name = BucketName::parse(bucket)?;
            let there = contracts.owner(&name).await.map_err(Error::Contract)?;
            let is_begun = there.as_ref().is_some_and(|there| there.state == OwnerState::Arriving);
            let is_done = there.as_ref() == Some(owner);
            if is_done || args.resume && is_begun || !self.has(&name).await? {
                continue;
            }
            let help = match is_begun {
                true => format!("delete it with `pleach kv bucket rm {name}`, and import again"),
                false => {
                    "import into a store without it, or the entries alone with --without-contracts".into()
                }
            };
            let message = format!("bucket {name} is there already, and the input has its contract");
            return Err(Problem::new(ErrorKind::Conflict, message).help(help).into());
        }
        Ok(())
    }

    async fn has(&self, bucket: &BucketName) -> Result<bool, Error> {
        match self.store.bucket(bucket).await {
            Ok(_) => Ok(true),
            Err(Error::Engine(EngineError::BucketNotFound { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reserves the buckets.
    pub(super) async fn hold(&self) -> Result<(), Error> {
        match self.is_nothing() {
            true => Ok(()),
            false => Ok(self.store.contracts().hold(&self.records).await?),
        }
    }

    /// Puts the contracts in force, once everything is imported.
    pub(super) async fn put_in_force(&self) -> Result<(), Error> {
        if !self.is_nothing() {
            self.store.contracts().put_records(&self.records, async || Ok(true)).await?;
        }
        Ok(())
    }

    /// Gives back what was reserved and is not there yet: nothing was imported.
    pub(super) async fn give_up(&self) {
        if self.is_nothing() {
            return;
        }
        for (bucket, _) in self.records.buckets() {
            let Ok(name) = BucketName::parse(bucket) else { continue };
            if matches!(self.has(&name).await, Ok(false)) {
                // What stays reserved is taken up by the next import.
                let _ = self.store.delete_bucket(&name).await;
            }
        }
    }

    /// The configuration of a bucket that is created.
    pub(super) fn config_of(
        &self,
        bucket: &BucketName,
        mut config: BucketConfig,
        can: &Capabilities,
    ) -> BucketConfig {
        if self.is_without {
            config.metadata.remove(OWNER_METADATA);
            return config;
        }
        self.records.config_of(bucket.as_str(), config, can)
    }
}

fn parse(text: &[u8]) -> anyhow::Result<TransferLine> {
    let mut object: Value = serde_json::from_slice(text)?;
    let version = object.as_object_mut().and_then(|object| object.remove("v"));
    ensure!(
        version.as_ref().and_then(Value::as_u64) == Some(JSON_VERSION),
        "its version is not known; this program reads {JSON_VERSION}"
    );
    Ok(serde_json::from_value(object)?)
}
