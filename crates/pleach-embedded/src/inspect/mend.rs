use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use pleach_engine::{BucketConfig, BucketName, EngineError, HISTORY_MAX, Headers, Revision, Timestamp};

use super::lives::{Free, Lives};
use crate::apply::bucket_key;
use crate::catalog::encode_config;
use crate::log::{BucketId, Payload, Record, RecordKind, VALUE_BYTES_MAX};

/// What is known of buckets from elsewhere than the log.
pub(super) type Known = HashMap<BucketId, (BucketName, BucketConfig)>;

/// What has to be written besides what is left of a log, so that it makes sense again: buckets whose creation or
/// deletion was lost. It is written where revisions are missing, which is where it was.
#[derive(Debug, Default)]
pub(super) struct Mend {
    pub(super) records: BTreeMap<Revision, (BucketId, Record)>,
    /// Buckets that got a name or a configuration by guess.
    pub(super) guessed: BTreeSet<BucketName>,
    /// Buckets that get another name, because there is no room to say that one of the same name was deleted.
    pub(super) renamed: HashMap<BucketId, BucketName>,
    /// Buckets of which all that is left goes: they were deleted later.
    pub(super) over: HashSet<BucketId>,
}

impl Mend {
    /// Finds out what is missing of the buckets of a log.
    pub(super) fn new(lives: Lives, known: &Known) -> Result<Self, EngineError> {
        let Lives { by_bucket, mut free, .. } = lives;
        let mut mend = Self::default();
        let mut names = Names::new(by_bucket.values().filter_map(|life| life.name.clone()), known);
        // When the next bucket of a name begins.
        let mut begins: HashMap<BucketName, Revision> = HashMap::new();
        // Numbers are given in order, so the newest comes first.
        for (id, life) in by_bucket.into_iter().rev() {
            if life.is_over() {
                mend.over.insert(id);
                continue;
            }
            let known = known.get(&id);
            let mut name = match life.name.clone().or_else(|| known.map(|(name, _)| name.clone())) {
                Some(name) => name,
                None => names.free(id)?,
            };
            if let Some(next) = begins.get(&name).copied().filter(|_| life.deleted.is_none()) {
                match free.take(life.first.next(), next) {
                    Some(at) => mend.add(at, id, RecordKind::DeleteBucket, &name, Vec::new(), life.time)?,
                    None => {
                        name = names.free(id)?;
                        mend.renamed.insert(id, name.clone());
                        mend.guessed.insert(name.clone());
                    }
                }
            }
            let begin = match life.created {
                Some(at) => Some(at),
                None => {
                    let config = known.map_or_else(keeps_everything, |(_, config)| config.clone());
                    mend.create(id, &name, &config, life.first, life.time, &mut free)?
                }
            };
            begins.extend(begin.map(|begin| (name, begin)));
        }
        Ok(mend)
    }

    /// Creates a bucket before `first`, if there is room for that.
    fn create(
        &mut self,
        id: BucketId,
        name: &BucketName,
        config: &BucketConfig,
        first: Revision,
        time: Timestamp,
        free: &mut Free,
    ) -> Result<Option<Revision>, EngineError> {
        let Some(at) = free.take(Revision::new(1), first) else { return Ok(None) };
        self.add(at, id, RecordKind::CreateBucket, name, encode_config(config)?, time)?;
        self.guessed.insert(name.clone());
        Ok(Some(at))
    }

    fn add(
        &mut self,
        revision: Revision,
        bucket: BucketId,
        kind: RecordKind,
        name: &BucketName,
        value: Vec<u8>,
        time: Timestamp,
    ) -> Result<(), EngineError> {
        let payload = Payload::plain(Headers::new(), value.into());
        let (key, expires, index, faded) = (bucket_key(name)?, None, 0, false);
        let record = Record { kind, key, revision, time, expires, payload, index, faded };
        self.records.insert(revision, (bucket, record));
        Ok(())
    }
}

/// The names that are taken.
struct Names(HashSet<BucketName>);

impl Names {
    fn new(of_lives: impl Iterator<Item = BucketName>, known: &Known) -> Self {
        Self(of_lives.chain(known.values().map(|(name, _)| name.clone())).collect())
    }

    /// A name for a bucket that says where it comes from.
    fn free(&mut self, bucket: BucketId) -> Result<BucketName, EngineError> {
        let candidates = (1..).map(|attempt: u32| match attempt {
            1 => format!("salvaged-{}", bucket.0),
            _ => format!("salvaged-{}-{attempt}", bucket.0),
        });
        let mut names = candidates.filter_map(|name| BucketName::parse(name).ok());
        let free = names.find(|name| self.0.insert(name.clone()));
        free.ok_or_else(|| EngineError::Bug { what: "there is no free name for a bucket".into() })
    }
}

fn keeps_everything() -> BucketConfig {
    BucketConfig {
        history: HISTORY_MAX.try_into().unwrap_or(BucketConfig::default().history),
        value_bytes_max: VALUE_BYTES_MAX,
        ..BucketConfig::default()
    }
}
