use pleach_contract::Contract;
use pleach_contract::evolution::{Question, Verdict};
use pleach_engine::{BucketName, EngineError, Revision};

use crate::asked::{Asked, Tally};
use crate::bucket_findings::losses;
use crate::claims::Claimed;
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::place::{Place, PlaceKind};
use crate::plan::{Plan, Step};
use crate::planner::asked_of;
use crate::stored_state::state_name;
use crate::survey::{Part, Watchers};

impl Contracts {
    /// Looks at what was written between the plan and its guards. Every record that the new contract refuses stops the apply,
    /// also if the plan is acknowledged: an acknowledgement covers what the plan showed. Buckets that are set aside are not
    /// looked at, since they can be restored with all that was written to them.
    pub(crate) async fn look_again(
        &self,
        plan: &Plan,
        contract: &Contract,
        claimed: &[Claimed],
    ) -> Result<(), AuthorityError> {
        let engine = self.shared.system.engine();
        for step in &plan.steps {
            let Some(claim) = claimed.iter().find(|claim| claim.bucket.as_str() == step.bucket()) else {
                continue;
            };
            let info = match engine.bucket(&claim.bucket).await {
                Ok(info) => Some(info),
                Err(EngineError::BucketNotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            match step {
                Step::Create { .. } if info.is_some() && claim.before.is_none() => {
                    return Err(AuthorityError::InTheWay { bucket: claim.bucket.clone() });
                }
                Step::Adopt { .. } | Step::TakeBack { .. } if info.is_none() => {
                    return Err(self.moved(&plan.lineage, "the bucket that was to be taken over is gone"));
                }
                _ => {}
            }
            let kind = match step {
                Step::Adopt { .. } => PlaceKind::Adopted,
                Step::TakeBack { .. } => PlaceKind::TakenBack,
                _ => PlaceKind::Own,
            };
            let place = Place {
                alias: step.alias().to_owned(),
                bucket: claim.bucket.clone(),
                owner: Some(claim.now.value.clone()),
                info,
                kind,
            };
            let can = engine.capabilities();
            let resource = contract.resources.kv.get(&place.alias);
            let is_kept = |step: &Step| matches!(step, Step::Keep { .. });
            if is_kept(step) && place.info.is_some() && !is_kept(&place.step(resource, &plan.lineage, can)) {
                let what = format!("the configuration of {} was changed since the plan", place.bucket);
                return Err(self.moved(&plan.lineage, &what));
            }
            self.look_at_losses(plan, contract, step).await?;
            self.look_at(plan, contract, &place).await?;
        }
        self.look_at_state(plan, contract).await
    }

    /// Refuses to give a bucket a configuration that loses records which the plan did not show: its records or its
    /// configuration may have changed since. An apply looks before the plan is accepted, and right before the step.
    pub(crate) async fn look_at_losses(
        &self,
        plan: &Plan,
        contract: &Contract,
        step: &Step,
    ) -> Result<(), AuthorityError> {
        let Some(config) = step.config() else { return Ok(()) };
        let (alias, bucket) = (step.alias(), BucketName::parse(step.bucket())?);
        let info = match self.shared.system.engine().bucket(&bucket).await {
            Ok(info) => info,
            Err(EngineError::BucketNotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for loss in losses("bucket", (alias, &bucket), (&info.config, config)) {
            let is_shown = plan.findings.iter().any(|shown| {
                let is_same = shown.alias() == Some(alias) && shown.question == loss.question;
                is_same && shown.verdict == Verdict::Dangerous
            });
            let scanned = plan.scans.get(alias).filter(|_| is_shown);
            let since = scanned.map_or(Revision::ZERO, |scanned| scanned.revision);
            let owner = self.shared.system.owner(bucket.as_str()).await?.map(|kept| kept.value);
            let place = Place {
                alias: alias.to_owned(),
                bucket: bucket.clone(),
                owner,
                info: Some(info.clone()),
                kind: PlaceKind::Own,
            };
            let asked = asked_of(&[loss], alias);
            let part = self.survey(contract, &place, asked, since, &Watchers::default()).await?;
            let found = part.into_iter().flat_map(|part| part.asked).find(|asked| !asked.tally.is_empty());
            if let Some(asked) = found {
                return Err(violators(&bucket, asked.tally));
            }
        }
        Ok(())
    }

    /// The same for what users and devices have stored since. An apply looks before the contract is accepted, and once more
    /// before it is in force: a session of an older program may not know of claims on state.
    pub(crate) async fn look_at_state(&self, plan: &Plan, contract: &Contract) -> Result<(), AuthorityError> {
        let old = match &plan.base.digest {
            Some(digest) => Some(self.shared.system.contract(&plan.lineage, digest).await?),
            None => None,
        };
        let since = plan.scans.iter().filter(|(name, _)| name.starts_with(&state_name("")));
        let since = since.map(|(_, scanned)| scanned.revision).min().unwrap_or(Revision::ZERO);
        let watchers = Watchers::default();
        let parts = self.survey_state(old.as_ref(), contract, &plan.findings, since, &watchers).await?;
        for part in parts {
            let bucket = BucketName::parse(&part.found.scanned.bucket)?;
            let path = format!("/state/{}", part.name);
            self.refuse_violators(plan, &bucket, &path, part)?;
        }
        Ok(())
    }

    async fn look_at(&self, plan: &Plan, contract: &Contract, place: &Place) -> Result<(), AuthorityError> {
        let mut asked = asked_of(&plan.findings, &place.alias);
        asked.retain(|asked| depends(plan, asked));
        // Whether two entries share a key of an index, only all of them can tell.
        let (of_all, asked): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|asked| matches!(asked.question, Question::Twice { .. }));
        let watchers = Watchers::default();
        let violators = |tally| violators(&place.bucket, tally);
        if !of_all.is_empty() {
            let part = self.survey(contract, place, of_all, Revision::ZERO, &watchers).await?;
            let found = part.into_iter().flat_map(|part| part.asked).find(|asked| !asked.tally.is_empty());
            if let Some(asked) = found {
                return Err(violators(asked.tally));
            }
        }
        let since = plan.scans.get(&place.alias).map_or(Revision::ZERO, |scanned| scanned.revision);
        let path = format!("/resources/kv/{}", place.alias);
        match self.survey(contract, place, asked, since, &watchers).await? {
            Some(part) => self.refuse_violators(plan, &place.bucket, &path, part),
            None => Ok(()),
        }
    }

    fn refuse_violators(
        &self,
        plan: &Plan,
        bucket: &BucketName,
        path: &str,
        part: Part<'_>,
    ) -> Result<(), AuthorityError> {
        let Part { asked, found, .. } = part;
        if !found.refused.is_empty() {
            return Err(violators(bucket, found.refused));
        }
        let is_shown = || plan.findings.iter().any(|shown| shown.code == "data.unread" && shown.path == path);
        if found.is_unread && !is_shown() {
            let what = "older records could be read for the plan, and cannot be read now";
            return Err(self.moved(&plan.lineage, what));
        }
        match asked.into_iter().find(|asked| depends(plan, asked) && !asked.tally.is_empty()) {
            Some(asked) => Err(violators(bucket, asked.tally)),
            None => Ok(()),
        }
    }
}

fn violators(bucket: &BucketName, tally: Tally) -> AuthorityError {
    let count = tally.total();
    AuthorityError::Violators { bucket: bucket.clone(), count, samples: tally.into_answer().samples }
}

/// Whether a finding is safe only because there was nothing stored that stood against it.
fn depends(plan: &Plan, asked: &Asked) -> bool {
    let finding = &plan.findings[asked.finding];
    finding.declared != Verdict::Safe && finding.verdict == Verdict::Safe
}
