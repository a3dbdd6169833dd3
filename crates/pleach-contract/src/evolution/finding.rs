use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FindingCode, advice};
use crate::canonical::Digest;

/// How a change goes with values in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Every value that was accepted still is.
    Ok,
    /// Nobody can say from the declarations alone.
    Unknown,
    /// Some values may be refused: look at those that there are.
    Scan,
    /// Values are refused, or mean something else.
    Breaks,
}

/// What a change is, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing that is stored is lost or refused.
    Safe,
    /// Dangerous, until a scan of what is stored finds nothing that stands against it.
    Scan,
    /// Something stored is lost, refused or misread: only with a written acknowledgement.
    Dangerous,
}

/// Whose data a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Subject {
    /// The contract as a whole.
    Contract,
    /// A state store.
    State {
        /// Its name.
        store: String,
        /// The version whose values it is about; none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// A KV resource, or a part of one.
    Kv {
        /// Its alias.
        alias: String,
        /// The keyspace; none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keyspace: Option<String>,
        /// The version whose values it is about; none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
}

impl Subject {
    /// The same, of one version.
    pub(super) fn of_version(&self, version: &str) -> Self {
        let mut subject = self.clone();
        if let Self::State { version: of, .. } | Self::Kv { version: of, .. } = &mut subject {
            *of = Some(version.to_owned());
        }
        subject
    }
}

/// What a scan of the stored data has to answer. The entries that it is about are those of the finding's [`Subject`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase")]
pub enum Question {
    /// How many entries are there at all?
    Present,
    /// Which values does the new contract's schema of their version refuse?
    Refused,
    /// Which values have something at this place? A `*` stands for any field or item.
    Carries {
        /// The place: a JSON Pointer.
        pointer: String,
    },
    /// Which keys does the new key grammar refuse?
    KeyRefused,
    /// Which values are larger?
    Larger {
        /// The new limit.
        bytes: u64,
    },
    /// Which entries are older, and would be expired at once?
    Older {
        /// The new time to live, in milliseconds.
        ms: u64,
    },
    /// Which keys have more records, and would be trimmed?
    Deeper {
        /// How many are kept from now on.
        history: u64,
    },
    /// Which entries would share a key of this index, which is to be unique?
    Twice {
        /// Its name.
        index: String,
    },
    /// Which keys lie further back than retention keeps?
    Retained,
}

/// A difference between two contracts, and what it does to stored values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What kind of change it is.
    pub code: FindingCode,
    /// Where it is, as a JSON Pointer: into the new contract, or into the old one where it is gone from the new.
    pub path: String,
    /// Whose data it is about.
    pub subject: Subject,
    /// Backward: whether the new contract accepts what is stored.
    pub backward: Effect,
    /// Forward: whether readers of the old contract accept what is written by the new.
    pub forward: Effect,
    /// What it is, all in all.
    pub verdict: Verdict,
    /// What has changed.
    pub message: String,
    /// Why the verdict is what it is.
    pub reason: String,
    /// What to do.
    pub fix: String,
    /// What a scan has to answer, where one can tell more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Which older contract it was found against, if that is not the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Digest>,
}

impl Finding {
    /// A finding whose code says all about it.
    pub(super) fn new(
        code: FindingCode,
        path: impl Into<String>,
        subject: Subject,
        message: impl Into<String>,
    ) -> Self {
        let effect = |effects: &[Effect]| effects.first().copied().unwrap_or(Effect::Unknown);
        let verdict = code.verdicts().first().copied().unwrap_or(Verdict::Scan);
        Self {
            code,
            path: path.into(),
            subject,
            backward: effect(code.backward()),
            forward: effect(code.forward()),
            verdict,
            message: message.into(),
            reason: String::new(),
            fix: String::new(),
            question: None,
            against: None,
        }
    }

    /// The same with other effects.
    pub(super) fn with(self, backward: Effect, forward: Effect, verdict: Verdict) -> Self {
        Self { backward, forward, verdict, ..self }
    }

    /// The same with a question for a scan.
    pub(super) fn asking(self, question: Question) -> Self {
        Self { question: Some(question), ..self }
    }

    /// The same with why it is so and what to do.
    pub(super) fn advised(self) -> Self {
        let (reason, fix) = (advice::reason(&self), advice::fix(&self).to_owned());
        Self { reason, fix, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the contract" } else { &self.path };
        write!(f, "{place}: {} [{}]", self.message, self.code)
    }
}

/// The most findings that are listed.
pub const FINDINGS_MAX: usize = 1_000;

/// All differences between two contracts, the most serious first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// What has changed.
    pub findings: Vec<Finding>,
    /// Whether there are more than are listed: then nothing is known about the others, and they are to be scanned.
    pub more: bool,
}

impl Diff {
    /// The findings in their order, each once, as many as are listed.
    pub(super) fn of(mut findings: Vec<Finding>, more: bool) -> Self {
        let order = |finding: &Finding| {
            let Finding { verdict, path, code, subject, message, .. } = finding.clone();
            (std::cmp::Reverse(verdict), path, code, subject, message)
        };
        findings.sort_by_cached_key(order);
        // Of equal ones, which stand together by now, that against the last contract is the first.
        findings.dedup_by(|later, earlier| order(later) == order(earlier));
        let more = more || findings.len() > FINDINGS_MAX;
        findings.truncate(FINDINGS_MAX);
        let findings = findings.into_iter().map(Finding::advised).collect();
        Self { findings, more }
    }

    /// The most serious verdict; none without a change.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let worst = self.findings.iter().map(|finding| finding.verdict).max();
        if self.more { worst.max(Some(Verdict::Scan)) } else { worst }
    }
}
