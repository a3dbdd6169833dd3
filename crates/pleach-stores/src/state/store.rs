use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pleach_contract::{ContractId, StoreKind};
use pleach_engine::{
    At, Batch, CommitError, Committed, Engine as _, EngineError, Entry, Expectation, Expiry, Key, Operation,
};
use serde_json::Value;

use super::address::Namespace;
use super::contract::{CompiledStore, Judged};
use super::entry::{DeleteOutcome, GetOutcome, PutOutcome, StateEntry};
use super::{Principal, State, StateError, StateRevision};

/// The longest key, in UTF-8 bytes; that of a view counts in full.
pub const KEY_BYTES_MAX: usize = 512;

/// The largest value, in bytes of compact JSON.
pub const VALUE_BYTES_MAX: usize = 65_536;

/// The longest TTL: ten years.
pub const TTL_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The shortest TTL, where the engine keeps none shorter.
const TTL_MIN: Duration = Duration::from_millis(1);

/// How often a write looks again at what got in its way. Each time someone else's write has succeeded.
const ATTEMPTS_MAX: usize = 1000;

/// What a put expects of the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: it is created or written over.
    #[default]
    Anything,
    /// That there is none.
    Absent,
    /// That it is the one of this revision.
    Revision(StateRevision),
}

/// How to put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// What must be there.
    pub expect: Expect,
    /// How long the entry lives; none is for ever, whatever it was before.
    pub ttl: Option<Duration>,
}

/// How to delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Deletes only the entry of this revision.
    pub expect: Option<StateRevision>,
}

/// A store of a session, with JSON values and keys that may or may not be there.
#[derive(Clone, Debug)]
pub struct DynamicStore {
    pub(super) state: State,
    pub(super) compiled: Arc<CompiledStore>,
    pub(super) namespace: Namespace,
}

impl DynamicStore {
    pub(super) fn new(
        state: State,
        principal: &Principal,
        contract: &ContractId,
        compiled: Arc<CompiledStore>,
    ) -> Self {
        let namespace = Namespace::new(principal, contract, &compiled.name);
        Self { state, compiled, namespace }
    }

    /// Its name in the contract.
    pub fn name(&self) -> &str {
        &self.compiled.name
    }

    /// Whether it holds one value or many.
    pub fn kind(&self) -> StoreKind {
        self.compiled.kind
    }

    /// Reads an entry; a value store takes no key, a map needs one.
    ///
    /// # Errors
    /// A key against the rules, or an entry that cannot be read.
    pub async fn get(&self, key: Option<&str>) -> Result<GetOutcome<Value>, StateError> {
        let Some(entry) = self.read(&self.key(key)?).await? else { return Ok(GetOutcome::Absent) };
        Ok(match self.compiled.judge(&entry, key.map(str::to_owned))? {
            Judged::Current(entry) => GetOutcome::Found(entry),
            Judged::Old(migration) => GetOutcome::MigrationRequired(migration),
        })
    }

    /// Writes an entry, if what `options` expect holds.
    ///
    /// # Errors
    /// A key, value or TTL against the rules, in that order; nothing was written then.
    pub async fn put(
        &self,
        key: Option<&str>,
        value: Value,
        options: PutOptions,
    ) -> Result<PutOutcome<Value>, StateError> {
        let stored = self.key(key)?;
        let bytes = self.compiled.check(&value)?;
        let expiry = self.expiry(options.ttl)?;
        let write = Write { raw: key, key: stored, value, bytes, expiry };
        match options.expect {
            Expect::Revision(revision) => self.replace(write, revision).await,
            Expect::Anything => self.create(write, Expectation::Any).await,
            Expect::Absent => self.create(write, Expectation::Absent).await,
        }
    }

    /// [`DynamicStore::put`] of a value as text. Whether it is JSON is looked at before anything else.
    ///
    /// # Errors
    /// [`StateError::NotJson`], or those of [`DynamicStore::put`].
    pub async fn put_json(
        &self,
        key: Option<&str>,
        json: &[u8],
        options: PutOptions,
    ) -> Result<PutOutcome<Value>, StateError> {
        let value = pleach_contract::parse_json_strict(json);
        let value = value.map_err(|error| StateError::NotJson { reason: error.to_string() })?;
        self.put(key, value, options).await
    }

    /// Deletes an entry, if it is the expected one, whether it can be read or not.
    ///
    /// # Errors
    /// A key against the rules.
    pub async fn delete(
        &self,
        key: Option<&str>,
        options: DeleteOptions,
    ) -> Result<DeleteOutcome, StateError> {
        let stored = self.key(key)?;
        for _ in 0..ATTEMPTS_MAX {
            let Some(entry) = self.read(&stored).await? else { return Ok(DeleteOutcome::NotDeleted) };
            if options.expect.is_some_and(|expected| expected != StateRevision(entry.revision)) {
                return Ok(DeleteOutcome::NotDeleted);
            }
            let expect = Expectation::Revision(entry.revision);
            let committed = self.commit(key, Operation::delete(stored.clone()).expecting(expect)).await?;
            if committed.is_some() {
                return Ok(DeleteOutcome::Deleted);
            }
        }
        Err(self.contended(key))
    }

    /// That it is of this kind.
    pub(super) fn require(&self, wanted: StoreKind) -> Result<(), StateError> {
        let found = self.kind();
        if found == wanted {
            return Ok(());
        }
        Err(StateError::WrongKind { store: self.name().to_owned(), found, wanted })
    }

