use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use pleach::{At, Batch, BucketConfig, BucketName, Durability, Engine, Key, SystemClock};
use pleach_contract::{Contract, Notation};
use pleach_embedded::EmbeddedEngine;
use pleach_stores::{Binding, Keyspace, Read, Service};
use pollster::block_on;
use serde::{Deserialize, Serialize};

use super::nanoseconds;
use crate::random::mix;
use crate::statistics::median;

/// A small schema, as most are.
const CONTRACT: &str = r#"
format: pleach.contract.v1
id: acme.cases@v1
kind: service
displayName: Cases
description: Cases
schemas:
  Case:
    type: object
    properties:
      status: {enum: [OPEN, UNDER_REVIEW, CLOSED]}
      title: {type: string, minLength: 1, maxLength: 200}
      priority: {type: integer, minimum: 0, maximum: 9}
      team: {type: string}
    required: [status, title, priority]
resources:
  kv:
    cases:
      purpose: Cases
      schema: {schema: Case}
      keyspaces: {case: {key: "t.{tenant}.case.{case:uint(12)}"}}
"#;

const KEYS: u64 = 10_000;

/// How long something takes with a contract, and without.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) what: &'static str,
    pub(super) raw_nanoseconds: f64,
    pub(super) typed_nanoseconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Case {
    status: String,
    title: String,
    priority: u8,
    team: Option<String>,
}

/// A bucket with and without a contract, in a directory.
struct Subject {
    engine: Arc<dyn Engine>,
    bucket: BucketName,
    cases: Keyspace<Case>,
    _directory: tempfile::TempDir,
}

/// Puts and gets of 10,000 keys, in buckets that are synced by each commit and in buckets that are not.
pub(super) fn measure(calls: u64) -> Result<Vec<Compared>> {
    let buffered = Subject::new(Durability::Buffered)?;
    let put = buffered.puts("put, buffered", calls)?;
    let get = buffered.gets("get", calls)?;
    // A sync takes as long as many puts without.
    let synced = Subject::new(Durability::Synced)?.puts("put, synced", calls.div_ceil(20))?;
    Ok(vec![put, synced, get])
}

impl Subject {
    fn new(durability: Durability) -> Result<Self> {
        let parsed =
            Contract::parse(CONTRACT.as_bytes(), Notation::Yaml).map_err(|problems| anyhow!("{problems}"))?;
        let contract = parsed.contract;
        let directory = tempfile::tempdir()?;
        let engine: Arc<dyn Engine> = Arc::new(EmbeddedEngine::open(directory.path())?);
        let bucket = BucketName::parse("svc_cases_cases")?;
        block_on(engine.create_bucket(&bucket, BucketConfig { durability, ..BucketConfig::default() }))?;
        let binding = Binding { bucket: bucket.to_string(), unstamped: None };
        let bindings = [("cases".to_owned(), binding)];
        let service = Service::new(Arc::clone(&engine), Arc::new(SystemClock::new()), &contract, bindings)?;
        let cases = service.kv("cases")?.keyspace("case")?;
        Ok(Self { engine, bucket, cases, _directory: directory })
    }

    /// The same keys and values, made the same way; only what the contract adds differs.
    fn puts(&self, what: &'static str, calls: u64) -> Result<Compared> {
        let raw = |number: u64| {
            let (key, value) = (self.key(number)?, serde_json::to_vec(&case(number))?);
            Ok(block_on(self.engine.commit(&self.bucket, Batch::new().put(key, value)))?)
        };
        let typed = |number: u64| {
            let number = number % KEYS;
            Ok(block_on(self.cases.put(&["acme".into(), number.into()], &case(number)))?)
        };
        // Once before, so that both find the same index.
        nanoseconds(KEYS, raw)?;
        compare(what, calls, raw, typed)
    }

    fn gets(&self, what: &'static str, calls: u64) -> Result<Compared> {
        let typed = |number: u64| {
            let number = mix(number) % KEYS;
            block_on(self.cases.get(&["acme".into(), number.into()]))?.context("it was put")
        };
        for number in 0..KEYS {
            block_on(self.cases.put(&["acme".into(), number.into()], &case(number)))?;
        }
        let Read::Current(read) = typed(1)? else { anyhow::bail!("it is of another version") };
        ensure!(read.value == case(mix(1) % KEYS), "another case was put: {read:?}");
        let raw = |number: u64| {
            let key = self.key(mix(number))?;
            let entry = block_on(self.engine.read(&self.bucket, &key, At::Latest))?.context("it was put")?;
            Ok(serde_json::from_slice::<Case>(&entry.value)?)
        };
        compare(what, calls, raw, typed)
    }

    fn key(&self, number: u64) -> Result<Key> {
        Ok(Key::parse(format!("t.acme.case.{:012}", number % KEYS))?)
    }
}

/// Measures both in turn, so that whatever else goes on meets both alike.
fn compare<R, T>(
    what: &'static str,
    calls: u64,
    raw: impl Fn(u64) -> Result<R>,
    typed: impl Fn(u64) -> Result<T>,
) -> Result<Compared> {
    const ROUND_CALLS: u64 = 500;
    let (mut raws, mut typeds) = (Vec::new(), Vec::new());
    for round in 0..calls.div_ceil(ROUND_CALLS) {
        let first = round * ROUND_CALLS;
        raws.push(nanoseconds(ROUND_CALLS, |number| raw(first + number))?);
        typeds.push(nanoseconds(ROUND_CALLS, |number| typed(first + number))?);
    }
    let [raw_nanoseconds, typed_nanoseconds] = [raws, typeds].map(|all| median(&all).unwrap_or_default());
    Ok(Compared { what, raw_nanoseconds, typed_nanoseconds })
}

fn case(number: u64) -> Case {
    let status = ["OPEN", "UNDER_REVIEW", "CLOSED"][usize::try_from(number % 3).unwrap_or(0)];
    let title = format!("a fence that is {number} inches too high");
    Case { status: status.into(), title, priority: 3, team: Some("enforcement".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_measured() {
        let compared = measure(20).unwrap();
        assert_eq!(compared.len(), 3);
        assert!(compared.iter().all(|both| both.raw_nanoseconds > 0.0 && both.typed_nanoseconds > 0.0));
    }
}
