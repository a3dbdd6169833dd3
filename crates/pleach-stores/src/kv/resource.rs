use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pleach_contract::key::AccessPath;
use pleach_contract::{Access, Contract, Digest, Keyspace as Declared, Retention, Validators};
use pleach_engine::{
    Batch, BucketName, Capabilities, Clock, Committed, Engine, Entry, Expectation, Expiry, Headers,
    InvalidHeader, Key, Operation, Timestamp,
};
use serde_json::Value;

use super::error::{KvError, KvWriteError};
use super::read::{Old, Read, Typed};
use crate::{Binding, CompiledKeyspace, CompiledResource, Envelope, Guarded, Misfit, Unstamped};

/// What a write was for, if someone said so.
pub(super) type Trace = Option<Arc<str>>;

/// What resources stand on.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) engine: Arc<dyn Engine>,
    /// The engine again, if it is one that checks what is written: then nothing is checked twice.
    pub(crate) guarded: Option<Guarded>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What marks whatever is written.
    pub(crate) mark: Option<Mark>,
}

/// Adds headers to what is about to be written, such as who writes it.
pub type Mark = Arc<dyn Fn(&mut Operation) -> Result<(), InvalidHeader> + Send + Sync>;

/// A resource that is bound to its bucket: what all handles to it share.
pub(crate) struct Resource {
    ground: Ground,
    bucket: BucketName,
    unstamped: Option<Unstamped>,
    history: u64,
    ttl: Option<Duration>,
    compiled: CompiledResource,
    /// One for each keyspace of `compiled`, in its order.
    members: Vec<Member>,
    groups: BTreeMap<String, Vec<String>>,
}

/// What there is to a keyspace besides its keys and values.
#[derive(Debug)]
pub(super) struct Member {
    /// The envelope of what is written, without a trace id.
    stamp: Headers,
    /// How long its values live, if not as long as its bucket says.
    expiry: Expiry,
    accesses: BTreeMap<String, AccessDeclared>,
    pub(super) retention: Option<Retention>,
}

/// An access path with the most entries of a page.
#[derive(Debug)]
pub(super) struct AccessDeclared {
    pub(super) path: AccessPath,
    pub(super) limit: usize,
}

/// Checks a trace id.
pub(super) fn trace(id: &str) -> Result<Trace, KvError> {
    Headers::new().set(Envelope::TRACE, id)?;
    Ok(Some(id.into()))
}

impl Resource {
    pub(crate) fn new(
        ground: Ground,
        contract: &Contract,
        alias: &str,
        binding: Binding,
        validators: &Validators,
    ) -> Result<Self, KvError> {
        let compiled = CompiledResource::of(contract, alias, validators)
            .map_err(|problems| KvError::Schemas { alias: alias.to_owned(), problems })?;
        let (Some(compiled), Some(resource)) = (compiled, contract.resources.kv.get(alias)) else {
            let known = contract.resources.kv.keys().cloned().collect();
            return Err(KvError::UnknownResource { alias: alias.to_owned(), known });
        };
        let bucket = BucketName::parse(&binding.bucket).map_err(KvError::Bucket)?;
        let members = compiled.keyspaces().iter().map(|keyspace| {
            let declared = keyspace.name().and_then(|name| resource.keyspaces.get(name));
            Member::new(keyspace, declared, compiled.digest())
        });
        let members = members.collect::<Result<_, _>>()?;
        let groups = resource.atomic.iter().map(|(name, group)| (name.clone(), group.members.clone()));
        Ok(Self {
            ground,
            bucket,
            unstamped: binding.unstamped,
            history: resource.history,
            ttl: (resource.ttl_ms > 0).then(|| Duration::from_millis(resource.ttl_ms)),
            members,
            groups: groups.collect(),
            compiled,
        })
    }

    pub(super) fn alias(&self) -> &str {
        self.compiled.alias()
    }

    pub(super) fn bucket(&self) -> &BucketName {
        &self.bucket
    }

    pub(super) fn is_of_contract(&self, digest: &str) -> bool {
        self.compiled.is_of_contract(digest)
    }

