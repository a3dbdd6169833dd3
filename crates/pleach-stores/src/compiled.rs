use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pleach_contract::key::{self, Grammar};
use pleach_contract::{
    CompiledSchema, Contract, Digest, KvResource, Problems, Refused, SchemaReference, Validators,
    parse_json_strict,
};
use pleach_engine::{Expiry, Key, Timestamp};
use serde_json::Value;

/// Why a key or a value does not belong where it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// No keyspace of the resource has the key.
    #[error("the key {key} is in no keyspace of {alias}: {}", nearest.message)]
    Key {
        /// The key.
        key: Key,
        /// The resource.
        alias: String,
        /// What the keyspace that comes nearest has against it.
        nearest: Box<key::Problem>,
    },
    /// The key is one that the store writes itself.
    #[error("the key {key} belongs to `{member}`, which the store keeps itself")]
    Kept {
        /// The key.
        key: Key,
        /// The index, relationship or counter.
        member: String,
    },
    /// The value is not JSON.
    #[error("the value is not JSON: {reason}")]
    NotJson {
        /// What is wrong with it, and where.
        reason: String,
    },
    /// The value carries a version that the contract does not know.
    #[error("the value is of version `{version}`, and the contract knows {}", known.join(", "))]
    Version {
        /// The version.
        version: String,
        /// Those that the contract knows, the current one first.
        known: Vec<String>,
    },
    /// The value does not carry what readers need beside it.
    #[error("the value cannot be read: {what}")]
    Envelope {
        /// What is missing.
        what: &'static str,
    },
    /// The key is not one that a state store of this kind has.
    #[error("the key is not one of the state store `{store}`")]
    StateKey {
        /// The store.
        store: String,
    },
    /// The contract does not declare the resource or state store that the entry is in.
    #[error("the contract does not declare {what}")]
    Undeclared {
        /// The resource or state store.
        what: String,
    },
    /// The schema refuses the value.
    #[error(transparent)]
    Value(Refused),
}

/// A KV resource of a contract that is ready to check keys and values.
#[derive(Debug)]
pub struct CompiledResource {
    alias: String,
    digest: Digest,
    /// The digest of its contract by the rules of earlier versions.
    digest_as_written: Digest,
    keyspaces: Vec<CompiledKeyspace>,
    /// The keys of indexes, relationships and counters, by the member's name.
    kept: Vec<(String, Grammar)>,
}

/// The keys of one form, and what their values must look like in each version.
#[derive(Debug)]
pub struct CompiledKeyspace {
    name: Option<String>,
    /// None takes every key: that of a resource without keyspaces.
    grammar: Option<Grammar>,
    version: String,
    schemas: BTreeMap<String, Arc<CompiledSchema>>,
    /// How long its values live, where that is shorter than what its bucket says.
    ttl: Option<Duration>,
}

impl CompiledResource {
    /// Compiles a resource of a contract that was read by `pleach-contract`.
    ///
    /// # Errors
    /// What is wrong with its schemas; nothing, if the contract was checked.
    pub fn of(contract: &Contract, alias: &str, validators: &Validators) -> Result<Option<Self>, Problems> {
        let Some(resource) = contract.resources.kv.get(alias) else { return Ok(None) };
        let schemas = validators.of(contract)?;
        let mut keyspaces: Vec<CompiledKeyspace> = Vec::new();
        for (name, keyspace) in &resource.keyspaces {
            keyspaces.push(CompiledKeyspace {
                name: Some(name.clone()),
                grammar: Grammar::parse(&keyspace.key).ok(),
                version: keyspace.version.clone(),
                schemas: versions(
                    &schemas,
                    (&keyspace.version, &keyspace.schema),
                    &keyspace.accepted_versions,
                ),
                ttl: (keyspace.ttl_ms != resource.ttl_ms && keyspace.ttl_ms > 0)
                    .then(|| Duration::from_millis(keyspace.ttl_ms)),
            });
        }
        if keyspaces.is_empty() {
            keyspaces.push(CompiledKeyspace {
                name: None,
                grammar: None,
                version: resource.version.clone(),
                schemas: versions(
                    &schemas,
                    (&resource.version, &resource.schema),
                    &resource.accepted_versions,
                ),
                ttl: None,
            });
        }
        Ok(Some(Self {
            alias: alias.to_owned(),
            digest: contract.digest(),
            digest_as_written: contract.digest_as_written(),
            keyspaces,
            kept: kept(resource),
        }))
    }

    /// Compiles a state store as if it were a resource without keyspaces, for whoever looks at what is stored.
    pub(crate) fn of_state(
        contract: &Contract,
        name: &str,
        validators: &Validators,
    ) -> Result<Option<Self>, Problems> {
        let Some(store) = contract.state.get(name) else { return Ok(None) };
        let schemas = validators.of(contract)?;
        let entries = CompiledKeyspace {
            name: None,
            grammar: None,
            version: store.state_version.clone(),
            schemas: versions(&schemas, (&store.state_version, &store.schema), &store.accepted_versions),
            ttl: None,
        };
        Ok(Some(Self {
            alias: name.to_owned(),
            digest: contract.digest(),
            digest_as_written: contract.digest_as_written(),
            keyspaces: vec![entries],
            kept: Vec::new(),
        }))
    }

