use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use pleach_engine::{Clock, EngineError, Revision, SteadyClock, Timestamp};

use crate::apply::{apply, seal_index};
use crate::catalog::{Bucket, Catalog};
use crate::consumers::Consumer;
use crate::core::{Cleaned, Core, Health};
use crate::disk::{Disk, RealDisk, io_error};
use crate::entry_cache::EntryCache;
use crate::feed::Logged;
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::identity;
use crate::index::{Index, IndexDirectory, IndexHome, IndexKey, Meta, ReadAt, bucket_of};
use crate::lock::DirectoryLock;
use crate::log::{BucketId, Log, LogReader, LogWriter, Segment, StoreId, Tail};
use crate::meters::Meters;
use crate::pressure::Pressure;
use crate::settings::Settings;
use crate::signal::Signal;
use crate::snapshots::Snapshots;

/// A store that was opened and is ready to be used.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) core: Arc<Core>,
    pub(crate) writer: LogWriter,
    pub(crate) lock: DirectoryLock,
}

/// What a store is kept on.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    /// Holds the log.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) index: Arc<dyn IndexHome>,
}

impl Media {
    /// The file system, for the store in `directory`.
    pub(crate) fn real(directory: &Path) -> Self {
        Self { disk: Arc::new(RealDisk), index: Arc::new(IndexDirectory::of(directory)) }
    }
}

/// Opens a store: locks it, finds the end of its log, and brings its index up to it.
pub(crate) fn open(
    directory: &Path,
    settings: Settings,
    clock: Arc<dyn Clock>,
    media: Media,
) -> Result<Opened, EngineError> {
    open_watched(directory, settings, clock, media, &mut |_| {})
}

/// As [`open`]; `watch` hears how many bytes of the log have been read again.
pub(crate) fn open_watched(
    directory: &Path,
    settings: Settings,
    clock: Arc<dyn Clock>,
    media: Media,
    watch: &mut dyn FnMut(u64),
) -> Result<Opened, EngineError> {
    identity::check_directory(directory, settings.create)?;
    let log_directory = directory.join("log");
    media.disk.create_directory(&log_directory).map_err(io_error("create", &log_directory))?;
    let lock = DirectoryLock::acquire(directory)?;
    open_locked(directory, lock, settings, clock, media, watch)
}

/// Opens a store that is locked already; `watch` hears how many bytes of the log have been read again.
pub(crate) fn open_locked(
    directory: &Path,
    lock: DirectoryLock,
    settings: Settings,
    clock: Arc<dyn Clock>,
    media: Media,
    watch: &mut dyn FnMut(u64),
) -> Result<Opened, EngineError> {
    let log_directory = directory.join("log");
    let store = identity::load_or_create(&*media.disk, directory)?;
    let disk = Arc::new(FilePool::new(media.disk, OPEN_FILES_MAX));
    let log = Arc::new(Log::open(disk, &log_directory, store)?);
    log.syncs.set_clock(&clock);
    // A quarter for whole entries, the rest for blocks of the index.
    let entry_bytes = settings.cache_bytes / 4;
    let cache_bytes = settings.cache_bytes - entry_bytes;
    let mut view = View::open(&*media.index, store, cache_bytes)?;
    if view.is_stale(&log) {
        drop(view);
        media.index.set_aside()?;
        view = View::open(&*media.index, store, cache_bytes)?;
    }
    let recover = |segment: Arc<Segment>| Tail::recover(&log, &segment, view.applied);
    let tail = log.last_segment().map(recover).transpose()?;
    log.remove_unfinished()?;
    let (last, time) = tail.as_ref().map_or_else(Default::default, |tail| (tail.last, tail.time));
    // What was recorded then may be cleaned away, and nothing that has expired by then shall come back.
    let time = time.max(newest_time(&log));
    if last < view.applied {
        let what = format!("the log is empty, and the index knows revision {}", view.applied);
        return Err(EngineError::Corrupt { path: log_directory, offset: 0, what });
    }
    let writer = LogWriter::after(&log, tail, settings.segment_bytes)?;
    let assemble = |view: View, entries: EntryCache| Core {
        entries,
        directory: directory.into(),
        clock: SteadyClock::new(Arc::clone(&clock), view.time.max(time)),
        ticks: Arc::clone(&clock),
        log: Arc::clone(&log),
        index: view.index,
        catalog: view.catalog,
        snapshots: Arc::new(Snapshots::new(last)),
        durable: writer.durable(),
        unsealed_log: AtomicU64::new(0),
        written_log: AtomicU64::new(0),
        cleaned: Cleaned::default(),
        meters: Meters::new(&clock),
        pressure: Pressure::default(),
        built_over: view.built_over.unwrap_or_else(|| index_at(&log)),
        sealed: AtomicU64::new(view.applied.get()),
        flushed: AtomicU64::new(view.applied.get()),
        clean_wanted: AtomicBool::new(false),
        seal_wanted: AtomicBool::new(false),
        health: Health::default(),
        upkeep: Signal::default(),
        merging: Signal::default(),
        reaper: Signal::default(),
        cleaner: Signal::default(),
        reporter: Signal::default(),
        settings: settings.clone(),
    };
    let applied = view.applied;
    let mut core = assemble(view, EntryCache::new(entry_bytes)?);
    match replay(&core, applied, last, watch) {
        // Damage inside the index that only showed when it was used: the log has everything.
        Err(EngineError::CorruptIndex { .. }) => {
            drop(core);
            media.index.set_aside()?;
            let view = View::open(&*media.index, store, cache_bytes)?;
            let applied = view.applied;
            core = assemble(view, EntryCache::new(entry_bytes)?);
            replay(&core, applied, last, watch)?;
        }
        replayed => replayed?,
    }
    take_up_footers(&core);
    for bucket in core.catalog.all() {
        bucket.feed.restart(last.next());
    }
    Ok(Opened { core: Arc::new(core), writer, lock })
}

