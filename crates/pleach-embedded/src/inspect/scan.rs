use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use pleach_engine::{BucketName, EngineError, Revision};

use super::damaged::{bucket_of, keys_of};
use super::file::SegmentFile;
use super::report::{DAMAGES_LISTED_MAX, Damage, LogReport, Progress, RevisionRange, Step, TornTail};
use crate::catalog::decode_config;
use crate::disk::{Disk, RealDisk, io_error};
use crate::log::{
    Binding, BucketId, BucketSummary, Footer, Frame, FrameHeader, FrameKind, FrameSummary, FromBody,
    RecordKind, SegmentId, StoreId,
};

/// What is done with each sound frame of a segment.
pub(super) type Visit<'a> = dyn FnMut(SegmentId, Frame) -> Result<(), EngineError> + 'a;

/// How much of a damaged place is searched for keys.
const DAMAGE_BYTES_READ_MAX: u64 = 1024 * 1024;

/// A log that was read from its first byte to its last.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) report: LogReport,
    /// The name of every bucket that a sound frame tells of, also of those that were deleted.
    pub(super) names: HashMap<BucketId, BucketName>,
    /// The revision after the last one that is known of.
    pub(super) expected: Revision,
    /// Where the last sound frame ends.
    pub(super) end: (PathBuf, u64),
    /// What the footers know of each bucket, though the records may be gone.
    pub(super) summaries: BTreeMap<BucketId, BucketSummary>,
    /// Higher than the number of any bucket that the footers know of.
    pub(super) next_bucket: BucketId,
    /// An index that ends before this revision is of no use any more.
    pub(super) index_at: Revision,
    /// Up to here changes may have been cleaned away that no footer tells of, because it cannot be read.
    pub(super) blind: Revision,
}

impl Scanned {
    /// Adds a damage to the report.
    pub(super) fn add(&mut self, damage: Damage) {
        self.report.damage_count += 1;
        if self.report.damages.len() < DAMAGES_LISTED_MAX {
            self.report.damages.push(damage);
        }
    }

    /// The newest revision that is known of.
    pub(super) fn last(&self) -> Revision {
        Revision::new(self.expected.get() - 1)
    }
}

/// Reads the whole log of the store in `directory` and changes nothing. After a damaged place it goes on with
/// the next sound frame.
pub(super) fn scan(
    directory: &Path,
    store: Option<StoreId>,
    step: Step,
    progress: &mut dyn FnMut(Progress),
    visit: &mut Visit<'_>,
) -> Result<Scanned, EngineError> {
    let directory = directory.join("log");
    let names = RealDisk.list(&directory).map_err(io_error("list", &directory))?;
    let mut ids: Vec<SegmentId> = names.iter().filter_map(|name| SegmentId::parse(name)).collect();
    // Of those that begin at the same revision, the one cleaned last comes first, and reaches furthest.
    ids.sort_unstable_by_key(|id| (id.first, Reverse(id.generation)));
    let mut total = 0;
    for id in &ids {
        let path = directory.join(id.file_name());
        total += std::fs::metadata(&path).map_err(io_error("read", &path))?.len();
    }
    let report = LogReport { segments: ids.len() as u64, bytes: total, ..LogReport::default() };
    let expected = Revision::new(1);
    let scanned = Scanned {
        report,
        names: HashMap::new(),
        expected,
        end: (directory.clone(), 0),
        summaries: BTreeMap::new(),
        next_bucket: BucketId::default(),
        index_at: Revision::ZERO,
        blind: Revision::ZERO,
    };
    let was_cleaned = ids.iter().any(|id| id.generation > 0);
    let counted = Footer::default();
    let (alive, is_blind) = (HashSet::new(), false);
    let mut scan = Scan { scanned, store, pending: None, alive, was_cleaned, counted, is_blind, visit };
    let (mut before, mut done): (Option<Before>, u64) = (None, 0);
    for (at, id) in ids.iter().enumerate() {
        let mut file = SegmentFile::open(&RealDisk, &directory, *id)?;
        let mut report = |offset: u64| progress(Progress { step, done: done + offset, total });
        report(0);
        if before.as_ref().is_some_and(|before| before.covers(*id)) {
            done += file.len;
            continue;
        }
        let binding = scan.begin(&file, before.as_ref());
        let damages = scan.scanned.report.damage_count;
        if let Some(binding) = binding {
            scan.frames(&mut file, binding, at + 1 == ids.len(), &mut report)?;
        }
        done += file.len;
        scan.take_up(&file);
        let is_damaged = scan.scanned.report.damage_count > damages;
        let last = file.footer.map(|footer| footer.last);
        before = Some(Before { id: *id, len: file.len, last, path: file.path, is_damaged });
    }
    progress(Progress { step, done, total });
    Ok(scan.scanned)
}