    /// Its alias in the contract.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// The digest of its contract.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether a digest is that of its contract, by the rules of today or by those of earlier versions.
    pub fn is_of_contract(&self, digest: &str) -> bool {
        self.digest.as_str() == digest || self.digest_as_written.as_str() == digest
    }

    /// Its keyspaces; one without a name if it declares none.
    pub fn keyspaces(&self) -> &[CompiledKeyspace] {
        &self.keyspaces
    }

    /// The keyspace that has `key`.
    ///
    /// # Errors
    /// If none has it, or it is a key that the store writes itself.
    pub fn keyspace_of(&self, key: &Key) -> Result<&CompiledKeyspace, Misfit> {
        if let Some(found) = self.keyspaces.iter().find(|keyspace| keyspace.has(key)) {
            return Ok(found);
        }
        if let Some((member, _)) = self.kept.iter().find(|(_, grammar)| grammar.has(key.as_str())) {
            return Err(Misfit::Kept { key: key.clone(), member: member.clone() });
        }
        let refusals =
            self.keyspaces.iter().filter_map(|keyspace| keyspace.grammar.as_ref()?.read(key.as_str()).err());
        // The one that got furthest through the key is the one that was meant.
        match refusals.max_by_key(|problem| problem.at) {
            Some(nearest) => {
                Err(Misfit::Key { key: key.clone(), alias: self.alias.clone(), nearest: Box::new(nearest) })
            }
            None => Err(Misfit::Kept { key: key.clone(), member: self.alias.clone() }),
        }
    }
}

impl CompiledKeyspace {
    /// Its name; none if its resource declares no keyspaces.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What its keys look like; none takes every key.
    pub fn grammar(&self) -> Option<&Grammar> {
        self.grammar.as_ref()
    }

    /// The version that is written now.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How long its values live, where that is shorter than what its bucket says.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// When a value that asks for some expiry is gone: then, or when the keyspace says, whichever is sooner.
    pub fn granted(&self, asked: Expiry, now: Timestamp) -> Expiry {
        match (self.ttl, asked) {
            (None, asked) => asked,
            (Some(ttl), Expiry::Bucket) => Expiry::After(ttl),
            (Some(ttl), Expiry::After(asked)) => Expiry::After(ttl.min(asked)),
            (Some(ttl), Expiry::At(moment)) if moment > now.saturating_add(ttl) => Expiry::After(ttl),
            (Some(_), Expiry::At(moment)) => Expiry::At(moment),
        }
    }

    /// Whether it knows a version, the current one or an older one.
    pub fn knows(&self, version: &str) -> bool {
        self.schemas.contains_key(version)
    }

    /// Reads a value and checks it against the schema of its version.
    ///
    /// # Errors
    /// Why it does not belong here.
    pub fn check(&self, version: &str, value: &[u8]) -> Result<Value, Misfit> {
        let schema = self.schema(version)?;
        let value =
            parse_json_strict(value).map_err(|error| Misfit::NotJson { reason: error.to_string() })?;
        schema.validate(&value).map_err(Misfit::Value)?;
        Ok(value)
    }

    /// Checks a value that was read already.
    ///
    /// # Errors
    /// Why it does not belong here.
    pub fn check_value(&self, version: &str, value: &Value) -> Result<(), Misfit> {
        self.schema(version)?.validate(value).map_err(Misfit::Value)
    }

    fn schema(&self, version: &str) -> Result<&CompiledSchema, Misfit> {
        self.schemas.get(version).map(|schema| &**schema).ok_or_else(|| {
            let older = self.schemas.keys().filter(|known| **known != self.version).cloned();
            let known = std::iter::once(self.version.clone()).chain(older).collect();
            Misfit::Version { version: version.to_owned(), known }
        })
    }

    fn has(&self, key: &Key) -> bool {
        self.grammar.as_ref().is_none_or(|grammar| grammar.has(key.as_str()))
    }
}

/// The schemas of the current version and of all accepted ones, by version.
fn versions(
    schemas: &BTreeMap<String, Arc<CompiledSchema>>,
    (current, reference): (&String, &SchemaReference),
    accepted: &BTreeMap<String, SchemaReference>,
) -> BTreeMap<String, Arc<CompiledSchema>> {
    let all = std::iter::once((current, reference)).chain(accepted);
    all.filter_map(|(version, reference)| {
        Some((version.clone(), Arc::clone(schemas.get(&reference.schema)?)))
    })
    .collect()
}

fn kept(resource: &KvResource) -> Vec<(String, Grammar)> {
    let indexes = resource.indexes.iter().map(|(name, index)| (name, &index.key));
    let counters = resource.counters.iter().map(|(name, counter)| (name, &counter.key));
    let links = resource.relationships.iter();
    let links = links.flat_map(|(name, link)| [(name, &link.forward), (name, &link.reverse)]);
    let all = indexes.chain(counters).chain(links);
    all.filter_map(|(name, key)| Some((name.clone(), Grammar::parse(key).ok()?))).collect()
}
