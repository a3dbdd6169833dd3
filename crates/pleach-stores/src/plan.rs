use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use pleach_contract::canonical;
use pleach_contract::evolution::{Effect, Finding, Question, Subject, Verdict};
use pleach_engine::{BucketConfig, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::binding::Unstamped;
use crate::evidence::{Answer, Scanned};
use crate::record::moment;

/// The format of a plan.
pub const PLAN_FORMAT: &str = "pleach.plan.v2";

/// The format of plans that were made before every record was judged. One that was accepted is brought to its end; one
/// that is pending is not applied, since it may call safe what is not.
pub(crate) const PLAN_FORMAT_BEFORE: &str = "pleach.plan.v1";

/// How long a plan can be applied after it was made.
pub const PLAN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// What a contract would do to a store: the differences between the declarations, what the stored data says to
/// them, and the steps in which the contract would come into force.
///
/// It is kept in the store it was made for and can be written to a file as JSON. Its id is the digest of all the
/// rest, so it is applied as it was made or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The format: `pleach.plan.v2`.
    pub format: String,
    /// The digest of everything below.
    pub id: String,
    /// The store it was made for.
    pub store: String,
    /// The lineage.
    pub lineage: String,
    /// The service whose name the buckets have.
    pub service: String,
    /// What was accepted when it was made.
    pub base: Base,
    /// The digest of the contract that it leads to.
    pub target: String,
    /// That contract.
    pub contract: Value,
    /// What changes, the most serious first, each with what the stored data says to it.
    pub findings: Vec<PlanFinding>,
    /// How buckets differ from what the contract in force asks for. What it takes to put each right is among the findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// What the contract declares and is not kept; with one that blocks, the plan is not applied.
    pub shortfalls: Vec<Shortfall>,
    /// The buckets that were read for it, by alias.
    pub scans: BTreeMap<String, Scanned>,
    /// What is done when it is applied, in this order.
    pub steps: Vec<Step>,
    /// How long that will take, in milliseconds, about.
    pub estimate_ms: u64,
    /// When it was made.
    #[serde(with = "moment")]
    pub made: Timestamp,
    /// Until when it can be applied.
    #[serde(with = "moment")]
    pub expires: Timestamp,
}

/// What was accepted when a plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Base {
    /// The version of the lineage; 0 before the first contract.
    pub version: u64,
    /// The digest of the contract; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A finding about declarations, weighed by the stored data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFinding {
    /// What kind of change it is: a stable code.
    pub code: String,
    /// Where it is, as a JSON Pointer into the contract.
    pub path: String,
    /// Whose data it is about.
    pub subject: Subject,
    /// Whether the new contract accepts what is stored, by the declarations.
    pub backward: Effect,
    /// Whether readers of the old contract accept what is written by the new, by the declarations.
    pub forward: Effect,
    /// What it is by the declarations alone.
    pub declared: Verdict,
    /// What it is all in all: a scan that found nothing makes it safe, one that found something dangerous.
    pub verdict: Verdict,
    /// What has changed.
    pub message: String,
    /// Why the verdict is what it is.
    pub reason: String,
    /// What to do.
    pub fix: String,
    /// What the stored data was asked, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The digest of the older contract that it was found against, if that is not the one accepted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
}

/// Something that a contract declares and that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shortfall {
    /// Where in the contract, as a JSON Pointer.
    pub path: String,
    /// What is not kept.
    pub message: String,
    /// What to do.
    pub fix: String,
    /// Whether the plan cannot be applied because of it: the engine cannot keep it. Else it is a warning.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub blocks: bool,
}

fn yes() -> bool {
    true
}

fn is_yes(blocks: &bool) -> bool {
    *blocks
}

/// A setting of a bucket that is not what the contract in force asks for: someone changed it past the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drift {
    /// The alias.
    pub alias: String,
    /// The bucket.
    pub bucket: String,
    /// The setting.
    pub setting: String,
    /// What the contract in force asks for.
    pub expected: String,
    /// What the bucket has.
    pub found: String,
    /// What it has once the plan is applied.
    pub becomes: String,
}

/// One line for people.
impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alias, bucket, setting, expected, found, becomes } = self;
        write!(
            f,
            "{setting} of bucket {bucket} of {alias} is {found}; the contract in force asks for {expected}, and the plan sets {becomes}"
        )
    }
}

/// Something that is done when a plan is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// Makes the bucket of a new alias.
    Create {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
        /// How it is made.
        config: BucketConfig,
    },
    /// Takes over a bucket that nobody owns, with what is in it.
    Adopt {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
        /// What its configuration becomes.
        config: BucketConfig,
        /// The versions that the values in it have from then on.
        #[serde(alias = "unstampedVersion")]
        unstamped: Unstamped,
    },
    /// Takes a bucket back that was set aside when its alias was removed, with what is in it.
    TakeBack {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
        /// What its configuration becomes.
        config: BucketConfig,
    },
    /// Gives a bucket another configuration.
    Configure {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
        /// What its configuration becomes.
        config: BucketConfig,
        /// The names of what changes in it.
        changes: Vec<String>,
    },
    /// Puts the new contract in force in a bucket that stays as it is.
    Keep {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
    },
    /// Sets a bucket aside whose alias is gone: it takes no more writes, and goes after a time of grace.
    SetAside {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: String,
    },
}

