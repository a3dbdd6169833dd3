use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pleach_contract::key::{Time, Value as Part};
use pleach_contract::{Contract, Notation};
use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, Clock, Engine, Entry, Headers, Key, ManualClock, MemoryEngine,
    Operation, Timestamp,
};
use pleach_stores::{Binding, Envelope, Keyspace, KvStore, Service, Unstamped};
use serde::{Deserialize, Serialize};

/// What the tests are about. In its first version cases had no title, and there was nothing else.
const CONTRACT: &str = r#"
format: pleach.contract.v1
id: acme.cases@v1
kind: service
displayName: Cases
description: Cases and their events
schemas:
  CaseV1: {type: object, properties: {status: {enum: [OPEN, CLOSED]}}, required: [status]}
  Case:
    type: object
    properties: {status: {enum: [OPEN, CLOSED]}, title: {type: string, minLength: 1}}
    required: [status, title]
  Event: {type: object, properties: {what: {type: string}}, required: [what]}
  Lock: {type: object, properties: {holder: {type: string}}, required: [holder]}
resources:
  kv:
    cases:
      purpose: Cases and everything that happens to them
      schema: {schema: Case}
      version: v2
      acceptedVersions: {v1: {schema: CaseV1}}
      history: 5
      keyspaces:
        case:
          key: "t.{tenant}.case.{case:uint(6)}"
          access: {of: {given: [tenant], range: case, limit: 5}}
        event:
          key: "t.{tenant}.case.{case:uint(6)}.event.{at:time(0)}"
          schema: {schema: Event}
          retention: {segment: at, bucket: month, keep: 2}
          access: {timeline: {given: [tenant, case], range: at, limit: 100}}
        lock:
          key: "t.{tenant}.lock.{name}"
          schema: {schema: Lock}
          ttlMs: 60000
        visit:
          key: "day.{day:date}.{number:uint(6)}"
          schema: {schema: Event}
          retention: {segment: day, bucket: week, keep: 1}
        file:
          key: "file.{path...}"
          schema: {schema: Event}
          access: {all: {limit: 10}}
      atomic:
        transition: {members: [case, event]}
    notes:
      purpose: Anything
      schema: {schema: Event}
"#;

const FIRST_CONTRACT: &str = r#"
format: pleach.contract.v1
id: acme.cases@v1
kind: service
displayName: Cases
description: Cases
schemas:
  CaseV1: {type: object, properties: {status: {enum: [OPEN, CLOSED]}}, required: [status]}
resources:
  kv:
    cases:
      purpose: Cases
      schema: {schema: CaseV1}
      history: 5
      keyspaces: {case: {key: "t.{tenant}.case.{case:uint(6)}"}}
"#;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) status: String,
    pub(super) title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FirstCase {
    pub(super) status: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) what: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Lock {
    pub(super) holder: String,
}

/// An engine with the buckets of the contract, and a clock that stands at noon of 4 July 2026.
pub(super) struct Given {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) service: Service,
    _directory: Option<tempfile::TempDir>,
}

/// Runs a test on every engine.
pub(super) fn on_every_engine(test: impl AsyncFn(Given)) {
    pollster::block_on(async {
        let clock = noon();
        test(
            Given::on(Arc::new(MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>)), clock, None)
                .await,
        )
        .await;
        let (clock, directory) = (noon(), tempfile::tempdir().unwrap());
        let engine = EmbeddedEngine::open_with(
            directory.path(),
            Settings::default(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );
        test(Given::on(Arc::new(engine.unwrap()), clock, Some(directory)).await).await;
    });
}

impl Given {
    async fn on(
        engine: Arc<dyn Engine>,
        clock: Arc<ManualClock>,
        directory: Option<tempfile::TempDir>,
    ) -> Self {
        for bucket in ["svc_cases_cases", "svc_cases_notes"] {
            let config =
                BucketConfig { history: 5.try_into().unwrap(), ..BucketConfig::plain(engine.capabilities()) };
            engine.create_bucket(&BucketName::parse(bucket).unwrap(), config).await.unwrap();
        }
        let service = bound(&engine, &clock, CONTRACT, &BTreeMap::new());
        Self { engine, clock, service, _directory: directory }
    }

    /// The same store with the code of the first version.
    pub(super) fn first_service(&self) -> Service {
        bound(&self.engine, &self.clock, FIRST_CONTRACT, &BTreeMap::new())
    }

    /// The same store where unstamped cases have this version.
    pub(super) fn service_with_unstamped(&self, version: &str) -> Service {
        let unstamped = BTreeMap::from([("cases", version)]);
        bound(&self.engine, &self.clock, CONTRACT, &unstamped)
    }

    pub(super) fn store(&self) -> KvStore {
        self.service.kv("cases").unwrap()
    }

    pub(super) fn cases(&self) -> Keyspace<Case> {
        self.store().keyspace("case").unwrap()
    }

    pub(super) fn events(&self) -> Keyspace<Event> {
        self.store().keyspace("event").unwrap()
    }

    /// Writes a case as the first version did.
    pub(super) async fn put_first(&self, number: u64, status: &str) {
        let cases = self.first_service().kv("cases").unwrap().keyspace::<FirstCase>("case").unwrap();
        cases.put(&case_key(number), &FirstCase { status: status.into() }).await.unwrap();
    }

    /// Writes bytes past the contract, with a version or without.
    pub(super) async fn put_raw(&self, key: &str, value: &str, version: Option<&str>) {
        let mut headers = Headers::new();
        if let Some(version) = version {
            headers.set(Envelope::VERSION, version).unwrap();
        }
        let operation = Operation::put(Key::parse(key).unwrap(), value.to_owned()).with_headers(headers);
        self.engine.commit(self.store().bucket(), Batch::from(operation)).await.unwrap();
    }

    /// The entry of a key, past the contract.
    pub(super) async fn raw(&self, key: &str) -> Option<Entry> {
        self.engine.read(self.store().bucket(), &Key::parse(key).unwrap(), At::Latest).await.unwrap()
    }
}

fn bound(
    engine: &Arc<dyn Engine>,
    clock: &Arc<ManualClock>,
    text: &str,
    unstamped: &BTreeMap<&str, &str>,
) -> Service {
    let contract = Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract;
    let bindings = contract.resources.kv.keys().map(|alias| {
        let unstamped = unstamped.get(alias.as_str()).map(|version| Unstamped::all(*version));
        (alias.clone(), Binding { bucket: format!("svc_cases_{alias}"), unstamped })
    });
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Service::new(Arc::clone(engine), clock, &contract, bindings).unwrap()
}

fn noon() -> Arc<ManualClock> {
    let noon = 1_783_166_400; // 2026-07-04T12:00:00Z
    Arc::new(ManualClock::new(Timestamp::from_micros(noon * 1_000_000)))
}

pub(super) fn case_key(number: u64) -> [Part<'static>; 2] {
    ["acme".into(), number.into()]
}

pub(super) fn event_key(case: u64, at: Time) -> [Part<'static>; 3] {
    ["acme".into(), case.into(), at.into()]
}

/// So many days before the clock's noon.
pub(super) fn days_ago(days: i64) -> Time {
    Time::new(1_783_166_400 - days * 86_400, 0).unwrap()
}

pub(super) fn open(title: &str) -> Case {
    Case { status: "OPEN".into(), title: title.into() }
}

pub(super) fn event(what: &str) -> Event {
    Event { what: what.into() }
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