/// The newest time that a finished segment knows of.
fn newest_time(log: &Log) -> Timestamp {
    let segments = log.segments();
    let footers = segments.iter().filter_map(|segment| segment.footer());
    footers.map(|footer| footer.time).max().unwrap_or_default()
}

/// Takes up what the segments know of the buckets, of which the records may be gone.
fn take_up_footers(core: &Core) {
    for segment in core.log.segments() {
        for (id, summary) in segment.footer().iter().flat_map(|footer| &footer.buckets) {
            if let Some(bucket) = core.catalog.by_id(*id) {
                bucket.take_up(summary);
            }
        }
    }
}

/// An index that ends before this revision cannot be brought up to the log, unless it was begun empty.
fn index_at(log: &Log) -> Revision {
    let segments = log.segments();
    let footers = segments.iter().filter_map(|segment| segment.footer());
    footers.map(|footer| footer.index_at).max().unwrap_or_default()
}

/// The index as it was found, with what it says about itself.
struct View {
    index: Arc<dyn Index>,
    catalog: Catalog,
    applied: Revision,
    time: Timestamp,
    /// See [`Meta::built_over`]; none if it is empty.
    built_over: Option<Revision>,
}

impl View {
    /// Opens the index. One that is damaged or of another store is set aside, and an empty one takes its place.
    fn open(home: &dyn IndexHome, store: StoreId, cache_bytes: u64) -> Result<Self, EngineError> {
        let found = match home.open(cache_bytes) {
            Ok(index) => Self::load(index, store)?,
            Err(EngineError::CorruptIndex { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(view) = found {
            return Ok(view);
        }
        home.set_aside()?;
        let index = home.open(cache_bytes)?;
        Self::load(index, store)?.ok_or_else(|| EngineError::Bug { what: "a new index is not empty".into() })
    }

    /// Whether the index is an old one, from before what the log was cleaned for. One that was begun empty over a
    /// log that had been cleaned is not: everything is applied to it.
    fn is_stale(&self, log: &Log) -> bool {
        let least = index_at(log);
        self.applied < least && self.built_over.is_some_and(|built_over| built_over < least)
    }

    /// Reads what the index says about itself; none if that makes no sense.
    fn load(index: Arc<dyn Index>, store: StoreId) -> Result<Option<Self>, EngineError> {
        let start = Bound::Included(IndexKey::buckets());
        let end = Bound::Excluded(IndexKey::after(&IndexKey::buckets()));
        let meta = match index.get(&IndexKey::meta(), ReadAt::Newest) {
            Ok(meta) => meta,
            Err(EngineError::CorruptIndex { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(meta) = meta else {
            let first = index.range(Bound::Unbounded, Bound::Unbounded, ReadAt::Newest).next().transpose();
            let empty = matches!(first, Ok(None));
            let catalog = Catalog::new(Vec::new(), BucketId(1));
            let (applied, time) = (Revision::ZERO, Timestamp::default());
            let view = Self { index, catalog, applied, time, built_over: None };
            return Ok(empty.then_some(view));
        };
        let Some(meta) = Meta::decode(meta).filter(|meta| meta.store == store) else { return Ok(None) };
        let mut buckets = Vec::new();
        for item in index.range(start, end, ReadAt::Newest) {
            let Ok((key, bytes)) = item else { return Ok(None) };
            let Some(bucket) = Bucket::decode(&key[1..], bytes) else { return Ok(None) };
            buckets.push(Arc::new(bucket));
        }
        let catalog = Catalog::new(buckets, meta.next_bucket);
        let start = Bound::Included(IndexKey::consumers());
        let end = Bound::Excluded(IndexKey::after(&IndexKey::consumers()));
        for item in index.range(start, end, ReadAt::Newest) {
            let Ok((key, bytes)) = item else { return Ok(None) };
            let Some((bucket, name)) = bucket_of(&key) else { return Ok(None) };
            let consumer = std::str::from_utf8(name).ok().and_then(|name| Consumer::decode(name, bytes));
            let Some((bucket, consumer)) = catalog.by_id(bucket).zip(consumer) else { return Ok(None) };
            bucket.consumers.set(consumer);
        }
        let Meta { applied, time, built_over, .. } = meta;
        Ok(Some(Self { index, catalog, applied, time, built_over: Some(built_over) }))
    }
}

/// Applies what the log holds after `applied`.
fn replay(
    core: &Core,
    applied: Revision,
    last: Revision,
    watch: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    let mut read = 0;
    for footer in core.log.segments().iter().filter_map(|segment| segment.footer()) {
        core.catalog.raise_next_id(footer.next_bucket);
    }
    let mut reader = LogReader::from(&core.log, applied.next());
    let mut newest = applied;
    while newest < last {
        let Some((segment, frame)) = reader.next()? else {
            // The newest records may be cleaned away, if nothing was written since.
            if reader.reached() > last {
                break;
            }
            return Err(EngineError::Bug {
                what: format!("the log ends at revision {newest} instead of {last}"),
            });
        };
        read += frame.header.frame_len();
        watch(read);
        let logged = Logged::from_frame(frame, segment);
        apply(core, &logged)?;
        if let Some(bucket) = core.catalog.by_id(logged.bucket) {
            bucket.advance(&logged);
        }
        newest = logged.last;
        if let Some((_, record)) = logged.records.last() {
            core.clock.raise(record.time);
        }
        if core.index.unsealed_bytes() >= core.settings.memtable_bytes {
            seal_index(core, newest, core.clock.now())?;
            core.flush_index(newest)?;
            core.index.compact(newest, true)?;
        }
    }
    Ok(())
}
