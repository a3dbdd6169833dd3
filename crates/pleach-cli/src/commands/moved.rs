use std::collections::BTreeMap;

use pleach::migrate::{ContractMove, MovedProjection, VerifiedContracts, move_projections};
use pleach::stores::{ContractRecords, Extent};
use pleach::{BucketName, Store};
use serde_json::{Value, json};

use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::text::counted;

/// What moves with buckets: the contracts that own them, and the positions of projections into them.
#[derive(Debug)]
pub(super) struct Moved {
    source: Store,
    target: Store,
    buckets: BTreeMap<BucketName, BucketName>,
    /// None if the entries are copied alone.
    contracts: Option<ContractMove>,
}

impl Moved {
    /// Looks at both sides, and writes nothing. `extent` is none if contracts stay behind.
    pub(super) async fn plan(
        source: &Store,
        target: &Store,
        extent: Option<Extent>,
        buckets: BTreeMap<BucketName, BucketName>,
    ) -> anyhow::Result<Self> {
        let contracts = match extent {
            Some(extent) => Some(ContractMove::plan(source, target, extent, buckets.clone()).await?),
            None => None,
        };
        Ok(Self { source: source.clone(), target: target.clone(), buckets, contracts })
    }

    pub(super) async fn print(&self, output: &mut Output) -> anyhow::Result<()> {
        let Some(contracts) = &self.contracts else { return self.print_left(output).await };
        let records = contracts.records();
        if records.is_empty() {
            return Ok(());
        }
        let object = json!({
            "v": JSON_VERSION, "event": "contracts", "lineages": lineages(records),
            "overrides": records.overrides.len(), "begun": if contracts.is_done() { "done" } else { "no" },
        });
        let mut text = Vec::new();
        for lineage in &records.lineages {
            let buckets = counted(lineage.buckets.len() as u64, "bucket", "buckets");
            let authority = &lineage.authority;
            let done = if contracts.is_done() { ", done before: only compared" } else { "" };
            text.push(format!(
                "contract {} version {} with {buckets}{done}",
                authority.lineage, authority.version
            ));
        }
        if !records.overrides.is_empty() {
            let acts = counted(records.overrides.len() as u64, "record", "records");
            text.push(format!("{acts} of what was done past the guards"));
        }
        output.confirm(&object, text.join("\n"))
    }

    /// Says which contracts stay behind.
    async fn print_left(&self, output: &mut Output) -> anyhow::Result<()> {
        let mut left = BTreeMap::new();
        for (from, to) in &self.buckets {
            let owner = self.source.contracts().owner(from).await?;
            if let Some(owner) = owner.filter(|owner| owner.digest.is_some()) {
                left.insert(to.to_string(), owner.lineage);
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let object = json!({ "v": JSON_VERSION, "event": "contracts_left", "buckets": left });
        let lines = left.iter().map(|(bucket, lineage)| {
            format!("{bucket} will belong to no contract in the target: {lineage} stays behind")
        });
        output.confirm(&object, lines.collect::<Vec<_>>().join("\n"))
    }

    /// Reserves the buckets of contracts in the target.
    pub(super) async fn begin(&self) -> anyhow::Result<()> {
        if let Some(contracts) = self.contracts.as_ref().filter(|contracts| !contracts.records().is_empty()) {
            contracts.begin().await?;
        }
        Ok(())
    }

    /// Completes the move after all buckets are complete.
    pub(super) async fn finish(self, output: &mut Output) -> anyhow::Result<()> {
        for projection in move_projections(&self.source, &self.target, &self.buckets).await? {
            print_projection(&projection, output)?;
        }
        let Some(contracts) = self.contracts.filter(|contracts| !contracts.records().is_empty()) else {
            return Ok(());
        };
        let names = contracts.records().lineages.iter().map(|one| one.authority.lineage.clone());
        let names: Vec<String> = names.collect();
        let verified = contracts.finish().await?;
        print_verified(&names, &verified, output)
    }
}

fn lineages(records: &ContractRecords) -> Vec<Value> {
    let object = |lineage: &pleach::stores::LineageRecords| {
        let authority = &lineage.authority;
        json!({
            "lineage": authority.lineage, "version": authority.version, "digest": authority.digest,
            "buckets": lineage.buckets.keys().collect::<Vec<_>>(), "decisions": lineage.decisions.len(),
        })
    };
    records.lineages.iter().map(object).collect()
}

fn print_projection(projection: &MovedProjection, output: &mut Output) -> anyhow::Result<()> {
    let MovedProjection { name, bucket, goes_on } = projection;
    let object = json!({
        "v": JSON_VERSION, "event": "projection", "projection": name, "target": bucket.as_str(),
        "goes_on": goes_on,
    });
    let what = if *goes_on { "goes on with the next change" } else { "begins anew in the target" };
    output.confirm(&object, format!("projection {name} into {bucket} {what}"))
}

fn print_verified(names: &[String], verified: &VerifiedContracts, output: &mut Output) -> anyhow::Result<()> {
    let VerifiedContracts { lineages, contracts, decisions, buckets, overrides, .. } = verified;
    let object = json!({
        "v": JSON_VERSION, "event": "migrated_contracts", "lineages": names, "contracts": contracts,
        "decisions": decisions, "buckets": buckets, "overrides": overrides,
        "source_sha256": verified.source_digest, "target_sha256": verified.target_digest,
    });
    let lines = [
        counted(*lineages as u64, "lineage", "lineages"),
        counted(*decisions as u64, "decision", "decisions"),
        counted(*buckets as u64, "owned bucket", "owned buckets"),
        counted(*overrides as u64, "override", "overrides"),
    ];
    let text = format!(
        "contracts: {} are the same on both sides, and in force in the target\n  sha256 {}",
        lines.join(", "),
        verified.target_digest
    );
    output.confirm(&object, text)?;
    output.flush()
}