/// The segment before the one that is looked at.
struct Before {
    id: SegmentId,
    len: u64,
    /// Its last revision, if it says so.
    last: Option<Revision>,
    path: PathBuf,
    /// Whether something in it was found to be damaged already.
    is_damaged: bool,
}

impl Before {
    /// Whether it was made from the segment `id` by cleaning, and has taken its place.
    fn covers(&self, id: SegmentId) -> bool {
        let cleaned = self.id.generation > 0;
        id.first == self.id.first || (cleaned && self.last.is_some_and(|last| id.first <= last))
    }
}

struct Scan<'a, 'b> {
    scanned: Scanned,
    store: Option<StoreId>,
    /// The damage, by its place in the list, of which it is not yet known how far it goes.
    pending: Option<usize>,
    /// The buckets there are at this point of the log.
    alive: HashSet<BucketId>,
    /// Whether records may be missing because they were cleaned away.
    was_cleaned: bool,
    /// What the sound frames of the segment amount to.
    counted: Footer,
    /// Whether the segment before was cleaned, and cannot tell of what.
    is_blind: bool,
    visit: &'a mut Visit<'b>,
}

impl Scan<'_, '_> {
    /// Checks that a segment follows the one before. Returns what its frames are bound to, if they can be read.
    fn begin(&mut self, file: &SegmentFile, before: Option<&Before>) -> Option<Binding> {
        let fault = file.header_fault(self.store);
        let foreign =
            matches!((&file.header, self.store), (Ok(header), Some(store)) if header.store != store);
        if let Ok(header) = &file.header
            && !foreign
        {
            // If nothing else says which store this is, its first segment does.
            self.store = self.store.or(Some(header.store));
            self.check_chain(file, header.previous, before);
        }
        self.reach(file.id.first, &file.path, 0);
        if std::mem::take(&mut self.is_blind) {
            self.scanned.blind = self.scanned.last();
        }
        let Some(what) = fault else { return file.binding };
        let binding = file.binding.filter(|_| !foreign);
        let length = if binding.is_some() { file.frames_at.min(file.len) } else { file.len };
        self.damage(&file.path, 0, Some(length), what, binding.is_none());
        binding
    }

    fn check_chain(
        &mut self,
        file: &SegmentFile,
        previous: Option<(Revision, u64)>,
        before: Option<&Before>,
    ) {
        let missing = |scan: &mut Self, first: Revision, len: Option<u64>| {
            let path = file.path.with_file_name(SegmentId::new(first).file_name());
            scan.damage(&path, 0, len, "the segment is missing".into(), true);
        };
        let Some(before) = before else {
            if file.id.first > Revision::new(1) {
                let (first, len) =
                    previous.map_or((Revision::new(1), None), |(first, len)| (first, Some(len)));
                missing(self, first, len);
            }
            return;
        };
        if before.id.generation > 0 {
            match before.last {
                None if before.is_damaged => {}
                None => {
                    let what = "the segment has lost its end".into();
                    self.damage(&before.path, before.len, None, what, true);
                }
                Some(last) if last.next() != file.id.first => missing(self, last.next(), None),
                Some(_) => {}
            }
            return;
        }
        match previous {
            Some((first, len)) if first == before.id.first => {
                if len != before.len {
                    let found = before.len;
                    let what = format!("the segment should have {len} bytes and has {found}");
                    self.damage(&before.path, len.min(found), None, what, found < len);
                }
            }
            Some((first, len)) => missing(self, first, Some(len)),
            None => {
                let what = "the segment says it is the first, and is not".into();
                self.damage(&file.path, 48, Some(16), what, false);
            }
        }
    }

    fn frames(
        &mut self,
        file: &mut SegmentFile,
        binding: Binding,
        is_last: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let mut offset = file.frames_at;
        let damages = self.scanned.report.damage_count;
        self.counted = Footer::empty(file.id.first);
        while offset < file.len {
            let header = file.frame_header(binding, offset)?;
            let whole = header.filter(|header| offset + header.frame_len() <= file.len);
            let frame = match whole {
                Some(header) => read_frame(file, header, binding, offset)?,
                None => None,
            };
            offset = match (frame, whole) {
                (Some(frame), _) => {
                    let len = frame.header.frame_len();
                    self.sound(file, frame, offset)?;
                    offset + len
                }
                _ if is_last && self.is_torn(file, binding, offset)? => {
                    let (path, bytes) = (file.path.clone(), file.len - offset);
                    self.scanned.report.torn_tail = Some(TornTail { path, offset, bytes });
                    break;
                }
                (None, Some(header)) => self.unsound_body(file, header, binding, offset)?,
                (None, None) => self.unsound_header(file, header, binding, offset)?,
            };
            progress(offset.min(file.len));
        }
        self.scanned.end = (file.path.clone(), offset.min(file.len));
        // Whoever reads one bucket believes the footer.
        let is_damaged = self.scanned.report.damage_count > damages;
        if let Some(footer) = file.footer.as_ref().filter(|footer| !is_damaged && !footer.fits(&self.counted))
        {
            let what =
                format!("the footer is not that of the segment, which ends at revision {}", footer.last);
            self.damage(&file.path, file.len, Some(0), what, false);
        }
        Ok(())
    }

