use std::sync::Arc;

use pleach_contract::Digest;
use pleach_engine::{Action, Batch, BucketName, EngineError, Key, Operation, Revision, Timestamp};

use crate::binding::Unstamped;
use crate::compiled::{CompiledKeyspace, CompiledResource, Misfit};
use crate::envelope::Envelope;

/// What refuses writes to a bucket that a contract owns.
#[derive(Debug)]
pub(crate) struct Guard {
    bucket: BucketName,
    lineage: String,
    rule: Rule,
}

/// What a bucket takes.
#[derive(Debug)]
pub(crate) enum Rule {
    /// What keeps the contract in force and those that are about to be, as far as there are any.
    Checked { in_force: Option<Arc<CompiledResource>>, claims: Vec<Upcoming>, unstamped: Option<Unstamped> },
    /// Nothing: it was set aside.
    SetAside,
    /// Copies from another store, as they are, and nothing else.
    Arriving,
    /// Nothing, since nobody can say what: a record about it is damaged.
    Damaged { key: Key, revision: Revision, what: String },
}

/// A contract that is about to be in force.
#[derive(Debug)]
pub(crate) struct Upcoming {
    /// None if the contract no longer has the resource.
    pub(crate) resource: Option<Arc<CompiledResource>>,
    /// Until when it holds; none if it was accepted.
    pub(crate) until: Option<Timestamp>,
}

impl Upcoming {
    fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// What writes have to keep now.
struct Demands<'g> {
    /// Asks for a version and a time to live, too.
    in_force: Option<&'g CompiledResource>,
    /// Only look at what is written.
    claims: Vec<&'g CompiledResource>,
}

impl Guard {
    pub(crate) fn new(bucket: BucketName, lineage: String, rule: Rule) -> Self {
        Self { bucket, lineage, rule }
    }

    /// Whether the bucket is owned. One that was only about to be and whose claim has run out is not.
    pub(crate) fn stands(&self, now: Timestamp) -> bool {
        match &self.rule {
            Rule::Checked { in_force: None, claims, .. } => claims.iter().any(|claim| claim.holds(now)),
            Rule::Checked { .. } | Rule::SetAside | Rule::Arriving | Rule::Damaged { .. } => true,
        }
    }

