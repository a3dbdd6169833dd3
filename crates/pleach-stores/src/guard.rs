use std::sync::Arc;
use std::time::Duration;

use pleach_contract::Digest;
use pleach_engine::{Action, Batch, BucketName, EngineError, Expiry, Key, Operation, Revision, Timestamp};

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
    /// What keeps the contract in force and the one that is about to be, as far as there are both.
    Checked { in_force: Option<Arc<CompiledResource>>, claim: Option<Claimed>, unstamped: Option<String> },
    /// Nothing: it was set aside.
    SetAside,
    /// Nothing, since nobody can say what: a record about it is damaged.
    Damaged { key: Key, revision: Revision, what: String },
}

/// A contract that is about to be in force.
#[derive(Debug)]
pub(crate) struct Claimed {
    /// None if the contract no longer has the resource.
    pub(crate) resource: Option<Arc<CompiledResource>>,
    pub(crate) until: Option<Timestamp>,
}

impl Claimed {
    fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl Guard {
    pub(crate) fn new(bucket: BucketName, lineage: String, rule: Rule) -> Self {
        Self { bucket, lineage, rule }
    }

    /// Whether the bucket is owned. One that was only about to be and whose claim has run out is not.
    pub(crate) fn stands(&self, now: Timestamp) -> bool {
        match &self.rule {
            Rule::Checked { in_force: None, claim, .. } => {
                claim.as_ref().is_some_and(|claim| claim.holds(now))
            }
            Rule::Checked { .. } | Rule::SetAside | Rule::Damaged { .. } => true,
        }
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
        batch: Batch,
        now: Timestamp,
        checked: Option<&Digest>,
    ) -> Result<Batch, EngineError> {
        let Rule::Checked { in_force, claim, unstamped } = &self.rule else {
            return Err(self.refuse("written to"));
        };
        let claim = claim.as_ref().filter(|claim| claim.holds(now)).and_then(|claim| claim.resource.as_ref());
        let in_force = in_force.as_ref().filter(|resource| checked != Some(resource.digest()));
        if in_force.is_none() && claim.is_none() {
            return Ok(batch);
        }
        let mut operations = batch.into_operations();
        for operation in &mut operations {
            if let Some(resource) = in_force {
                self.enforce(resource, operation)?;
            }
            if let Some(resource) = claim {
                self.inspect(resource, operation, unstamped.as_deref())?;
            }
        }
        Ok(operations.into_iter().collect())
    }

    /// Stamps what has no version yet, checking nothing: for writes past the guard, so that readers know what they find.
    pub(crate) fn stamp(&self, batch: Batch) -> Batch {
        let Rule::Checked { in_force: Some(resource), .. } = &self.rule else { return batch };
        let mut operations = batch.into_operations();
        for operation in &mut operations {
            let is_put = matches!(operation.action, Action::Put { .. });
            if let Ok(keyspace) = resource.keyspace_of(&operation.key)
                && is_put
            {
                // One whose headers have no room stays without.
                let _ = stamped(resource, keyspace, operation);
            }
        }
        operations.into_iter().collect()
    }

    /// What the contract in force asks for: a fitting key and value, a version, and no longer life than it grants.
    fn enforce(&self, resource: &CompiledResource, operation: &mut Operation) -> Result<(), EngineError> {
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
            if let Some(ttl) = keyspace.ttl() {
                shorten(expiry, ttl);
            }
        }
        Ok(())
    }

    /// What a contract that is not yet in force asks for.
    fn inspect(
        &self,
        resource: &CompiledResource,
        operation: &Operation,
        unstamped: Option<&str>,
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
    unstamped: Option<&'v str>,
) -> &'v str {
    stamped.or(unstamped.filter(|version| keyspace.knows(version))).unwrap_or(keyspace.version())
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

fn shorten(expiry: &mut Expiry, ttl: Duration) {
    match expiry {
        Expiry::Bucket => *expiry = Expiry::After(ttl),
        Expiry::After(asked) => *asked = ttl.min(*asked),
        Expiry::At(_) => {}
    }
}
