use std::collections::BTreeMap;

use pleach_engine::{Key, Revision, Timestamp};
use serde::{Deserialize, Serialize};

use crate::binding::{Binding, Unstamped};

/// What a lineage shall be and how far it is: `authority.LINEAGE` in the system bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authority {
    /// The lineage.
    pub lineage: String,
    /// The service whose name its buckets have.
    pub service: String,
    /// Grows by one with every contract that is accepted.
    pub version: u64,
    /// The digest of the contract that was accepted last.
    pub digest: String,
    /// Whether the store is what that contract asks for.
    pub status: Materialised,
    /// The digest of the contract that is in force while a later one is not: set only while `status` is not
    /// [`Materialised::Current`], and missing if no contract of the lineage was ever in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// Which buckets its aliases are bound to. While a plan is applied, or has failed, those of before.
    pub bindings: BTreeMap<String, Binding>,
}

impl Authority {
    /// The digest of the contract in force. Records of older stores name it only if it is also the accepted one.
    pub(crate) fn in_force(&self) -> Option<&str> {
        match self.status {
            Materialised::Current => Some(&self.digest),
            Materialised::Pending { .. } | Materialised::Failed { .. } => self.in_force.as_deref(),
        }
    }
}

/// Whether a store is what the accepted contract asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Materialised {
    /// It is.
    Current,
    /// The steps of a plan are under way, or were interrupted.
    Pending {
        /// The plan.
        plan: String,
        /// How many of its steps are done.
        done: usize,
    },
    /// A step could not be done. Everything before it is, and the bindings are the old ones.
    Failed {
        /// The plan.
        plan: String,
        /// How many of its steps are done.
        done: usize,
        /// What went wrong.
        why: String,
    },
}

impl Materialised {
    /// The plan whose steps are not all done, and how many are.
    pub(crate) fn unfinished(&self) -> Option<(&str, usize)> {
        match self {
            Self::Current => None,
            Self::Pending { plan, done } | Self::Failed { plan, done, .. } => Some((plan, *done)),
        }
    }

    /// The plan of which a step could not be done.
    pub(crate) fn failed(&self) -> Option<&str> {
        match self {
            Self::Failed { plan, .. } => Some(plan),
            Self::Current | Self::Pending { .. } => None,
        }
    }
}

/// Who owns a bucket: `bucket.NAME` in the system bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The lineage.
    pub lineage: String,
    /// The alias in its contracts.
    pub alias: String,
    /// The digest of the contract that is in force; none while the bucket is about to be made or adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The contract that is about to be in force: writes keep both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Whether it is in use.
    pub state: OwnerState,
    /// Whether it was there before it was owned: then it is never deleted, but given back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The versions that values without one have; none if it was not adopted.
    #[serde(default, alias = "unstampedVersion", skip_serializing_if = "Option::is_none")]
    pub unstamped: Option<Unstamped>,
}

impl Owner {
    /// The claims that writes have to keep now, the newest first.
    pub(crate) fn claims(&self, now: Timestamp) -> Vec<Claim> {
        let newest = self.claim.clone().filter(|claim| claim.holds(now));
        newest.into_iter().chain(self.claim.as_ref().and_then(Claim::below)).collect()
    }

    /// The plan that was accepted for the bucket and is not in force in it yet.
    pub(crate) fn accepted(&self) -> Option<&str> {
        let claim = self.claim.as_ref()?;
        if claim.is_accepted() { Some(&claim.plan) } else { claim.over.as_deref() }
    }

    /// Whether it is only what is left of a claim that holds no more: the bucket was never made or adopted.
    pub(crate) fn is_stale(&self, now: Timestamp) -> bool {
        self.state == OwnerState::Owned && self.digest.is_none() && self.claims(now).is_empty()
    }

    /// What is left of it without its newest claim; nothing, if that was all there was to it.
    pub(crate) fn released(self) -> Option<Self> {
        let claim = self.claim.as_ref().and_then(Claim::below);
        (self.digest.is_some() || claim.is_some()).then_some(Self { claim, ..self })
    }
}

/// A contract that is about to be in force in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// The plan that leads to it.
    pub plan: String,
    /// Whether the plan asked for it, and not someone who was applying it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// Until when it holds unless the plan is accepted; none once it is.
    #[serde(default, with = "moment_or_none", skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The plan that was accepted before and did not come to its end: writes keep that too, and it is what is left if
    /// this one is not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
}

impl Claim {
    /// Of a plan that was accepted.
    pub(crate) fn accepted(plan: impl Into<String>) -> Self {
        Self { plan: plan.into(), ahead: false, until: None, over: None }
    }

    /// The one that it stands over.
    pub(crate) fn below(&self) -> Option<Self> {
        self.over.clone().map(Self::accepted)
    }

    /// Whether writes have to keep it.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Whether its plan was accepted.
    pub(crate) fn is_accepted(&self) -> bool {
        self.until.is_none()
    }
}

/// Whether an owned bucket is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum OwnerState {
    /// It is, or is about to be.
    Owned,
    /// No contract has its alias any more. It takes no writes, and goes after its time.
    SetAside {
        /// Since when.
        #[serde(with = "moment")]
        since: Timestamp,
        /// Until when it can be restored.
        #[serde(with = "moment")]
        until: Timestamp,
    },
    /// It was set aside and restored: it stays, and takes writes under the contract that it had.
    Restored,
    /// Its time is over, and it is being deleted.
    Going,
    /// It is being copied from another store. Until that is complete it takes copies and nothing else, and the contract is
    /// not in force.
    Arriving,
}

/// What was decided about a plan: `decision.LINEAGE.VERSION` in the system bucket, the history of a lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// The version of the lineage that it led to.
    pub version: u64,
    /// The digest of the contract.
    pub digest: String,
    /// The plan.
    pub plan: String,
    /// Who decided.
    pub who: String,
    /// The written acknowledgement of what is dangerous about it, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<String>,
    /// When.
    #[serde(with = "moment")]
    pub time: Timestamp,
}

/// Something that was done past the guards: `glass.TIME.NUMBER` in the system bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GlassAct {
    /// Who did it.
    pub who: String,
    /// Why.
    pub why: String,
    /// The bucket.
    pub bucket: String,
    /// What was done to it: it was `written to`, `created`, `updated`, `deleted` or `compacted`.
    pub act: String,
    /// The first keys that it was done to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// How many keys it was done to.
    pub count: usize,
    /// When.
    #[serde(with = "moment")]
    pub time: Timestamp,
}

/// A record of the system bucket that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// The record.
    #[serde(serialize_with = "as_text")]
    pub key: Key,
    /// Its revision; zero if it is missing.
    pub revision: Revision,
    /// What is wrong with it.
    pub what: String,
}

fn as_text<S: serde::Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(key)
}

/// Which store it is: `store` in the system bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoreRecord {
    pub(crate) id: String,
}

/// A moment as RFC 3339 has it.
pub(crate) mod moment {
    use pleach_engine::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A moment as RFC 3339 has it, or none.
pub(crate) mod moment_or_none {
    use pleach_engine::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.to_string()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}
