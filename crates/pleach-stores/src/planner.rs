use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pleach_contract::Contract;
use pleach_contract::evolution::{self, Subject};
use pleach_engine::{BucketName, Revision, Selection};

use crate::alike::resources_alike;
use crate::asked::Asked;
use crate::bucket_findings::{looked_up, of_place};
use crate::contracts::Contracts;
use crate::data_findings::{data_refused, data_unread, data_unreadable};
use crate::error::AuthorityError;
use crate::evidence::{Answer, Scanned};
use crate::judge::Judge;
use crate::naming::service_of;
use crate::place::{Place, PlaceKind};
use crate::plan::{Base, PLAN_FORMAT, PLAN_LIFETIME, Plan, PlanFinding, PlanRecord, PlanStatus, Step};
use crate::record::Authority;
use crate::shortfalls::shortfalls;
use crate::stored_state::state_name;
use crate::survey::{Found, OnProgress, Part, Survey, Watchers};
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
        for (place, step) in places.iter().zip(&steps) {
            findings
                .extend(step.config().map_or_else(Vec::new, |becomes| of_place(place, contract, becomes)));
        }
        let drift = self.drift(contract, &places, &mut findings).await?;
        let began = shared.clock.elapsed();
        let old = self.in_force(&contract.id).await?;
        let scans = self.weigh((old.as_ref(), contract), &places, &mut findings, &options.watchers()).await?;
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
            drift,
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

    /// Judges every stored record that the contract reaches and answers what the findings ask. Every bucket is read at most
    /// once, and not at all if it is provably read alike before and after.
    pub(crate) async fn weigh(
        &self,
        (old, contract): (Option<&Contract>, &Contract),
        places: &[Place],
        findings: &mut Vec<PlanFinding>,
        watchers: &Watchers,
    ) -> Result<BTreeMap<String, Scanned>, AuthorityError> {
        let mut scans = BTreeMap::new();
        let mut told = Vec::new();
        for place in places {
            let asked = asked_of(findings, &place.alias);
            if let Some(part) = self.survey(contract, place, asked, Revision::ZERO, watchers).await? {
                let subject = Subject::Kv { alias: place.alias.clone(), keyspace: None, version: None };
                let path = format!("/resources/kv/{}", place.alias);
                scans.insert(place.alias.clone(), settle(part, findings, &mut told, (subject, path)));
            }
        }
        for part in self.survey_state(old, contract, findings, Revision::ZERO, watchers).await? {
            let (name, store) = (state_name(&part.name), part.name.clone());
            let path = format!("/state/{store}");
            let subject = Subject::State { store, version: None };
            scans.insert(name, settle(part, findings, &mut told, (subject, path)));
        }
        // A question about data that is nowhere needs no scan: the count is zero.
        for finding in findings.iter_mut() {
            if finding.question.is_some() && finding.answer.is_none() {
                finding.weigh(Answer::default());
            }
        }
        findings.extend(told);
        Ok(scans)
    }

    /// Reads the bucket of a place, as far as it was written after `since`; none if there is no need to.
    pub(crate) async fn survey<'c>(
        &self,
        contract: &'c Contract,
        place: &Place,
        asked: Vec<Asked>,
        since: Revision,
        watchers: &Watchers,
    ) -> Result<Option<Part<'c>>, AuthorityError> {
        let shared = &self.shared;
        if place.info.is_none() {
            return Ok(None);
        }
        let (alias, resource) = (place.alias.as_str(), contract.resources.kv.get(&place.alias));
        let digest = place.owner.as_ref().and_then(|owner| Some((owner, owner.digest.as_ref()?)));
        let (mut old, mut is_alike) = (None, false);
        // A bucket that comes back had no readers: what its contract was tells nothing about what is in it by now.
        if let Some((owner, digest)) = digest.filter(|_| place.kind != PlaceKind::TakenBack) {
            let before = shared.system.contract(&owner.lineage, digest).await?;
            is_alike = resources_alike(&before, contract, alias);
            let compiled = shared.in_force(&owner.lineage, digest, alias).await?;
            let kv = |resource| Judge::kv(resource, owner.unstamped.clone());
            old = Some(compiled.map_or_else(|| Judge::without_resource(alias), kv));
        }
        if is_alike && asked.is_empty() {
            return Ok(None);
        }
        let new = match shared.compiled(contract, alias)? {
            Some(compiled) => Judge::kv(compiled, place.unstamped(resource)),
            None => Judge::without_resource(alias),
        };
        let part = Part { is_alike, resource, asked, ..Part::new(alias, old, new) };
        let (bucket, selection) = (place.bucket.clone(), Selection::all());
        let part_of = |_: &_| None;
        let mut survey = Survey { bucket, selection, since, part_of, parts: vec![part], further: None };
        survey.run(&**shared.system.engine(), shared.clock.now(), watchers).await?;
        Ok(survey.parts.pop())
    }
}

/// What the findings ask about the bucket of an alias.
pub(crate) fn asked_of(findings: &[PlanFinding], alias: &str) -> Vec<Asked> {
    let about = findings.iter().enumerate().filter(|(_, finding)| finding.alias() == Some(alias));
    about.filter_map(|(index, finding)| Asked::of(index, finding)).collect()
}

/// Weighs findings by what a survey found, and tells of what none of them explains.
fn settle(
    part: Part<'_>,
    findings: &mut [PlanFinding],
    told: &mut Vec<PlanFinding>,
    (subject, path): (Subject, String),
) -> Scanned {
    let Part { asked, found, .. } = part;
    for Asked { finding, tally, .. } in asked {
        findings[finding].weigh(tally.into_answer());
    }
    let Found { scanned, unexplained, unreadable, is_unread, .. } = found;
    if is_unread {
        told.push(data_unread(&subject, &path));
    }
    if !unexplained.is_empty() {
        told.push(data_refused(&subject, &path, scanned.entries, unexplained));
    }
    if !unreadable.is_empty() {
        told.push(data_unreadable(&subject, &path, scanned.entries, unreadable));
    }
    scanned
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

/// How long an apply takes, in milliseconds: it reads once more what was read for the plan.
fn estimate(steps: &[Step], scans: &BTreeMap<String, Scanned>, took: std::time::Duration) -> u64 {
    let entries: u64 = scans.values().map(|scanned| scanned.entries).sum();
    let measured = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let reading = if measured > 0 { measured } else { entries * 1000 / ENTRIES_A_SECOND };
    let changing = steps.iter().filter(|step| step.changes_something()).count() as u64;
    reading + (changing + 2) * STEP_MS
}