    /// Takes account of what a segment says about its buckets.
    fn take_up(&mut self, file: &SegmentFile) {
        let scanned = &mut self.scanned;
        let Some(footer) = &file.footer else {
            if file.id.generation > 0 {
                (scanned.blind, self.is_blind) = (scanned.last(), true);
            }
            return;
        };
        scanned.next_bucket = scanned.next_bucket.max(footer.next_bucket);
        scanned.index_at = scanned.index_at.max(footer.index_at);
        for (bucket, summary) in &footer.buckets {
            if summary.dropped.max(summary.forgotten) > Revision::ZERO {
                scanned.summaries.entry(*bucket).or_default().inherit(summary);
            }
        }
    }

    /// Whether nothing after `offset` was written when something newer than the last sound frame had been
    /// synced. The same question as when the store is opened.
    fn is_torn(&self, file: &mut SegmentFile, binding: Binding, offset: u64) -> Result<bool, EngineError> {
        let last = self.scanned.last();
        Ok(file.find_header(binding, offset, |header| header.durable > last)?.is_none())
    }

    fn sound(&mut self, file: &SegmentFile, frame: Frame, offset: u64) -> Result<(), EngineError> {
        let FrameHeader { kind, first, bucket, .. } = frame.header;
        if matches!(kind, FrameKind::Mark | FrameKind::Footer) {
            if file.id.generation == 0 || self.pending.is_some() {
                self.reach(first.next(), &file.path, offset);
            }
            self.scanned.expected = self.scanned.expected.max(first.next());
        } else if first < self.scanned.expected {
            let what = format!("revision {first} comes for the second time");
            self.damage(&file.path, offset, Some(frame.header.frame_len()), what, false);
            return Ok(());
        } else {
            // Between the frames of a cleaned segment, revisions are missing with good reason, unless something
            // there was found to be damaged.
            if file.id.generation == 0 || self.pending.is_some() {
                self.reach(first, &file.path, offset);
            }
            self.scanned.expected = frame.header.last().next();
            let first = self.scanned.report.revisions.map_or(first, |revisions| revisions.first);
            let last = frame.header.last();
            self.scanned.report.revisions = Some(RevisionRange { first, last });
        }
        if !matches!(kind, FrameKind::Mark | FrameKind::Footer) {
            self.counted.add(&FrameSummary::of(&frame, offset));
        }
        self.scanned.report.frames += 1;
        self.scanned.report.records += frame.records.len() as u64;
        // Behind a loss it may be the loss that it does not fit.
        if !self.fits(&frame) && self.scanned.report.damage_count == 0 {
            let what = format!("revision {first} is about bucket number {}, which it cannot be", bucket.0);
            self.damage(&file.path, offset, Some(frame.header.frame_len()), what, false);
        }
        if kind == FrameKind::Bucket {
            let names =
                frame.records.iter().filter_map(|(_, record)| BucketName::parse(record.key.as_str()).ok());
            self.scanned.names.extend(names.map(|name| (bucket, name)));
        }
        (self.visit)(file.id, frame)
    }

    /// Whether a frame makes sense after those before it.
    fn fits(&mut self, frame: &Frame) -> bool {
        let bucket = frame.header.bucket;
        match (frame.header.kind, &frame.records[..]) {
            (FrameKind::Mark | FrameKind::Footer | FrameKind::Upkeep, _) => true,
            // What is left of a bucket that was deleted may have lost its creation already.
            (FrameKind::Commit | FrameKind::Consumer, _) => self.was_cleaned || self.alive.contains(&bucket),
            (FrameKind::Bucket, [(_, record)]) => {
                let is_config = || decode_config(&record.payload.value).is_some();
                BucketName::parse(record.key.as_str()).is_ok()
                    && match record.kind {
                        RecordKind::CreateBucket => is_config() && self.alive.insert(bucket),
                        RecordKind::UpdateBucket => {
                            is_config() && (self.was_cleaned || self.alive.contains(&bucket))
                        }
                        RecordKind::DeleteBucket => self.alive.remove(&bucket) || self.was_cleaned,
                        _ => false,
                    }
            }
            (FrameKind::Bucket, _) => false,
        }
    }

