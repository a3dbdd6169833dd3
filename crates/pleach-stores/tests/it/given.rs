use std::sync::Arc;

use pleach_contract::{Contract, ContractId};
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    At, Batch, BucketName, Capabilities, Clock, CommitError, Engine, EngineError, Entry, Key, ManualClock,
    MemoryEngine, Operation, Revision, Timestamp,
};
use pleach_stores::{Applied, ApplyOptions, AuthorityError, Contracts, Guarded, Plan, PlanOptions};
use serde_json::{Value, json};

use crate::watched::{Failing, Watched};

/// A new store on a real engine, and the clock it runs by.
pub(crate) struct Given {
    pub(crate) engine: Guarded,
    /// The engine below the guards.
    pub(crate) below: Arc<Watched>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) contracts: Contracts,
    _directory: Option<tempfile::TempDir>,
}

impl Given {
    pub(crate) fn in_memory() -> Self {
        let clock = noon();
        let engine = MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        Self::on(Watched::new(Arc::new(engine)), clock, None)
    }

    pub(crate) fn embedded() -> Self {
        let clock = noon();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let engine =
            EmbeddedEngine::open_with(path, Settings::default(), Arc::clone(&clock) as Arc<dyn Clock>);
        Self::on(Watched::new(Arc::new(engine.unwrap())), clock, Some(directory))
    }

    /// In memory, as if the engine could do less.
    pub(crate) fn able(change: impl FnOnce(&mut Capabilities)) -> Self {
        let clock = noon();
        let engine = Arc::new(MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
        let mut capabilities = engine.capabilities().clone();
        change(&mut capabilities);
        Self::on(Watched::with_capabilities(engine, capabilities), clock, None)
    }

    fn on(below: Arc<Watched>, clock: Arc<ManualClock>, directory: Option<tempfile::TempDir>) -> Self {
        let engine =
            Guarded::new(Arc::clone(&below) as Arc<dyn Engine>, Arc::clone(&clock) as Arc<dyn Clock>);
        let contracts = Contracts::of(&engine);
        Self { engine, below, clock, contracts, _directory: directory }
    }

    /// Another new store on the same kind of engine.
    pub(crate) fn anew(&self) -> Self {
        if self.engine.capabilities().persistent { Self::embedded() } else { Self::in_memory() }
    }

    /// Forgets all that is only in memory, as a program that starts again does.
    pub(crate) fn restart(&mut self) {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        self.engine = Guarded::new(Arc::clone(&self.below) as Arc<dyn Engine>, clock);
        self.contracts = Contracts::of(&self.engine);
    }

    pub(crate) async fn plan(&self, contract: &Contract) -> Plan {
        self.contracts.plan(contract, PlanOptions::default()).await.unwrap()
    }

    /// Plans and applies a contract in which nothing is dangerous.
    pub(crate) async fn accept(&self, contract: &Contract) -> Applied {
        let plan = self.plan(contract).await;
        self.apply(&plan).await.unwrap()
    }

    pub(crate) async fn apply(&self, plan: &Plan) -> Result<Applied, AuthorityError> {
        self.contracts.apply(plan, ApplyOptions::by("ann")).await
    }

    /// Plans and applies a contract whatever it does.
    pub(crate) async fn insist(&self, contract: &Contract) -> Applied {
        let plan = self.plan(contract).await;
        self.contracts.apply(&plan, ApplyOptions::by("ann").acknowledging("it is a test")).await.unwrap()
    }

    pub(crate) async fn put(&self, bucket: &str, key: &str, value: &str) -> Result<Revision, CommitError> {
        put(&self.engine, bucket, key, value).await
    }

    /// Writes past the guards and without a record of it.
    pub(crate) async fn plant(&self, bucket: &str, key: &str, value: &str) -> Revision {
        put(&*self.below, bucket, key, value).await.unwrap()
    }

    pub(crate) async fn get(&self, bucket: &str, key: &str) -> Option<Entry> {
        self.engine.read(&name(bucket), &Key::parse(key).unwrap(), At::Latest).await.unwrap()
    }
}

pub(crate) async fn put(
    engine: &dyn Engine,
    bucket: &str,
    key: &str,
    value: &str,
) -> Result<Revision, CommitError> {
    let operation = Operation::put(Key::parse(key).unwrap(), value.to_owned());
    engine.commit(&name(bucket), Batch::from(operation)).await.map(|committed| committed.last)
}

pub(crate) fn name(bucket: &str) -> BucketName {
    BucketName::parse(bucket).unwrap()
}

fn noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap()))
}

/// A store like `given` in which an apply was interrupted, at the first of its calls that leaves `wanted` behind.
pub(crate) async fn interrupted(
    given: &Given,
    prepared: impl AsyncFn(&Given) -> Plan,
    wanted: impl AsyncFn(&Given) -> bool,
) -> (Given, Plan) {
    for calls in 0..200 {
        let given = given.anew();
        let plan = prepared(&given).await;
        given.below.fail_after(calls, Failing::Before);
        let applied = given.contracts.apply(&plan, ApplyOptions::by("ann").acknowledging("a test")).await;
        if given.below.mend() && applied.is_err() && wanted(&given).await {
            return (given, plan);
        }
    }
    panic!("no call leaves that behind");
}

/// The lineage that tests are about unless they say otherwise.
pub(crate) const LINEAGE: &str = "acme.notes@v1";

/// The bucket of its alias `notes`.
pub(crate) const NOTES: &str = "svc_notes_notes";

pub(crate) fn lineage() -> ContractId {
    ContractId::parse(LINEAGE).unwrap()
}

/// A contract of [`LINEAGE`] with these schemas and KV resources.
pub(crate) fn contract(schemas: Value, kv: Value) -> Contract {
    contract_of(LINEAGE, schemas, kv)
}

pub(crate) fn contract_of(id: &str, schemas: Value, kv: Value) -> Contract {
    let document = json!({
        "format": "pleach.contract.v1", "id": id, "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": schemas, "resources": {"kv": kv},
    });
    Contract::from_value(&document).unwrap_or_else(|problems| panic!("{:?}", problems.list())).contract
}

/// A contract with one resource `notes`, whose values have this schema.
pub(crate) fn notes(schema: Value) -> Contract {
    notes_with(schema, json!({}))
}

/// The same, with further fields of the resource.
pub(crate) fn notes_with(schema: Value, more: Value) -> Contract {
    let mut resource = json!({"purpose": "Notes", "schema": {"schema": "Note"}});
    for (field, value) in more.as_object().unwrap() {
        resource[field] = value.clone();
    }
    contract(json!({"Note": schema}), json!({"notes": resource}))
}

/// Objects with a text, and whatever else.
pub(crate) fn note() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
}

/// The same, but the text must be short.
pub(crate) fn short_note() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": 5}}, "required": ["text"]})
}

/// The reason that a guard gave.
pub(crate) fn refusal(result: Result<Revision, CommitError>) -> String {
    match result.unwrap_err() {
        CommitError::Engine(
            error @ (EngineError::BrokenContract { .. }
            | EngineError::ContractOwned { .. }
            | EngineError::StoreOwned { .. }),
        ) => error.to_string(),
        other => panic!("{other:?}"),
    }
}
