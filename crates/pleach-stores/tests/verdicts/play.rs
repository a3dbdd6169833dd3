//! Plays a story on a real store, and checks every plan that is called safe.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use pleach_contract::evolution::Verdict;
use pleach_contract::{Contract, Validators};
use pleach_engine::{
    Batch, BucketName, Clock, CommitError, Engine, EngineError, Entry, Headers, Key, ManualClock,
    MemoryEngine, Op, Operation, Revision, ScanQuery, Timestamp,
};
use pleach_stores::state::{GetOutcome, Principal, PutOptions, PutOutcome, STATE_BUCKET, State, StateError};
use pleach_stores::{
    ApplyOptions, AuthorityError, CompiledResource, Contracts, Envelope, Guarded, Plan, PlanOptions, Service,
};
use serde_json::Value;

use crate::document;
use crate::failure::{Failure, Kind};
use crate::judge::{Judge, Reading};
use crate::known;
use crate::story::{Act, Story};
use crate::tally::Tally;

/// How a story is played.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// Takes every plan for safe: then the checker must find what is lost.
    pub(crate) believes_everything: bool,
}

/// A stored record of a KV resource.
#[derive(Clone, Debug)]
struct Record {
    alias: String,
    key: Key,
    revision: Revision,
    time: Timestamp,
    expires: Option<Timestamp>,
    version: Option<String>,
    bytes: Vec<u8>,
    is_newest: bool,
    /// How many records of the key are newer, markers included.
    newer: usize,
}

/// A state entry as it was written, by principal, store and key.
type Entries = BTreeMap<(usize, String, Option<String>), (String, Value)>;

struct Play<'s> {
    story: &'s Story,
    judge: &'s Judge,
    how: How,
    tally: &'s mut Tally,
    engine: Guarded,
    clock: Arc<ManualClock>,
    contracts: Contracts,
    /// None if a document is no contract.
    compiled: Vec<Option<Contract>>,
    in_force: Option<usize>,
    buckets: BTreeMap<String, BucketName>,
    keys: BTreeSet<(String, Key)>,
    entries: Entries,
    validators: Validators,
}

/// Plays a story to its end or to the first failure.
pub(crate) fn play(story: &Story, judge: &Judge, how: How, tally: &mut Tally) -> Result<(), Failure> {
    let start = "2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap();
    let clock = Arc::new(ManualClock::new(start));
    let memory = MemoryEngine::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let engine = Guarded::new(Arc::new(memory), Arc::clone(&clock) as Arc<dyn Clock>);
    let mut play = Play {
        story,
        judge,
        how,
        tally,
        contracts: Contracts::of(&engine),
        engine,
        clock,
        compiled: story.documents.iter().map(document::contract).collect(),
        in_force: None,
        buckets: BTreeMap::new(),
        keys: BTreeSet::new(),
        entries: Entries::new(),
        validators: Validators::default(),
    };
    pollster::block_on(async {
        for act in &story.acts {
            play.act(act).await?;
        }
        Ok(())
    })
}