impl Step {
    /// The alias.
    pub fn alias(&self) -> &str {
        match self {
            Self::Create { alias, .. }
            | Self::Adopt { alias, .. }
            | Self::TakeBack { alias, .. }
            | Self::Configure { alias, .. }
            | Self::Keep { alias, .. }
            | Self::SetAside { alias, .. } => alias,
        }
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        match self {
            Self::Create { bucket, .. }
            | Self::Adopt { bucket, .. }
            | Self::TakeBack { bucket, .. }
            | Self::Configure { bucket, .. }
            | Self::Keep { bucket, .. }
            | Self::SetAside { bucket, .. } => bucket,
        }
    }

    /// What the configuration of the bucket becomes; none if it stays as it is.
    pub(crate) fn config(&self) -> Option<&BucketConfig> {
        match self {
            Self::Create { config, .. }
            | Self::Adopt { config, .. }
            | Self::TakeBack { config, .. }
            | Self::Configure { config, .. } => Some(config),
            Self::Keep { .. } | Self::SetAside { .. } => None,
        }
    }

    /// Whether anything is done to the bucket itself.
    pub(crate) fn changes_something(&self) -> bool {
        !matches!(self, Self::Keep { .. })
    }
}

/// One line for people.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (alias, bucket) = (self.alias(), self.bucket());
        match self {
            Self::Create { .. } => write!(f, "create bucket {bucket} for {alias}"),
            Self::Adopt { unstamped: Unstamped { version, keyspaces }, .. } => {
                write!(f, "adopt bucket {bucket} for {alias}, its values as version {version}")?;
                keyspaces.iter().try_for_each(|(name, version)| write!(f, ", those of {name} as {version}"))
            }
            Self::TakeBack { .. } => write!(f, "take back bucket {bucket} for {alias}"),
            Self::Configure { changes, .. } => {
                write!(f, "change {} of bucket {bucket} of {alias}", changes.join(", "))
            }
            Self::Keep { .. } => write!(f, "keep bucket {bucket} of {alias}"),
            Self::SetAside { .. } => write!(f, "set aside bucket {bucket}, as {alias} is gone"),
        }
    }
}

impl Plan {
    /// Whether the store is what the contract asks for, so that there is nothing to apply.
    pub fn is_nothing(&self) -> bool {
        self.base.digest.as_deref() == Some(self.target.as_str())
            && self.findings.is_empty()
            && !self.steps.iter().any(Step::changes_something)
    }

    /// The most serious verdict; safe without a finding.
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Safe)
    }

    /// The findings that need a written acknowledgement.
    pub fn dangers(&self) -> impl Iterator<Item = &PlanFinding> {
        self.findings.iter().filter(|finding| finding.verdict != Verdict::Safe)
    }

    /// The digest of everything but the id.
    pub(crate) fn content_id(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("id");
        }
        digest(&value)
    }

    /// Whether it says the same as another that was made at another time.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let weighed = |finding: &PlanFinding| {
            (
                finding.code.clone(),
                finding.path.clone(),
                finding.subject.clone(),
                finding.verdict,
                finding.answer.clone(),
            )
        };
        let about = |plan: &Self| plan.findings.iter().map(weighed).collect::<Vec<_>>();
        let place =
            |plan: &Self| (plan.store.clone(), plan.service.clone(), plan.base.clone(), plan.target.clone());
        // What was shown is what was there at that revision: a record that is written over since was not.
        let mut shown = self.findings.iter().filter_map(|finding| finding.answer.as_ref());
        let shows_nothing = shown.all(Answer::is_clear);
        let found_the_same = || {
            let pairs = || self.scans.iter().zip(&other.scans);
            self.scans.len() == other.scans.len()
                && pairs().all(|(one, two)| one.0 == two.0 && one.1.found_the_same(two.1))
        };
        self.format == other.format
            && (shows_nothing || found_the_same())
            && place(self) == place(other)
            && self.drift == other.drift
            && about(self) == about(other)
            && self.steps == other.steps
            && self.shortfalls == other.shortfalls
            && self.contract == other.contract
    }
}

impl PlanFinding {
    /// A finding that no scan has been asked about yet.
    pub(crate) fn of(finding: &Finding) -> Self {
        Self {
            code: finding.code.as_str().to_owned(),
            path: finding.path.clone(),
            subject: finding.subject.clone(),
            backward: finding.backward,
            forward: finding.forward,
            declared: finding.verdict,
            verdict: finding.verdict,
            message: finding.message.clone(),
            reason: finding.reason.clone(),
            fix: finding.fix.clone(),
            question: finding.question.clone(),
            answer: None,
            against: finding.against.as_ref().map(ToString::to_string),
        }
    }

