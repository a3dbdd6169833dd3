//! What State costs: beside a plain bucket, and as a map grows.

use std::path::Path;

use anyhow::{Result, ensure};
use pleach::state::{
    Expect, GetOutcome, ListOptions, MapStore, Principal, PutOptions, PutOutcome, STATE_BUCKET,
};
use pleach::stores::{ApplyOptions, PlanOptions};
use pleach::{BucketConfig, Durability, ScanQuery, Store};
use pleach_contract::{Contract, Validators};
use serde_json::{Value, json};

use crate::args::StateArguments;
use crate::contract::nanoseconds;
use crate::output::{progress, show};
use crate::run::Scratch;
use crate::table::rendered;

/// Entries of one page.
const PAGE: usize = 100;

/// Measures all of it and prints a table each.
pub(crate) fn run(arguments: &StateArguments) -> Result<()> {
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    let (calls, mut counts) =
        if arguments.small { (500, vec![1000]) } else { (arguments.calls, arguments.entries.clone()) };
    counts.sort_unstable();
    show(&format!("\n{}", rendered(&beside_a_bucket(&scratch.fresh("state")?, calls)?)));
    show(&format!("\n{}", rendered(&parts_of_a_get(&scratch.fresh("parts")?, calls)?)));
    let mut lines = vec![
        ["entries", "get", "put", "count", "page, first", "page, middle", "page, last"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for count in counts {
        progress(&format!("{count} entries"));
        lines.push(as_it_grows(&scratch.fresh("map")?, count, calls.min(2000))?);
    }
    show(&format!("\nmicroseconds\n\n{}", rendered(&lines)));
    Ok(())
}

/// Puts and gets of State and of a plain bucket, with the same JSON.
fn beside_a_bucket(directory: &Path, calls: u64) -> Result<Vec<Vec<String>>> {
    let (store, drafts) = given(directory)?;
    let bucket = pollster::block_on(store.create_bucket_with("plain", buffered()))?;
    let value = draft(7);
    let bytes = serde_json::to_vec(&value)?;
    let raw_put = nanoseconds(calls, |n| {
        Ok(pollster::block_on(bucket.put(format!("{:07}", n % 1000), bytes.clone()))?)
    })?;
    let raw_get = nanoseconds(calls, |n| {
        let found = pollster::block_on(bucket.get(format!("{:07}", n % 1000)))?;
        ensure!(found.is_some_and(|entry| entry.value == bytes), "what was put is there");
        Ok(())
    })?;
    let put = nanoseconds(calls, |n| put(&drafts, n % 1000, PutOptions::default()))?;
    let create = nanoseconds(calls, |n| put_new(&drafts, 1_000_000 + n))?;
    let get = nanoseconds(calls, |n| get(&drafts, n % 1000))?;
    let row = |work: &str, state: f64, raw: f64| {
        vec![
            work.to_owned(),
            format!("{:.2}", state / 1000.0),
            format!("{:.2}", raw / 1000.0),
            format!("{:.2}", state / raw),
        ]
    };
    pollster::block_on(store.close())?;
    Ok(vec![
        ["work", "State, µs", "bucket, µs", "ratio"].map(str::to_owned).to_vec(),
        row("put", put, raw_put),
        row("put expecting absence", create, raw_put),
        row("get", get, raw_get),
    ])
}

/// What of a get of State is what: each part alone.
fn parts_of_a_get(directory: &Path, calls: u64) -> Result<Vec<Vec<String>>> {
    let (store, drafts) = given(directory)?;
    (0..1000).try_for_each(|number| put(&drafts, number, PutOptions::default()))?;
    let bucket = pollster::block_on(store.for_copies().bucket(STATE_BUCKET))?;
    let keys =
        pollster::block_on(bucket.scan_page(ScanQuery { limit: 1000, ..ScanQuery::default() }))?.entries;
    let entry = |n: u64| &keys[usize::try_from(n % 1000).unwrap_or_default()];
    let raw = nanoseconds(calls, |n| {
        ensure!(pollster::block_on(bucket.get(entry(n).key.as_str()))?.is_some(), "it is there");
        Ok(())
    })?;
    let parsed = nanoseconds(calls, |n| Ok(serde_json::from_slice::<Value>(&entry(n).value).map(drop)?))?;
    let schemas =
        Validators::default().of(&contract()?).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let (schema, value) = (&schemas["Draft"], draft(7));
    let validated = nanoseconds(calls, |_| {
        ensure!(schema.validate(&value).is_ok(), "it is valid");
        Ok(())
    })?;
    let whole = nanoseconds(calls, |n| get(&drafts, n % 1000))?;
    let row = |part: &str, nanoseconds: f64| vec![part.to_owned(), format!("{:.2}", nanoseconds / 1000.0)];
    pollster::block_on(store.close())?;
    Ok(vec![
        ["part of a get", "µs"].map(str::to_owned).to_vec(),
        row("the entry of the bucket, with its headers", raw),
        row("its value as JSON", parsed),
        row("the schema", validated),
        row("all of it", whole),
    ])
}

/// A row of the table of growth.
fn as_it_grows(directory: &Path, count: u64, calls: u64) -> Result<Vec<String>> {
    let (store, drafts) = given(directory)?;
    for number in 0..count {
        put(&drafts, number, PutOptions::default())?;
    }
    let spread = |n: u64| n.wrapping_mul(7919) % count;
    let few = calls.div_ceil(500).max(1) * 500;
    let get = nanoseconds(few, |n| get(&drafts, spread(n)))?;
    let put = nanoseconds(few, |n| put(&drafts, spread(n), PutOptions::default()))?;
    let counted = rarely(|| {
        ensure!(pollster::block_on(drafts.count())? == count, "the count is exact");
        Ok(())
    })?;
    let last = count.saturating_sub(PAGE as u64);
    let mut row = vec![count.to_string(), micros(get), micros(put), micros(counted)];
    for offset in [0, count / 2, last] {
        let page = rarely(|| {
            let page = pollster::block_on(drafts.list(ListOptions::first(PAGE).from(offset)))?;
            ensure!(
                (page.entries.len(), page.count) == (PAGE, count),
                "the page is full, and the count exact"
            );
            Ok(())
        })?;
        row.push(micros(page));
    }
    pollster::block_on(store.close())?;
    Ok(row)
}

/// A store with a map of drafts; commits are not synced, which would hide everything else.
fn given(directory: &Path) -> Result<(Store, MapStore<Value>)> {
    let contract = contract()?;
    pollster::block_on(async {
        let store = Store::open(directory).await?;
        store.for_copies().create_bucket_with(STATE_BUCKET, buffered()).await?;
        let plan = store.contracts().plan(&contract, PlanOptions::default()).await?;
        store.contracts().apply(&plan, ApplyOptions::by("bench")).await?;
        let state = store.state().await?;
        let session = state.session(Principal::user("ann")?, &state.contract(&contract).await?);
        Ok((store, session.map("drafts")?))
    })
}

fn contract() -> Result<Contract> {
    let contract = Contract::from_value(&json!({
        "format": "pleach.contract.v1", "id": "acme.notes@v1", "kind": "app", "displayName": "Notes", "description": "Notes",
        "schemas": {"Draft": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "text": {"type": "string"}, "number": {"type": "integer"}},
            "required": ["title", "text", "number"],
        }},
        "state": {"drafts": {"kind": "map", "schema": {"schema": "Draft"}}},
    }));
    Ok(contract.map_err(|problems| anyhow::anyhow!("{problems:?}"))?.contract)
}

