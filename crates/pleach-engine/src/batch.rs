use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::bucket::check_ttl;
use crate::{
    BucketConfig, BucketName, Capabilities, Conflict, EngineError, Headers, Key, Op, Revision, Timestamp,
};

/// The most operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 1000;

/// The longest TTL: a hundred years.
pub const TTL_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The shortest TTL.
pub(crate) const TTL_MIN: Duration = Duration::from_millis(1);

/// What must be true of a key for its batch to be committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing.
    #[default]
    Any,
    /// It has no live value: it is missing, deleted, purged or expired.
    Absent,
    /// Its newest record, value or marker, is this one. An expired value is no longer any record.
    Revision(Revision),
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Absent => f.write_str("no value"),
            Self::Revision(revision) => write!(f, "revision {revision}"),
        }
    }
}

/// When a value shall be gone, whatever its bucket says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// When its bucket says.
    #[default]
    Bucket,
    /// This long after it was committed.
    After(Duration),
    /// At this moment. If that has passed, the value is never seen.
    At(Timestamp),
}

impl Expiry {
    /// The moment, for a value committed at `time`.
    pub fn moment(self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Bucket => None,
            Self::After(ttl) => Some(time.saturating_add(ttl)),
            Self::At(moment) => Some(moment),
        }
    }
}

/// What an operation does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives it a value.
    Put {
        /// The value.
        value: Bytes,
        /// When the value is gone.
        expiry: Expiry,
    },
    /// Leaves a marker, also if the key has no value.
    Delete,
    /// Leaves a marker and no history, also if the key has no value.
    Purge,
}

/// One part of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The key.
    pub key: Key,
    /// What must be true of the key.
    pub expect: Expectation,
    /// What is done to it.
    pub action: Action,
    /// What travels with the record.
    pub headers: Headers,
}

impl Operation {
    /// Gives `key` a value.
    pub fn put(key: Key, value: impl Into<Bytes>) -> Self {
        Self::new(key, Action::Put { value: value.into(), expiry: Expiry::Bucket })
    }

    /// Leaves a marker at `key`.
    pub fn delete(key: Key) -> Self {
        Self::new(key, Action::Delete)
    }

    /// Leaves a marker at `key`, and no history.
    pub fn purge(key: Key) -> Self {
        Self::new(key, Action::Purge)
    }

    /// The same, if `expect` holds.
    #[must_use]
    pub fn expecting(mut self, expect: Expectation) -> Self {
        self.expect = expect;
        self
    }

    /// The same, gone at `expiry`; only a put can be.
    #[must_use]
    pub fn expiring(mut self, until: Expiry) -> Self {
        if let Action::Put { expiry, .. } = &mut self.action {
            *expiry = until;
        }
        self
    }

    /// The same, with `headers`.
    #[must_use]
    pub fn with_headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// What it demands of its key.
    pub fn demand(&self) -> Demand<'_> {
        Demand { key: &self.key, expect: self.expect }
    }

    fn new(key: Key, action: Action) -> Self {
        Self { key, expect: Expectation::Any, action, headers: Headers::new() }
    }

    fn value_bytes(&self) -> usize {
        match &self.action {
            Action::Put { value, .. } => value.len(),
            Action::Delete | Action::Purge => 0,
        }
    }
}

/// Demands something of a key that its batch does not write. A check writes nothing itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    key: Key,
    expect: Expectation,
}

impl Check {
    /// Demands that `key` has no live value: it is missing, deleted, purged or expired.
    pub const fn absent(key: Key) -> Self {
        Self { key, expect: Expectation::Absent }
    }

    /// Demands that the newest record of `key`, value or marker, is the one at `revision`.
    pub const fn revision(key: Key, revision: Revision) -> Self {
        Self { key, expect: Expectation::Revision(revision) }
    }

    /// The key.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// What must be true of it: never [`Expectation::Any`].
    pub const fn expect(&self) -> Expectation {
        self.expect
    }

    /// The check as engines judge it.
    pub const fn demand(&self) -> Demand<'_> {
        Demand { key: &self.key, expect: self.expect }
    }
}

/// What an operation or a check demands of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand<'a> {
    /// The key.
    pub key: &'a Key,
    /// What must be true of it.
    pub expect: Expectation,
}

impl Demand<'_> {
    /// Whether the demand holds. `newest` is the key's newest record in `bucket`, value or marker; an expired value is
    /// none.
    ///
    /// # Errors
    /// The conflict, if it does not hold.
    pub fn judge(&self, bucket: &BucketName, newest: Option<(Revision, Op)>) -> Result<(), Conflict> {
        let holds = match self.expect {
            Expectation::Any => true,
            Expectation::Absent => newest.is_none_or(|(_, op)| !op.is_put()),
            Expectation::Revision(expected) => newest.is_some_and(|(revision, _)| revision == expected),
        };
        if holds {
            return Ok(());
        }
        // The same answer whether an expiry has been recorded yet or not.
        let actual = newest.filter(|(_, op)| *op != Op::Expire).map(|(revision, _)| revision);
        let (bucket, key) = (bucket.clone(), self.key.clone());
        Err(Conflict { bucket, key, expected: self.expect, actual })
    }
}

