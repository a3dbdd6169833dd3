use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pleach_contract::Contract;
use pleach_contract::evolution::{self, Effect, Question, Subject, Verdict};
use pleach_engine::{BucketName, Revision, Selection};

use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::service_of;
use crate::place::{OWNER_METADATA, Place, PlaceKind, shortfalls};
use crate::plan::{
    Base, PLAN_FORMAT, PLAN_LIFETIME, Plan, PlanFinding, PlanRecord, PlanStatus, Scanned, Step,
};
use crate::record::Authority;
use crate::stored_state::state_name;
use crate::survey::{Asked, OnProgress, Part, Survey, Watchers};
use crate::system::unchanged;

/// Entries that are checked in a second where nothing has been measured.
const ENTRIES_A_SECOND: u64 = 300_000;

/// What a step of an apply takes at least, in milliseconds: a commit or two that are synced.
const STEP_MS: u64 = 10;

/// The most plans of a lineage that are kept without being pending or accepted.
const PLANS_OVER_MAX: usize = 20;

/// How a plan is made.
#[derive(Clone, Default)]
pub struct PlanOptions {
    /// The service whose name the buckets get; by default the last word of the lineage. It is chosen once.
    pub service: Option<String>,
    /// Buckets that nobody owns yet, by the aliases that shall have them.
    pub adopt: BTreeMap<String, BucketName>,
    /// Refuses what stands against the new contract from now on, until the plan is applied, rejected or expired.
    pub guard: bool,
    /// Is told how far scans have come.
    pub progress: Option<OnProgress>,
    /// Stops it once this is true.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl std::fmt::Debug for PlanOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { service, adopt, guard, .. } = self;
        f.debug_struct("PlanOptions")
            .field("service", service)
            .field("adopt", adopt)
            .field("guard", guard)
            .finish_non_exhaustive()
    }
}

impl PlanOptions {
    fn watchers(&self) -> Watchers {
        Watchers { progress: self.progress.clone(), cancel: self.cancel.clone() }
    }
}

impl Contracts {
    /// Makes a plan, unless a pending one says the same, and keeps it.
    pub(crate) async fn make_plan(
        &self,
        contract: &Contract,
        options: &PlanOptions,
    ) -> Result<Plan, AuthorityError> {
        let plan = self.draft(contract, options).await?;
        let now = self.shared.clock.now();
        let system = &self.shared.system;
        let known = system.plans(&plan.lineage).await?;
        let pending = known.iter().find(|kept| {
            kept.value.status(now) == PlanStatus::Pending && kept.value.plan.says_the_same(&plan)
        });
        if let Some(pending) = pending {
            return Ok(pending.value.plan.clone());
        }
        let over = known.iter().filter(|kept| kept.value.status(now) != PlanStatus::Pending);
        let mut over: Vec<_> = over.filter(|kept| kept.value.status != PlanStatus::Accepted).collect();
        over.sort_by_key(|kept| kept.value.plan.made);
        let surplus = over.len().saturating_sub(PLANS_OVER_MAX);
        let mut batch = pleach_engine::Batch::new();
        for kept in over.into_iter().take(surplus) {
            batch.push(system.delete_plan(kept)?);
        }
        let record = PlanRecord { status: PlanStatus::Pending, plan };
        let same = known.iter().find(|kept| kept.value.plan.id == record.plan.id);
        batch.push(system.put_plan(&record, unchanged(same))?);
        let lineage = record.plan.lineage.clone();
        system.commit(batch).await.map_err(|error| AuthorityError::of_commit(error, &lineage))?;
        Ok(record.plan)
    }

    async fn draft(&self, contract: &Contract, options: &PlanOptions) -> Result<Plan, AuthorityError> {
        let shared = &self.shared;
        let lineage = contract.id.as_str();
        let store = shared.system.store_id().await?;
        let authority = shared.system.authority(lineage).await?.map(|kept| kept.value);
        let service = chosen_service(contract, authority.as_ref(), options)?;
        let places = self.places(contract, authority.as_ref(), &service, &options.adopt).await?;
        let can = shared.system.engine().capabilities();
        let kv = &contract.resources.kv;
        let steps: Vec<Step> =
            places.iter().map(|place| place.step(kv.get(&place.alias), lineage, can)).collect();
        let mut findings = self.declared(contract, authority.as_ref()).await?;
        findings.extend(places.iter().flat_map(|place| of_place(place, contract)));
        let began = shared.clock.elapsed();
        let scans = self.weigh(contract, &places, &mut findings, &options.watchers()).await?;
        findings.retain(PlanFinding::matters);
        let took = shared.clock.elapsed().saturating_sub(began);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        let made = shared.clock.now();
        let base = authority.as_ref().map_or_else(Base::default, |authority| Base {
            version: authority.version,
            digest: Some(authority.digest.clone()),
        });
        // A contract that is in force under a digest of earlier rules keeps it.
        let in_force = base.digest.clone().filter(|digest| contract.is_called(digest));
        let target = in_force.unwrap_or_else(|| contract.digest().to_string());
        let mut plan = Plan {
            format: PLAN_FORMAT.to_owned(),
            id: String::new(),
            store,
            lineage: lineage.to_owned(),
            service,
            base,
            target,
            contract: contract.to_value(),
            findings,
            shortfalls: shortfalls(contract, can),
            estimate_ms: estimate(&steps, &scans, took),
            scans,
            steps,
            made,
            expires: made.saturating_add(PLAN_LIFETIME),
        };
        plan.id = plan.content_id();
        Ok(plan)
    }

