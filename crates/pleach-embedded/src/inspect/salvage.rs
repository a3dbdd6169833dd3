use std::collections::HashSet;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleach_engine::{BucketName, EngineError, Revision};

use super::Closed;
use super::lives::Lives;
use super::mend::{Known, Mend};
use super::rebuild::build_index;
use super::report::{DAMAGES_LISTED_MAX, Progress, SalvageReport, Step};
use super::scan::{Scanned, scan};
use super::verify::read;
use super::view::Opening;
use crate::apply::bucket_key;
use crate::catalog::decode_config;
use crate::disk::{Disk as _, RealDisk, io_error};
use crate::file_pool::{FilePool, OPEN_FILES_MAX};
use crate::identity;
use crate::lock::DirectoryLock;
use crate::log::{BucketId, Frame, FrameHeader, FrameKind, Log, LogWriter, Record, RecordKind, SegmentId};
use crate::settings::Settings;

/// What is collected before it is written.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Copies every commit that can be read out of the store `from`, which is not changed, into a new store `to`.
///
/// Commits are copied whole or not at all, in their order, with their times, headers, expiries and markers, and
/// so are changes to buckets and the positions of consumers: the new store has the contents and the history of
/// the old one, but for what is in the report as damaged. Revisions stay as they were; those that are lost stay
/// empty and are not given again. Of a bucket that may have lost changes, watches from before the loss are told
/// `Compacted`.
///
/// A bucket whose creation is lost gets the configuration that the index remembers, or else one that keeps
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
    let mut lives = Lives::default();
    let (scanned, opening) = read(from, &closed, progress, &mut |frame| lives.see(frame))?;
    let mut known = Known::new();
    if let Opening::Opened(view) = &opening {
        let of_index = view.buckets.values();
        known.extend(of_index.map(|bucket| (bucket.id, (bucket.name.clone(), (*bucket.config()).clone()))));
    }
    drop(opening);
    let mend = Mend::new(lives, &known)?;
    let store = closed.store.as_ref().ok().copied();
    RealDisk.create_directory(&part.join("log")).map_err(io_error("create", &part))?;
    let copied = copy(&part, mend, &scanned, |copier| {
        let mut visit = |_: SegmentId, frame: Frame| copier.add(frame);
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
        guessed_buckets: copier.mend.guessed.into_iter().collect(),
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
    mend: Mend,
    scanned: &Scanned,
    read: impl FnOnce(&mut Copier) -> Result<(), EngineError>,
) -> Result<Copier, EngineError> {
    let store = identity::load_or_create(&RealDisk, part)?;
    let disk = Arc::new(FilePool::new(Arc::new(RealDisk), OPEN_FILES_MAX));
    let log = Arc::new(Log::open(disk, &part.join("log"), store)?);
    let writer = LogWriter::after(&log, None, Settings::default().segment_bytes)?;
    let (alive, gone) = (HashSet::new(), HashSet::new());
    let mut copier = Copier { writer, log, mend, alive, gone, commits: 0, records: 0, left_out: 0 };
    read(&mut copier)?;
    copier.finish(scanned)?;
    Ok(copier)
}

/// Writes frames of one log to another, under the same revisions.
struct Copier {
    writer: LogWriter,
    log: Arc<Log>,
    mend: Mend,
    /// The buckets that exist in the new log so far, and those that were deleted again.
    alive: HashSet<BucketId>,
    gone: HashSet<BucketId>,
    commits: u64,
    records: u64,
    left_out: u64,
}

impl Copier {
    fn add(&mut self, frame: Frame) -> Result<(), EngineError> {
        let header = frame.header;
        if frame.records.is_empty() {
            return Ok(());
        }
        let mut records: Vec<Record> = frame.records.into_iter().map(|(_, record)| record).collect();
        self.bridge(Revision::new(header.first.get() - 1))?;
        let fits = match (header.kind, &records[..]) {
            (FrameKind::Commit | FrameKind::Consumer, _) => self.alive.contains(&header.bucket),
            (FrameKind::Bucket, [record]) => self.follow(header.bucket, record),
            _ => false,
        };
        if !fits {
            self.left_out += u64::from(!self.mend.over.contains(&header.bucket));
            return Ok(());
        }
        if header.kind == FrameKind::Bucket
            && let Some(name) = self.mend.renamed.get(&header.bucket)
        {
            let key = bucket_key(name)?;
            records.iter_mut().for_each(|record| record.key = key.clone());
        }
        self.commits += 1;
        self.records += records.len() as u64;
        self.append(header, &records)
    }

    /// Takes account of a record about a bucket, unless it makes no sense.
    fn follow(&mut self, bucket: BucketId, record: &Record) -> bool {
        let is_config = decode_config(&record.payload.value).is_some();
        if self.gone.contains(&bucket) || BucketName::parse(record.key.as_str()).is_err() {
            return false;
        }
        match record.kind {
            RecordKind::CreateBucket => is_config && self.alive.insert(bucket),
            RecordKind::UpdateBucket => is_config && self.alive.contains(&bucket),
            RecordKind::DeleteBucket => self.gone.insert(bucket) && self.alive.remove(&bucket),
            _ => false,
        }
    }

    /// Writes something for each revision up to `last`: what mends a loss, or that there is nothing.
    fn bridge(&mut self, last: Revision) -> Result<(), EngineError> {
        while self.writer.last() < last {
            let first = self.writer.last().next();
            let durable = Revision::ZERO;
            let header = |kind, bucket, size| FrameHeader {
                kind,
                body_len: 0,
                records: 0,
                first,
                durable,
                bucket,
                size,
            };
            if let Some((bucket, record)) = self.mend.records.remove(&first) {
                self.follow(bucket, &record);
                self.append(header(FrameKind::Bucket, bucket, 1), &[record])?;
                continue;
            }
            let mended = self.mend.records.range(first..).next().map(|(at, _)| *at);
            let end = mended.map_or(last.next(), |at| at.min(last.next()));
            let size = u16::try_from(end.get() - first.get()).unwrap_or(u16::MAX);
            self.append(header(FrameKind::Upkeep, BucketId(0), size), &[])?;
        }
        Ok(())
    }

    fn append(&mut self, header: FrameHeader, records: &[Record]) -> Result<(), EngineError> {
        self.writer.append_as(header, records);
        if self.writer.buffered() >= GROUP_BYTES {
            self.writer.write(false)?;
            self.writer.roll_if_full()?;
        }
        Ok(())
    }

    fn finish(&mut self, scanned: &Scanned) -> Result<(), EngineError> {
        self.bridge(scanned.last())?;
        self.writer.write(true)?;
        let floor = floor(scanned);
        let mut summaries = scanned.summaries.clone();
        summaries.retain(|bucket, _| self.alive.contains(bucket));
        if floor > Revision::ZERO {
            for bucket in &self.alive {
                let summary = summaries.entry(*bucket).or_default();
                summary.dropped = summary.dropped.max(floor);
            }
        }
        self.writer.inherit(&summaries, scanned.next_bucket)?;
        self.writer.close()?;
        Ok(())
    }
}

/// The newest revision up to which changes may be missing without a trace in the footers.
fn floor(scanned: &Scanned) -> Revision {
    let report = &scanned.report;
    if report.damage_count > DAMAGES_LISTED_MAX as u64 {
        return scanned.last();
    }
    let lost = report.damages.iter().filter_map(|damage| damage.lost).map(|lost| lost.last).max();
    lost.unwrap_or_default().max(scanned.blind)
}
