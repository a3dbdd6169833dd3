use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::layout::Revisions;
use super::{CACHE_BYTES, Layout, Opening, Peer, Record, See, hand_over};
use crate::keys::KeyText;
use crate::process::time_of_day;

const PAGE_BYTES: usize = 4096;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS latest
        (key BLOB PRIMARY KEY, revision INTEGER, time INTEGER, value BLOB) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS feed
        (revision INTEGER PRIMARY KEY, key BLOB, operation INTEGER, time INTEGER, value BLOB);";
const TABLES_RAW: &str =
    "CREATE TABLE IF NOT EXISTS latest (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;";
const PUT_LATEST: &str = "INSERT OR REPLACE INTO latest (key, revision, time, value) VALUES (?, ?, ?, ?)";
const PUT_FEED: &str = "INSERT INTO feed (revision, key, operation, time, value) VALUES (?, ?, 1, ?, ?)";
const PUT_RAW: &str = "INSERT OR REPLACE INTO latest (key, value) VALUES (?, ?)";
const GET: &str = "SELECT revision, time, value FROM latest WHERE key = ?";
const GET_RAW: &str = "SELECT 0, 0, value FROM latest WHERE key = ?";
const SCAN: &str = "SELECT key, revision, time, value FROM latest WHERE key >= ? ORDER BY key LIMIT ?";
const SCAN_RAW: &str = "SELECT key, 0, 0, value FROM latest WHERE key >= ? ORDER BY key LIMIT ?";
const REPLAY: &str = "SELECT revision, key, operation, time, value FROM feed ORDER BY revision";

/// SQLite with a write-ahead log: one connection writes, as SQLite has it, others read.
pub(super) struct SqlitePeer {
    path: PathBuf,
    writer: Mutex<Writer>,
    /// Connections that nobody reads with now.
    readers: Mutex<Vec<Connection>>,
    layout: Layout,
    revisions: Revisions,
    checkpoint_pages: usize,
}

struct Writer {
    connection: Connection,
    /// Whether it syncs its log at every commit.
    synced: bool,
}

impl SqlitePeer {
    pub(super) fn open(opening: Opening<'_>) -> Result<Self> {
        std::fs::create_dir_all(opening.directory)?;
        let path = opening.directory.join("bench.sqlite");
        // The log grows to what others collect in memory before it is written to the tables.
        let checkpoint_pages = opening.memtable_bytes() / PAGE_BYTES;
        let connection = connect(&path, checkpoint_pages)?;
        let mut last = 0;
        match opening.layout {
            Layout::Raw => connection.execute_batch(TABLES_RAW)?,
            Layout::Same => {
                connection.execute_batch(TABLES)?;
                let newest = "SELECT coalesce(max(revision), 0) FROM feed";
                last = natural(connection.query_row(newest, [], |row| row.get(0))?);
            }
        }
        let writer = Mutex::new(Writer { connection, synced: false });
        let revisions = Revisions::after(last);
        let readers = Mutex::default();
        Ok(Self { path, writer, readers, layout: opening.layout, revisions, checkpoint_pages })
    }

    fn write<'a>(&self, records: impl Iterator<Item = (&'a [u8], &'a [u8])>, synced: bool) -> Result<()> {
        let mut writer = lock(&self.writer);
        if writer.synced != synced {
            let level = if synced { "FULL" } else { "NORMAL" };
            writer.connection.pragma_update(None, "synchronous", level)?;
            writer.synced = synced;
        }
        let transaction = writer.connection.transaction()?;
        match self.layout {
            Layout::Raw => {
                let mut put = transaction.prepare_cached(PUT_RAW)?;
                for (key, value) in records {
                    put.execute(params![key, value])?;
                }
            }
            Layout::Same => {
                let mut latest = transaction.prepare_cached(PUT_LATEST)?;
                let mut feed = transaction.prepare_cached(PUT_FEED)?;
                for (key, value) in records {
                    let (revision, time) = (whole(self.revisions.take()), whole(time_of_day()));
                    latest.execute(params![key, revision, time, value])?;
                    feed.execute(params![revision, key, time, value])?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn read<T>(&self, with: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = lock(&self.readers).pop();
        let reader = match idle {
            Some(reader) => reader,
            None => connect(&self.path, self.checkpoint_pages)?,
        };
        let result = with(&reader);
        lock(&self.readers).push(reader);
        result
    }
}

impl Peer for SqlitePeer {
    fn put_batch(&self, records: &[Record]) -> Result<()> {
        self.write(records.iter().map(|record| (&*record.key, record.value.as_slice())), false)
    }

    fn sync(&self) -> Result<()> {
        // A checkpoint syncs the log before it copies it into the tables.
        let writer = lock(&self.writer);
        Ok(writer.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }

    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()> {
        self.write(std::iter::once((&**key, value)), true)
    }

    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool> {
        let sql = if self.layout == Layout::Raw { GET_RAW } else { GET };
        self.read(|reader| {
            let mut statement = reader.prepare_cached(sql)?;
            let found = statement.query_row([&**key], |row| {
                hand_over(see, natural(row.get(0)?), key, row.get_ref(2)?.as_blob()?);
                Ok(())
            });
            Ok(found.optional()?.is_some())
        })
    }

    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize> {
        let sql = if self.layout == Layout::Raw { SCAN_RAW } else { SCAN };
        self.read(|reader| {
            let mut statement = reader.prepare_cached(sql)?;
            let mut rows = statement.query(params![&**from, whole(count as u64)])?;
            let mut seen = 0;
            while let Some(row) = rows.next()? {
                hand_over(see, natural(row.get(1)?), row.get_ref(0)?.as_blob()?, row.get_ref(3)?.as_blob()?);
                seen += 1;
            }
            Ok(seen)
        })
    }

    fn replay(&self, see: See<'_>) -> Result<Option<u64>> {
        if self.layout == Layout::Raw {
            return Ok(None);
        }
        self.read(|reader| {
            let mut statement = reader.prepare_cached(REPLAY)?;
            let mut rows = statement.query([])?;
            let mut count = 0;
            while let Some(row) = rows.next()? {
                hand_over(see, natural(row.get(0)?), row.get_ref(1)?.as_blob()?, row.get_ref(4)?.as_blob()?);
                count += 1;
            }
            Ok(Some(count))
        })
    }

    fn trim_feed(&self, keep: u64) -> Result<()> {
        if self.layout == Layout::Same {
            let floor = whole(self.revisions.floor(keep));
            lock(&self.writer).connection.execute("DELETE FROM feed WHERE revision < ?", [floor])?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.readers);
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(writer.connection.close().map_err(|(_, error)| error)?)
    }
}

fn connect(path: &std::path::Path, checkpoint_pages: usize) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", whole(PAGE_BYTES as u64))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // A negative number is in KiB.
    connection.pragma_update(None, "cache_size", -whole(CACHE_BYTES as u64 / 1024))?;
    connection.pragma_update(None, "wal_autocheckpoint", whole(checkpoint_pages as u64))?;
    Ok(connection)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number as SQLite has them.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
