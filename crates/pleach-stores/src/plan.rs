use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use pleach_contract::canonical;
use pleach_contract::evolution::{Effect, Finding, Question, Subject, Verdict};
use pleach_engine::{BucketConfig, Revision, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::binding::Unstamped;
use crate::record::moment;

/// The format of a plan.
pub const PLAN_FORMAT: &str = "pleach.plan.v1";

/// How long a plan can be applied after it was made.
pub const PLAN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The most entries that a finding shows.
pub const SAMPLES_MAX: usize = 10;

/// What a contract would do to a store: the differences between the declarations, what the stored data says to
/// them, and the steps in which the contract would come into force.
///
/// It is kept in the store it was made for and can be written to a file as JSON. Its id is the digest of all the
/// rest, so it is applied as it was made or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The format: `pleach.plan.v1`.
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
    /// What of the contract this engine cannot keep; with any of these it is not applied.
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

/// What the stored data says to a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// How many entries stand against the change.
    pub count: u64,
    /// How many were looked at for it.
    pub of: u64,
    /// The first of those that stand against it.
    pub samples: Vec<Sample>,
}

/// An entry that stands against a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sample {
    /// Its key.
    pub key: String,
    /// Its revision.
    pub revision: Revision,
    /// The version that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where in its value, as a JSON Pointer; empty for the value as a whole, or for the key.
    pub path: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// A bucket that was read for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scanned {
    /// Its name.
    pub bucket: String,
    /// The snapshot that was read.
    pub revision: Revision,
    /// How many entries it has.
    pub entries: u64,
    /// How many bytes their values have.
    pub bytes: u64,
    /// How many of them have each version; those without one are under an empty name.
    pub versions: BTreeMap<String, u64>,
}

/// What an engine cannot keep of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shortfall {
    /// Where in the contract, as a JSON Pointer.
    pub path: String,
    /// What it cannot keep.
    pub message: String,
    /// What to do.
    pub fix: String,
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
        place(self) == place(other)
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
        self.against.is_none() || self.answer.as_ref().is_some_and(|answer| answer.count > 0)
    }

    /// The alias whose bucket it is about.
    pub fn alias(&self) -> Option<&str> {
        match &self.subject {
            Subject::Kv { alias, .. } => Some(alias),
            Subject::Contract | Subject::State { .. } => None,
        }
    }

    /// Weighs it by what the stored data says: a scan decides, where one was to.
    pub(crate) fn weigh(&mut self, answer: Answer) {
        let Answer { count, of, .. } = answer;
        if self.declared == Verdict::Scan {
            self.verdict = if count == 0 { Verdict::Safe } else { Verdict::Dangerous };
            self.reason = match count {
                0 => format!("{}; scanned: none of {of} entries stands against it", self.reason),
                _ => format!("{}; scanned: {count} of {of} entries stand against it", self.reason),
            };
        }
        self.answer = Some(answer);
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