fn buffered() -> BucketConfig {
    BucketConfig { durability: Durability::Buffered, ..BucketConfig::default() }
}

fn draft(number: u64) -> Value {
    json!({"title": "A letter", "text": "Dear all, this is what a draft of some hundred bytes might begin with.", "number": number})
}

fn put(drafts: &MapStore<Value>, number: u64, options: PutOptions) -> Result<()> {
    let outcome = pollster::block_on(drafts.put_with(&format!("{number:07}"), &draft(number), options))?;
    ensure!(matches!(outcome, PutOutcome::Applied(_)), "it was put");
    Ok(())
}

fn put_new(drafts: &MapStore<Value>, number: u64) -> Result<()> {
    put(drafts, number, PutOptions { expect: Expect::Absent, ..PutOptions::default() })
}

fn get(drafts: &MapStore<Value>, number: u64) -> Result<()> {
    match pollster::block_on(drafts.get(&format!("{number:07}")))? {
        GetOutcome::Found(entry) => ensure!(entry.value["number"] == json!(number), "what was put is there"),
        GetOutcome::Absent | GetOutcome::MigrationRequired(_) => anyhow::bail!("it was put before"),
    }
    Ok(())
}

/// How many nanoseconds a call takes that is worth a round of its own.
fn rarely(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut rounds = Vec::new();
    for _ in 0..11 {
        let started = crate::process::now();
        call()?;
        rounds.push((crate::process::now() - started).as_nanos() as f64);
    }
    Ok(crate::statistics::median(&rounds).unwrap_or_default())
}

fn micros(nanoseconds: f64) -> String {
    format!("{:.1}", nanoseconds / 1000.0)
}