    /// What the declarations say: the new contract against every one that was accepted, since values of each may be
    /// stored.
    async fn declared(
        &self,
        contract: &Contract,
        authority: Option<&Authority>,
    ) -> Result<Vec<PlanFinding>, AuthorityError> {
        let Some(authority) = authority.filter(|authority| !contract.is_called(&authority.digest)) else {
            return Ok(Vec::new());
        };
        let accepted = self.accepted(&authority.lineage).await?;
        let diff = evolution::diff_over(&accepted.iter().collect::<Vec<_>>(), contract);
        let mut findings: Vec<PlanFinding> = diff.findings.iter().map(PlanFinding::of).collect();
        findings.retain(PlanFinding::may_matter);
        if diff.more {
            let message = "there are more differences than were listed";
            let aliases = contract.resources.kv.keys();
            findings
                .extend(aliases.map(|alias| looked_up("plan.more", alias, message, "change less at once")));
            findings.extend(contract.state.keys().map(|store| PlanFinding {
                subject: Subject::State { store: store.clone(), version: None },
                ..looked_up("plan.more", store, message, "change less at once")
            }));
        }
        Ok(findings)
    }

    /// Every contract that was ever accepted, the newest last.
    pub(crate) async fn accepted(&self, lineage: &str) -> Result<Vec<Contract>, AuthorityError> {
        let mut seen = BTreeSet::new();
        let mut contracts = Vec::new();
        for decision in self.shared.system.decisions(lineage).await?.into_iter().rev() {
            if seen.insert(decision.digest.clone()) {
                contracts.push(self.shared.system.contract(lineage, &decision.digest).await?);
            }
        }
        contracts.reverse();
        Ok(contracts)
    }

    /// Asks the stored data whatever the findings want to know, and reads every bucket at most once for it.
    pub(crate) async fn weigh(
        &self,
        contract: &Contract,
        places: &[Place],
        findings: &mut [PlanFinding],
        watchers: &Watchers,
    ) -> Result<BTreeMap<String, Scanned>, AuthorityError> {
        let mut scans = BTreeMap::new();
        for place in places {
            let about = |finding: &PlanFinding| finding.alias() == Some(place.alias.as_str());
            let asked = findings.iter().enumerate().filter(|(_, finding)| about(finding));
            let asked: Vec<Asked> = asked.filter_map(|(index, finding)| Asked::of(index, finding)).collect();
            if asked.is_empty() || place.info.is_none() {
                continue;
            }
            let (scanned, asked) = self.survey(contract, place, asked, Revision::ZERO, watchers).await?;
            scans.insert(place.alias.clone(), scanned);
            for Asked { finding, answer, .. } in asked {
                findings[finding].weigh(answer);
            }
        }
        for (store, scanned, asked) in self.survey_state(contract, findings, Revision::ZERO, watchers).await?
        {
            scans.insert(state_name(&store), scanned);
            for Asked { finding, answer, .. } in asked {
                findings[finding].weigh(answer);
            }
        }
        // What is asked about data that is nowhere has its answer: there is none.
        for finding in findings.iter_mut() {
            if finding.question.is_some() && finding.answer.is_none() {
                finding.weigh(crate::plan::Answer::default());
            }
        }
        Ok(scans)
    }

    /// Reads the bucket of a place, as far as it was written after `since`.
    pub(crate) async fn survey(
        &self,
        contract: &Contract,
        place: &Place,
        asked: Vec<Asked>,
        since: Revision,
        watchers: &Watchers,
    ) -> Result<(Scanned, Vec<Asked>), AuthorityError> {
        let shared = &self.shared;
        let digest = place.owner.as_ref().and_then(|owner| Some((owner, owner.digest.as_ref()?)));
        let old = match digest {
            Some((owner, digest)) => shared.in_force(&owner.lineage, digest, &place.alias).await?,
            None => None,
        };
        let resource = contract.resources.kv.get(&place.alias);
        let part = Part {
            name: place.alias.clone(),
            old,
            new: shared.compiled(contract, &place.alias)?,
            resource,
            unstamped: place.unstamped(resource),
            asked,
            scanned: Scanned::default(),
        };
        let (bucket, selection) = (place.bucket.clone(), Selection::all());
        let mut survey = Survey { bucket, selection, since, part_of: |_| None, parts: vec![part] };
        survey.run(&**shared.system.engine(), shared.clock.now(), watchers).await?;
        let Part { scanned, asked, .. } = survey.parts.remove(0);
        Ok((scanned, asked))
    }
}