impl<'s> Play<'s> {
    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        match act {
            Act::Evolve { document, insists, meanwhile } => self.evolve(*document, *insists, meanwhile).await,
            Act::Wait { ms } => {
                self.clock.advance(Duration::from_millis(*ms));
                Ok(())
            }
            other => self.write(other).await,
        }
    }

    async fn write(&mut self, act: &Act) -> Result<(), Failure> {
        match act {
            Act::Put { .. } => self.put(act).await,
            Act::Delete { alias, key } => {
                if let Some(bucket) = self.buckets.get(alias) {
                    let batch = Batch::from(Operation::delete(Key::parse(key).unwrap()));
                    // A bucket that was set aside takes no writes.
                    let _ = self.engine.commit(bucket, batch).await;
                }
                Ok(())
            }
            Act::State { document, who, store, key, value } => {
                self.put_state(*document, (*who, store, key.as_deref()), value).await
            }
            Act::Configure { alias, history, ttl_ms } => self.configure(alias, *history, *ttl_ms).await,
            Act::Evolve { .. } | Act::Wait { .. } => Ok(()),
        }
    }

    fn document(&self, index: Option<usize>) -> Option<&'s Value> {
        let story = self.story;
        index.map(|index| &story.documents[index])
    }

    async fn put(&mut self, act: &Act) -> Result<(), Failure> {
        let Act::Put { alias, key, version, value, past_guard } = act else { return Ok(()) };
        let (Some(bucket), Ok(parsed)) = (self.buckets.get(alias).cloned(), Key::parse(key)) else {
            return Ok(());
        };
        let mut headers = Headers::new();
        if let Some(version) = version {
            headers.set(Envelope::VERSION, version).unwrap();
        }
        let batch = Batch::from(Operation::put(parsed.clone(), value.to_string()).with_headers(headers));
        if *past_guard {
            let broken = self.engine.break_glass("ann", "it is a test").unwrap();
            if broken.commit(&bucket, batch).await.is_ok() {
                self.keys.insert((alias.clone(), parsed));
            }
            return Ok(());
        }
        let in_force = self.document(self.in_force);
        let place =
            in_force.and_then(|document| document::place_of(&document["resources"]["kv"][alias], key));
        let current = place.map(|place| document::declared_versions(&place, "version")[0].0.clone());
        let reading = self.judge.kv(in_force, alias, key, version.as_deref().or(current.as_deref()), value);
        let (is_taken, said) = match self.engine.commit(&bucket, batch).await {
            Ok(_) => (true, String::new()),
            Err(CommitError::Engine(error @ EngineError::BrokenContract { .. })) => {
                (false, error.to_string())
            }
            // Too large, or the bucket was set aside.
            Err(_) => return Ok(()),
        };
        if is_taken {
            self.keys.insert((alias.clone(), parsed));
        }
        if is_taken != (reading == Reading::Valid) {
            let text = format!("the guard took it: {is_taken}, the judge says {reading:?}: {act}\n{said}");
            return self.disagreement(in_force, value, text);
        }
        Ok(())
    }

    /// A difference between the two implementations of JSON Schema: a failure, unless it is a known one.
    fn disagreement(&self, document: Option<&Value>, value: &Value, text: String) -> Result<(), Failure> {
        let known = document.and_then(|document| known::disagreement(document, value));
        match known {
            Some(reason) => {
                self.tally.disagrees(reason);
                Ok(())
            }
            None => Err(Failure::new(Kind::Disagreement, text)),
        }
    }

    async fn configure(&mut self, alias: &str, history: u8, ttl_ms: u64) -> Result<(), Failure> {
        let Some(bucket) = self.buckets.get(alias) else { return Ok(()) };
        let broken = self.engine.break_glass("ann", "it is a test").unwrap();
        let Ok(info) = broken.bucket(bucket).await else { return Ok(()) };
        let mut config = info.config;
        config.history = NonZeroU8::new(history).unwrap();
        config.ttl = (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms));
        broken.update_bucket(bucket, config).await.map_err(|error| Failure::of("configure", &error)).map(drop)
    }

    async fn put_state(
        &mut self,
        document: usize,
        (who, store, key): (usize, &str, Option<&str>),
        value: &Value,
    ) -> Result<(), Failure> {
        let Some(contract) = self.compiled[document].clone() else { return Ok(()) };
        let place = (who, store, key);
        let written = match self.in_force {
            Some(_) => put_in_session(&self.engine, &contract, place, value).await,
            None => self.bring_state(&contract, place, value).await,
        };
        let document = &self.story.documents[document];
        let version = document::declared_versions(&document["state"][store], "stateVersion")[0].0.clone();
        let reading = self.judge.state(Some(document), store, key.is_some(), &version, value);
        let is_taken = match &written {
            Ok(PutOutcome::Applied(_)) => true,
            Err(StateError::InvalidValue { .. }) => false,
            // The contract is not accepted any more, or has no such store.
            _ => return Ok(()),
        };
        if is_taken {
            let place = (who, store.to_owned(), key.map(str::to_owned));
            self.entries.insert(place, (version, value.clone()));
        }
        if is_taken != (reading == Reading::Valid) && reading.is_met() {
            let text = format!(
                "state {store}: taken: {is_taken}, the judge says {reading:?} of {value}: {written:?}"
            );
            return self.disagreement(Some(document), value, text);
        }
        Ok(())
    }

    /// Brings state into a store that has no contract yet: as a copy from another store that has one.
    async fn bring_state(
        &self,
        contract: &Contract,
        place: (usize, &str, Option<&str>),
        value: &Value,
    ) -> Result<PutOutcome<Value>, StateError> {
        let memory = MemoryEngine::with_clock(Arc::clone(&self.clock) as Arc<dyn Clock>);
        let elsewhere = Guarded::new(Arc::new(memory), Arc::clone(&self.clock) as Arc<dyn Clock>);
        let contracts = Contracts::of(&elsewhere);
        let plan = contracts.plan(contract, PlanOptions::default()).await.unwrap();
        contracts.apply(&plan, ApplyOptions::by("ann")).await.unwrap();
        let written = put_in_session(&elsewhere, contract, place, value).await;
        let bucket = BucketName::parse(STATE_BUCKET).unwrap();
        let Ok(info) = elsewhere.bucket(&bucket).await else { return written };
        let copies = self.engine.for_copies();
        copies.create_bucket(&bucket, info.config).await.unwrap();
        let page = elsewhere.for_copies().scan(&bucket, ScanQuery::default()).await.unwrap();
        for entry in page.entries {
            let put = Operation::put(entry.key, entry.value).with_headers(entry.headers);
            copies.commit(&bucket, Batch::from(put)).await.unwrap();
        }
        written
    }

    async fn evolve(&mut self, target: usize, insists: bool, meanwhile: &[Act]) -> Result<(), Failure> {
        let Some(contract) = self.compiled[target].clone() else { return Ok(()) };
        let plan = self.contracts.plan(&contract, PlanOptions::default()).await;
        let plan = plan.map_err(|error| Failure::of("plan", &error))?;
        let records = self.records().await;
        let losses = self.foreseen(&records, target);
        let is_safe = plan.verdict() == Verdict::Safe;
        // A first contract over nothing is no case.
        if self.in_force.is_some() || !self.entries.is_empty() {
            self.tally.planned(&plan, &losses);
        }
        if !is_safe && !insists && !self.how.believes_everything {
            return Ok(());
        }
        for act in meanwhile {
            self.write(act).await?;
        }
        let before = self.records().await;
        let options = ApplyOptions::by("ann");
        let options = if is_safe { options } else { options.acknowledging("it is a test") };
        let applied = match self.contracts.apply(&plan, options).await {
            Ok(applied) => applied,
            Err(AuthorityError::Violators { .. }) if !meanwhile.is_empty() => return Ok(()),
            Err(error) => return Err(Failure::of("apply", &error).with_plan(&plan)),
        };
        let old = self.in_force.replace(target);
        for (alias, binding) in applied.bindings {
            self.buckets.insert(alias, BucketName::parse(&binding.bucket).unwrap());
        }
        if !is_safe && !self.how.believes_everything {
            return Ok(());
        }
        let checked = self.check(&before, old, target, &contract).await;
        checked.map_err(|failure| failure.with_plan(&plan))
    }

    /// Everything that is kept of every key that was ever written.
    async fn records(&self) -> Vec<Record> {
        let mut all = Vec::new();
        for (alias, key) in &self.keys {
            let Ok(mut entries) = self.engine.history(&self.buckets[alias], key).await else { continue };
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.revision));
            let puts = entries.into_iter().enumerate().filter(|(_, entry)| entry.op == Op::Put);
            all.extend(puts.map(|(newer, entry)| Record::of(alias, newer, entry)));
        }
        all
    }

    /// What the judge and the rules of retention say that a contract would do to what is stored.
    fn foreseen(&self, records: &[Record], target: usize) -> Vec<String> {
        let document = &self.story.documents[target];
        let mut losses = Vec::new();
        for record in records {
            let reading = record.reading(self.judge, Some(document));
            let resource = &document["resources"]["kv"][&record.alias];
            let history = resource["history"].as_u64().unwrap_or(1);
            let ttl = Duration::from_millis(resource["ttlMs"].as_u64().unwrap_or(0));
            let expires = (!ttl.is_zero()).then(|| record.time.saturating_add(ttl));
            let dies_sooner = expires.is_some_and(|moment| record.expires.is_none_or(|now| moment < now));
            let bytes_max = resource["maxValueBytes"].as_u64().unwrap_or(u64::MAX);
            if reading != Reading::Valid {
                losses.push(format!("{} {} at {}: {reading:?}", record.alias, record.key, record.revision));
            } else if record.newer as u64 >= history || dies_sooner || record.bytes.len() as u64 > bytes_max {
                losses.push(format!("{} {} at {}: not kept", record.alias, record.key, record.revision));
            }
        }
        for ((who, store, key), (version, value)) in &self.entries {
            let reading = self.judge.state(Some(document), store, key.is_some(), version, value);
            if reading != Reading::Valid {
                losses.push(format!("state {store} {key:?} of {who}: {reading:?}"));
            }
        }
        losses
    }

    /// That nothing which could be read before is lost or unreadable now.
    async fn check(
        &self,
        before: &[Record],
        old: Option<usize>,
        new: usize,
        contract: &Contract,
    ) -> Result<(), Failure> {
        let after = self.records().await;
        let service = Service::bind(&self.engine, contract).await;
        let service = service.map_err(|error| Failure::of("bind", &error))?;
        let (old, new) = (self.document(old), &self.story.documents[new]);
        for record in before {
            let was = record.reading(self.judge, old);
            let now = record.reading(self.judge, Some(new));
            let is_kept =
                after.iter().any(|kept| kept.alias == record.alias && kept.revision == record.revision);
            if !is_kept && was == Reading::Valid {
                return Err(Failure::new(Kind::Lost, format!("{} is not kept any more", record.name())));
            }
            if !is_kept {
                continue;
            }
            let read = self.read(&service, contract, record).await;
            if read.is_ok() != (now == Reading::Valid) {
                let text = format!("{}: the judge says {now:?}, a reader {read:?}", record.name());
                self.disagreement(Some(new), &record.value(), text)?;
            } else if !was.may_become(now) {
                let text = format!("{}: {was:?} before, {now:?} now: {}", record.name(), read.unwrap_err());
                return Err(Failure::new(Kind::Unreadable, text));
            }
        }
        self.check_state(old, new, contract).await
    }

    async fn check_state(
        &self,
        old: Option<&Value>,
        new: &Value,
        contract: &Contract,
    ) -> Result<(), Failure> {
        let state = State::open(&self.engine).await.map_err(|error| Failure::of("state", &error))?;
        let compiled = state.contract(contract).await.map_err(|error| Failure::of("state", &error))?;
        for ((who, store, key), (version, value)) in &self.entries {
            let was = self.judge.state(old, store, key.is_some(), version, value);
            let now = self.judge.state(Some(new), store, key.is_some(), version, value);
            let name = format!("state {store} {key:?} of principal {who} with version {version}: `{value}`");
            let read = match state.session(principal(*who), &compiled).store(store) {
                Ok(declared) => match declared.get(key.as_deref()).await {
                    Ok(GetOutcome::Absent) => Err("it is absent".to_owned()),
                    Ok(GetOutcome::Found(_) | GetOutcome::MigrationRequired(_)) => Ok(()),
                    Err(error) => Err(error.to_string()),
                },
                Err(error) => Err(error.to_string()),
            };
            if read.is_ok() != (now == Reading::Valid) {
                let text = format!("{name}: the judge says {now:?}, a reader {read:?}");
                self.disagreement(Some(new), value, text)?;
            } else if !was.may_become(now) {
                let text = format!("{name}: {was:?} before, {now:?} now: {}", read.unwrap_err());
                return Err(Failure::new(Kind::Unreadable, text));
            }
        }
        Ok(())
    }

    /// Reads a record as programs do.
    async fn read(&self, service: &Service, contract: &Contract, record: &Record) -> Result<(), String> {
        let Some(store) = service.find(&record.alias) else { return Err("there is no such resource".into()) };
        if record.is_newest {
            return match store.get(&record.key).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err("it is absent".into()),
                Err(error) => Err(error.to_string()),
            };
        }
        let compiled = CompiledResource::of(contract, &record.alias, &self.validators);
        let compiled =
            compiled.map_err(|problems| problems.to_string())?.ok_or("there is no such resource")?;
        let keyspace = compiled.keyspace_of(&record.key).map_err(|misfit| misfit.to_string())?;
        let version = record.version.as_deref().ok_or("it has no version")?;
        keyspace.check(version, &record.bytes).map(drop).map_err(|misfit| misfit.to_string())
    }
}

