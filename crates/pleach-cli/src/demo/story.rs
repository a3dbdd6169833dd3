use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use pleach::contract::evolution::Verdict;
use pleach::contract::{Contract, Notation};
use pleach::stores::{
    ApplyOptions, Contracts, Keyspace, Plan, PlanFinding, PlanOptions, QueryOptions, Read, Service,
};
use pleach::{Clock as _, Store, SystemClock};
use serde_json::{Value, json};

use super::cases::{self, Case, CaseV1};
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::text::time;

const FIRST: &str = include_str!("first.yaml");
const CARELESS: &str = include_str!("careless.yaml");
const MENDED: &str = include_str!("mended.yaml");

/// How many cases are written in one commit.
const CASES_IN_BATCH: u64 = 500;

/// How many cases are read in one page.
const PAGE: usize = 1000;

/// The demonstration, step by step.
pub(super) struct Story<'o> {
    cases: u64,
    pause: Duration,
    output: &'o mut Output,
    step: u32,
    clock: SystemClock,
}

impl<'o> Story<'o> {
    pub(super) fn new(cases: u64, pause: Duration, output: &'o mut Output) -> Self {
        Self { cases, pause, output, step: 0, clock: SystemClock::new() }
    }

    pub(super) async fn tell(&mut self, path: &Path) -> anyhow::Result<()> {
        let store = Store::open(path).await.context("cannot open the store of the demonstration")?;
        let told = self.chapters(&store).await;
        let closed = store.close().await;
        told.and(closed.map_err(Into::into))
    }

    async fn chapters(&mut self, store: &Store) -> anyhow::Result<()> {
        let contracts = store.contracts();
        self.heading("A team keeps its cases by a contract")?;
        self.contract_in_force(&contracts, FIRST).await?;
        let old_program = store.service(&contract(FIRST)?).await?;
        self.write_cases(&old_program).await?;
        self.refuse_nonsense(store, &contracts).await?;

        self.heading("The next release is careless")?;
        self.line("`assignee` becomes `owner` and must be there, `waiting` is no status any more, history and size shrink.")?;
        self.line(
            "Most stores would take the deploy and find out later. The plan asks the stored data first:",
        )?;
        self.stopped_by_the_plan(&contracts).await?;

        self.heading("Mended: a second version that accepts the first")?;
        let new_program = self.second_version(store, &contracts, &old_program).await?;

        self.heading("Every case, as the new program sees it")?;
        self.take_stock(&new_program).await
    }

    /// Plans and applies a contract that has nothing dangerous about it.
    async fn contract_in_force(&mut self, contracts: &Contracts, text: &str) -> anyhow::Result<Plan> {
        let plan = contracts.plan(&contract(text)?, PlanOptions::default()).await?;
        for step in &plan.steps {
            self.line(format!("step: {step}"))?;
        }
        let applied = contracts.apply(&plan, ApplyOptions::by("ann")).await?;
        let line = format!("{} is in force, as version {}", applied.lineage, applied.version);
        self.tell_line(&json!({"event": "applied", "version": applied.version}), &line)?;
        Ok(plan)
    }

    async fn write_cases(&mut self, program: &Service) -> anyhow::Result<()> {
        let kv = program.kv("cases")?;
        let keyspace: Keyspace<CaseV1> = kv.keyspace("case")?;
        let begin = self.clock.elapsed();
        let mut next = 0;
        while next < self.cases {
            let end = (next + CASES_IN_BATCH).min(self.cases);
            let mut batch = kv.batch();
            for number in next..end {
                batch = batch.put(&keyspace, &cases::key(number), &cases::first(number));
            }
            batch.commit().await?;
            next = end;
        }
        let took = self.clock.elapsed() - begin;
        let line =
            format!("{} cases are written, each checked against the contract, in {}", self.cases, time(took));
        self.tell_line(&json!({"event": "written", "cases": self.cases}), &line)
    }