    /// A frame whose header is sound, and says what is lost. Returns where the next one begins.
    fn unsound_body(
        &mut self,
        file: &mut SegmentFile,
        header: FrameHeader,
        binding: Binding,
        offset: u64,
    ) -> Result<u64, EngineError> {
        let len = header.frame_len();
        let has_revision = !matches!(header.kind, FrameKind::Mark | FrameKind::Footer);
        if file.id.generation == 0 || self.pending.is_some() {
            // Those without a revision tell the last one before them.
            let first = if has_revision { header.first } else { header.first.next() };
            self.reach(first, &file.path, offset);
        }
        let bytes = file.at(offset, usize::try_from(len).unwrap_or(usize::MAX))?;
        let what = match header.kind {
            FrameKind::Footer => refused(file, "the segment's footer is unreadable"),
            _ => refused(file, "a commit is unreadable"),
        };
        let fresh = header.first >= self.scanned.expected && has_revision;
        self.scanned.add(Damage {
            path: file.path.clone(),
            offset,
            length: Some(len),
            what,
            lost: fresh.then(|| RevisionRange { first: header.first, last: header.last() }),
            commits: fresh.then_some(1),
            bucket: self.scanned.names.get(&header.bucket).cloned(),
            keys: keys_of(&bytes, binding, offset, header.first),
        });
        self.scanned.expected = self.scanned.expected.max(header.last().next());
        Ok(offset + len)
    }

    /// A place where no frame begins. Returns where the next one does.
    fn unsound_header(
        &mut self,
        file: &mut SegmentFile,
        header: Option<FrameHeader>,
        binding: Binding,
        offset: u64,
    ) -> Result<u64, EngineError> {
        if let Some(FrameHeader { kind: FrameKind::Footer, first, .. }) = header {
            // It says itself what came before it, so nothing else is missing.
            if file.id.generation == 0 || self.pending.is_some() {
                self.reach(first.next(), &file.path, offset);
            }
            let what = refused(file, "the segment's footer is cut off");
            self.damage(&file.path, offset, Some(file.len - offset), what, false);
            self.scanned.expected = self.scanned.expected.max(first.next());
            return Ok(file.len);
        }
        let next = file.find_header(binding, offset, |_| true)?.unwrap_or(file.len);
        let len = usize::try_from((next - offset).min(DAMAGE_BYTES_READ_MAX)).unwrap_or(usize::MAX);
        let bytes = file.at(offset, len)?;
        let first = header.map_or(self.scanned.expected, |header| header.first);
        let bucket = bucket_of(&bytes).and_then(|bucket| self.scanned.names.get(&bucket)).cloned();
        let what = match header {
            Some(_) => "a commit is cut off".into(),
            None => refused(file, "no commit can be read"),
        };
        let at = self.damage(&file.path, offset, Some(next - offset), what, true);
        if let Some(damage) = self.scanned.report.damages.get_mut(at) {
            damage.keys = keys_of(&bytes, binding, offset, first);
            damage.bucket = bucket;
        }
        Ok(next)
    }

    /// Says that the next revision in the log is `first`: what is missing before it is lost.
    fn reach(&mut self, first: Revision, path: &Path, offset: u64) {
        let expected = self.scanned.expected;
        let pending = self.pending.take();
        if first <= expected {
            return;
        }
        let lost = RevisionRange { first: expected, last: Revision::new(first.get() - 1) };
        let at = pending.unwrap_or_else(|| {
            self.damage(path, offset, Some(0), "revisions are missing before it".into(), false)
        });
        if let Some(damage) = self.scanned.report.damages.get_mut(at) {
            damage.lost = Some(lost);
        }
        self.scanned.expected = first;
    }

    /// Adds a damage and returns its place in the list; if it is `open`, what comes next tells what is lost.
    fn damage(&mut self, path: &Path, offset: u64, length: Option<u64>, what: String, open: bool) -> usize {
        let at = self.scanned.report.damages.len();
        let path = path.to_owned();
        let (lost, commits, bucket, keys) = (None, None, None, Vec::new());
        self.scanned.add(Damage { path, offset, length, what, lost, commits, bucket, keys });
        if open {
            self.pending.get_or_insert(at);
        }
        at
    }
}

fn read_frame(
    file: &mut SegmentFile,
    header: FrameHeader,
    binding: Binding,
    offset: u64,
) -> Result<Option<Frame>, EngineError> {
    let Ok(len) = usize::try_from(header.frame_len()) else { return Ok(None) };
    let bytes = file.at(offset, len)?;
    let end = FrameHeader::BYTES + header.body_len as usize;
    let body = (end <= bytes.len()).then(|| bytes.slice(FrameHeader::BYTES..end));
    Ok(body.and_then(|body| Frame::from_body(header, &body, binding, offset)))
}

/// What is wrong, and what the disk said about it.
fn refused(file: &mut SegmentFile, what: &str) -> String {
    file.refusal.take().map_or_else(|| what.into(), |refusal| format!("{what}; the disk says: {refusal}"))
}
