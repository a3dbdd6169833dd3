//! What an open store measures of itself, cheaply enough never to be switched off.
//!
//! Counting costs an addition in a cell that a thread has to itself. Gets are only timed and their keys only looked
//! at now and then: reading the clock twice would be a sixth of a get. Commits, scans and syncs take so long that
//! all of them are timed.

mod histogram;
mod hot;
mod recent;
mod sketch;
mod tally;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pleach_engine::{CheckedBatch, Clock, Key, Revision, Timestamp};

use crate::log::BucketId;
pub(crate) use histogram::{Counts, Histogram};
pub(crate) use hot::{Hot, Share};
pub(crate) use recent::{Latencies, Recent, Sample};
pub(crate) use tally::Tally;

/// One get of so many is timed and its key counted, and one put of so many has its key counted. A look costs about as
/// much as a get: with one of 64 it was felt, by two percent.
const GETS_PER_SAMPLE: u64 = 256;
const PUTS_PER_SAMPLE: u64 = 32;

/// The meters of an open store.
#[derive(Debug)]
pub(crate) struct Meters {
    clock: Arc<dyn Clock>,
    /// When the store was opened, by both of the clock's times.
    pub(crate) opened: (Timestamp, Duration),
    pub(crate) gets: Tally,
    pub(crate) get_times: Histogram,
    pub(crate) scan_times: Histogram,
    pub(crate) put_times: Histogram,
    /// Records that were committed.
    pub(crate) puts: Tally,
    pub(crate) hot_gets: Hot,
    pub(crate) hot_puts: Hot,
    /// Commits that wait for their answer, and their bytes.
    pub(crate) waiting_commits: AtomicU64,
    pub(crate) waiting_bytes: AtomicU64,
    /// How many commits were in each group.
    pub(crate) group_sizes: Histogram,
    /// What was written to the log, without what cleaning wrote.
    pub(crate) log_bytes: AtomicU64,
    /// Reads that the cache of entries has answered, and those it has not.
    pub(crate) entry_hits: Tally,
    pub(crate) entry_misses: Tally,
    /// How long flushes and merges of the index have taken.
    pub(crate) flush_micros: AtomicU64,
    pub(crate) merge_micros: AtomicU64,
    /// How often the file with the status could not be written.
    pub(crate) unwritten_reports: AtomicU64,
    /// The oldest snapshot that was held when someone looked, and since when it has been the oldest.
    oldest: Mutex<Option<(Revision, Duration)>>,
    /// The last minute.
    pub(crate) recent: Recent,
}

impl Meters {
    /// Meters that start now.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            clock: Arc::clone(clock),
            opened: (clock.now(), clock.elapsed()),
            gets: Tally::default(),
            get_times: Histogram::default(),
            scan_times: Histogram::default(),
            put_times: Histogram::default(),
            puts: Tally::default(),
            hot_gets: Hot::default(),
            hot_puts: Hot::default(),
            waiting_commits: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            group_sizes: Histogram::default(),
            log_bytes: AtomicU64::new(0),
            entry_hits: Tally::default(),
            entry_misses: Tally::default(),
            flush_micros: AtomicU64::new(0),
            merge_micros: AtomicU64::new(0),
            unwritten_reports: AtomicU64::new(0),
            oldest: Mutex::default(),
            recent: Recent::default(),
        }
    }

    /// Counts a get, which lasts until what is returned is dropped.
    pub(crate) fn get(&self, bucket: BucketId, key: &Key) -> Option<Timed<'_>> {
        if !self.gets.add_sampling(GETS_PER_SAMPLE) {
            return None;
        }
        self.hot_gets.add(bucket, key.as_bytes());
        Some(self.time(&self.get_times))
    }

    /// Counts a scan, which lasts until what is returned is dropped.
    pub(crate) fn scan(&self) -> Timed<'_> {
        self.time(&self.scan_times)
    }

    /// Counts a commit, which lasts until what is returned is dropped.
    pub(crate) fn put(&self, bucket: BucketId, batch: &CheckedBatch) -> Waiting<'_> {
        for operation in batch.operations() {
            if self.puts.add_sampling(PUTS_PER_SAMPLE) {
                self.hot_puts.add(bucket, operation.key.as_bytes());
            }
        }
        let bytes = batch.bytes() as u64;
        self.waiting_commits.fetch_add(1, Ordering::Relaxed);
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        Waiting { meters: self, bytes, _timed: self.time(&self.put_times) }
    }

    /// Counts a group of so many commits that was written to the log.
    pub(crate) fn group(&self, commits: usize, bytes: usize) {
        self.log_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        // One that was refused altogether has left nothing.
        if commits > 0 && bytes > 0 {
            self.group_sizes.record_number(commits as u64);
        }
    }

    /// Notes the oldest snapshot that is held now.
    pub(crate) fn note_oldest(&self, revision: Option<Revision>, now: Duration) {
        let mut oldest = self.oldest.lock().unwrap_or_else(PoisonError::into_inner);
        if oldest.map(|(known, _)| known) != revision {
            *oldest = revision.map(|revision| (revision, now));
        }
    }

    /// The oldest snapshot that was noted, and when it was first.
    pub(crate) fn oldest(&self) -> Option<(Revision, Duration)> {
        *self.oldest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the store has been open.
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.opened.1)
    }

    fn time<'a>(&'a self, histogram: &'a Histogram) -> Timed<'a> {
        Timed { clock: &*self.clock, histogram, started: self.clock.elapsed() }
    }
}

/// Something that is being timed.
#[derive(Debug)]
pub(crate) struct Timed<'a> {
    clock: &'a dyn Clock,
    histogram: &'a Histogram,
    started: Duration,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.histogram.record(self.clock.elapsed().saturating_sub(self.started));
    }
}

/// A commit that waits for its answer.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    meters: &'a Meters,
    bytes: u64,
    _timed: Timed<'a>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.meters.waiting_commits.fetch_sub(1, Ordering::Relaxed);
        self.meters.waiting_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Times something from when it is given a clock on.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    clock: OnceLock<Arc<dyn Clock>>,
    histogram: Histogram,
}

impl Stopwatch {
    /// Begins to time.
    pub(crate) fn set_clock(&self, clock: &Arc<dyn Clock>) {
        // A second clock would be the same one.
        let _ = self.clock.set(Arc::clone(clock));
    }

    /// Times what lasts until what is returned is dropped.
    pub(crate) fn start(&self) -> Option<Timed<'_>> {
        let clock = &**self.clock.get()?;
        Some(Timed { clock, histogram: &self.histogram, started: clock.elapsed() })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.histogram.snapshot()
    }
}
