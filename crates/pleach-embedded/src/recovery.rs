use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pleach_engine::{Clock, EngineError, Revision, SteadyClock, Timestamp};

use crate::apply::{apply, seal_index};
use crate::catalog::{Bucket, Catalog};
use crate::core::{Core, Health};
use crate::disk::{Disk, io_error};
use crate::feed::Logged;
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::identity;
use crate::index::{Index, IndexKey, LsmIndex, Meta, ReadAt};
use crate::lock::DirectoryLock;
use crate::log::{BucketId, Log, LogReader, LogWriter, Segment, StoreId, Tail};
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

/// Opens a store: locks it, finds the end of its log, and brings its index up to it.
pub(crate) fn open(
    directory: &Path,
    settings: Settings,
    clock: Arc<dyn Clock>,
    disk: Arc<dyn Disk>,
) -> Result<Opened, EngineError> {
    identity::check_directory(directory, settings.create)?;
    let log_directory = directory.join("log");
    disk.create_directory(&log_directory).map_err(io_error("create", &log_directory))?;
    let lock = DirectoryLock::acquire(directory)?;
    open_locked(directory, lock, settings, clock, disk, &mut |_| {})
}

/// Opens a store that is locked already; `watch` hears how many bytes of the log have been read again.
pub(crate) fn open_locked(
    directory: &Path,
    lock: DirectoryLock,
    settings: Settings,
    clock: Arc<dyn Clock>,
    disk: Arc<dyn Disk>,
    watch: &mut dyn FnMut(u64),
) -> Result<Opened, EngineError> {
    let log_directory = directory.join("log");
    let store = identity::load_or_create(&*disk, directory)?;
    let disk = Arc::new(FilePool::new(disk, OPEN_FILES_MAX));
    let log = Arc::new(Log::open(disk, &log_directory, store)?);
    let index = directory.join("index");
    let view = View::open(&index, store, settings.cache_bytes)?;
    let recover = |segment: Arc<Segment>| Tail::recover(&log, &segment, view.applied);
    let tail = log.last_segment().map(recover).transpose()?;
    let last = tail.map_or(Revision::ZERO, |tail| tail.last);
    if last < view.applied {
        let what = format!("the log is empty, and the index knows revision {}", view.applied);
        return Err(EngineError::Corrupt { path: log_directory, offset: 0, what });
    }
    let writer = LogWriter::after(&log, tail, settings.segment_bytes)?;
    let time = tail.map_or(Timestamp::default(), |tail| tail.time);
    let assemble = |view: View| Core {
        directory: directory.into(),
        clock: SteadyClock::new(Arc::clone(&clock), view.time.max(time)),
        ticks: Arc::clone(&clock),
        log: Arc::clone(&log),
        index: Arc::new(view.index),
        catalog: view.catalog,
        snapshots: Arc::new(Snapshots::new(last)),
        durable: writer.durable(),
        unsealed_log: AtomicU64::new(0),
        health: Health::default(),
        upkeep: Signal::default(),
        reaper: Signal::default(),
        settings: settings.clone(),
    };
    let applied = view.applied;
    let mut core = assemble(view);
    match replay(&core, applied, last, watch) {
        // Damage inside the index that only showed when it was used: the log has everything.
        Err(EngineError::CorruptIndex { .. }) => {
            drop(core);
            set_aside(&index)?;
            let view = View::open(&index, store, settings.cache_bytes)?;
            let applied = view.applied;
            core = assemble(view);
            replay(&core, applied, last, watch)?;
        }
        replayed => replayed?,
    }
    for bucket in core.catalog.all() {
        bucket.feed.restart(last.next());
    }
    Ok(Opened { core: Arc::new(core), writer, lock })
}

/// The index as it was found, with what it says about itself.
struct View {
    index: LsmIndex,
    catalog: Catalog,
    applied: Revision,
    time: Timestamp,
}

impl View {
    /// Opens the index. One that is damaged or of another store is set aside, and an empty one takes its place.
    fn open(path: &Path, store: StoreId, cache_bytes: u64) -> Result<Self, EngineError> {
        let found = match LsmIndex::open(path, cache_bytes) {
            Ok(index) => Self::load(index, store)?,
            Err(error @ (EngineError::Io { .. } | EngineError::DiskFull { .. })) if path.exists() => {
                // A file that cannot be found is one way for an index to be damaged; others deserve a look.
                let missing = matches!(&error, EngineError::Io { source, .. } if is_damage(source));
                if !missing {
                    return Err(error);
                }
                None
            }
            Err(EngineError::CorruptIndex { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(view) = found {
            return Ok(view);
        }
        set_aside(path)?;
        let index = LsmIndex::open(path, cache_bytes)?;
        Self::load(index, store)?.ok_or_else(|| EngineError::Bug { what: "a new index is not empty".into() })
    }

    /// Reads what the index says about itself; none if that makes no sense.
    fn load(index: LsmIndex, store: StoreId) -> Result<Option<Self>, EngineError> {
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
            let view = Self { index, catalog, applied: Revision::ZERO, time: Timestamp::default() };
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
        Ok(Some(Self { index, catalog, applied: meta.applied, time: meta.time }))
    }
}

fn is_damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | InvalidData | InvalidInput | UnexpectedEof)
}

/// Gives a directory, if it is there, another name, for a person to look at later. Nothing is deleted on
/// suspicion.
pub(crate) fn set_aside(path: &Path) -> Result<Option<PathBuf>, EngineError> {
    if !path.exists() {
        return Ok(None);
    }
    let named = |number: u32| PathBuf::from(format!("{}.set-aside-{number}", path.display()));
    let free = (1..).map(named).find(|aside| !aside.exists()).unwrap_or_else(|| named(0));
    fs::rename(path, &free).map_err(io_error("rename", path))?;
    Ok(Some(free))
}

/// Applies what the log holds after `applied`.
fn replay(
    core: &Core,
    applied: Revision,
    last: Revision,
    watch: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    let mut read = 0;
    let mut reader = LogReader::from(&core.log, applied.next());
    let mut newest = applied;
    while newest < last {
        let Some((segment, frame)) = reader.next()? else {
            return Err(EngineError::Bug {
                what: format!("the log ends at revision {newest} instead of {last}"),
            });
        };
        read += frame.header.frame_len();
        watch(read);
        if frame.header.last() <= newest {
            continue;
        }
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
            core.index.flush(newest)?;
            core.index.compact(newest)?;
        }
    }
    Ok(())
}
