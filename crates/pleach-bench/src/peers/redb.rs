use anyhow::{Context as _, Result};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::layout::{self, Encoded, Revisions};
use super::{CACHE_BYTES, Layout, MEMTABLE_BYTES, Opening, Peer, Record, See, hand_over, show};
use crate::keys::KeyText;

const LATEST: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("latest");
const FEED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("feed");

/// redb: a table of entries and a table for the feed. Its writers wait for each other, so revisions are in order.
pub(super) struct RedbPeer {
    db: Database,
    layout: Layout,
    revisions: Revisions,
    /// What a batch is committed with. Without syncing, redb keeps it in memory only, and a killed process
    /// would lose it.
    unsynced: Durability,
}

impl RedbPeer {
    pub(super) fn open(opening: Opening<'_>) -> Result<Self> {
        std::fs::create_dir_all(opening.directory)?;
        // It has one cache, for reading and for what is not written yet.
        let db = Database::builder()
            .set_cache_size(CACHE_BYTES + MEMTABLE_BYTES)
            .create(opening.directory.join("bench.redb"))?;
        let transaction = db.begin_write()?;
        transaction.open_table(LATEST)?;
        let last = match opening.layout {
            Layout::Same => transaction.open_table(FEED)?.last()?.map_or(0, |(revision, _)| revision.value()),
            Layout::Raw => 0,
        };
        transaction.commit()?;
        let unsynced = if opening.unflushed { Durability::Immediate } else { Durability::None };
        Ok(Self { db, layout: opening.layout, revisions: Revisions::after(last), unsynced })
    }

    fn write<'a>(
        &self,
        records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        durability: Durability,
    ) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut latest = transaction.open_table(LATEST)?;
            match self.layout {
                Layout::Raw => {
                    for (key, value) in records {
                        latest.insert(key, value)?;
                    }
                }
                Layout::Same => {
                    let mut feed = transaction.open_table(FEED)?;
                    let mut encoded = Encoded::default();
                    for (key, value) in records {
                        let revision = self.revisions.take();
                        encoded.fill(revision, key, value);
                        latest.insert(key, encoded.entry.as_slice())?;
                        feed.insert(revision, encoded.change.as_slice())?;
                    }
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Peer for RedbPeer {
    fn put_batch(&self, records: &[Record]) -> Result<()> {
        let records = records.iter().map(|record| (&*record.key, record.value.as_slice()));
        self.write(records, self.unsynced)
    }

    fn sync(&self) -> Result<()> {
        self.write(std::iter::empty(), Durability::Immediate)
    }

    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()> {
        self.write(std::iter::once((&**key, value)), Durability::Immediate)
    }

    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool> {
        let latest = self.db.begin_read()?.open_table(LATEST)?;
        let Some(bytes) = latest.get(&**key)? else { return Ok(false) };
        show(self.layout, key, bytes.value(), see);
        Ok(true)
    }

    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize> {
        let latest = self.db.begin_read()?.open_table(LATEST)?;
        let mut seen = 0;
        for item in latest.range::<&[u8]>(&**from..)?.take(count) {
            let (key, bytes) = item?;
            show(self.layout, key.value(), bytes.value(), see);
            seen += 1;
        }
        Ok(seen)
    }

    fn replay(&self, see: See<'_>) -> Result<Option<u64>> {
        if self.layout == Layout::Raw {
            return Ok(None);
        }
        let feed = self.db.begin_read()?.open_table(FEED)?;
        let mut count = 0;
        for item in feed.iter()? {
            let (revision, bytes) = item?;
            let (key, value) = layout::change(bytes.value()).context("a change cannot be read")?;
            hand_over(see, revision.value(), key, value);
            count += 1;
        }
        Ok(Some(count))
    }

    fn trim_feed(&self, keep: u64) -> Result<()> {
        if self.layout == Layout::Same {
            let mut transaction = self.db.begin_write()?;
            transaction.set_durability(self.unsynced)?;
            transaction.open_table(FEED)?.retain_in(..self.revisions.floor(keep), |_, _| false)?;
            transaction.commit()?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.db);
        Ok(())
    }
}