impl Record {
    fn of(alias: &str, newer: usize, entry: Entry) -> Self {
        Self {
            alias: alias.to_owned(),
            revision: entry.revision,
            time: entry.time,
            expires: entry.expires,
            version: entry.headers.get(Envelope::VERSION).map(str::to_owned),
            bytes: entry.value.to_vec(),
            is_newest: newer == 0,
            newer,
            key: entry.key,
        }
    }

    fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    fn reading(&self, judge: &Judge, document: Option<&Value>) -> Reading {
        judge.kv(document, &self.alias, self.key.as_str(), self.version.as_deref(), &self.value())
    }

    fn name(&self) -> String {
        let (alias, key, revision) = (&self.alias, &self.key, self.revision);
        let age = if self.is_newest { "newest" } else { "older" };
        format!("{alias} {key}, {age} record at {revision}, version {:?}, `{}`", self.version, self.value())
    }
}

/// Writes state as a program does.
async fn put_in_session(
    engine: &Guarded,
    contract: &Contract,
    (who, store, key): (usize, &str, Option<&str>),
    value: &Value,
) -> Result<PutOutcome<Value>, StateError> {
    let state = State::open(engine).await?;
    let contract = state.contract(contract).await?;
    let declared = state.session(principal(who), &contract).store(store)?;
    declared.put(key, value.clone(), PutOptions::default()).await
}

fn principal(who: usize) -> Principal {
    match who {
        0 => Principal::user("ann").unwrap(),
        1 => Principal::user("bob").unwrap(),
        _ => Principal::device("phone.7").unwrap(),
    }
}

impl Failure {
    fn of(what: &str, error: &dyn std::error::Error) -> Self {
        let mut text = format!("{what}: {error}");
        let mut source = error.source();
        while let Some(inner) = source {
            text = format!("{text}: {inner}");
            source = inner.source();
        }
        Self::new(Kind::Error, text)
    }

    fn with_plan(mut self, plan: &Plan) -> Self {
        for finding in &plan.findings {
            let asked = finding.answer.as_ref().map(|answer| format!(", {} of {}", answer.count, answer.of));
            let line = format!("\n- {finding}: {:?}{}", finding.verdict, asked.unwrap_or_default());
            self.text.push_str(&line);
        }
        self
    }
}
