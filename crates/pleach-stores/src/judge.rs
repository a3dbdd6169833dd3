use std::cell::OnceCell;
use std::sync::Arc;

use pleach_contract::{StoreKind, parse_json_strict};
use pleach_engine::{Entry, Key};
use serde_json::Value;

use crate::binding::Unstamped;
use crate::compiled::{CompiledKeyspace, CompiledResource, Misfit};
use crate::envelope::Envelope;
use crate::state::StatePlace;

/// A stored record whose value is parsed at most once, however often it is judged.
#[derive(Debug)]
pub struct StoredRecord<'e> {
    /// The record.
    pub entry: &'e Entry,
    value: OnceCell<Result<Value, String>>,
}

impl<'e> StoredRecord<'e> {
    /// A record that is not parsed yet.
    pub fn new(entry: &'e Entry) -> Self {
        Self { entry, value: OnceCell::new() }
    }

    /// Its value, or why it is no JSON.
    pub fn value(&self) -> Result<&Value, &str> {
        let parse = || parse_json_strict(&self.entry.value).map_err(|error| error.to_string());
        self.value.get_or_init(parse).as_ref().map_err(String::as_str)
    }

    /// The version that it carries.
    pub fn stamped(&self) -> Option<&str> {
        self.entry.headers.get(Envelope::VERSION)
    }
}

/// How readers of one contract take the records of a resource or of a state store: by the key, then the keyspace, then
/// the version, then the schema.
///
/// It decides exactly as `Keyspace::get` and the stores of a session do, so a record that it calls readable is read.
#[derive(Debug)]
pub struct Judge {
    rules: Rules,
}

#[derive(Debug)]
enum Rules {
    Kv { resource: Arc<CompiledResource>, unstamped: Option<Unstamped> },
    State { store: Arc<CompiledResource>, kind: StoreKind },
    Undeclared { what: String, is_of_state: bool },
}

/// What a reader makes of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// The reader gets its value.
    Readable,
    /// The key belongs to an index, a relationship or a counter: readers of keyspaces never ask for it.
    Reserved(Misfit),
    /// The contract has no place for the key.
    Outside(Misfit),
    /// The contract has a place for the key, and the reader is refused the value.
    Refused(Misfit),
}

impl Judge {
    /// Of a KV resource. Values without a version have those of `unstamped`; without it they cannot be read.
    pub fn kv(resource: Arc<CompiledResource>, unstamped: Option<Unstamped>) -> Self {
        Self { rules: Rules::Kv { resource, unstamped } }
    }

    /// Of a state store, compiled by `CompiledResource::of_state`.
    pub fn state(store: Arc<CompiledResource>, kind: StoreKind) -> Self {
        Self { rules: Rules::State { store, kind } }
    }

    /// Of a contract that does not declare the resource.
    pub fn without_resource(alias: &str) -> Self {
        Self { rules: Rules::Undeclared { what: format!("the resource `{alias}`"), is_of_state: false } }
    }

    /// Of a contract that does not declare the state store.
    pub fn without_store(store: &str) -> Self {
        Self { rules: Rules::Undeclared { what: format!("the state store `{store}`"), is_of_state: true } }
    }

    /// Whether it judges what users and devices have stored.
    pub(crate) fn is_of_state(&self) -> bool {
        matches!(self.rules, Rules::State { .. } | Rules::Undeclared { is_of_state: true, .. })
    }

    /// The resource or store; none if it is not declared.
    pub fn resource(&self) -> Option<&CompiledResource> {
        match &self.rules {
            Rules::Kv { resource, .. } | Rules::State { store: resource, .. } => Some(resource),
            Rules::Undeclared { .. } => None,
        }
    }

    /// Judges a record.
    pub fn judge(&self, record: &StoredRecord<'_>) -> Ruling {
        let keyspace = match self.keyspace_of(&record.entry.key) {
            Ok(keyspace) => keyspace,
            Err(misfit @ Misfit::Kept { .. }) => return Ruling::Reserved(misfit),
            Err(misfit) => return Ruling::Outside(misfit),
        };
        match self.check(record, keyspace) {
            Ok(()) => Ruling::Readable,
            Err(misfit) => Ruling::Refused(misfit),
        }
    }

    /// The keyspace that has a key.
    ///
    /// # Errors
    /// If none has it.
    pub fn keyspace_of(&self, key: &Key) -> Result<&CompiledKeyspace, Misfit> {
        match &self.rules {
            Rules::Kv { resource, .. } => resource.keyspace_of(key),
            Rules::State { store, kind } => {
                let fits = StatePlace::of(key).is_some_and(|place| match kind {
                    StoreKind::Value => place.key.is_none(),
                    StoreKind::Map => place.key.is_some_and(|key| !key.is_empty()),
                });
                let first = store.keyspaces().first().filter(|_| fits);
                first.ok_or_else(|| Misfit::StateKey { store: store.alias().to_owned() })
            }
            Rules::Undeclared { what, .. } => Err(Misfit::Undeclared { what: what.clone() }),
        }
    }

    /// The version of a record in a keyspace; none if it carries none and nothing says which it has.
    pub fn version_of<'v>(
        &'v self,
        record: &'v StoredRecord<'_>,
        keyspace: &CompiledKeyspace,
    ) -> Option<&'v str> {
        let unstamped = match &self.rules {
            Rules::Kv { unstamped, .. } => unstamped.as_ref(),
            Rules::State { .. } | Rules::Undeclared { .. } => None,
        };
        record.stamped().or_else(|| unstamped.map(|unstamped| unstamped.of(keyspace.name())))
    }

    fn check(&self, record: &StoredRecord<'_>, keyspace: &CompiledKeyspace) -> Result<(), Misfit> {
        let lacks = |what: &'static str| Misfit::Envelope { what };
        let version = self.version_of(record, keyspace).ok_or_else(|| lacks("it carries no version"))?;
        let writer = record.entry.headers.get(Envelope::WRITER).unwrap_or_default();
        if matches!(self.rules, Rules::State { .. }) && writer.is_empty() {
            return Err(lacks("it does not say which contract wrote it"));
        }
        let value = record.value().map_err(|reason| Misfit::NotJson { reason: reason.to_owned() })?;
        keyspace.check_value(version, value)
    }
}
