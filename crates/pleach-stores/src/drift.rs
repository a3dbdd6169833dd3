use pleach_contract::Contract;
use pleach_contract::evolution::{Effect, Verdict};
use pleach_engine::BucketConfig;

use crate::bucket_findings::{dangerous, losses};
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::place::{Place, PlaceKind, desired_config};
use crate::plan::{Drift, PlanFinding};

impl Contracts {
    /// How the buckets of a lineage differ from what the contract in force asks for. What it takes to put each right is added
    /// to the findings, and judged as any other change.
    pub(crate) async fn drift(
        &self,
        contract: &Contract,
        places: &[Place],
        findings: &mut Vec<PlanFinding>,
    ) -> Result<Vec<Drift>, AuthorityError> {
        let (mut all, can) = (Vec::new(), self.shared.system.engine().capabilities());
        for place in places.iter().filter(|place| place.kind == PlaceKind::Own) {
            let owner = place.owner.as_ref().and_then(|owner| Some((owner, owner.digest.as_ref()?)));
            let (Some(info), Some((owner, digest))) = (&place.info, owner) else { continue };
            let before = self.shared.system.contract(&owner.lineage, digest).await?;
            let kv = (before.resources.kv.get(&place.alias), contract.resources.kv.get(&place.alias));
            let (Some(in_force), Some(next)) = kv else { continue };
            let lineage = contract.id.as_str();
            let expected = desired_config(in_force, Some(info), lineage, can);
            let becomes = desired_config(next, Some(info), lineage, can);
            let found = drifted(place, (&info.config, &expected, &becomes));
            findings.extend(judged(place, (&info.config, &becomes), &found));
            all.extend(found);
        }
        Ok(all)
    }
}

/// The settings that differ from what is expected, and that the plan changes.
fn drifted(
    place: &Place,
    (found, expected, becomes): (&BucketConfig, &BucketConfig, &BucketConfig),
) -> Vec<Drift> {
    let changes = found.differences(becomes);
    let settings = found.differences(expected).into_iter().filter(|setting| changes.contains(setting));
    let drift = settings.map(|setting| Drift {
        alias: place.alias.clone(),
        bucket: place.bucket.to_string(),
        setting: setting.to_owned(),
        expected: shown(setting, expected),
        found: shown(setting, found),
        becomes: shown(setting, becomes),
    });
    drift.collect()
}

/// What each change of a drifted setting does to what is stored.
fn judged(
    place: &Place,
    (found, becomes): (&BucketConfig, &BucketConfig),
    drift: &[Drift],
) -> Vec<PlanFinding> {
    let alias = place.alias.as_str();
    let losses = losses("drift", (alias, &place.bucket), (found, becomes));
    let of_setting = |drift: &Drift| {
        let code = code_of(&drift.setting);
        let message = format!("past the contract, {drift}");
        match losses.iter().find(|finding| finding.code == code) {
            Some(loss) => PlanFinding { message, ..loss.clone() },
            None => PlanFinding {
                backward: Effect::Ok,
                declared: Verdict::Safe,
                verdict: Verdict::Safe,
                reason: "nothing that is stored is lost by it".to_owned(),
                ..dangerous(&code, alias, &message, "find out who changed it", None)
            },
        }
    };
    drift.iter().map(of_setting).collect()
}

fn code_of(setting: &str) -> String {
    match setting {
        "value_bytes_max" => "drift.valueBytes".to_owned(),
        other => format!("drift.{other}"),
    }
}

fn shown(setting: &str, config: &BucketConfig) -> String {
    match setting {
        "history" => config.history.to_string(),
        "ttl" => config.ttl.map_or_else(|| "for ever".to_owned(), |ttl| format!("{} ms", ttl.as_millis())),
        "value_bytes_max" => format!("{} bytes", config.value_bytes_max),
        "metadata" => {
            let owner = config.metadata.get(crate::place::OWNER_METADATA);
            owner.map_or_else(|| "no owner".to_owned(), |owner| format!("owner {owner}"))
        }
        other => format!("another {other}"),
    }
}
