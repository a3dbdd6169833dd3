use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use pleach_engine::{
    At, Batch, BucketName, Check, CommitError, Engine, EngineError, FENCE_AFTER, FENCE_PREFIX, Headers, Key,
    Operation, Revision,
};

use crate::naming::lineage_token;

/// The keys of a fence, which are written together. A commit checks one of them. Servers that replicate a bucket take
/// only one commit at a time that checks a given key, so one key alone would have all commits wait for each other.
const LANES: usize = 64;

/// The value of a fence whose keys could not be written together: then only the first of them can be checked.
const SINGLE: &[u8] = b"1";

/// How often raising a fence is tried whose outcome is not known. Raising it once too often does no harm.
const ATTEMPTS_MAX: usize = 3;

/// Which keys of fences the commits of this process check right now: as long as there are enough, no two check the same.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// One bit for each that is taken.
    taken: AtomicU64,
    /// Where to look for a free one.
    next: AtomicUsize,
}

/// A key of a fence, as long as a commit checks it.
pub(crate) struct Turn<'a> {
    lanes: &'a Lanes,
    pub(crate) lane: usize,
    /// Others may check it too if none was free.
    is_own: bool,
}

impl Lanes {
    /// Begins somewhere, so that processes do not all begin with the same key.
    pub(crate) fn new() -> Self {
        let first = getrandom::u32().unwrap_or_default() as usize;
        Self { taken: AtomicU64::new(0), next: AtomicUsize::new(first) }
    }

    pub(crate) fn take(&self) -> Turn<'_> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for lane in (first..first.wrapping_add(LANES)).map(|lane| lane % LANES) {
            if self.taken.fetch_or(1 << lane, Ordering::Relaxed) & (1 << lane) == 0 {
                return Turn { lanes: self, lane, is_own: true };
            }
        }
        Turn { lanes: self, lane: first % LANES, is_own: false }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_own {
            self.lanes.taken.fetch_and(!(1 << self.lane), Ordering::Relaxed);
        }
    }
}

/// What a fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// Everything in its bucket.
    Bucket,
    /// What a lineage keeps for users and devices, of all that is in the bucket of those.
    Lineage(&'a str),
}

impl<'a> Scope<'a> {
    /// The lineage, if it is that of one.
    pub(crate) fn lineage(self) -> Option<&'a str> {
        match self {
            Self::Bucket => None,
            Self::Lineage(lineage) => Some(lineage),
        }
    }

    fn key(self, lane: usize) -> Result<Key, EngineError> {
        let text = match self {
            Self::Bucket => format!("{FENCE_PREFIX}{lane:02}"),
            Self::Lineage(lineage) => format!("{FENCE_PREFIX}{}.{lane:02}", lineage_token(lineage)),
        };
        Key::parse_reserved(text).map_err(|error| EngineError::Bug { what: error.to_string() })
    }
}

/// The fence of a bucket, as it was when it was read.
///
/// On engines that other processes write to as well, a fence refuses commits that were judged by a rule that no longer
/// holds. Every change of a bucket's owner record raises its fence afterwards: it writes the fence's keys again. Every
/// guarded commit checks that the fence is where it was before the writer read the records. So once a fence is raised,
/// the server stores no commit that was judged by the older records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The bucket never had an owner.
    Absent,
    /// The keys were written last from this revision on.
    At { first: Revision, lanes: usize },
}

impl Fence {
    /// The fence of a bucket; none if there is no bucket.
    pub(crate) async fn read(
        engine: &dyn Engine,
        bucket: &BucketName,
        scope: Scope<'_>,
    ) -> Result<Option<Self>, EngineError> {
        match engine.read(bucket, &scope.key(0)?, At::Latest).await {
            Ok(None) => Ok(Some(Self::Absent)),
            Ok(Some(entry)) => {
                let lanes = if entry.value == SINGLE { 1 } else { LANES };
                Ok(Some(Self::At { first: entry.revision, lanes }))
            }
            Err(EngineError::BucketNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The check that a commit carries, of one of the keys.
    pub(crate) fn check(self, scope: Scope<'_>, lane: usize) -> Result<Check, EngineError> {
        match self {
            Self::Absent => Ok(Check::absent(scope.key(lane % LANES)?)),
            Self::At { first, lanes } => {
                let lane = lane % lanes;
                Ok(Check::revision(scope.key(lane)?, first.plus(lane as u64)))
            }
        }
    }

    /// Refuses every commit from now on that was judged before this. A bucket that is not there has none.
    pub(crate) async fn raise(
        engine: &dyn Engine,
        bucket: &BucketName,
        scope: Scope<'_>,
    ) -> Result<(), EngineError> {
        let mut headers = Headers::new();
        match engine.bucket(bucket).await {
            Ok(info) => headers
                .set(FENCE_AFTER, &info.last_revision.to_string())
                .map_err(|error| EngineError::Bug { what: error.to_string() })?,
            Err(EngineError::BucketNotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let put = |lane| Ok(Operation::put(scope.key(lane)?, Bytes::new()).with_headers(headers.clone()));
        let puts: Result<Batch, EngineError> = (0..LANES).map(put).collect();
        let batch = puts?;
        for attempt in 1.. {
            match engine.commit(bucket, batch.clone()).await {
                Ok(_) | Err(CommitError::Engine(EngineError::BucketNotFound { .. })) => return Ok(()),
                Err(CommitError::Engine(EngineError::Unsupported { .. })) => break,
                Err(CommitError::Engine(EngineError::UnknownOutcome { .. })) if attempt < ATTEMPTS_MAX => {}
                Err(CommitError::Engine(error)) => return Err(error),
                Err(CommitError::Conflict(conflict)) => {
                    return Err(EngineError::Bug { what: conflict.to_string() });
                }
            }
        }
        raise_singly(engine, bucket, scope, &headers).await
    }
}

/// Raises the fence of a bucket that takes no batches. The first key comes last: whoever reads it finds the others raised.
async fn raise_singly(
    engine: &dyn Engine,
    bucket: &BucketName,
    scope: Scope<'_>,
    headers: &Headers,
) -> Result<(), EngineError> {
    for lane in (0..LANES).rev() {
        let put = Operation::put(scope.key(lane)?, Bytes::from_static(SINGLE)).with_headers(headers.clone());
        match engine.commit(bucket, put.into()).await {
            Ok(_) => {}
            Err(CommitError::Engine(error)) => return Err(error),
            Err(CommitError::Conflict(conflict)) => {
                return Err(EngineError::Bug { what: conflict.to_string() });
            }
        }
    }
    Ok(())
}
