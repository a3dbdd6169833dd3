use std::num::NonZeroU8;
use std::time::Duration;

use pleach_engine::{
    BucketConfig, BucketInfo, BucketName, Capabilities, Durability, EngineError, Entry, PAGE_ENTRIES_MAX,
    ScanQuery,
};

use pleach_stores::{OWNER_METADATA, Owner, OwnerState, is_reserved_bucket};

use super::MigrateError;
use crate::{Error, Store};

/// The metadata of a target's bucket that is being made: what it is a copy of.
const METADATA_RUNNING: &str = "pleach.migrating-from";

/// The metadata of a target's bucket that is complete.
const METADATA_DONE: &str = "pleach.migrated-from";

/// An expiry this close to that of the bucket is the bucket's.
const EXPIRY_TOLERANCE: Duration = Duration::from_secs(1);

/// How a bucket is migrated.
#[derive(Clone, Debug, Default)]
pub struct MigrateOptions {
    /// Names the source store: the same text whenever the same migration is started, and none of its secrets, since
    /// it is kept in the metadata of the target's bucket.
    pub origin: String,
    /// Keeps fewer records of a key than the source does.
    pub history: Option<NonZeroU8>,
    /// Goes on even if something is lost.
    pub accept_loss: bool,
    /// Copies the entries alone: in the target no contract owns the bucket.
    pub without_contracts: bool,
}

/// Something that the target cannot keep, or promises less of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What it is about, for programs.
    pub what: &'static str,
    /// What becomes of it, for people.
    pub message: String,
}

/// How far a migration is, before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// There is nothing in the target yet.
    No,
    /// It goes on where it was.
    Yes,
    /// It is over: only what is there is compared once more.
    Done,
}

/// What a migration of one bucket will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The bucket as it is in the source.
    pub source: BucketInfo,
    /// Its name in the target.
    pub target: BucketName,
    /// Its configuration in the target, in the end.
    pub config: BucketConfig,
    /// Whether it was begun before.
    pub begun: Begun,
    /// How many live entries there are, if that can be said quickly.
    pub entries: Option<u64>,
    /// What is lost.
    pub losses: Vec<Loss>,
    /// What the target promises less of, and what is new in it in any case.
    pub notes: Vec<Loss>,
    /// Which contract owns it, if one does that moves with it.
    pub owner: Option<Owner>,
    /// Values get the expiry they have in the source.
    pub(super) keeps_expiry: bool,
}

impl Plan {
    /// Looks at both sides. Writes nothing.
    ///
    /// # Errors
    /// If the bucket is not in the source, or is in the target and not from this migration; if the target cannot take a
    /// value; or what an engine could not do. What is merely lost is no error yet.
    pub async fn make(
        source: &Store,
        target: &Store,
        from: &BucketName,
        to: &BucketName,
        options: &MigrateOptions,
    ) -> Result<Self, Error> {
        check_names(from, to)?;
        let (source, target) = (&source.for_copies(), &target.for_copies());
        let info = source.engine().bucket(from).await?;
        let identity = format!("{} {from} {}", options.origin, info.created);
        let owner = source.contracts().owner(from).await?;
        let owner = owner.filter(|owner| owner.digest.is_some() && !options.without_contracts);
        let (mut config, mut losses) = fitting(&info.config, options, target.capabilities());
        match &owner {
            Some(owner) => {
                if options.history.is_some_and(|history| history < info.config.history) {
                    let (bucket, lineage) = (from.clone(), owner.lineage.clone());
                    return Err(MigrateError::ContractHistory { bucket, lineage }.into());
                }
                config = source.contracts().moved_config(owner, config, target.capabilities()).await?;
            }
            None if options.without_contracts => drop(config.metadata.remove(OWNER_METADATA)),
            None => {}
        }
        let begun = match target.engine().bucket(to).await {
            Err(EngineError::BucketNotFound { .. }) => Begun::No,
            Err(error) => return Err(error.into()),
            Ok(found) if found.config.metadata.get(METADATA_RUNNING) == Some(&identity) => {
                if owner.is_none() {
                    config.history = found.config.history;
                }
                Begun::Yes
            }
            Ok(found) if found.config.metadata.get(METADATA_DONE) == Some(&identity) => {
                config.history = found.config.history;
                Begun::Done
            }
            Ok(_) => return Err(MigrateError::TargetExists { bucket: to.clone() }.into()),
        };
        config.metadata.remove(METADATA_RUNNING);
        config.metadata.insert(METADATA_DONE.to_owned(), identity);
        config.check(target.capabilities())?;
        let keeps_expiry = target.capabilities().expired_history || config.history.get() == 1;
        if source.capabilities().persistent && !target.capabilities().persistent {
            losses.push(Loss::new("persistent", "the target forgets everything when it ends"));
        }
        if let (false, Some(ttl)) = (keeps_expiry, config.ttl) {
            let ttl = humantime_text(ttl);
            let message = format!(
                "in a bucket with history, values begin their TTL of {ttl} anew, unless they expire in the source before the end"
            );
            losses.push(Loss { what: "remaining_ttl", message });
        }
        let entries = match source.capabilities().snapshot_scans {
            true => Some(source.engine().count(from, pleach_engine::Selection::all()).await?),
            false => None,
        };
        let notes = weaker(source.capabilities(), target.capabilities());
        let plan = Self {
            source: info,
            target: to.clone(),
            config,
            begun,
            entries,
            losses,
            notes,
            owner,
            keeps_expiry,
        };
        if plan.begun == Begun::No {
            plan.survey(source, target.capabilities()).await?;
        }
        Ok(plan)
    }