fn chosen_service(
    contract: &Contract,
    authority: Option<&Authority>,
    options: &PlanOptions,
) -> Result<String, AuthorityError> {
    match (authority, &options.service) {
        (Some(Authority { service, lineage, .. }), Some(asked)) if service != asked => {
            Err(AuthorityError::OtherService { lineage: lineage.clone(), service: service.clone() })
        }
        (Some(authority), _) => Ok(authority.service.clone()),
        (None, Some(asked)) => Ok(asked.clone()),
        (None, None) => Ok(service_of(&contract.id)),
    }
}

/// What is to be said about a bucket that comes with data, before anyone has looked at that.
fn of_place(place: &Place, contract: &Contract) -> Vec<PlanFinding> {
    let (alias, bucket) = (place.alias.as_str(), &place.bucket);
    let Some(info) = &place.info else { return Vec::new() };
    match place.kind {
        PlaceKind::Own | PlaceKind::Left => Vec::new(),
        PlaceKind::TakenBack => {
            let message = format!("`{alias}` takes back {bucket}, with what is in it");
            let mut findings =
                vec![looked_up("bucket.returned", alias, &message, "correct these values first")];
            findings.extend(retention_changes(place, contract));
            findings
        }
        PlaceKind::Adopted => {
            let message = format!("`{alias}` adopts {bucket}, with what is in it");
            let mut findings =
                vec![looked_up("bucket.adopted", alias, &message, "correct these values first")];
            let owner =
                info.config.metadata.get(OWNER_METADATA).filter(|owner| *owner != contract.id.as_str());
            if let Some(owner) = owner {
                let message = format!("{bucket} says of itself that it belongs to {owner}");
                let fix = "see that nobody else writes to it";
                findings.push(dangerous("bucket.owner", alias, &message, fix, None));
            }
            findings.extend(retention_changes(place, contract));
            findings
        }
    }
}

/// What a bucket with data would lose to the configuration that the contract asks for.
fn retention_changes(place: &Place, contract: &Contract) -> Vec<PlanFinding> {
    let (Some(info), Some(resource)) = (&place.info, contract.resources.kv.get(&place.alias)) else {
        return Vec::new();
    };
    let (alias, bucket) = (place.alias.as_str(), &place.bucket);
    let mut findings = Vec::new();
    if resource.history < u64::from(info.config.history.get()) {
        let message = format!(
            "{bucket} keeps {} records of a key, and would keep {}",
            info.config.history, resource.history
        );
        let question = Question::Deeper { history: resource.history };
        findings.push(dangerous(
            "bucket.history",
            alias,
            &message,
            "ask for the same `history`",
            Some(question),
        ));
    }
    let ttl_ms = info.config.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    if resource.ttl_ms > 0 && ttl_ms.is_none_or(|ttl_ms| resource.ttl_ms < ttl_ms) {
        let message = format!("values of {bucket} would live for {} ms", resource.ttl_ms);
        let question = Question::Older { ms: resource.ttl_ms };
        findings.push(dangerous("bucket.ttl", alias, &message, "ask for a longer `ttlMs`", Some(question)));
    }
    if let Some(bytes) =
        resource.max_value_bytes.filter(|bytes| *bytes < u64::from(info.config.value_bytes_max))
    {
        let message =
            format!("{bucket} takes values of {} bytes, and would take {bytes}", info.config.value_bytes_max);
        let question = Question::Larger { bytes };
        findings.push(dangerous(
            "bucket.valueBytes",
            alias,
            &message,
            "ask for larger values",
            Some(question),
        ));
    }
    findings
}

/// A finding that the values of a bucket decide.
fn looked_up(code: &str, alias: &str, message: &str, fix: &str) -> PlanFinding {
    PlanFinding {
        backward: Effect::Scan,
        declared: Verdict::Scan,
        verdict: Verdict::Scan,
        reason: "its values may not be what the contract asks for".to_owned(),
        ..dangerous(code, alias, message, fix, Some(Question::Refused))
    }
}

fn dangerous(code: &str, alias: &str, message: &str, fix: &str, question: Option<Question>) -> PlanFinding {
    PlanFinding {
        code: code.to_owned(),
        path: format!("/resources/kv/{alias}"),
        subject: Subject::Kv { alias: alias.to_owned(), keyspace: None, version: None },
        backward: Effect::Breaks,
        forward: Effect::Ok,
        declared: Verdict::Dangerous,
        verdict: Verdict::Dangerous,
        message: message.to_owned(),
        reason: "what is there was kept under other rules".to_owned(),
        fix: fix.to_owned(),
        question,
        against: None,
        answer: None,
    }
}

/// How long an apply takes, in milliseconds: it reads once more what was read for the plan.
fn estimate(steps: &[Step], scans: &BTreeMap<String, Scanned>, took: std::time::Duration) -> u64 {
    let entries: u64 = scans.values().map(|scanned| scanned.entries).sum();
    let measured = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let reading = if measured > 0 { measured } else { entries * 1000 / ENTRIES_A_SECOND };
    let changing = steps.iter().filter(|step| step.changes_something()).count() as u64;
    reading + (changing + 2) * STEP_MS
}
