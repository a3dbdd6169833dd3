use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_contract::key::{self, Grammar};
use pleach_contract::{
    CompiledSchema, Contract, Digest, KvResource, Problems, Refused, SchemaReference, Validators,
};
use pleach_engine::Key;
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
    /// The schema refuses the value.
    #[error(transparent)]
    Value(Refused),
}

/// A KV resource of a contract that is ready to check keys and values.
#[derive(Debug)]
pub struct CompiledResource {
    alias: String,
    digest: Digest,
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
}

impl CompiledResource {
    /// Compiles a resource of a contract that was read by `pleach-contract`.
    ///
    /// # Errors
    /// What is wrong with its schemas; nothing, if the contract was checked.
    pub fn of(contract: &Contract, alias: &str, validators: &Validators) -> Result<Option<Self>, Problems> {
        let Some(resource) = contract.resources.kv.get(alias) else { return Ok(None) };
        let schemas = validators.of(contract)?;
        let versions = |current: &str,
                        reference: &SchemaReference,
                        accepted: &BTreeMap<String, SchemaReference>| {
            let current = std::iter::once((current.to_owned(), reference.clone()));
            let accepted = accepted.iter().map(|(version, reference)| (version.clone(), reference.clone()));
            let all = current.chain(accepted);
            all.filter_map(|(version, reference)| {
                Some((version, Arc::clone(schemas.get(&reference.schema)?)))
            })
            .collect::<BTreeMap<_, _>>()
        };
        let mut keyspaces: Vec<CompiledKeyspace> = Vec::new();
        for (name, keyspace) in &resource.keyspaces {
            keyspaces.push(CompiledKeyspace {
                name: Some(name.clone()),
                grammar: Grammar::parse(&keyspace.key).ok(),
                version: keyspace.version.clone(),
                schemas: versions(&keyspace.version, &keyspace.schema, &keyspace.accepted_versions),
            });
        }
        if keyspaces.is_empty() {
            keyspaces.push(CompiledKeyspace {
                name: None,
                grammar: None,
                version: resource.version.clone(),
                schemas: versions(&resource.version, &resource.schema, &resource.accepted_versions),
            });
        }
        Ok(Some(Self { alias: alias.to_owned(), digest: contract.digest(), keyspaces, kept: kept(resource) }))
    }

    /// Its alias in the contract.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// The digest of its contract.
    pub fn digest(&self) -> &Digest {
        &self.digest
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

    /// Whether it knows a version, the current one or an older one.
    pub fn knows(&self, version: &str) -> bool {
        self.schemas.contains_key(version)
    }

    /// Reads a value and checks it against the schema of its version.
    ///
    /// # Errors
    /// Why it does not belong here.
    pub fn check(&self, version: &str, value: &[u8]) -> Result<Value, Misfit> {
        let Some(schema) = self.schemas.get(version) else {
            let older = self.schemas.keys().filter(|known| **known != self.version).cloned();
            let known = std::iter::once(self.version.clone()).chain(older).collect();
            return Err(Misfit::Version { version: version.to_owned(), known });
        };
        let value: Value =
            serde_json::from_slice(value).map_err(|error| Misfit::NotJson { reason: error.to_string() })?;
        schema.validate(&value).map_err(Misfit::Value)?;
        Ok(value)
    }

    fn has(&self, key: &Key) -> bool {
        self.grammar.as_ref().is_none_or(|grammar| grammar.has(key.as_str()))
    }
}

fn kept(resource: &KvResource) -> Vec<(String, Grammar)> {
    let indexes = resource.indexes.iter().map(|(name, index)| (name, &index.key));
    let counters = resource.counters.iter().map(|(name, counter)| (name, &counter.key));
    let links = resource.relationships.iter();
    let links = links.flat_map(|(name, link)| [(name, &link.forward), (name, &link.reverse)]);
    let all = indexes.chain(counters).chain(links);
    all.filter_map(|(name, key)| Some((name.clone(), Grammar::parse(key).ok()?))).collect()
}