    /// Even whoever knows nothing of contracts cannot write what the contract does not allow.
    async fn refuse_nonsense(&mut self, store: &Store, contracts: &Contracts) -> anyhow::Result<()> {
        let contract = contract(FIRST)?;
        let status = contracts.status(&contract.id).await?.context("the contract is in force")?;
        let bucket = store.bucket(&status.authority.bindings["cases"].bucket).await?;
        let refused = bucket.put("t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV", r#"{"title": 7}"#).await;
        let why = refused.err().context("the guard refuses it")?;
        self.line(format!("a raw put of {{\"title\": 7}} is refused: {}", root(&why)))
    }

    async fn stopped_by_the_plan(&mut self, contracts: &Contracts) -> anyhow::Result<()> {
        let begin = self.clock.elapsed();
        let plan = contracts.plan(&contract(CARELESS)?, PlanOptions::default()).await?;
        let took = self.clock.elapsed() - begin;
        for finding in plan.dangers() {
            self.danger(finding)?;
        }
        let looked: u64 = plan.scans.values().map(|scanned| scanned.entries).sum();
        self.line(format!("{looked} values were looked at in {}; nothing was changed", time(took)))?;
        let refused = contracts.apply(&plan, ApplyOptions::by("ann")).await;
        let why = refused.err().context("a dangerous plan is not applied just so")?;
        self.tell_line(
            &json!({"event": "stopped", "dangers": plan.dangers().count()}),
            &format!("apply says: {}", root(&why)),
        )
    }

    fn danger(&mut self, finding: &PlanFinding) -> anyhow::Result<()> {
        let (count, of) = finding.answer.as_ref().map_or((0, 0), |answer| (answer.count, answer.of));
        let word = self.output.paint().red("dangerous:");
        let line = format!("{word} {} ({count} of {of} values)", finding.message);
        self.tell_line(&json!({"event": "danger", "code": finding.code, "count": count, "of": of}), &line)?;
        let sample = finding.answer.as_ref().and_then(|answer| answer.samples.first());
        match sample {
            Some(sample) => self.line(format!("           such as {}: {}", sample.key, sample.message)),
            None => Ok(()),
        }
    }

    /// Applies the mended contract, and upgrades all cases, while programs of both versions go on writing.
    async fn second_version(
        &mut self,
        store: &Store,
        contracts: &Contracts,
        old_program: &Service,
    ) -> anyhow::Result<Service> {
        let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let cases = self.cases;
        let upgraded = std::thread::scope(|scope| {
            let writer =
                scope.spawn(|| pollster::block_on(go_on_writing(old_program, cases, &written, &stop)));
            let upgraded = pollster::block_on(self.upgrade(store, contracts, &written));
            stop.store(true, Ordering::SeqCst);
            let wrote = writer.join().map_err(|_| anyhow::anyhow!("the writer has panicked"))?;
            wrote.context("the old program could not go on writing")?;
            upgraded
        })?;
        let count = written.load(Ordering::SeqCst);
        let line = format!("meanwhile the old program wrote {count} cases, and none of its writes failed");
        self.tell_line(&json!({"event": "meanwhile", "written": count}), &line)?;
        Ok(upgraded)
    }

    async fn upgrade(
        &mut self,
        store: &Store,
        contracts: &Contracts,
        written: &AtomicU64,
    ) -> anyhow::Result<Service> {
        // The old program is at work before anything changes.
        while written.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let plan = self.contract_in_force(contracts, MENDED).await?;
        if let [change] = plan.findings.as_slice()
            && change.verdict == Verdict::Safe
        {
            self.line("its plan has one change, and it is safe")?;
        }
        let program = store.service(&contract(MENDED)?).await?;
        let cases: Keyspace<Case> = program.kv("cases")?.keyspace("case")?;
        let cases = cases.migrate_lazily(|old, _version| {
            let old: CaseV1 = serde_json::from_value(old)?;
            Ok(cases::upgraded(old))
        });
        let (mut seen, mut page) = (0_u64, None);
        loop {
            let found =
                cases.scan(QueryOptions { limit: Some(PAGE), page, ..QueryOptions::default() }).await?;
            seen += found.entries.len() as u64;
            page = found.next;
            if page.is_none() {
                break;
            }
        }
        let line = format!(
            "{seen} cases were read by the new program, which upgraded each old one under a revision check"
        );
        self.tell_line(&json!({"event": "upgraded", "read": seen}), &line)?;
        Ok(program)
    }

    async fn take_stock(&mut self, program: &Service) -> anyhow::Result<()> {
        let keyspace: Keyspace<Case> = program.kv("cases")?.keyspace("case")?;
        let (mut current, mut old) = (0_u64, 0_u64);
        for number in 0..self.cases {
            match keyspace.get(&cases::key(number)).await? {
                Some(Read::Current(_)) => current += 1,
                Some(Read::MigrationRequired(_)) => old += 1,
                None => anyhow::bail!("case {number} is gone"),
            }
        }
        let line = format!(
            "{current} of {} cases are of version v2 and {old} of v1, which the contract still accepts; none is lost",
            self.cases
        );
        self.tell_line(&json!({"event": "done", "current": current, "old": old, "lost": 0}), &line)?;
        self.line("Try it on your own data: `pleach contract new`, then docs/guide/.")
    }

    fn heading(&mut self, text: &str) -> anyhow::Result<()> {
        if self.step > 0 && !self.pause.is_zero() {
            self.output.flush()?;
            std::thread::sleep(self.pause);
        }
        self.step += 1;
        if self.output.is_json() {
            return self
                .output
                .object(&json!({"v": JSON_VERSION, "event": "step", "step": self.step, "title": text}));
        }
        let heading = self.output.paint().bold(&format!("{}. {text}", self.step));
        self.output.line("")?;
        self.output.line(heading)
    }

    /// Something for people only.
    fn line(&mut self, text: impl AsRef<str>) -> anyhow::Result<()> {
        if self.output.is_json() {
            return Ok(());
        }
        self.output.line(format_args!("   {}", text.as_ref()))?;
        // One line after the other, as it happens.
        self.output.flush()
    }

    /// Something for people, and for programs.
    fn tell_line(&mut self, object: &Value, text: &str) -> anyhow::Result<()> {
        if self.output.is_json() {
            let mut object = object.clone();
            object["v"] = JSON_VERSION.into();
            return self.output.object(&object);
        }
        self.line(text)
    }
}

/// The program of before, which nobody has replaced yet: it opens cases until it is told to stop.
async fn go_on_writing(
    program: &Service,
    cases: u64,
    written: &AtomicU64,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let keyspace: Keyspace<CaseV1> = program.kv("cases")?.keyspace("case")?;
    while !stop.load(Ordering::SeqCst) {
        let number = cases + written.load(Ordering::SeqCst);
        keyspace.put(&cases::key(number), &cases::first(number)).await?;
        written.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

fn contract(text: &str) -> anyhow::Result<Contract> {
    let parsed = Contract::parse(text.as_bytes(), Notation::Yaml);
    Ok(parsed.context("a contract of the demonstration")?.contract)
}

/// What an error comes from.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
