use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use pleach_contract::Contract;
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    Batch, BucketName, Clock, Engine, Expiry, Headers, Key, ManualClock, MemoryEngine, Operation, Revision,
    Timestamp,
};
use pleach_nats::{NatsEngine, NatsOptions};
use pleach_nats_testing::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::address::Namespace;
use super::super::*;
use super::meddler::Meddler;
use crate::{ApplyOptions, Contracts, Guarded, PlanOptions};

/// How many times longer everything is that takes time, in each attempt of a test on an engine in real time. A busy machine may
/// let an entry expire before the test has looked at it; State that is wrong is wrong at every scale.
const SCALES: [u64; 3] = [1, 4, 16];

thread_local! {
    static SCALE: Cell<u64> = const { Cell::new(1) };
}

/// This long, at the scale of the attempt.
pub(super) fn scaled(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds * SCALE.get())
}

/// Runs a test on an engine; where time passes by itself, a test that fails is repeated with more time.
pub(super) fn run<F: Future<Output = ()>>(engine: fn() -> Given, test: impl Fn(Given) -> F) {
    for scale in SCALES {
        SCALE.set(scale);
        let given = engine();
        let is_last = given.is_exact || Some(&scale) == SCALES.last();
        match catch_unwind(AssertUnwindSafe(|| pollster::block_on(test(given)))) {
            Ok(()) => return,
            Err(failed) if is_last => resume_unwind(failed),
            Err(_) => {}
        }
    }
}

/// State on an engine, on a clock that stands still.
pub(super) struct Given {
    pub(super) engine: Arc<Meddler>,
    /// The same engine with its guards, as everyone has it.
    pub(super) guarded: Guarded,
    pub(super) clock: Arc<ManualClock>,
    pub(super) state: State,
    /// Whether the engine's time is that of the clock, and passes only when told to.
    pub(super) is_exact: bool,
    directory: Option<TempDir>,
    /// The contracts that programs are bound to, by digest and id.
    bound: Mutex<BTreeMap<String, StateContract>>,
}

/// The server that all tests share.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

impl Given {
    pub(super) fn in_memory() -> Self {
        let clock = manual();
        let engine = MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        Self::on(Arc::new(engine), clock, None)
    }

    /// With small files, so that there are many of them.
    pub(super) fn embedded() -> Self {
        let small = Settings { segment_bytes: 64 * 1024, memtable_bytes: 64 * 1024, ..Settings::default() };
        Self::embedded_with(small)
    }

    /// With files of the usual size.
    pub(super) fn roomy() -> Self {
        Self::embedded_with(Settings::default())
    }

    fn embedded_with(settings: Settings) -> Self {
        let (clock, directory) = (manual(), tempfile::tempdir().unwrap());
        let path = directory.path().join("store");
        let engine = EmbeddedEngine::open_with(path, settings, Arc::clone(&clock) as Arc<dyn Clock>);
        Self::on(Arc::new(engine.unwrap()), clock, Some(directory))
    }

    /// On a real server, whose time passes by itself.
    pub(super) fn nats() -> Self {
        static STORES: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("s{}_", STORES.fetch_add(1, Ordering::Relaxed));
        let options = NatsOptions { namespace, ..NatsOptions::server(server().url()) };
        let engine = pollster::block_on(NatsEngine::connect(options)).unwrap();
        Self { is_exact: false, ..Self::on(Arc::new(engine), manual(), None) }
    }

    fn on(engine: Arc<dyn Engine>, clock: Arc<ManualClock>, directory: Option<TempDir>) -> Self {
        let engine = Arc::new(Meddler::new(engine));
        let shared = Arc::clone(&engine) as Arc<dyn Engine>;
        let guarded = Guarded::new(shared, Arc::clone(&clock) as Arc<dyn Clock>);
        let state = pollster::block_on(State::open(&guarded)).unwrap();
        Self { engine, guarded, clock, state, is_exact: true, directory, bound: Mutex::default() }
    }

    /// A session of Ann with the first version of the notes.
    pub(super) fn ann(&self) -> Session {
        self.session("user:ann", &first())
    }

    /// A session under a contract, which is put in force when it is first asked for.
    pub(super) fn session(&self, principal: &str, contract: &Contract) -> Session {
        self.state.session(principal.parse().unwrap(), &self.accepted(contract))
    }

    /// The stores of a contract, which is put in force first. A program asks for them once, and so does a test.
    pub(super) fn accepted(&self, contract: &Contract) -> StateContract {
        let mut bound = self.bound.lock().unwrap();
        let bind = || {
            pollster::block_on(async {
                self.accept(contract).await;
                self.state.contract(contract).await.unwrap()
            })
        };
        bound.entry(contract.digest().to_string() + contract.id.as_str()).or_insert_with(bind).clone()
    }

    /// Puts a contract in force, whatever is dangerous about it.
    pub(super) async fn accept(&self, contract: &Contract) {
        let contracts = Contracts::of(&self.guarded);
        let plan = contracts.plan(contract, PlanOptions::default()).await.unwrap();
        contracts.apply(&plan, ApplyOptions::by("olga").acknowledging("a test")).await.unwrap();
    }

    /// Ann's drafts.
    pub(super) fn drafts(&self) -> MapStore<Value> {
        self.ann().map("drafts").unwrap()
    }

    /// Where the store of an embedded engine is, in the directory `store`.
    pub(super) fn directory(&self) -> PathBuf {
        self.directory.as_ref().expect("the engine has files").path().to_owned()
    }