    /// Puts a value over the entry of `revision`, which goes on to expire when it would have.
    pub(super) async fn put_over(
        &self,
        old: &StateEntry<Value>,
        value: Value,
    ) -> Result<PutOutcome<Value>, StateError> {
        let raw = old.key.as_deref();
        let (key, bytes) = (self.key(raw)?, self.compiled.check(&value)?);
        let expiry = old.expires_at.map_or(Expiry::Bucket, Expiry::At);
        self.replace(Write { raw, key, value, bytes, expiry }, old.revision).await
    }

    /// Writes where nothing or anything is expected: the commit itself tells which row of the table holds.
    async fn create(&self, write: Write<'_>, expect: Expectation) -> Result<PutOutcome<Value>, StateError> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(committed) = self.commit(write.raw, write.operation(expect, self)).await? {
                return Ok(write.applied(committed));
            }
            // If what was in the way has gone by now, there is nothing to show, and nothing in the way.
            if let Some(entry) = self.read(&write.key).await? {
                return self.in_the_way(&entry, write.raw);
            }
        }
        Err(self.contended(write.raw))
    }

    /// Writes where a revision is expected. It is looked at first: for the engine the revision of a marker is one too,
    /// and a deleted entry is absent whoever knows its marker.
    async fn replace(
        &self,
        write: Write<'_>,
        revision: StateRevision,
    ) -> Result<PutOutcome<Value>, StateError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(entry) = self.read(&write.key).await? else { return Ok(PutOutcome::Absent) };
            if StateRevision(entry.revision) != revision {
                return self.in_the_way(&entry, write.raw);
            }
            let expect = Expectation::Revision(entry.revision);
            if let Some(committed) = self.commit(write.raw, write.operation(expect, self)).await? {
                return Ok(write.applied(committed));
            }
        }
        Err(self.contended(write.raw))
    }

    fn in_the_way(&self, entry: &Entry, raw: Option<&str>) -> Result<PutOutcome<Value>, StateError> {
        Ok(match self.compiled.judge(entry, raw.map(str::to_owned))? {
            Judged::Current(entry) => PutOutcome::Present(entry),
            Judged::Old(migration) => PutOutcome::MigrationRequired(migration),
        })
    }

    /// The stored key of an entry, if the store has such a key.
    fn key(&self, raw: Option<&str>) -> Result<Key, StateError> {
        let store = || self.name().to_owned();
        match (self.kind(), raw) {
            (StoreKind::Value, None) => {}
            (StoreKind::Value, Some(_)) => return Err(StateError::KeyNotTaken { store: store() }),
            (StoreKind::Map, None | Some("")) => return Err(StateError::KeyMissing { store: store() }),
            (StoreKind::Map, Some(raw)) if raw.len() > KEY_BYTES_MAX => {
                return Err(StateError::KeyTooLong { bytes: raw.len(), limit: KEY_BYTES_MAX });
            }
            (StoreKind::Map, Some(_)) => {}
        }
        self.namespace.key(raw)
    }

    fn expiry(&self, ttl: Option<Duration>) -> Result<Expiry, StateError> {
        let Some(ttl) = ttl else { return Ok(Expiry::Bucket) };
        let min = TTL_MIN.max(self.state.shared.engine.capabilities().ttl_resolution);
        if ttl < min || ttl > TTL_MAX {
            return Err(StateError::TtlOutOfRange { ttl, min, max: TTL_MAX });
        }
        Ok(Expiry::After(ttl))
    }

    async fn read(&self, key: &Key) -> Result<Option<Entry>, StateError> {
        let shared = &self.state.shared;
        Ok(shared.engine.read(&shared.bucket, key, At::Latest).await?)
    }

    /// Commits an operation on the entry `raw`; none if what it expects does not hold. The guard checks it by the contracts
    /// in force, unless that is the session's own, which has checked it already.
    async fn commit(&self, raw: Option<&str>, operation: Operation) -> Result<Option<Committed>, StateError> {
        let shared = &self.state.shared;
        let (batch, checked) = (Batch::from(operation), Some(&self.compiled.digest));
        match shared.engine.commit_checked(&shared.bucket, batch, checked).await {
            Ok(committed) => Ok(Some(committed)),
            Err(CommitError::Conflict(_)) => Ok(None),
            Err(CommitError::Engine(EngineError::BrokenContract { lineage, reason, .. })) => {
                Err(StateError::NotInForce { place: self.compiled.place(raw), lineage, reason })
            }
            Err(CommitError::Engine(error)) => Err(error.into()),
        }
    }

    fn contended(&self, key: Option<&str>) -> StateError {
        StateError::Contended { place: self.compiled.place(key), attempts: ATTEMPTS_MAX }
    }
}

/// A put that passed every check.
struct Write<'a> {
    raw: Option<&'a str>,
    key: Key,
    value: Value,
    bytes: Bytes,
    expiry: Expiry,
}

impl Write<'_> {
    fn operation(&self, expect: Expectation, store: &DynamicStore) -> Operation {
        let put = Operation::put(self.key.clone(), self.bytes.clone()).expecting(expect);
        put.expiring(self.expiry).with_headers(store.compiled.headers.clone())
    }

    /// The caller's own entry, whatever others have written since.
    fn applied(self, committed: Committed) -> PutOutcome<Value> {
        PutOutcome::Applied(StateEntry {
            key: self.raw.map(str::to_owned),
            value: self.value,
            revision: StateRevision(committed.last),
            updated_at: committed.time,
            expires_at: self.expiry.moment(committed.time),
        })
    }
}
