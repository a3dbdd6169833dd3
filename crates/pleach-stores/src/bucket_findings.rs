use pleach_contract::Contract;
use pleach_contract::evolution::{Effect, Question, Subject, Verdict};
use pleach_engine::{BucketConfig, BucketName};

use crate::place::{OWNER_METADATA, Place, PlaceKind};
use crate::plan::PlanFinding;

/// What is to be said about a bucket that comes with data, before anyone has looked at that.
pub(crate) fn of_place(place: &Place, contract: &Contract, becomes: &BucketConfig) -> Vec<PlanFinding> {
    let (alias, bucket) = (place.alias.as_str(), &place.bucket);
    let Some(info) = &place.info else { return Vec::new() };
    match place.kind {
        PlaceKind::Own | PlaceKind::Left => Vec::new(),
        PlaceKind::TakenBack => {
            let message = format!("`{alias}` takes back {bucket}, with what is in it");
            let mut findings =
                vec![looked_up("bucket.returned", alias, &message, "correct these values first")];
            findings.extend(losses("bucket", (alias, bucket), (&info.config, becomes)));
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
            findings.extend(losses("bucket", (alias, bucket), (&info.config, becomes)));
            findings
        }
    }
}

/// What a bucket with data would lose by going from one configuration to another. Codes begin with `area`.
pub(crate) fn losses(
    area: &str,
    (alias, bucket): (&str, &BucketName),
    (from, to): (&BucketConfig, &BucketConfig),
) -> Vec<PlanFinding> {
    let finding = |setting: &str, message: String, fix: &str, question: Question| {
        dangerous(&format!("{area}.{setting}"), alias, &message, fix, Some(question))
    };
    let mut findings = Vec::new();
    if to.history < from.history {
        let message =
            format!("{bucket} keeps {} records of a key, and would keep {}", from.history, to.history);
        let question = Question::Deeper { history: u64::from(to.history.get()) };
        let fix = "ask for the same `history`, or acknowledge that older records are trimmed";
        findings.push(finding("history", message, fix, question));
    }
    if let Some(ttl) = to.ttl.filter(|ttl| from.ttl.is_none_or(|before| *ttl < before)) {
        let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let message = format!("values of {bucket} would live for {ms} ms");
        let fix = "ask for a longer `ttlMs`, or acknowledge that these values expire sooner";
        findings.push(finding("ttl", message, fix, Question::Older { ms }));
    }
    if to.value_bytes_max < from.value_bytes_max {
        let message = format!(
            "{bucket} takes values of {} bytes, and would take {}",
            from.value_bytes_max, to.value_bytes_max
        );
        let question = Question::Larger { bytes: u64::from(to.value_bytes_max) };
        let fix = "make these values smaller first, or ask for larger values";
        findings.push(finding("valueBytes", message, fix, question));
    }
    findings
}

/// A finding that the values of a bucket decide.
pub(crate) fn looked_up(code: &str, alias: &str, message: &str, fix: &str) -> PlanFinding {
    PlanFinding {
        backward: Effect::Scan,
        declared: Verdict::Scan,
        verdict: Verdict::Scan,
        reason: "its values may not be what the contract asks for".to_owned(),
        ..dangerous(code, alias, message, fix, Some(Question::Refused))
    }
}

pub(crate) fn dangerous(
    code: &str,
    alias: &str,
    message: &str,
    fix: &str,
    question: Option<Question>,
) -> PlanFinding {
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