    pub(super) fn digest(&self) -> &Digest {
        self.compiled.digest()
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &*self.ground.engine
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        self.ground.engine.capabilities()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.ground.clock.now()
    }

    pub(super) fn keyspaces(&self) -> &[CompiledKeyspace] {
        self.compiled.keyspaces()
    }

    pub(super) fn keyspace(&self, index: usize) -> &CompiledKeyspace {
        &self.compiled.keyspaces()[index]
    }

    pub(super) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    /// What people call a keyspace: its name, or that of a resource that declares none.
    pub(super) fn name(&self, index: usize) -> &str {
        self.keyspace(index).name().unwrap_or(self.alias())
    }

    /// Which keyspace has this name; none for that of a resource that declares none.
    pub(super) fn index_of(&self, name: Option<&str>) -> Result<usize, KvError> {
        let found = self.keyspaces().iter().position(|keyspace| keyspace.name() == name);
        found.ok_or_else(|| {
            let alias = self.alias().to_owned();
            let known =
                self.keyspaces().iter().filter_map(CompiledKeyspace::name).map(str::to_owned).collect();
            match name {
                Some(name) => KvError::UnknownKeyspace { alias, keyspace: name.to_owned(), known },
                None => KvError::HasKeyspaces { alias, known },
            }
        })
    }

    /// Which keyspace has this key.
    pub(super) fn index_of_key(&self, key: &Key) -> Result<usize, KvError> {
        let found = self.compiled.keyspace_of(key).map_err(KvError::NoKeyspace)?;
        self.index_of(found.name())
    }

    pub(super) fn access(&self, index: usize, name: &str) -> Result<&AccessDeclared, KvError> {
        let accesses = &self.members[index].accesses;
        accesses.get(name).ok_or_else(|| KvError::UnknownAccess {
            keyspace: self.name(index).to_owned(),
            access: name.to_owned(),
            known: accesses.keys().cloned().collect(),
        })
    }

