use pleach_contract::Problems;
use pleach_engine::{BucketName, CommitError, EngineError, ErrorKind, InvalidName, Key, Revision};

use crate::evidence::Sample;
use crate::record::Damage;
use crate::transfer::TransferError;

/// What stands between a store and a contract.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A record of the system bucket cannot be read.
    #[error("the record {key} of the system bucket at revision {revision} is damaged: {what}")]
    Damaged {
        /// The record.
        key: Key,
        /// Its revision.
        revision: Revision,
        /// What is wrong with it.
        what: String,
    },
    /// Something of the lineage has changed since it was looked at.
    #[error("{lineage} has moved: {what}")]
    Moved {
        /// The lineage.
        lineage: String,
        /// What has changed.
        what: String,
    },
    /// A plan that this store has not made.
    #[error("this store knows no plan {plan} of {lineage}")]
    UnknownPlan {
        /// The plan.
        plan: String,
        /// Its lineage.
        lineage: String,
    },
    /// A plan that was made for another store.
    #[error("the plan was made for the store {planned}, and this is {store}")]
    OtherStore {
        /// The store it was made for.
        planned: String,
        /// This store.
        store: String,
    },
    /// A plan whose text is not what was planned.
    #[error("the plan {plan} was changed after it was made")]
    EditedPlan {
        /// The plan.
        plan: String,
    },
    /// A plan that is not pending any more.
    #[error("the plan {plan} of {lineage} is {status} and cannot be applied")]
    PlanOver {
        /// The plan.
        plan: String,
        /// Its lineage.
        lineage: String,
        /// What it is instead.
        status: &'static str,
    },
    /// A plan that was made by rules that are out of date.
    #[error("the plan {plan} has the format {format}, of before every stored record was judged")]
    OldPlan {
        /// The plan.
        plan: String,
        /// Its format.
        format: String,
    },
    /// A dangerous plan that nobody has acknowledged.
    #[error(
        "the plan has {count} dangerous findings, and nobody has acknowledged that; the first is {first}"
    )]
    Unacknowledged {
        /// How many there are.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// Values that stand against the new contract were written after the plan was made.
    #[error(
        "{count} entries of {bucket} that were written since the plan stand against it, such as {}",
        shown(samples)
    )]
    Violators {
        /// The bucket.
        bucket: BucketName,
        /// How many there are.
        count: u64,
        /// Some of them.
        samples: Vec<Sample>,
    },
    /// The engine cannot keep what the contract promises.
    #[error("this engine cannot keep what the contract promises: {first}")]
    Incapable {
        /// The first promise that it cannot keep.
        first: String,
    },
    /// A bucket that belongs to another lineage, or to another alias.
    #[error("the bucket {bucket} for {alias} belongs to {owner}")]
    Taken {
        /// The bucket.
        bucket: BucketName,
        /// The alias it was wanted for.
        alias: String,
        /// Whose it is.
        owner: String,
    },
    /// A bucket that nobody owns stands where one was to be made.
    #[error("there is a bucket {bucket} already, which no contract owns")]
    InTheWay {
        /// The bucket.
        bucket: BucketName,
    },
    /// A bucket that shall be adopted and cannot be.
    #[error("{alias} cannot adopt {bucket}: {why}")]
    NotAdopted {
        /// The alias.
        alias: String,
        /// The bucket.
        bucket: BucketName,
        /// Why not.
        why: &'static str,
    },
    /// Service and alias make no name of a bucket.
    #[error("the service `{service}` and the alias `{alias}` make no name of a bucket")]
    Name {
        /// The service.
        service: String,
        /// The alias.
        alias: String,
        /// Why not.
        source: InvalidName,
    },
    /// The buckets of a lineage have the name of another service already.
    #[error("the service of {lineage} is `{service}` and stays so")]
    OtherService {
        /// The lineage.
        lineage: String,
        /// The service it has.
        service: String,
    },
    /// Nothing is known of the lineage.
    #[error("this store has no contract of {lineage}")]
    UnknownLineage {
        /// The lineage.
        lineage: String,
    },
    /// A contract of the lineage that was never accepted here.
    #[error("{lineage} with the digest {digest} was never accepted in this store")]
    NotAccepted {
        /// The lineage.
        lineage: String,
        /// The digest.
        digest: String,
    },
    /// A contract that was accepted and is not in force: its apply is under way, was interrupted or has failed.
    #[error(
        "{lineage} with the digest {digest} is accepted, but not in force: {}",
        in_force.as_ref().map_or_else(|| "no contract is".to_owned(), |digest| format!("{digest} is"))
    )]
    NotInForce {
        /// The lineage.
        lineage: String,
        /// The digest of the contract that was asked for.
        digest: String,
        /// The digest of the contract in force; none before the first.
        in_force: Option<String>,
    },
    /// A contract that was accepted once, and what it writes is accepted no more.
    #[error("what this version of {lineage} writes to `{alias}` is no longer accepted")]
    Outdated {
        /// The lineage.
        lineage: String,
        /// The alias.
        alias: String,
    },
    /// The alias has no bucket that was set aside.
    #[error("{lineage} has no bucket of `{alias}` that was set aside")]
    NotSetAside {
        /// The lineage.
        lineage: String,
        /// The alias.
        alias: String,
    },
    /// A step of an accepted plan could not be done.
    #[error("{lineage}: the contract is accepted, but not yet in force: step {step} of {steps} failed")]
    Unfinished {
        /// The lineage.
        lineage: String,
        /// The step, from 1.
        step: usize,
        /// How many there are.
        steps: usize,
        /// Why.
        source: Box<AuthorityError>,
    },
    /// Someone asked for it to stop.
    #[error("it was cancelled, and nothing has changed")]
    Cancelled,
    /// A contract whose schemas cannot be compiled, which one that was read has not.
    #[error("the schemas of `{alias}` cannot be compiled: {problems}")]
    Schemas {
        /// The resource or state store.
        alias: String,
        /// What is wrong with them.
        problems: Problems,
    },
    /// Something that must be said was left out.
    #[error("{what} is missing")]
    Missing {
        /// What it is.
        what: &'static str,
    },
    /// Contracts that cannot move to another store, or not yet.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// What the engine could not do.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl AuthorityError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::Moved { .. } | Self::Violators { .. } | Self::PlanOver { .. } | Self::InTheWay { .. } => {
                ErrorKind::Conflict
            }
            Self::UnknownPlan { .. } | Self::UnknownLineage { .. } | Self::NotSetAside { .. } => {
                ErrorKind::NotFound
            }
            Self::OtherStore { .. }
            | Self::EditedPlan { .. }
            | Self::OldPlan { .. }
            | Self::Unacknowledged { .. }
            | Self::Taken { .. }
            | Self::NotAdopted { .. }
            | Self::Name { .. }
            | Self::OtherService { .. }
            | Self::NotAccepted { .. }
            | Self::Outdated { .. }
            | Self::Schemas { .. }
            | Self::Missing { .. } => ErrorKind::Invalid,
            Self::Incapable { .. } => ErrorKind::Unsupported,
            Self::Unfinished { source, .. } => source.kind(),
            Self::Cancelled | Self::NotInForce { .. } => ErrorKind::Unavailable,
            Self::Transfer(error) => error.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// The next step.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => {
                "see all that is damaged with `pleach contract status`, keep a copy of the store, and restore a backup"
            }
            Self::Moved { .. } => "make a new plan, and look at it again",
            Self::UnknownPlan { .. } => "make a plan with this store, and apply that",
            Self::OtherStore { .. } => "make a plan with this store, or name the store it was made for",
            Self::EditedPlan { .. } => "make the plan anew and apply it as it is",
            Self::PlanOver { .. } | Self::OldPlan { .. } => "make a new plan",
            Self::Unacknowledged { .. } => "read them, and write down who accepts them and why",
            Self::Violators { .. } => "correct these entries and make a new plan; the guards are off again",
            Self::Incapable { .. } => "ask for less in the contract, or choose another engine",
            Self::Taken { .. } => "name another service for this contract, or another bucket to adopt",
            Self::InTheWay { .. } => "adopt it with the plan, or name another service for this contract",
            Self::NotAdopted { .. } => "name a bucket that is there and belongs to nobody",
            Self::Name { .. } => "name a shorter service of a-z, 0-9 and _",
            Self::OtherService { .. } => "leave the service out: its buckets keep their names",
            Self::UnknownLineage { .. } | Self::NotAccepted { .. } => {
                "see what the contract of the program changes with `pleach contract plan FILE`, then `apply` the plan"
            }
            Self::NotInForce { .. } => {
                "apply its plan again, which goes on where it was, or wait for who applies it"
            }
            Self::Outdated { .. } => "build the program with the contract that is in force",
            Self::Schemas { .. } => "read the contract from its document, which says what is wrong and where",
            Self::NotSetAside { .. } => "see its status for the buckets that can be restored",
            Self::Unfinished { .. } => {
                "see the cause, mend it, and apply or resume again: it goes on where it was"
            }
            Self::Cancelled => "start it again when it suits you",
            Self::Missing { .. } => "say it: it is kept in the history of the contract",
            Self::Transfer(error) => error.help(),
            Self::Engine(error) => error.help(),
        }
    }

    /// Of a commit to the system bucket that expected what was read before.
    pub(crate) fn of_commit(error: CommitError, lineage: &str) -> Self {
        match error {
            CommitError::Conflict(conflict) => {
                let what = format!("someone else has just changed {}", conflict.key);
                Self::Moved { lineage: lineage.to_owned(), what }
            }
            CommitError::Engine(error) => Self::Engine(error),
        }
    }
}

impl From<Damage> for AuthorityError {
    fn from(Damage { key, revision, what }: Damage) -> Self {
        Self::Damaged { key, revision, what }
    }
}

/// Names of ours that break the rules of names: lineages and digests are checked, so only a bug makes one.
impl From<InvalidName> for AuthorityError {
    fn from(error: InvalidName) -> Self {
        Self::Engine(EngineError::Bug { what: format!("a name of the system bucket: {error}") })
    }
}

fn shown(samples: &[Sample]) -> String {
    let place = |sample: &Sample| match &sample.state {
        Some(place) => place.to_string(),
        None => sample.key.clone(),
    };
    samples.first().map_or_else(String::new, |sample| format!("{}: {}", place(sample), sample.message))
}
