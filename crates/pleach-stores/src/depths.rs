use std::collections::HashMap;

use futures_util::StreamExt;
use pleach_engine::{
    BucketName, Engine, EngineError, ErrorKind, Key, Revision, WatchEvent, WatchQuery, WatchStart,
    WatchStream,
};

use crate::error::AuthorityError;
use crate::survey::{TURN_ENTRIES, Watchers, take_turns};

/// Of how many keys the records are counted in one reading: some hundred megabytes. Beyond, each key is asked for alone.
pub(crate) const KEYS_COUNTED_MAX: usize = 1_000_000;

/// How many records a key has, and the newest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    pub(crate) records: u64,
    pub(crate) newest: Revision,
}

/// How many records the keys of a bucket have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Depths {
    /// Counted in one reading of them all: to ask for each key alone takes far longer, and on a server a round trip each.
    Counted {
        /// The keys with more records than would be kept, those that were deleted included.
        deeper: HashMap<Key, Depth>,
        /// How many keys there are.
        keys: u64,
    },
    /// Too much for one reading.
    Singly,
}

impl Depths {
    /// Counts the records of all keys, of which `kept` each would be kept, if there are no more than `keys_max`.
    pub(crate) async fn count(
        engine: &dyn Engine,
        bucket: &BucketName,
        kept: u64,
        keys_max: usize,
        watchers: &Watchers,
    ) -> Result<Self, AuthorityError> {
        let query = WatchQuery { start: WatchStart::History, ..WatchQuery::default() };
        let counted = match engine.watch(bucket, query).await {
            Ok(records) => counted(records, keys_max, watchers).await,
            Err(error) => Err(error.into()),
        };
        match counted {
            Ok(Some(mut deeper)) => {
                let keys = deeper.len() as u64;
                deeper.retain(|_, depth| depth.records > kept);
                deeper.shrink_to_fit();
                Ok(Self::Counted { deeper, keys })
            }
            Ok(None) => Ok(Self::Singly),
            Err(AuthorityError::Engine(EngineError::BucketNotFound { .. })) => Ok(Self::default()),
            // An engine may have no room for so many records at once.
            Err(AuthorityError::Engine(error)) if error.kind() == ErrorKind::Unsupported => Ok(Self::Singly),
            Err(error) => Err(error),
        }
    }

    /// How many records a key has; none, if no more than would be kept.
    pub(crate) async fn of(
        &self,
        engine: &dyn Engine,
        bucket: &BucketName,
        key: &Key,
    ) -> Result<u64, EngineError> {
        match self {
            Self::Counted { deeper, .. } => Ok(deeper.get(key).map_or(0, |depth| depth.records)),
            Self::Singly => Ok(engine.history(bucket, key).await?.len() as u64),
        }
    }
}

/// Where nobody asks.
impl Default for Depths {
    fn default() -> Self {
        Self::Counted { deeper: HashMap::new(), keys: 0 }
    }
}

/// How many records every key has; none if there are too many keys.
async fn counted(
    mut records: WatchStream,
    keys_max: usize,
    watchers: &Watchers,
) -> Result<Option<HashMap<Key, Depth>>, AuthorityError> {
    let mut counted: HashMap<Key, Depth> = HashMap::new();
    for index in 0.. {
        if index % TURN_ENTRIES == 0 {
            watchers.may_go_on()?;
            take_turns().await;
        }
        match records.next().await.transpose()? {
            Some(WatchEvent::Change(change)) => {
                let newest = change.entry.revision;
                let depth = counted.entry(change.entry.key).or_insert(Depth { records: 0, newest });
                *depth = Depth { records: depth.records + 1, newest: depth.newest.max(newest) };
            }
            Some(WatchEvent::InitialDone { .. }) | None => break,
        }
        if counted.len() > keys_max {
            return Ok(None);
        }
    }
    Ok(Some(counted))
}

#[cfg(test)]
mod tests {
    use pleach_engine::{Batch, BucketConfig, MemoryEngine};

    use super::*;

    #[test]
    fn more_keys_than_there_is_room_for_are_asked_for_singly() {
        pollster::block_on(async {
            let (engine, bucket) = (MemoryEngine::new(), BucketName::parse("notes").unwrap());
            let config = BucketConfig { history: 5.try_into().unwrap(), ..BucketConfig::default() };
            engine.create_bucket(&bucket, config).await.unwrap();
            let (flat, deep) = (Key::parse("flat").unwrap(), Key::parse("deep").unwrap());
            for key in [&flat, &deep, &deep, &deep] {
                engine.commit(&bucket, Batch::new().put(key.clone(), "{}")).await.unwrap();
            }
            let count =
                async |keys_max| Depths::count(&engine, &bucket, 2, keys_max, &Watchers::default()).await;
            let counted = count(2).await.unwrap();
            let Depths::Counted { deeper, keys: 2 } = &counted else { panic!("{counted:?}") };
            assert_eq!(deeper.keys().collect::<Vec<_>>(), [&deep]);
            let singly = count(1).await.unwrap();
            assert_eq!(singly, Depths::Singly);
            for depths in [counted, singly] {
                assert_eq!(depths.of(&engine, &bucket, &deep).await.unwrap(), 3);
            }
        });
    }
}