    /// Refuses a bucket of a contract that does not move with it.
    pub(super) async fn check_reserved(&self, target: &Store) -> Result<(), Error> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let theirs = target.contracts().owner(&self.target).await?;
        let is_ours = |theirs: &Owner| {
            let is_open = theirs.state == OwnerState::Arriving || self.begun == Begun::Done;
            is_open && (&theirs.lineage, &theirs.alias) == (&owner.lineage, &owner.alias)
        };
        if theirs.as_ref().is_some_and(is_ours) {
            return Ok(());
        }
        let (bucket, lineage) = (self.source.name.clone(), owner.lineage.clone());
        Err(MigrateError::NotReserved { bucket, lineage }.into())
    }

    /// The configuration of the target's bucket while it is being made: one that takes whatever the source has, also
    /// values over a limit that was lowered since.
    pub(super) fn working_config(&self, target: &Capabilities) -> BucketConfig {
        let mut config = self.config.clone();
        if let Some(identity) = config.metadata.remove(METADATA_DONE) {
            config.metadata.insert(METADATA_RUNNING.to_owned(), identity);
        }
        BucketConfig { value_bytes_max: target.value_bytes_max, ..config }
    }

    /// Whether `entry` expires by itself, not by its bucket's TTL.
    pub(super) fn expires_by_itself(&self, entry: &Entry) -> bool {
        let by_bucket = self.source.config.ttl.map(|ttl| entry.time.saturating_add(ttl));
        entry.expires.is_some_and(|expires| {
            by_bucket.is_none_or(|by_bucket| by_bucket.since(expires) > EXPIRY_TOLERANCE)
        })
    }

    /// Looks for what the target cannot take at all, if there may be such.
    async fn survey(&self, source: &Store, target: &Capabilities) -> Result<(), Error> {
        let sizes = source.capabilities().value_bytes_max > target.value_bytes_max
            && self.source.config.value_bytes_max > target.value_bytes_max;
        if !sizes && self.keeps_expiry {
            return Ok(());
        }
        let mut query = ScanQuery { limit: PAGE_ENTRIES_MAX, keys_only: !sizes, ..ScanQuery::default() };
        loop {
            let page = source.engine().scan(&self.source.name, query.clone()).await?;
            for entry in &page.entries {
                self.check(entry, target.value_bytes_max)?;
            }
            match page.next {
                Some(next) => query.page = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Refuses what the target cannot take, where values have at most `limit` bytes.
    pub(super) fn check(&self, entry: &Entry, limit: u32) -> Result<(), Error> {
        let (bucket, key, bytes) = (self.source.name.clone(), entry.key.clone(), entry.value.len());
        if bytes > limit as usize {
            return Err(MigrateError::ValueTooLarge { bucket, key, bytes, limit }.into());
        }
        if !self.keeps_expiry && self.expires_by_itself(entry) {
            return Err(MigrateError::Expiring { bucket, key }.into());
        }
        Ok(())
    }
}

impl Loss {
    fn new(what: &'static str, message: &str) -> Self {
        Self { what, message: message.to_owned() }
    }
}

/// Refuses another name for what the store itself keeps: under one, what users and devices have stored could be read.
fn check_names(from: &BucketName, to: &BucketName) -> Result<(), MigrateError> {
    if from == to || !(is_reserved_bucket(from) || is_reserved_bucket(to)) {
        return Ok(());
    }
    Err(MigrateError::Renamed { from: from.clone(), to: to.clone() })
}

/// The configuration that comes closest to `config`, and what is lost by it.
fn fitting(
    config: &BucketConfig,
    options: &MigrateOptions,
    target: &Capabilities,
) -> (BucketConfig, Vec<Loss>) {
    let (mut fits, mut losses) = (config.clone(), Vec::new());
    let mut lost = |what, message: String| losses.push(Loss { what, message });
    fits.history = options.history.map_or(fits.history, |history| history.min(fits.history));
    if let Some(most) = NonZeroU8::new(target.history_max).filter(|most| *most < fits.history) {
        lost("history", format!("{most} records of a key are kept there, not {}", fits.history));
        fits.history = most;
    }
    if let Some(ttl) = fits.ttl.filter(|ttl| *ttl < target.ttl_resolution) {
        let (ttl, least) = (humantime_text(ttl), humantime_text(target.ttl_resolution));
        lost("ttl", format!("the shortest TTL there is {least}, not {ttl}"));
        fits.ttl = Some(target.ttl_resolution);
    }
    if fits.value_bytes_max > target.value_bytes_max {
        let (asked, most) = (fits.value_bytes_max, target.value_bytes_max);
        lost("value_bytes_max", format!("values may have {most} bytes there, not {asked}"));
        fits.value_bytes_max = most;
    }
    if fits.durability == Durability::Synced && !target.synced_commits {
        let message = "commits there are acknowledged before they are on stable storage";
        lost("durability", message.to_owned());
        fits.durability = Durability::Buffered;
    }
    (fits, losses)
}

/// What is different in any case, and what the target promises less of than the source.
fn weaker(source: &Capabilities, target: &Capabilities) -> Vec<Loss> {
    let mut notes = vec![Loss::new("revisions", "every record gets a new revision and a new time")];
    let promises = [
        (
            "reads_own_writes",
            source.reads_own_writes,
            target.reads_own_writes,
            "a read may miss an own write",
        ),
        (
            "linearizable_reads",
            source.linearizable_reads,
            target.linearizable_reads,
            "a read may miss what another process has just written",
        ),
        (
            "complete_feed",
            source.complete_feed,
            target.complete_feed,
            "a watch that resumes gets the records that are still kept, not every change since",
        ),
        ("consumers", source.consumers, target.consumers, "consumers are not copied"),
    ];
    let lacks = promises.into_iter().filter(|(_, had, has, _)| *had && !*has);
    notes.extend(lacks.map(|(what, _, _, message)| Loss::new(what, message)));
    let mut less = |what, message: String| notes.push(Loss { what, message });
    if target.ttl_resolution > source.ttl_resolution {
        let exactly = humantime_text(target.ttl_resolution);
        less("ttl_resolution", format!("values expire up to {exactly} later"));
    }
    if target.batch_operations_max < source.batch_operations_max {
        less(
            "batch_operations_max",
            format!("a batch has at most {} operations", target.batch_operations_max),
        );
    }
    if target.batch_bytes_max < source.batch_bytes_max {
        less("batch_bytes_max", format!("a batch has at most {} bytes", target.batch_bytes_max));
    }
    notes
}

/// A length of time for people.
fn humantime_text(time: Duration) -> String {
    match time.as_millis() {
        millis if millis.is_multiple_of(1000) => format!("{}s", time.as_secs()),
        millis => format!("{millis}ms"),
    }
}
