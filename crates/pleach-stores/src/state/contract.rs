use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pleach_contract::{CompiledSchema, Contract, ContractId, Digest, StateStore, StoreKind, Validators};
use pleach_engine::{Entry, Headers};
use serde_json::Value;

use super::entry::{Migration, StateEntry};
use super::{StateError, StateRevision, VALUE_BYTES_MAX};
use crate::Envelope;

/// The state stores of a contract that the store has accepted, ready to check keys and values. Made once for a contract, by
/// [`State::contract`](super::State::contract), and shared by all its sessions.
#[derive(Clone, Debug)]
pub struct StateContract {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: ContractId,
    stores: BTreeMap<String, Arc<CompiledStore>>,
}

impl StateContract {
    /// Compiles the stores of a contract that was read by `pleach-contract`.
    ///
    /// # Errors
    /// What is wrong with its schemas; nothing, if the contract was checked.
    pub(super) fn new(contract: &Contract, validators: &Validators) -> Result<Self, StateError> {
        let schemas = validators.of(contract).map_err(|problems| StateError::Contract { problems })?;
        let digest = contract.digest();
        let compiled = |(name, store): (&String, &StateStore)| {
            Ok((name.clone(), Arc::new(CompiledStore::new(name, store, &schemas, &digest)?)))
        };
        let stores = contract.state.iter().map(compiled).collect::<Result<_, StateError>>()?;
        Ok(Self { shared: Arc::new(Shared { id: contract.id.clone(), stores }) })
    }

    /// Whose stores they are.
    pub fn id(&self) -> &ContractId {
        &self.shared.id
    }

    /// The names and kinds of the stores.
    pub fn stores(&self) -> impl Iterator<Item = (&str, StoreKind)> {
        self.shared.stores.iter().map(|(name, store)| (name.as_str(), store.kind))
    }

    pub(super) fn store(&self, name: &str) -> Result<Arc<CompiledStore>, StateError> {
        let undeclared = || StateError::UndeclaredStore {
            contract: self.id().to_string(),
            store: super::error::excerpt(name),
        };
        self.shared.stores.get(name).map(Arc::clone).ok_or_else(undeclared)
    }
}

/// What an entry turned out to be.
#[derive(Debug)]
pub(super) enum Judged {
    Current(StateEntry<Value>),
    Old(Migration),
}

/// A declared store.
#[derive(Debug)]
pub(super) struct CompiledStore {
    pub(super) name: String,
    pub(super) kind: StoreKind,
    version: String,
    /// By version, the current one included.
    schemas: BTreeMap<String, Arc<CompiledSchema>>,
    /// What travels with a value that is written now.
    pub(super) headers: Headers,
    /// The contract that checks and writes it.
    pub(super) digest: Digest,
}

impl CompiledStore {
    fn new(
        name: &str,
        store: &StateStore,
        schemas: &BTreeMap<String, Arc<CompiledSchema>>,
        writer: &Digest,
    ) -> Result<Self, StateError> {
        let older = store.accepted_versions.iter();
        let versions = older.chain([(&store.state_version, &store.schema)]);
        let compiled = versions
            .filter_map(|(version, named)| Some((version.clone(), Arc::clone(schemas.get(&named.schema)?))));
        let envelope =
            Envelope { version: store.state_version.clone(), writer: writer.to_string(), trace: None };
        let mut headers = Headers::new();
        envelope.write(&mut headers)?;
        let (name, kind, version) = (name.to_owned(), store.kind, envelope.version);
        Ok(Self { name, kind, version, schemas: compiled.collect(), headers, digest: writer.clone() })
    }

    /// That a program which writes `version`, and reads the `older` ones unless it reads any, is one for this store.
    pub(super) fn require_versions(&self, version: &str, older: Option<&[&str]>) -> Result<(), StateError> {
        let is_read = |declared: &String| {
            *declared == version || older.is_none_or(|older| older.contains(&declared.as_str()))
        };
        if version == self.version && self.schemas.keys().all(is_read) {
            return Ok(());
        }
        let known =
            older.into_iter().flatten().chain([&version]).map(|&version| version.to_owned()).collect();
        let (store, declared) = (self.name.clone(), self.schemas.keys().cloned().collect());
        Err(StateError::OtherVersions { store, known, declared })
    }

    /// The value as it is stored, if the store takes it.
    pub(super) fn check(&self, value: &Value) -> Result<Bytes, StateError> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| StateError::NotJson { reason: error.to_string() })?;
        if bytes.len() > VALUE_BYTES_MAX {
            return Err(StateError::ValueTooLarge { bytes: bytes.len(), limit: VALUE_BYTES_MAX });
        }
        let invalid = |refused| StateError::InvalidValue { store: self.name.clone(), refused };
        match self.schemas.get(&self.version) {
            Some(schema) => schema.validate(value).map_err(invalid)?,
            None => return Err(self.undeclared_schema()),
        }
        Ok(bytes.into())
    }

    /// Reads a stored entry, which is called `key` where it was found.
    pub(super) fn judge(&self, entry: &Entry, key: Option<String>) -> Result<Judged, StateError> {
        let stored = Stored::read(entry).map_err(|what| self.corrupt(entry, key.as_deref(), what))?;
        let revision = StateRevision(entry.revision);
        let Envelope { version, writer, .. } = stored.envelope;
        let Some(schema) = self.schemas.get(&version) else {
            let (place, known) = (self.place(key.as_deref()), self.schemas.keys().cloned().collect());
            return Err(StateError::UnknownVersion { place, revision, version, known });
        };
        if let Err(refused) = schema.validate(&stored.value) {
            let place = self.place(key.as_deref());
            return Err(StateError::InvalidStored { place, revision, version, refused });
        }
        let (updated_at, expires_at) = (entry.time, entry.expires);
        let entry = StateEntry { key, value: stored.value, revision, updated_at, expires_at };
        if version == self.version {
            return Ok(Judged::Current(entry));
        }
        Ok(Judged::Old(Migration {
            entry,
            state_version: version,
            current_state_version: self.version.clone(),
            writer_contract_digest: writer,
        }))
    }

    /// That an entry is not what State writes.
    pub(super) fn corrupt(&self, entry: &Entry, key: Option<&str>, what: String) -> StateError {
        StateError::Corrupt { place: self.place(key), revision: StateRevision(entry.revision), what }
    }

    /// An entry of the store, for messages.
    pub(super) fn place(&self, key: Option<&str>) -> String {
        match key {
            Some(key) => format!("{}/{}", self.name, super::error::excerpt(key)),
            None => self.name.clone(),
        }
    }

    fn undeclared_schema(&self) -> StateError {
        let what = format!("the state store {} has no schema", self.name);
        pleach_engine::EngineError::Bug { what }.into()
    }
}

/// A stored entry that is whole, whatever the contract thinks of it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) envelope: Envelope,
    pub(super) value: Value,
}

impl Stored {
    /// Reads an entry, or says what is wrong with it.
    pub(super) fn read(entry: &Entry) -> Result<Self, String> {
        let envelope = Envelope::read(&entry.headers).ok_or("it has no version")?;
        if envelope.writer.is_empty() {
            return Err("it does not say which contract wrote it".to_owned());
        }
        let value = pleach_contract::parse_json_strict(&entry.value);
        Ok(Self { envelope, value: value.map_err(|error| format!("its value is not JSON: {error}"))? })
    }
}
