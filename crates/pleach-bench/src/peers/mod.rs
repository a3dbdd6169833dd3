//! The engines that are measured, behind one small trait.

mod fjall;
mod layout;
mod pleach;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::drive::{Caller, Drive, drive_threads};
use crate::keys::KeyText;

pub(crate) use pleach::PleachPeer;

/// What an engine may collect in memory before it writes it out: Pleach's default, given to all.
pub(crate) const MEMTABLE_BYTES: usize = 32 * 1024 * 1024;

/// What a peer may keep in memory for reading. Pleach has its own default, which is not more.
pub(crate) const CACHE_BYTES: usize = 128 * 1024 * 1024;

/// What it collects in memory if nothing shall be written out.
const UNFLUSHED_BYTES: usize = 1024 * 1024 * 1024;

/// How many threads work in the background of an engine that has such a setting.
const BACKGROUND_THREADS: usize = 2;

/// Which engine.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub(crate) enum EngineName {
    Pleach,
    RocksDb,
    Fjall,
    Redb,
    Sqlite,
}

impl EngineName {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Pleach => "Pleach",
            Self::RocksDb => "RocksDB",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
            Self::Sqlite => "SQLite",
        }
    }

    /// Whether it was compiled in.
    pub(crate) const fn is_built(self) -> bool {
        cfg!(feature = "rocksdb") || !matches!(self, Self::RocksDb)
    }
}

/// How the data are laid out. Pleach has one way for both.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layout {
    /// Each put takes the next revision, and writes the entry of its key and a change of the feed in one
    /// atomic batch: what Pleach promises, as far as a map can.
    Same,
    /// A plain map from keys to values.
    Raw,
}

/// How an engine is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) layout: Layout,
    /// Keeps everything that is written in memory and in the log.
    pub(crate) unflushed: bool,
}

impl Opening<'_> {
    fn memtable_bytes(&self) -> usize {
        if self.unflushed { UNFLUSHED_BYTES } else { MEMTABLE_BYTES }
    }
}

/// What hears of entries: revision (0 in a plain map), key, value.
pub(crate) type See<'a> = &'a mut dyn FnMut(u64, &[u8], &[u8]);

/// Hands over an entry that belongs to the reader from then on, as one of Pleach does: who wants to keep what a peer
/// only lends makes a copy. In a plain map it may stay lent.
fn hand_over(see: See<'_>, revision: u64, key: &[u8], value: &[u8]) {
    let (key, value): (Box<[u8]>, Box<[u8]>) = (key.into(), value.into());
    see(revision, &key, &value);
}

/// Shows what a peer has of a key: in a plain map the value, else an entry.
fn show(layout: Layout, key: &[u8], bytes: &[u8], see: See<'_>) {
    match layout {
        Layout::Raw => see(0, key, bytes),
        Layout::Same => {
            let (revision, value) = layout::entry(bytes).unwrap_or_default();
            hand_over(see, revision, key, value);
        }
    }
}

/// A key and its value, to be put.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) key: KeyText,
    pub(crate) value: Vec<u8>,
}

/// An open engine.
pub(crate) trait Peer: Send + Sync {
    /// Puts all of `records` atomically. They may be lost in a power cut until [`Peer::sync`].
    fn put_batch(&self, records: &[Record]) -> Result<()>;

    /// Makes everything durable that was put.
    fn sync(&self) -> Result<()>;

    /// Puts one value and returns once it is durable.
    fn put(&self, key: &KeyText, value: &[u8]) -> Result<()>;

    /// Shows the entry of a key to `see`, if it has one.
    fn get(&self, key: &KeyText, see: See<'_>) -> Result<bool>;

    /// Shows up to `count` entries, in order, from `from` on; returns how many there were.
    fn scan(&self, from: &KeyText, count: usize, see: See<'_>) -> Result<usize>;

    /// Shows every change, oldest first. None if there is no feed.
    fn replay(&self, see: See<'_>) -> Result<Option<u64>>;

    /// Lets go of all but the newest `keep` changes of the feed, if it does not do so by itself.
    fn trim_feed(&self, keep: u64) -> Result<()>;

    /// Has many callers work at once. Each is a thread, unless the engine has something better.
    fn drive(&self, drive: &Arc<Drive>) -> Result<Vec<Caller>> {
        drive_threads(self, drive)
    }

    /// Closes it cleanly.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Opens an engine.
pub(crate) fn open(name: EngineName, opening: Opening<'_>) -> Result<Box<dyn Peer>> {
    Ok(match name {
        EngineName::Pleach => Box::new(PleachPeer::open(opening)?),
        #[cfg(feature = "rocksdb")]
        EngineName::RocksDb => Box::new(rocksdb::RocksDbPeer::open(opening)?),
        #[cfg(not(feature = "rocksdb"))]
        EngineName::RocksDb => anyhow::bail!("RocksDB was not compiled in: build with --features rocksdb"),
        EngineName::Fjall => Box::new(fjall::FjallPeer::open(opening)?),
        EngineName::Redb => Box::new(redb::RedbPeer::open(opening)?),
        EngineName::Sqlite => Box::new(sqlite::SqlitePeer::open(opening)?),
    })
}

#[cfg(test)]
mod tests;
