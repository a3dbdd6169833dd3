use anyhow::{Context as _, Result};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, Options,
    ReadOptions, WriteBatch, WriteOptions,
};

use super::layout::{self, Encoded, Revisions};
use super::{BACKGROUND_THREADS, CACHE_BYTES, Layout, Opening, Peer, Record, See, hand_over, show};
use crate::keys::KeyText;

const FEED: &str = "feed";
const BLOOM_BITS: f64 = 10.0;

/// RocksDB: the entries in the default column family, the feed in another.
pub(super) struct RocksDbPeer {
    db: DB,
    layout: Layout,
    revisions: Revisions,
    /// Made once: making them for every get takes longer than some gets.
    reading: ReadOptions,
}

impl RocksDbPeer {
    pub(super) fn open(opening: Opening<'_>) -> Result<Self> {
        let options = options(opening.memtable_bytes());
        let feed =
            (opening.layout == Layout::Same).then(|| ColumnFamilyDescriptor::new(FEED, options.clone()));
        let entries = ColumnFamilyDescriptor::new("default", options.clone());
        let db = DB::open_cf_descriptors(&options, opening.directory, feed.into_iter().chain([entries]))?;
        let mut last = 0;
        if let Some(feed) = db.cf_handle(FEED) {
            let mut iterator = db.raw_iterator_cf(feed);
            iterator.seek_to_last();
            last = iterator.key().and_then(layout::number).unwrap_or(0);
        }
        Ok(Self {
            db,
            layout: opening.layout,
            revisions: Revisions::after(last),
            reading: ReadOptions::default(),
        })
    }

    fn feed(&self) -> Result<&ColumnFamily> {
        self.db.cf_handle(FEED).context("there is no feed")
    }

    fn write<'a>(&self, records: impl Iterator<Item = (&'a [u8], &'a [u8])>, sync: bool) -> Result<()> {
        let mut batch = WriteBatch::default();
        match self.layout {
            Layout::Raw => records.for_each(|(key, value)| batch.put(key, value)),
            Layout::Same => {
                let (feed, mut encoded) = (self.feed()?, Encoded::default());
                for (key, value) in records {
                    encoded.fill(self.revisions.take(), key, value);
                    batch.put(key, &encoded.entry);
                    batch.put_cf(feed, encoded.revision, &encoded.change);
                }
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        Ok(self.db.write_opt(batch, &options)?)
    }
}

impl Peer for RocksDbPeer {
    fn put_batch(&self, records: &[Record]) -> Result<()> {
        self.write(records.iter().map(|record| (&*record.key, record.value.as_slice())), false)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.flush_wal(true)?)
    }

    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()> {
        self.write(std::iter::once((&**key, value)), true)
    }

    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool> {
        let Some(bytes) = self.db.get_pinned_opt(&**key, &self.reading)? else { return Ok(false) };
        show(self.layout, key, &bytes, see);
        Ok(true)
    }

    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize> {
        let mut iterator = self.db.raw_iterator();
        iterator.seek(&**from);
        let mut seen = 0;
        while seen < count {
            let Some((key, bytes)) = iterator.item() else { break };
            show(self.layout, key, bytes, see);
            seen += 1;
            iterator.next();
        }
        iterator.status()?;
        Ok(seen)
    }

    fn replay(&self, see: See<'_>) -> Result<Option<u64>> {
        if self.layout == Layout::Raw {
            return Ok(None);
        }
        let mut iterator = self.db.raw_iterator_cf(self.feed()?);
        iterator.seek_to_first();
        let mut count = 0;
        while let Some((revision, bytes)) = iterator.item() {
            let (key, value) = layout::change(bytes).context("a change cannot be read")?;
            hand_over(see, layout::number(revision).unwrap_or(0), key, value);
            count += 1;
            iterator.next();
        }
        iterator.status()?;
        Ok(Some(count))
    }

    fn trim_feed(&self, keep: u64) -> Result<()> {
        if self.layout == Layout::Same {
            let (first, floor) = (0_u64.to_be_bytes(), self.revisions.floor(keep).to_be_bytes());
            // Whole files go at once; a marker hides the rest.
            self.db.delete_file_in_range_cf(self.feed()?, first, floor)?;
            self.db.delete_range_cf(self.feed()?, first, floor)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.db);
        Ok(())
    }
}

fn options(memtable_bytes: usize) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    table.set_bloom_filter(BLOOM_BITS, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(memtable_bytes);
    options.set_compression_type(DBCompressionType::None);
    options.set_max_background_jobs(i32::try_from(BACKGROUND_THREADS).unwrap_or(i32::MAX));
    options
}