    /// Whether it can matter. What is different from an older contract than the last has been accepted before: only
    /// values that are still as that one had them can stand against it.
    pub(crate) fn may_matter(&self) -> bool {
        let is_of_version = matches!(
            &self.subject,
            Subject::Kv { version: Some(_), .. } | Subject::State { version: Some(_), .. }
        );
        self.against.is_none()
            || match &self.question {
                Some(Question::Refused | Question::KeyRefused | Question::Carries { .. }) => true,
                Some(Question::Present) => is_of_version,
                _ => false,
            }
    }

    /// Whether it does, now that the stored data was asked.
    pub(crate) fn matters(&self) -> bool {
        self.against.is_none() || self.answer.as_ref().is_some_and(|answer| !answer.is_clear())
    }

    /// The alias whose bucket it is about.
    pub fn alias(&self) -> Option<&str> {
        match &self.subject {
            Subject::Kv { alias, .. } => Some(alias),
            Subject::Contract | Subject::State { .. } => None,
        }
    }

    /// Whether the stored data alone decides about it. What else is dangerous stays so whatever is stored: it changes what
    /// programs find, or nothing guards it while the plan is applied.
    pub(crate) fn is_settled_by_data(&self) -> bool {
        let is_kv = matches!(self.subject, Subject::Kv { .. });
        match &self.question {
            Some(Question::Deeper { .. } | Question::Larger { .. } | Question::Older { .. }) => true,
            Some(Question::Present) => {
                is_kv
                    && matches!(
                        self.code.as_str(),
                        "keyspace.removed" | "key.changed" | "version.unaccepted" | "version.dropped"
                    )
            }
            _ => false,
        }
    }

    /// Weighs it by what the stored data says.
    pub(crate) fn weigh(&mut self, answer: Answer) {
        if self.declared == Verdict::Scan || self.declared == Verdict::Dangerous && self.is_settled_by_data()
        {
            self.verdict = if answer.is_clear() { Verdict::Safe } else { Verdict::Dangerous };
        }
        self.reason = match (&self.question, self.verdict) {
            // The reason of the declarations would tell of what does not happen.
            (Some(_), Verdict::Safe) if self.declared == Verdict::Dangerous => format!("scanned: {answer}"),
            _ => format!("{}; scanned: {answer}", self.reason),
        };
        self.fix = self.fix_for(answer.is_clear());
        self.answer = Some(answer);
    }

    /// What to do now that the stored data was asked: advice to scan is out of date.
    pub(crate) fn fix_for(&self, is_clear: bool) -> String {
        let is_settled = self.declared == Verdict::Scan || self.is_settled_by_data();
        if is_clear && is_settled {
            return match self.forward {
                Effect::Ok => "nothing",
                _ if self.code.starts_with("keyspace.") => {
                    "update the programs together with it: those with the old contract stop working when it is applied"
                }
                _ => "update the programs that read before those that write",
            }
            .to_owned();
        }
        if !self.fix.contains("scan") {
            return self.fix.clone();
        }
        let fix = match &self.question {
            Some(Question::Deeper { .. }) => {
                "ask for the same `history`, or acknowledge that older records are trimmed"
            }
            Some(Question::Older { .. }) => {
                "ask for the same `ttlMs`, or acknowledge that these values expire sooner"
            }
            Some(Question::Larger { .. }) => "make these values smaller first, or ask for the same limit",
            Some(Question::Twice { .. }) => "change all but one of the entries that share a key",
            Some(Question::Retained) => "acknowledge that these entries go, or keep more of them",
            _ => "correct these values first, or raise the version and accept the old one",
        };
        fix.to_owned()
    }
}

impl fmt::Display for PlanFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the contract" } else { &self.path };
        write!(f, "{place}: {} [{}]", self.message, self.code)
    }
}

/// What became of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    /// It can be applied.
    Pending,
    /// It was accepted.
    Accepted,
    /// It was rejected.
    Rejected,
    /// Its time is over.
    Expired,
}

impl PlanStatus {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// A plan as the system bucket keeps it: `plan.LINEAGE.ID`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlanRecord {
    pub(crate) status: PlanStatus,
    pub(crate) plan: Plan,
}

impl PlanRecord {
    /// What it is now.
    pub(crate) fn status(&self, now: Timestamp) -> PlanStatus {
        match self.status {
            PlanStatus::Pending if now >= self.plan.expires => PlanStatus::Expired,
            status => status,
        }
    }
}

/// SHA-256 of the canonical form, as lowercase hexadecimal digits.
fn digest(value: &Value) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(canonical(value).as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
