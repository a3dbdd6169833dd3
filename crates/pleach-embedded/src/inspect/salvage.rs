use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_engine::{BucketConfig, BucketName, EngineError, HISTORY_MAX, Headers, Revision, Timestamp};

use super::Closed;
use super::rebuild::build_index;
use super::report::{Progress, SalvageReport, Step};
use super::scan::scan;
use super::verify::read;
use super::view::Opening;
use crate::apply::bucket_key;
use crate::catalog::{decode_config, encode_config};
use crate::disk::{Disk as _, RealDisk, io_error};
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::identity;
use crate::lock::DirectoryLock;
use crate::log::{
    BucketId, Frame, FrameHeader, FrameKind, Log, LogWriter, Payload, Record, RecordKind, VALUE_BYTES_MAX,
};
use crate::settings::Settings;

/// What is collected before it is written.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Copies every commit that can be read out of the store `from`, which is not changed, into a new store `to`.
///
/// Commits are copied whole or not at all, in their order, with their times, headers, expiries and markers, and
/// so are changes to buckets: the new store has the contents and the history of the old one, but for what is in
/// the report as damaged. Revisions are given anew without gaps; before the first loss they are the same. A
/// bucket whose creation is lost gets the configuration that the index remembers, or else one that keeps
/// everything, and if no name is left, `salvaged-` and its number.
///
/// The new store is made beside `to` under a name that ends in `.part`, and renamed when it is complete.
///
/// # Errors
/// `Locked` if `from` is in use, `NotAStore`, or what the disk says, also if `to` is there and not empty.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport, EngineError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let closed = Closed::lock(from)?;
    let part = check_target(from, to)?;
    let (scanned, opening) = read(from, &closed, progress)?;
    let mut known: HashMap<BucketId, (BucketName, Option<BucketConfig>)> = HashMap::new();
    if let Opening::Opened(view) = &opening {
        known.extend(
            view.buckets
                .values()
                .map(|bucket| (bucket.id, (bucket.name.clone(), Some((*bucket.config()).clone())))),
        );
    }
    for (id, name) in scanned.names {
        let config = known.remove(&id).and_then(|(_, config)| config);
        known.insert(id, (name, config));
    }
    drop(opening);
    let store = closed.store.as_ref().ok().copied();
    RealDisk.create_directory(&part.join("log")).map_err(io_error("create", &part))?;
    let copied = copy(&part, known, |copier| {
        let mut visit = |_: Revision, frame: Frame| copier.add(frame);
        scan(from, store, Step::CopyLog, progress, &mut visit).map(drop)
    });
    let finished = copied.and_then(|copier| {
        let total = copier.log.segments().iter().map(|segment| segment.len()).sum();
        build_index(&part, DirectoryLock::acquire(&part)?, total, progress)?;
        move_in(&part, to)?;
        Ok(copier)
    });
    let copier = finished.inspect_err(|_| {
        // Half a store shall not be taken for a whole one; everything in it is still in the old one.
        let _ = fs::remove_dir_all(&part);
    })?;
    Ok(SalvageReport {
        log: scanned.report,
        commits: copier.commits,
        records: copier.records,
        last: copier.writer.last(),
        guessed_buckets: copier.guessed.into_iter().collect(),
        left_out: copier.left_out,
    })
}

/// Checks that nothing is at `to`, and returns the path of what will be moved there.
fn check_target(from: &Path, to: &Path) -> Result<PathBuf, EngineError> {
    let refuse = |path: &Path, what| io_error("create", path)(Error::new(ErrorKind::AlreadyExists, what));
    let is_empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(io_error("list", to)(error)),
    };
    if !is_empty {
        return Err(refuse(to, "the directory is not empty"));
    }
    let absolute = |path: &Path| std::path::absolute(path).map_err(io_error("find", path));
    let (from, target) = (absolute(from)?, absolute(to)?);
    if target.starts_with(&from) {
        return Err(refuse(to, "it would be inside the store that is salvaged"));
    }
    let mut part = target.into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.exists() {
        return Err(refuse(&part, "it is left from an earlier attempt, and can be deleted"));
    }
    Ok(part)
}

fn move_in(part: &Path, to: &Path) -> Result<(), EngineError> {
    let replace = || {
        match fs::remove_dir(to) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(part, to)?;
        RealDisk.sync_directory(part.parent().unwrap_or(Path::new(".")))
    };
    replace().map_err(io_error("create", to))
}

fn copy(
    part: &Path,
    known: HashMap<BucketId, (BucketName, Option<BucketConfig>)>,
    read: impl FnOnce(&mut Copier) -> Result<(), EngineError>,
) -> Result<Copier, EngineError> {
    let store = identity::load_or_create(&RealDisk, part)?;
    let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
    let log = Arc::new(Log::open(disk, &part.join("log"), store)?);
    let writer = LogWriter::after(&log, None, Settings::default().segment_bytes)?;
    let mut copier = Copier {
        writer,
        log,
        known,
        alive: HashMap::new(),
        gone: BTreeSet::new(),
        guessed: BTreeSet::new(),
        commits: 0,
        records: 0,
        left_out: 0,
    };
    read(&mut copier)?;
    copier.finish()?;
    Ok(copier)
}

/// Writes frames of one log to another.
struct Copier {
    writer: LogWriter,
    log: Arc<Log>,
    /// What is known of the buckets, from all of the log and from the index.
    known: HashMap<BucketId, (BucketName, Option<BucketConfig>)>,
    /// The buckets that exist in the new log so far.
    alive: HashMap<BucketId, BucketName>,
    gone: BTreeSet<BucketId>,
    guessed: BTreeSet<BucketName>,
    commits: u64,
    records: u64,
    left_out: u64,
}

