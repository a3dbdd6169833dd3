use std::path::PathBuf;

use pleach_engine::{BucketName, Key, Revision};

/// The most damaged places that are listed one by one; all are counted.
pub const DAMAGES_LISTED_MAX: usize = 10_000;

/// The most keys that are listed for one damaged place.
pub const LOST_KEYS_LISTED_MAX: usize = 100;

/// Up to this many keys with values, they are counted; that takes about 64 bytes of memory a key.
pub const LIVE_KEYS_COUNTED_MAX: usize = 2_000_000;

/// How far an inspection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// How many bytes of the log it has dealt with.
    pub done: u64,
    /// Of how many.
    pub total: u64,
}

/// What an inspection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads every frame of the log.
    ReadLog,
    /// Compares the index with the log.
    CheckIndex,
    /// Copies what is readable.
    CopyLog,
    /// Builds an index from the log.
    BuildIndex,
    /// Cleans the log.
    CleanLog,
}

/// Revisions from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionRange {
    /// The first of them.
    pub first: Revision,
    /// The last of them.
    pub last: Revision,
}

impl RevisionRange {
    /// How many there are.
    pub fn count(&self) -> u64 {
        (self.last.get() - self.first.get().min(self.last.get())).saturating_add(1)
    }
}

/// A key of a commit that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKey {
    /// The key, as far as its bytes can be believed: unless `sound`, no checksum vouches for it.
    pub key: Key,
    /// Whether its own record is sound, and lost only because its commit is: a commit counts as a whole.
    pub sound: bool,
}

/// A place in a file where bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes cannot be used, if that is known.
    pub length: Option<u64>,
    /// What is wrong, in a few words.
    pub what: String,
    /// The revisions that are missing here, from the last sound commit before to the first sound one after.
    /// None if nothing of the log is lost, or if nothing after it tells how much is.
    pub lost: Option<RevisionRange>,
    /// How many commits are lost here, if that can be told.
    pub commits: Option<u64>,
    /// The bucket of the lost commit, if that can still be read.
    pub bucket: Option<BucketName>,
    /// The keys of the lost commits, as far as they can still be read; at most [`LOST_KEYS_LISTED_MAX`].
    pub keys: Vec<LostKey>,
}

/// What an unfinished write left at the end of the log. Nobody was promised any of it, and the next open cuts
/// it off, so it is no damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The last segment.
    pub path: PathBuf,
    /// Where the last sound frame ends.
    pub offset: u64,
    /// How many bytes would be cut.
    pub bytes: u64,
}

/// What was found in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// How many segments there are.
    pub segments: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many sound frames there are: commits, changes to buckets and consumers, marks, footers and upkeep.
    pub frames: u64,
    /// How many records are in them.
    pub records: u64,
    /// How many buckets exist at the end.
    pub buckets: u64,
    /// How many keys have a value now; none if there are more than [`LIVE_KEYS_COUNTED_MAX`]. In a damaged log
    /// it is what the sound frames say.
    pub live_entries: Option<u64>,
    /// The first and the last revision that can be read; none in an empty store.
    pub revisions: Option<RevisionRange>,
    /// What is damaged, in the order of the log; at most [`DAMAGES_LISTED_MAX`].
    pub damages: Vec<Damage>,
    /// How many damaged places there are, listed or not.
    pub damage_count: u64,
    /// What an unfinished write left.
    pub torn_tail: Option<TornTail>,
}

impl LogReport {
    /// Whether nothing is damaged. A torn tail is no damage.
    pub fn is_sound(&self) -> bool {
        self.damage_count == 0
    }

    /// The revisions that cannot be read, and that any repair loses, as far as they are known.
    pub fn lost(&self) -> Vec<RevisionRange> {
        let mut lost: Vec<RevisionRange> = Vec::new();
        for range in self.damages.iter().filter_map(|damage| damage.lost) {
            match lost.last_mut() {
                Some(before) if before.last.get().saturating_add(1) == range.first.get() => {
                    before.last = range.last;
                }
                _ => lost.push(range),
            }
        }
        lost
    }
}

/// What was found in the index. It is a view of the log: whatever is wrong with it, nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexReport {
    /// There is none, or nothing in it yet: the next open reads the log from its start.
    Absent,
    /// It was not compared, because the log is damaged.
    NotChecked,
    /// It cannot be read.
    Unreadable {
        /// Why not.
        what: String,
    },
    /// It was compared with the log.
    Checked(IndexCheck),
}

impl IndexReport {
    /// Whether nothing is known to be wrong with it.
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Absent | Self::NotChecked => true,
            Self::Unreadable { .. } => false,
            Self::Checked(check) => {
                check.missing + check.stale + check.wrong + check.buckets_wrong + check.consumers_wrong == 0
            }
        }
    }
}

/// How the index and the log agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// The index says that it contains the log up to here; what comes later is read when the store is opened.
    pub applied: Revision,
    /// How many keys it knows, of buckets that exist.
    pub heads: u64,
    /// Keys that are in the log and not in the index.
    pub missing: u64,
    /// Keys of which the index does not know the newest record.
    pub stale: u64,
    /// Keys of which the index says something else than the log: another value, or a place where no such record
    /// is.
    pub wrong: u64,
    /// Buckets that are missing in the index, should not be there, or have another configuration.
    pub buckets_wrong: u64,
    /// Consumers that are missing in the index, should not be there, or are somewhere else.
    pub consumers_wrong: u64,
    /// Some of the keys that are missing, stale or wrong; at most [`LOST_KEYS_LISTED_MAX`].
    pub examples: Vec<(BucketName, Key)>,
}

/// What [`verify`](super::verify) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The log: the database itself.
    pub log: LogReport,
    /// The index, which can be built anew.
    pub index: IndexReport,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.log.is_sound() && self.index.is_sound()
    }
}

/// What [`clean`](super::clean) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanReport {
    /// How many bytes the log had.
    pub before: u64,
    /// How many it has.
    pub after: u64,
}

/// What [`rebuild`](super::rebuild) did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildReport {
    /// The newest revision, up to which the index now goes.
    pub applied: Revision,
    /// How many bytes of log it was built from.
    pub log_bytes: u64,
    /// Where the old index is now; none if there was none, or if it was to be discarded.
    pub set_aside: Option<PathBuf>,
}

/// What [`salvage`](super::salvage) copied, and what it could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageReport {
    /// The log that was read, with what is damaged in it.
    pub log: LogReport,
    /// How many commits were copied, changes to buckets included.
    pub commits: u64,
    /// How many records they hold.
    pub records: u64,
    /// The newest revision of the new store. Revisions there are those of the old one, also of what is lost.
    pub last: Revision,
    /// Buckets that got a name or a configuration by guess, because the commit that created them is lost.
    pub guessed_buckets: Vec<BucketName>,
    /// Sound commits that were left out, because they fit nothing: such as one to a bucket that was deleted before.
    pub left_out: u64,
}
