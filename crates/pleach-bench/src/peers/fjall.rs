use anyhow::{Context as _, Result};
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::layout::{self, Encoded, Revisions};
use super::{BACKGROUND_THREADS, CACHE_BYTES, Layout, Opening, Peer, Record, See, hand_over, show};
use crate::keys::KeyText;

/// How many changes are removed from the feed at a time, since there is no removal of a range.
const TRIM_CHANGES: usize = 1000;

/// fjall: a keyspace for the entries, another for the feed.
pub(super) struct FjallPeer {
    db: Database,
    latest: Keyspace,
    /// None in a plain map.
    feed: Option<Keyspace>,
    revisions: Revisions,
}

impl FjallPeer {
    pub(super) fn open(opening: Opening<'_>) -> Result<Self> {
        let db = Database::builder(opening.directory)
            .cache_size(CACHE_BYTES as u64)
            .worker_threads(BACKGROUND_THREADS)
            .journal_compression(CompressionType::None)
            .open()?;
        let memtable_bytes = opening.memtable_bytes() as u64;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable_bytes)
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
        };
        let latest = db.keyspace("latest", options)?;
        let feed = match opening.layout {
            Layout::Same => Some(db.keyspace("feed", options)?),
            Layout::Raw => None,
        };
        let newest = feed.as_ref().and_then(Keyspace::last_key_value);
        let last = match newest {
            Some(change) => layout::number(&change.key()?).unwrap_or(0),
            None => 0,
        };
        Ok(Self { db, latest, feed, revisions: Revisions::after(last) })
    }

    fn write<'a>(
        &self,
        records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        mode: PersistMode,
    ) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(mode));
        match &self.feed {
            None => records.for_each(|(key, value)| batch.insert(&self.latest, key, value)),
            Some(feed) => {
                let mut encoded = Encoded::default();
                for (key, value) in records {
                    encoded.fill(self.revisions.take(), key, value);
                    batch.insert(&self.latest, key, encoded.entry.as_slice());
                    batch.insert(feed, encoded.revision, encoded.change.as_slice());
                }
            }
        }
        Ok(batch.commit()?)
    }

    fn layout(&self) -> Layout {
        if self.feed.is_none() { Layout::Raw } else { Layout::Same }
    }
}

impl Peer for FjallPeer {
    fn put_batch(&self, records: &[Record]) -> Result<()> {
        let records = records.iter().map(|record| (&*record.key, record.value.as_slice()));
        self.write(records, PersistMode::Buffer)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()> {
        self.write(std::iter::once((&**key, value)), PersistMode::SyncData)
    }

    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool> {
        let Some(bytes) = self.latest.get(&**key)? else { return Ok(false) };
        show(self.layout(), key, &bytes, see);
        Ok(true)
    }

    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize> {
        let mut seen = 0;
        for item in self.latest.range(&**from..).take(count) {
            let (key, bytes) = item.into_inner()?;
            show(self.layout(), &key, &bytes, see);
            seen += 1;
        }
        Ok(seen)
    }

    fn replay(&self, see: See<'_>) -> Result<Option<u64>> {
        let Some(feed) = &self.feed else { return Ok(None) };
        let mut count = 0;
        for item in feed.iter() {
            let (revision, bytes) = item.into_inner()?;
            let (key, value) = layout::change(&bytes).context("a change cannot be read")?;
            hand_over(see, layout::number(&revision).unwrap_or(0), key, value);
            count += 1;
        }
        Ok(Some(count))
    }

    fn trim_feed(&self, keep: u64) -> Result<()> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let floor = self.revisions.floor(keep).to_be_bytes();
        let old = feed.range(..floor).map(fjall::Guard::key).collect::<Result<Vec<_>, _>>()?;
        for chunk in old.chunks(TRIM_CHANGES) {
            let mut batch = self.db.batch();
            chunk.iter().for_each(|revision| batch.remove(feed, revision.clone()));
            batch.commit()?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }
}