    pub(super) fn bucket(&self) -> BucketName {
        BucketName::parse(STATE_BUCKET).unwrap()
    }

    /// Lets time pass.
    pub(super) fn advance(&self, milliseconds: u64) {
        match self.is_exact {
            true => self.clock.advance(scaled(milliseconds)),
            false => thread::sleep(scaled(milliseconds)),
        }
    }

    /// Lets time pass until `milliseconds` after something, of which it is now `passed`: exactly, or a little longer where
    /// a test cannot be exact.
    pub(super) fn advance_to(&self, passed: u64, milliseconds: u64) {
        self.advance(milliseconds - passed + if self.is_exact { 0 } else { 100 });
    }

    /// Writes bytes past State, as damage or another program would.
    pub(super) fn damage(
        &self,
        principal: &str,
        store: &str,
        key: Option<&str>,
        value: &str,
        headers: &[(&str, &str)],
    ) {
        let mut all = Headers::new();
        headers.iter().for_each(|(name, value)| all.set(name, value).unwrap());
        let key = stored_key(principal, store, key);
        let put = Operation::put(key, value.to_owned()).with_headers(all);
        pollster::block_on(self.engine.commit(&self.bucket(), Batch::from(put))).unwrap();
    }

    /// Writes bytes past State that live for a while, in a store of Ann's.
    pub(super) fn damage_for(&self, milliseconds: u64, store: &str, key: &str, value: &str) {
        let expiry = Expiry::After(scaled(milliseconds));
        let put = Operation::put(stored_key("user:ann", store, Some(key)), value.to_owned()).expiring(expiry);
        pollster::block_on(self.engine.commit(&self.bucket(), Batch::from(put))).unwrap();
    }

    /// The newest revision, entry or marker, of one of Ann's drafts.
    pub(super) async fn newest_revision(&self, key: &str) -> Revision {
        let records =
            self.engine.history(&self.bucket(), &stored_key("user:ann", "drafts", Some(key))).await.unwrap();
        records.last().expect("it has records").revision
    }
}

pub(super) fn stored_key(principal: &str, store: &str, key: Option<&str>) -> Key {
    namespace(principal, store).key(key).unwrap()
}

/// The keys of a store of the notes.
pub(super) fn namespace(principal: &str, store: &str) -> Namespace {
    Namespace::new(&principal.parse().unwrap(), &first().id, store)
}

fn manual() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)))
}

/// A contract with these state stores, of the lineage `acme.notes@v1` unless told otherwise.
pub(super) fn contract(id: &str, state: Value) -> Contract {
    let schemas = json!({
        "PreferencesV1": {"type": "object", "properties": {"theme": {"type": "string"}}, "required": ["theme"]},
        "Preferences": {
            "type": "object",
            "properties": {"theme": {"type": "string"}, "compact": {"type": "boolean"}},
            "required": ["theme", "compact"],
        },
        "Draft": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "Any": true,
    });
    let document = json!({
        "format": "pleach.contract.v1",
        "id": id,
        "kind": "app",
        "displayName": "Notes",
        "description": "Notes app",
        "schemas": schemas,
        "state": state,
    });
    match Contract::from_value(&document) {
        Ok(parsed) => parsed.contract,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// The first version of the notes.
pub(super) fn first() -> Contract {
    let preferences =
        json!({"kind": "value", "schema": {"schema": "PreferencesV1"}, "stateVersion": "preferences.v1"});
    contract("acme.notes@v1", stores(preferences))
}

/// The second version, whose preferences have another shape, and which reads the first.
pub(super) fn second() -> Contract {
    let preferences = json!({
        "kind": "value",
        "schema": {"schema": "Preferences"},
        "stateVersion": "preferences.v2",
        "acceptedVersions": {"preferences.v1": {"schema": "PreferencesV1"}},
    });
    contract("acme.notes@v1", stores(preferences))
}

/// A third version, which has forgotten the first.
pub(super) fn third() -> Contract {
    let preferences =
        json!({"kind": "value", "schema": {"schema": "Preferences"}, "stateVersion": "preferences.v2"});
    contract("acme.notes@v1", stores(preferences))
}

fn stores(preferences: Value) -> Value {
    json!({
        "preferences": preferences,
        "drafts": {"kind": "map", "schema": {"schema": "Draft"}},
        "anything": {"kind": "map", "schema": {"schema": "Any"}},
    })
}

pub(super) fn draft(title: &str) -> Value {
    json!({"title": title})
}

/// What was applied, or a panic.
pub(super) fn applied<T: Debug, O: Debug>(outcome: Result<PutOutcome<T, O>, StateError>) -> StateEntry<T> {
    match outcome {
        Ok(PutOutcome::Applied(entry)) => entry,
        other => panic!("it was not applied: {other:?}"),
    }
}

pub(super) fn found<T: Debug, O: Debug>(outcome: Result<GetOutcome<T, O>, StateError>) -> StateEntry<T> {
    match outcome {
        Ok(GetOutcome::Found(entry)) => entry,
        other => panic!("it was not found: {other:?}"),
    }
}

/// The keys of a page.
pub(super) fn keys<T, O>(page: &StatePage<T, O>) -> Vec<&str> {
    page.entries.iter().map(|cell| cell.key().unwrap_or("-")).collect()
}

pub(super) fn expecting(expect: Expect) -> PutOptions {
    PutOptions { expect, ttl: None }
}

pub(super) fn living(milliseconds: u64) -> PutOptions {
    PutOptions { ttl: Some(scaled(milliseconds)), ..PutOptions::default() }
}
