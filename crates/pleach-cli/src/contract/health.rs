use pleach::doctor::Severity;
use pleach::stores::{LineageStatus, Materialised};

use crate::app::App;
use crate::text::counted;

/// Something about the contracts of a store that should be looked after.
#[derive(Debug)]
pub(crate) struct ContractFinding {
    pub(crate) rule: &'static str,
    pub(crate) severity: Severity,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) next: String,
}

/// What is wrong with the contracts of the store, as far as that is known without reading the data.
pub(crate) async fn findings(app: &mut App) -> anyhow::Result<Vec<ContractFinding>> {
    let contracts = app.store().await?.contracts();
    Ok(contracts.lineages().await?.iter().flat_map(of_lineage).collect())
}

/// The same for one lineage.
pub(crate) fn of_lineage(status: &LineageStatus) -> Vec<ContractFinding> {
    let lineage = &status.authority.lineage;
    let mut found = Vec::new();
    if let Some(verified) = status.verified.as_ref().filter(|verified| verified.breaches > 0) {
        let values = counted(verified.breaches, "stored value breaks", "stored values break");
        found.push(ContractFinding {
            rule: "contract_broken",
            severity: Severity::Problem,
            what: format!("{values} {lineage}, by the verification of {}", verified.time),
            why: "whoever reads them with types gets an error".into(),
            next: format!("list them with `pleach contract verify {lineage}`, and mend each"),
        });
    }
    if status.overrides_since > 0 {
        let times = counted(status.overrides_since, "time", "times");
        let since = if status.verified.is_some() { " since it was verified" } else { "" };
        found.push(ContractFinding {
            rule: "contract_overridden",
            severity: Severity::Warning,
            what: format!("the guards of {lineage} were passed {times}{since}"),
            why: "what was written then was not checked, and may break the contract".into(),
            next: format!(
                "see who and why with `pleach contract history {lineage}`; check with `pleach contract verify {lineage}`"
            ),
        });
    }
    if let Materialised::Failed { why, .. } = &status.authority.status {
        found.push(ContractFinding {
            rule: "contract_unfinished",
            severity: Severity::Warning,
            what: format!("version {} of {lineage} is accepted, but not in force", status.authority.version),
            why: why.clone(),
            next: "mend the cause, then go on with the same `pleach contract apply`".into(),
        });
    }
    found
}