impl Copier {
    fn add(&mut self, frame: Frame) -> Result<(), EngineError> {
        let FrameHeader { kind, bucket, .. } = frame.header;
        let records: Vec<Record> = frame.records.into_iter().map(|(_, record)| record).collect();
        let Some(time) = records.first().map(|record| record.time) else { return Ok(()) };
        let fits = match kind {
            FrameKind::Mark => return Ok(()),
            FrameKind::Commit => self.is_alive(bucket, time)?,
            FrameKind::Bucket => match &records[..] {
                [record] => self.follow(bucket, record)?,
                _ => false,
            },
        };
        if !fits {
            self.left_out += 1;
            return Ok(());
        }
        self.commits += 1;
        self.records += records.len() as u64;
        self.append(kind, bucket, records)
    }

    /// Whether there is such a bucket, or could be made one.
    fn is_alive(&mut self, bucket: BucketId, time: Timestamp) -> Result<bool, EngineError> {
        if self.gone.contains(&bucket) {
            return Ok(false);
        }
        if self.alive.contains_key(&bucket) {
            return Ok(true);
        }
        let (name, config) = self.known.get(&bucket).cloned().unzip();
        let name = match name {
            Some(name) => name,
            None => self.free_name(bucket)?,
        };
        let config = config.flatten().unwrap_or_else(|| BucketConfig {
            history: HISTORY_MAX.try_into().unwrap_or(BucketConfig::default().history),
            value_bytes_max: VALUE_BYTES_MAX,
            ..BucketConfig::default()
        });
        self.guessed.insert(name.clone());
        self.create(bucket, name, encode_config(&config)?, time)?;
        Ok(true)
    }

    fn free_name(&self, bucket: BucketId) -> Result<BucketName, EngineError> {
        let taken = |name: &BucketName| {
            self.known.values().any(|(known, _)| known == name)
                || self.alive.values().any(|known| known == name)
        };
        let candidates = (1..).map(|attempt: u32| match attempt {
            1 => format!("salvaged-{}", bucket.0),
            _ => format!("salvaged-{}-{attempt}", bucket.0),
        });
        let mut names = candidates.filter_map(|name| BucketName::parse(name).ok());
        let free = names.find(|name| !taken(name));
        free.ok_or_else(|| EngineError::Bug { what: "there is no free name for a bucket".into() })
    }

    /// Brings what is known up to a record about a bucket; says whether the record is to be copied as it is.
    fn follow(&mut self, bucket: BucketId, record: &Record) -> Result<bool, EngineError> {
        let Ok(name) = BucketName::parse(record.key.as_str()) else { return Ok(false) };
        let is_config = decode_config(&record.payload.value).is_some();
        match (record.kind, self.alive.contains_key(&bucket)) {
            _ if self.gone.contains(&bucket) => Ok(false),
            (RecordKind::CreateBucket, false) if is_config => {
                self.make_way(&name, record.time)?;
                self.alive.insert(bucket, name);
                Ok(true)
            }
            // Its creation is lost, and nothing was written to it in between.
            (RecordKind::UpdateBucket, false) if is_config => {
                self.create(bucket, name, record.payload.value.to_vec(), record.time)?;
                Ok(true)
            }
            (RecordKind::UpdateBucket, true) => Ok(is_config),
            (RecordKind::DeleteBucket, alive) => {
                self.alive.remove(&bucket);
                self.gone.insert(bucket);
                Ok(alive)
            }
            _ => Ok(false),
        }
    }

    fn create(
        &mut self,
        bucket: BucketId,
        name: BucketName,
        config: Vec<u8>,
        time: Timestamp,
    ) -> Result<(), EngineError> {
        self.make_way(&name, time)?;
        let record = about(RecordKind::CreateBucket, &name, config, time)?;
        self.alive.insert(bucket, name);
        self.append(FrameKind::Bucket, bucket, vec![record])
    }

    /// If there is a bucket of this name, its deletion was lost.
    fn make_way(&mut self, name: &BucketName, time: Timestamp) -> Result<(), EngineError> {
        let old = self.alive.iter().find(|(_, alive)| *alive == name).map(|(id, _)| *id);
        let Some(old) = old else { return Ok(()) };
        self.alive.remove(&old);
        self.gone.insert(old);
        let record = about(RecordKind::DeleteBucket, name, Vec::new(), time)?;
        self.append(FrameKind::Bucket, old, vec![record])
    }

    fn append(
        &mut self,
        kind: FrameKind,
        bucket: BucketId,
        mut records: Vec<Record>,
    ) -> Result<(), EngineError> {
        let first = self.writer.last().next();
        for (record, index) in records.iter_mut().zip(0_u16..) {
            (record.revision, record.index) = (first.plus(index.into()), index);
        }
        self.writer.append(kind, bucket, &records);
        if self.writer.buffered() >= GROUP_BYTES {
            self.writer.write(false)?;
            self.writer.roll_if_full()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.writer.write(true)?;
        self.writer.close()?;
        Ok(())
    }
}

/// A record about a bucket.
fn about(
    kind: RecordKind,
    name: &BucketName,
    value: Vec<u8>,
    time: Timestamp,
) -> Result<Record, EngineError> {
    let payload = Payload::plain(Headers::new(), value.into());
    let (key, revision) = (bucket_key(name)?, Revision::ZERO);
    Ok(Record { kind, key, revision, time, expires: None, payload, index: 0 })
}