    /// Whether the bucket is being copied from another store.
    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self.rule, Rule::Arriving)
    }

    /// Refuses to do `action` to the bucket by hand.
    pub(crate) fn refuse(&self, action: &'static str) -> EngineError {
        match &self.rule {
            Rule::Damaged { key, revision, what } => EngineError::DamagedRecord {
                bucket: crate::naming::system_bucket(),
                key: key.clone(),
                revision: *revision,
                what: what.clone(),
            },
            Rule::Arriving => EngineError::Arriving { bucket: self.bucket.clone(), action },
            Rule::Checked { .. } | Rule::SetAside => EngineError::ContractOwned {
                bucket: self.bucket.clone(),
                owner: self.lineage.clone(),
                action,
            },
        }
    }

    /// Checks what is about to be written, and stamps what has no version yet. What was `checked` by the contract of some
    /// digest is not checked by it again.
    pub(crate) fn check(
        &self,
        mut batch: Batch,
        now: Timestamp,
        checked: Option<&Digest>,
    ) -> Result<Batch, EngineError> {
        let Rule::Checked { unstamped, .. } = &self.rule else {
            return Err(self.refuse("written to"));
        };
        let Demands { in_force, claims } = self.demands(now);
        let in_force = in_force.filter(|resource| checked != Some(resource.digest()));
        if in_force.is_none() && claims.is_empty() {
            return Ok(batch);
        }
        // What has a reserved key is no value of the contract: see `Keeper` for who writes it.
        for operation in batch.operations_mut().iter_mut().filter(|operation| !operation.key.is_reserved()) {
            if let Some(resource) = in_force {
                self.enforce(resource, operation, now)?;
            }
            for resource in &claims {
                self.inspect(resource, operation, unstamped.as_ref())?;
            }
        }
        Ok(batch)
    }

    /// Stamps what has no version yet, checking nothing: for writes past the guard, so that readers know what they find.
    pub(crate) fn stamp(&self, mut batch: Batch, now: Timestamp) -> Batch {
        let Some(resource) = self.demands(now).in_force else { return batch };
        for operation in batch.operations_mut().iter_mut().filter(|operation| !operation.key.is_reserved()) {
            let is_put = matches!(operation.action, Action::Put { .. });
            if let Ok(keyspace) = resource.keyspace_of(&operation.key)
                && is_put
            {
                // One whose headers have no room stays without.
                let _ = stamped(resource, keyspace, operation);
            }
        }
        batch
    }

    /// What writes have to keep now. In a bucket in which nothing is in force yet, the contract that was accepted for it
    /// counts as if it were: whoever reads once it is will find what is written before.
    fn demands(&self, now: Timestamp) -> Demands<'_> {
        let Rule::Checked { in_force, claims, .. } = &self.rule else {
            return Demands { in_force: None, claims: Vec::new() };
        };
        let held = claims.iter().filter(|claim| claim.holds(now));
        let (accepted, planned): (Vec<_>, Vec<_>) = held.partition(|claim| claim.until.is_none());
        let mut accepted = accepted.into_iter().filter_map(|claim| claim.resource.as_deref());
        let in_force = in_force.as_deref().or_else(|| accepted.next());
        let planned = planned.into_iter().filter_map(|claim| claim.resource.as_deref());
        Demands { in_force, claims: accepted.chain(planned).collect() }
    }

    /// What the contract in force asks for: a fitting key and value, a version, and no longer life than its keyspace
    /// grants. What asks for a longer one is not refused; it gets what there is.
    fn enforce(
        &self,
        resource: &CompiledResource,
        operation: &mut Operation,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if !matches!(operation.action, Action::Put { .. }) {
            return Ok(());
        }
        let refused = |key: &Key, misfit: &dyn std::fmt::Display| self.broken(key, misfit);
        let keyspace =
            resource.keyspace_of(&operation.key).map_err(|misfit| refused(&operation.key, &misfit))?;
        stamped(resource, keyspace, operation).map_err(|error| refused(&operation.key, &error))?;
        let version = operation.headers.get(Envelope::VERSION).unwrap_or_default().to_owned();
        if let Action::Put { value, expiry } = &mut operation.action {
            keyspace.check(&version, value).map_err(|misfit| self.broken(&operation.key, &misfit))?;
            *expiry = keyspace.granted(*expiry, now);
        }
        Ok(())
    }

    /// What a contract that is not yet in force asks for.
    fn inspect(
        &self,
        resource: &CompiledResource,
        operation: &Operation,
        unstamped: Option<&Unstamped>,
    ) -> Result<(), EngineError> {
        let Action::Put { value, .. } = &operation.action else { return Ok(()) };
        let check = |keyspace: &CompiledKeyspace| -> Result<(), Misfit> {
            let version = version_of(operation.headers.get(Envelope::VERSION), keyspace, unstamped);
            keyspace.check(version, value).map(drop)
        };
        let checked = resource.keyspace_of(&operation.key).and_then(check);
        checked.map_err(|misfit| {
            self.broken(
                &operation.key,
                &format_args!("{misfit} (by the version of it that is about to be applied)"),
            )
        })
    }

    fn broken(&self, key: &Key, reason: &dyn std::fmt::Display) -> EngineError {
        EngineError::BrokenContract {
            bucket: self.bucket.clone(),
            key: key.clone(),
            lineage: self.lineage.clone(),
            reason: reason.to_string(),
        }
    }
}

/// The version of an entry: its own, else what those without one have, else the current one.
pub(crate) fn version_of<'v>(
    stamped: Option<&'v str>,
    keyspace: &'v CompiledKeyspace,
    unstamped: Option<&'v Unstamped>,
) -> &'v str {
    let unstamped = || unstamped.map(|unstamped| unstamped.of(keyspace.name()));
    stamped.or_else(unstamped).unwrap_or(keyspace.version())
}

fn stamped(
    resource: &CompiledResource,
    keyspace: &CompiledKeyspace,
    operation: &mut Operation,
) -> Result<(), pleach_engine::InvalidHeader> {
    if operation.headers.get(Envelope::VERSION).is_some() {
        return Ok(());
    }
    operation.headers.set(Envelope::VERSION, keyspace.version())?;
    operation.headers.set(Envelope::WRITER, resource.digest().as_str())
}
