use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pleach_contract::{Contract, Validators};
use pleach_engine::{Clock, Engine};

use crate::kv::{Ground, KvError, KvStore, Mark, Resource};
use crate::{Binding, Contracts, Guarded};

/// The resources of a contract, bound to the buckets where they are. A handle, cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use pleach_contract::{Contract, Notation};
/// use pleach_engine::{BucketConfig, BucketName, Engine, MemoryEngine, SystemClock};
/// use pleach_stores::{Binding, Read, Service};
/// use serde::{Deserialize, Serialize};
///
/// let text = r#"
/// format: pleach.contract.v1
/// id: acme.notes@v1
/// kind: service
/// displayName: Notes
/// description: Notes of people
/// schemas:
///   Note: {type: object, properties: {title: {type: string, minLength: 1}}, required: [title]}
/// resources:
///   kv:
///     notes:
///       purpose: What people wrote down
///       schema: {schema: Note}
///       keyspaces:
///         note: {key: "u.{user}.note.{number:uint(6)}", access: {of: {given: [user], range: number}}}
/// "#;
///
/// #[derive(Serialize, Deserialize)]
/// struct Note { title: String }
///
/// # pollster::block_on(async {
/// let contract = Contract::parse(text.as_bytes(), Notation::Yaml)?.contract;
/// let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
/// let bucket = BucketName::parse("svc_notes_notes")?;
/// engine.create_bucket(&bucket, BucketConfig::plain(engine.capabilities())).await?;
/// let binding = Binding { bucket: bucket.to_string(), unstamped: None };
///
/// let service = Service::new(engine, Arc::new(SystemClock::new()), &contract, [("notes".into(), binding)])?;
/// let notes = service.kv("notes")?.keyspace::<Note>("note")?;
/// let key = ["ann".into(), 7_u64.into()];
/// notes.create(&key, &Note { title: "milk".into() }).await?;
/// match notes.get(&key).await? {
///     Some(Read::Current(note)) => assert_eq!(note.value.title, "milk"),
///     other => unreachable!("{:?}", other.map(|read| read.revision())),
/// }
/// // What the contract does not allow is not written.
/// assert!(notes.put(&key, &Note { title: String::new() }).await.is_err());
/// let page = notes.query("of", &["ann".into()]).await?;
/// assert_eq!(page.entries.len(), 1);
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Service {
    resources: Arc<BTreeMap<String, Arc<Resource>>>,
}

/// How a service is bound.
#[derive(Clone, Default)]
pub struct BindOptions {
    /// Marks whatever is written through it, markers too: with the headers of an origin, for example.
    pub mark: Option<Mark>,
}

impl fmt::Debug for BindOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BindOptions").field("is_marked", &self.mark.is_some()).finish()
    }
}

impl Service {
    /// Binds the resources of the contract that the code was written for, by alias, to buckets of an engine that no
    /// contract owns. [`Service::bind`] is for those that one does.
    ///
    /// # Errors
    /// If the contract has no such resource, or one whose schemas cannot be compiled, which one that was read has not.
    pub fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        contract: &Contract,
        bindings: impl IntoIterator<Item = (String, Binding)>,
    ) -> Result<Self, KvError> {
        let ground = Ground { engine, guarded: None, clock, mark: None };
        Self::on(&ground, contract, bindings, &Validators::default())
    }

    /// Binds the resources of the contract that the code was written for, as the store has them: it must be the one in
    /// force, or one accepted before whose values still are.
    ///
    /// # Errors
    /// [`KvError::Authority`] if it is not, or what the engine could not do.
    pub async fn bind(engine: &Guarded, contract: &Contract) -> Result<Self, KvError> {
        Self::bind_with(engine, contract, BindOptions::default()).await
    }

    /// [`Service::bind`], with options.
    ///
    /// # Errors
    /// Those of [`Service::bind`].
    pub async fn bind_with(
        engine: &Guarded,
        contract: &Contract,
        options: BindOptions,
    ) -> Result<Self, KvError> {
        let bindings = Contracts::of(engine).bind(contract).await?;
        let (guarded, shared) = (engine.clone(), engine.shared());
        let (engine, clock) = (Arc::new(guarded.clone()), Arc::clone(&shared.clock));
        let ground = Ground { engine, guarded: Some(guarded), clock, mark: options.mark };
        Self::on(&ground, contract, bindings, &shared.validators)
    }

    fn on(
        ground: &Ground,
        contract: &Contract,
        bindings: impl IntoIterator<Item = (String, Binding)>,
        validators: &Validators,
    ) -> Result<Self, KvError> {
        let mut resources = BTreeMap::new();
        for (alias, binding) in bindings {
            let resource = Resource::new(ground.clone(), contract, &alias, binding, validators)?;
            resources.insert(alias, Arc::new(resource));
        }
        Ok(Self { resources: Arc::new(resources) })
    }

    /// The resource with this alias.
    ///
    /// # Errors
    /// If there is none.
    pub fn kv(&self, alias: &str) -> Result<KvStore, KvError> {
        self.find(alias).ok_or_else(|| KvError::UnknownResource {
            alias: alias.to_owned(),
            known: self.resources.keys().cloned().collect(),
        })
    }

    /// The resource with this alias, if there is one: for those that a contract does not require.
    pub fn find(&self, alias: &str) -> Option<KvStore> {
        Some(KvStore::new(Arc::clone(self.resources.get(alias)?)))
    }

    /// The aliases of its resources.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("resources", &self.resources.keys()).finish_non_exhaustive()
    }
}