    /// The put of a value that the contract allows.
    pub(super) fn put(
        &self,
        index: usize,
        key: Key,
        value: &Value,
        expect: Expectation,
        trace: &Trace,
    ) -> Result<Operation, KvError> {
        let keyspace = self.keyspace(index);
        if let Err(misfit) = keyspace.check_value(keyspace.version(), value) {
            return Err(KvError::Refused { bucket: self.bucket.clone(), key, misfit });
        }
        let member = &self.members[index];
        let mut headers = member.stamp.clone();
        if let Some(trace) = trace {
            headers.set(Envelope::TRACE, trace)?;
        }
        // What was checked is what is written, and not the same value written out once more.
        let value = match serde_json::to_vec(value) {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.not_encoded(key, &error)),
        };
        Ok(Operation::put(key, value).expecting(expect).expiring(member.expiry).with_headers(headers))
    }

    pub(super) fn not_encoded(&self, key: Key, error: &serde_json::Error) -> KvError {
        KvError::Encode { bucket: self.bucket.clone(), key, reason: error.to_string() }
    }

    /// When a value that takes the place of another is gone: when that would have been, unless the keyspace lets it go
    /// sooner.
    pub(super) fn inherited(&self, index: usize, expires: Option<Timestamp>) -> Expiry {
        let can = self.capabilities().expired_history || self.history == 1;
        let before = expires.filter(|_| can).map_or(Expiry::Bucket, Expiry::At);
        self.keyspace(index).granted(before, self.now())
    }

    /// When a value with this expiry that was committed at `time` is gone: no later than the bucket grants.
    pub(super) fn moment(&self, expiry: Expiry, time: Timestamp) -> Option<Timestamp> {
        let by_bucket = self.ttl.map(|ttl| time.saturating_add(ttl));
        [expiry.moment(time), by_bucket].into_iter().flatten().min()
    }

    pub(super) async fn commit(&self, mut batch: Batch) -> Result<Committed, KvWriteError> {
        if let Some(mark) = &self.ground.mark {
            batch
                .operations_mut()
                .iter_mut()
                .try_for_each(|operation| mark(operation))
                .map_err(KvError::from)?;
        }
        let committed = match &self.ground.guarded {
            Some(guarded) => guarded.commit_checked(&self.bucket, batch, Some(self.digest())).await,
            None => self.ground.engine.commit(&self.bucket, batch).await,
        };
        Ok(committed?)
    }

    /// Makes sure that some keyspaces may be written together.
    pub(super) fn check_atomic(&self, indexes: &BTreeSet<usize>) -> Result<(), KvError> {
        let names: Vec<&str> = indexes.iter().map(|index| self.name(*index)).collect();
        let has_all =
            |members: &Vec<String>| names.iter().all(|name| members.iter().any(|member| member == name));
        if names.len() < 2 || self.groups.values().any(has_all) {
            return Ok(());
        }
        let group = |(name, members): (&String, &Vec<String>)| format!("{name} ({})", members.join(", "));
        Err(KvError::NotAtomic {
            alias: self.alias().to_owned(),
            keyspaces: names.into_iter().map(str::to_owned).collect(),
            declared: self.groups.iter().map(group).collect(),
        })
    }

    /// Reads an entry of a keyspace: checks its value against the schema of its version.
    pub(super) fn decode<T: serde::de::DeserializeOwned>(
        &self,
        index: usize,
        entry: Entry,
    ) -> Result<Read<T>, KvError> {
        let Entry { key, value, revision, time, expires, op: _, headers } = entry;
        let keyspace = self.keyspace(index);
        let unstamped = || self.unstamped.as_ref().map(|unstamped| unstamped.of(keyspace.name()));
        let version = headers.get(Envelope::VERSION).or_else(unstamped);
        let Some(version) = version else {
            return Err(KvError::Unstamped { bucket: self.bucket.clone(), key, revision });
        };
        let value = match keyspace.check(version, &value) {
            Ok(value) => value,
            Err(misfit) => return Err(self.bad(key, revision, misfit)),
        };
        if version != keyspace.version() {
            let (version, current_version) = (version.to_owned(), keyspace.version().to_owned());
            let old = Old { key, value, version, current_version, revision, time, expires, headers };
            return Ok(Read::MigrationRequired(old));
        }
        match serde_json::from_value(value) {
            Ok(value) => Ok(Read::Current(Typed { key, value, revision, time, expires, headers })),
            Err(error) => {
                let (bucket, reason) = (self.bucket.clone(), error.to_string());
                Err(KvError::Type { bucket, key, revision, reason })
            }
        }
    }

    fn bad(&self, key: Key, revision: pleach_engine::Revision, misfit: Misfit) -> KvError {
        KvError::Stored { bucket: self.bucket.clone(), key, revision, misfit }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("alias", &self.alias())
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

impl Member {
    fn new(
        keyspace: &CompiledKeyspace,
        declared: Option<&Declared>,
        digest: &Digest,
    ) -> Result<Self, KvError> {
        let mut stamp = Headers::new();
        let (version, writer) = (keyspace.version().to_owned(), digest.to_string());
        Envelope { version, writer, trace: None }.write(&mut stamp)?;
        let expiry = keyspace.ttl().map_or(Expiry::Bucket, Expiry::After);
        let accesses = declared.map(|declared| &declared.access).into_iter().flatten();
        let accesses =
            accesses.filter_map(|(name, access)| Some((name.clone(), AccessDeclared::of(access)?)));
        let retention = declared.and_then(|declared| declared.retention.clone());
        Ok(Self { stamp, expiry, accesses: accesses.collect(), retention })
    }
}

impl AccessDeclared {
    /// None if it is malformed, which it is not in a contract that was checked.
    fn of(access: &Access) -> Option<Self> {
        let range = access.range.iter().map(|range| format!("{range}.."));
        let parts: Vec<String> = access.given.iter().cloned().chain(range).collect();
        let path =
            if parts.is_empty() { AccessPath::all() } else { AccessPath::parse(parts.join(",")).ok()? };
        Some(Self { path, limit: usize::try_from(access.limit).unwrap_or(usize::MAX) })
    }
}