/// 1 to 1000 operations on different keys of one bucket, committed together or not at all.
///
/// A batch may also carry checks of keys that it does not write. Operations and checks together are at most 1000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    operations: Vec<Operation>,
    checks: Vec<Check>,
}

impl Batch {
    /// A batch without operations, which cannot be committed yet.
    pub const fn new() -> Self {
        Self { operations: Vec::new(), checks: Vec::new() }
    }

    /// Adds a put.
    #[must_use]
    pub fn put(self, key: Key, value: impl Into<Bytes>) -> Self {
        self.with(Operation::put(key, value))
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(self, key: Key) -> Self {
        self.with(Operation::delete(key))
    }

    /// Adds a purge.
    #[must_use]
    pub fn purge(self, key: Key) -> Self {
        self.with(Operation::purge(key))
    }

    /// Adds an operation.
    #[must_use]
    pub fn with(mut self, operation: Operation) -> Self {
        self.push(operation);
        self
    }

    /// Adds an operation.
    pub fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// Adds a check: nothing is committed unless it holds before the batch.
    #[must_use]
    pub fn checking(mut self, check: Check) -> Self {
        self.push_check(check);
        self
    }

    /// Adds a check: nothing is committed unless it holds before the batch.
    pub fn push_check(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// The operations, in the order in which their records get revisions.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations, to be changed in their places. The checks stay as they are.
    pub fn operations_mut(&mut self) -> &mut [Operation] {
        &mut self.operations
    }

    /// The checks.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Checks it for a bucket, before anything of it is written.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn check(
        self,
        bucket: &BucketName,
        config: &BucketConfig,
        capabilities: &Capabilities,
    ) -> Result<CheckedBatch, EngineError> {
        let Self { operations, checks } = self;
        let limit = capabilities.batch_operations_max;
        if operations.is_empty() {
            return Err(EngineError::BatchEmpty);
        }
        let parts = operations.len() + checks.len();
        if parts > limit {
            return Err(EngineError::BatchTooLong { operations: parts, limit });
        }
        let mut keys = HashSet::with_capacity(if parts > 1 { parts } else { 0 });
        let mut bytes = 0_usize;
        for operation in &operations {
            if parts > 1 && !keys.insert(&operation.key) {
                return Err(EngineError::DuplicateKey { key: operation.key.clone() });
            }
            if operation.value_bytes() > config.value_bytes_max as usize {
                return Err(EngineError::ValueTooLarge {
                    bucket: bucket.clone(),
                    key: operation.key.clone(),
                    bytes: operation.value_bytes(),
                    limit: config.value_bytes_max,
                });
            }
            if let Action::Put { expiry: Expiry::After(ttl), .. } = &operation.action {
                check_ttl(*ttl, capabilities)?;
            }
            bytes += operation.key.as_bytes().len() + operation.value_bytes() + operation.headers.bytes();
        }
        for check in &checks {
            if !keys.insert(&check.key) {
                return Err(EngineError::DuplicateKey { key: check.key.clone() });
            }
            bytes += check.key.as_bytes().len();
        }
        let limit = capabilities.batch_bytes_max;
        if bytes > limit {
            return Err(EngineError::BatchTooLarge { bytes, limit });
        }
        Ok(CheckedBatch { operations, checks, bytes })
    }
}

impl From<Operation> for Batch {
    fn from(operation: Operation) -> Self {
        Self { operations: vec![operation], checks: Vec::new() }
    }
}

impl FromIterator<Operation> for Batch {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        Self { operations: operations.into_iter().collect(), checks: Vec::new() }
    }
}

/// A batch that [`Batch::check`] has passed.
#[derive(Clone, Debug)]
pub struct CheckedBatch {
    operations: Vec<Operation>,
    checks: Vec<Check>,
    bytes: usize,
}

impl CheckedBatch {
    /// The operations; there is at least one, and no key twice.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What it demands of keys, in the order in which a conflict names them: first the operations, then the checks.
    pub fn demands(&self) -> impl Iterator<Item = Demand<'_>> {
        self.operations.iter().map(Operation::demand).chain(self.checks.iter().map(Check::demand))
    }

    /// The operations themselves, for an engine that has judged everything.
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// The operations and the checks themselves.
    pub fn into_parts(self) -> (Vec<Operation>, Vec<Check>) {
        (self.operations, self.checks)
    }

    /// The batch that was checked, to be checked again.
    pub fn into_batch(self) -> Batch {
        Batch { operations: self.operations, checks: self.checks }
    }

    /// What keys, values and headers take together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A batch that was committed. Operation `i` of it became the record at `first + i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of its first record.
    pub first: Revision,
    /// The revision of its last record.
    pub last: Revision,
    /// When it was committed.
    pub time: Timestamp,
}

#[cfg(test)]
mod tests;
