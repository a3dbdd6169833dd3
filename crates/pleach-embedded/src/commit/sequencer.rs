use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pleach_engine::{
    Action, BUCKETS_MAX, BucketConfig, CheckedBatch, CommitError, Committed, Compression, Demand, Durability,
    EngineError, Expectation, Headers, Key, Operation, Revision, Timestamp,
};
use tokio::sync::oneshot;

use super::applier::Applier;
use super::consumers::PendingConsumers;
use super::overlay::Overlay;
use super::queue::{CommitQueue, GroupQueue};
use super::request::{Answer, BucketChange, Due, Group, NoteChange, Request, Step};
use crate::apply::bucket_key;
use crate::catalog::{Bucket, encode_config};
use crate::core::{Core, Newest};
use crate::feed::Logged;
use crate::index::ReadAt;
use crate::log::{BucketId, FrameKind, LogWriter, Payload, Record, RecordKind, WriteError};
use crate::reaper::Found;
use crate::upkeep::SEALED_MAX;

/// A group that has grown past this is written before more is added.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Groups of no more requests than this are applied by the sequencer itself, if the applier is idle.
const APPLIED_HERE_MAX: usize = 2;

/// A commit may wait for others for this part of the time that a sync takes.
const PATIENCE: u32 = 4;

/// But as if no sync took longer than this.
const SYNC_TIME_MAX: Duration = Duration::from_millis(4);

/// Decides the order of commits: the only one to write to the log.
#[derive(Debug)]
pub(crate) struct Sequencer {
    pub(super) core: Arc<Core>,
    pub(super) writer: LogWriter,
    groups: Arc<GroupQueue>,
    /// Who else may apply what was written.
    applier: Option<Arc<Applier>>,
    overlay: Overlay,
    pub(super) consumers: PendingConsumers,
    group: Group,
    /// Whether anything in the group must be synced before it is acknowledged.
    pub(super) sync: bool,
    /// How long it takes to write a group and sync it, more or less; nothing if groups are not synced.
    sync_time: Duration,
    /// How many requests the applier was handed last.
    answering: usize,
}

impl Sequencer {
    pub(crate) fn new(core: Arc<Core>, writer: LogWriter, groups: Arc<GroupQueue>) -> Self {
        let (overlay, consumers) = (Overlay::default(), PendingConsumers::default());
        let (group, sync, sync_time, answering) = (Group::default(), false, Duration::ZERO, 0);
        Self { core, writer, groups, applier: None, overlay, consumers, group, sync, sync_time, answering }
    }

    /// Lets it apply small groups itself while the applier has nothing to do.
    pub(crate) fn with_applier(self, applier: &Arc<Applier>) -> Self {
        Self { applier: Some(Arc::clone(applier)), ..self }
    }

    /// Works until the queue is closed and empty; then gives the writer back, for the log to be closed.
    pub(crate) fn run(mut self, queue: &CommitQueue) -> LogWriter {
        while let Some(requests) = queue.take_together(self.answering, self.sync_time / PATIENCE) {
            self.sequence(requests);
        }
        self.groups.drain();
        self.writer
    }

    /// Writes `requests` in one group, or several if they are large.
    pub(crate) fn sequence(&mut self, requests: Vec<Request>) {
        let visible = self.core.snapshots.visible();
        self.overlay.forget_up_to(visible);
        self.consumers.forget_up_to(visible);
        for request in requests {
            if let Err(error) = self.check_writable() {
                request.refuse(error);
                continue;
            }
            self.add(request);
            if self.writer.buffered() >= GROUP_BYTES_MAX {
                self.finish_group();
            }
        }
        self.finish_group();
    }

    fn check_writable(&self) -> Result<(), EngineError> {
        self.core.health.check_writable()?;
        match self.core.health.obstacle() {
            Some(path) if self.core.index.backlog().sealed >= SEALED_MAX => {
                Err(EngineError::DiskFull { path })
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, request: Request) {
        let step = match request {
            Request::Commit { bucket, config, batch, reply, permit } => {
                let (logged, result) = match self.commit(&bucket, &config, batch) {
                    Ok((logged, committed)) => (Some(logged), Ok(committed)),
                    Err(error) => (None, Err(error)),
                };
                Step::new(logged, Answer::Commit(reply, result, permit))
            }
            Request::Compact { bucket, key, keep, reply } => {
                let (logged, result) = match self.compact(&bucket, key, keep) {
                    Ok(logged) => (logged, Ok(())),
                    Err(error) => (None, Err(error)),
                };
                Step::new(logged, Answer::Plain(reply, result))
            }
            Request::Expire { bucket, due, reply } => {
                let remove = |due: Due| NoteChange::Remove { key: due.note, about: due.revision };
                let (logged, notes, result) = match self.expire(&bucket, &due) {
                    Ok(logged) => (logged, due.into_iter().map(remove).collect(), Ok(())),
                    Err(error) => (None, Vec::new(), Err(error)),
                };
                Step { notes, ..Step::new(logged, Answer::Plain(reply, result)) }
            }
            Request::Tidy { notes, reply } => Step { notes, ..Step::new(None, Answer::Plain(reply, Ok(()))) },
            Request::Bucket { change, reply } => return self.change_bucket(change, reply),
            Request::Consumer { bucket, name, change, reply } => {
                let (logged, result) = match self.change_consumer(&bucket, &name, change) {
                    Ok((logged, info)) => (logged, Ok(info)),
                    Err(error) => (None, Err(error)),
                };
                Step::new(logged, Answer::Consumer(reply, result))
            }
            Request::Forget { bucket, keys, reply } => {
                let (logged, result) = match self.forget(&bucket, keys) {
                    Ok(logged) => (logged, Ok(())),
                    Err(error) => (None, Err(error)),
                };
                Step::new(logged, Answer::Plain(reply, result))
            }
            Request::Upkeep { upkeep, reply } => {
                let logged = self.append(FrameKind::Upkeep, BucketId(0), Vec::new());
                let answer = Answer::Upkeep(reply, logged.last);
                Step { upkeep: Some(upkeep), ..Step::new(Some(logged), answer) }
            }
        };
        self.group.steps.push(step);
    }

    /// Writes the group and hands it to the applier.
    fn finish_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let sync = std::mem::take(&mut self.sync);
        if group.steps.is_empty() {
            return;
        }
        let bytes = self.writer.buffered();
        let started = self.core.elapsed();
        let written = if bytes == 0 { Ok(()) } else { self.writer.write(sync) };
        if bytes > 0 {
            let took = if sync { self.core.elapsed().saturating_sub(started) } else { Duration::ZERO };
            self.sync_time = (self.sync_time * 3 + took.min(SYNC_TIME_MAX)) / 4;
        }
        match written {
            Ok(()) => {
                self.core.meters.group(group.commits(), bytes);
                self.overlay.keep();
                self.hand_over(group);
            }
            Err(error) => return self.give_up(group, error),
        }
        // Now rather than before the next group, so that no caller waits for it.
        match self.writer.roll_if_full() {
            Ok(()) | Err(WriteError::Refused(_)) => {}
            Err(WriteError::Poisoned(error)) => self.poison(&error),
        }
    }

    /// Has a group applied that was written: by the applier, while this thread goes on with the next one. If there
    /// is nothing else to do, waking the applier would take longer than doing its work.
    fn hand_over(&mut self, group: Group) {
        // Upkeep may take longer than a sync.
        let is_small =
            group.steps.len() <= APPLIED_HERE_MAX && group.steps.iter().all(|step| step.upkeep.is_none());
        self.answering = if is_small { 0 } else { group.steps.len() };
        match self.applier.as_ref().filter(|_| is_small).filter(|_| self.groups.begin()) {
            Some(applier) => {
                applier.apply_group(group);
                applier.make_room();
                self.groups.applied();
            }
            None => self.groups.push(group),
        }
    }

    fn give_up(&mut self, group: Group, error: WriteError) {
        self.writer.discard();
        self.overlay.roll_back();
        self.consumers.roll_back(self.writer.last());
        // What was refused for its expectations may name revisions that the applier has yet to show.
        self.groups.drain();
        match error {
            WriteError::Refused(error) => {
                let path = if let EngineError::DiskFull { path } = error {
                    path
                } else {
                    self.core.directory.clone()
                };
                group.refuse(|| EngineError::DiskFull { path: path.clone() });
            }
            WriteError::Poisoned(error) => {
                self.poison(&error);
                group.refuse(|| self.core.health.check_writable().err().unwrap_or(EngineError::Closed));
            }
        }
    }

    fn poison(&self, error: &EngineError) {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        self.core.health.poison(format!("an earlier write failed: {error}{cause}"));
    }

    fn commit(
        &mut self,
        bucket: &Bucket,
        checked_against: &Arc<BucketConfig>,
        mut batch: CheckedBatch,
    ) -> Result<(Arc<Logged>, Committed), CommitError> {
        if bucket.is_deleted() {
            return Err(bucket.not_found().into());
        }
        let config = bucket.config();
        if !Arc::ptr_eq(&config, checked_against) {
            batch = batch.into_batch().check(&bucket.name, &config, &crate::engine::CAPABILITIES)?;
        }
        let now = self.core.clock.now();
        for demand in batch.demands() {
            self.judge(bucket, &config, demand, now)?;
        }
        let first = self.writer.last().next();
        let records =
            batch.into_operations().into_iter().zip(0_u16..).map(|(operation, index)| {
                record_of(operation, &config, first.plus(index.into()), index, now)
            });
        let logged = self.append(FrameKind::Commit, bucket.id, records.collect());
        self.sync |= config.durability != Durability::Buffered;
        Ok((Arc::clone(&logged), Committed { first, last: logged.last, time: now }))
    }

    fn judge(
        &self,
        bucket: &Bucket,
        config: &BucketConfig,
        demand: Demand<'_>,
        now: Timestamp,
    ) -> Result<(), CommitError> {
        if demand.expect == Expectation::Any {
            return Ok(());
        }
        let newest = self.newest(bucket, demand.key)?.filter(|newest| !newest.has_expired(config, now));
        let newest = newest.map(|newest| (newest.revision, newest.op));
        demand.judge(&bucket.name, newest).map_err(CommitError::Conflict)
    }

    fn newest(&self, bucket: &Bucket, key: &Key) -> Result<Option<Newest>, EngineError> {
        if let Some(newest) = self.overlay.get(bucket.id, key) {
            return Ok(Some(newest));
        }
        let head = self.core.head(bucket, key, ReadAt::Newest)?;
        Ok(head.as_ref().map(Newest::from))
    }

    fn compact(&mut self, bucket: &Bucket, key: Key, keep: u8) -> Result<Option<Arc<Logged>>, EngineError> {
        if bucket.is_deleted() {
            return Err(bucket.not_found());
        }
        if self.newest(bucket, &key)?.is_none() {
            return Ok(None);
        }
        self.sync |= bucket.config().durability != Durability::Buffered;
        let record = self.record(RecordKind::Compact, key, Bytes::copy_from_slice(&[keep]));
        Ok(Some(self.append(FrameKind::Commit, bucket.id, vec![record])))
    }

    fn forget(
        &mut self,
        bucket: &Bucket,
        keys: Vec<(Key, Revision)>,
    ) -> Result<Option<Arc<Logged>>, EngineError> {
        let mut forgotten = Vec::new();
        for (key, marker) in keys {
            if !bucket.is_deleted()
                && self.newest(bucket, &key)?.is_some_and(|newest| newest.revision == marker)
            {
                forgotten.push(key);
            }
        }
        if forgotten.is_empty() {
            return Ok(None);
        }
        let first = self.writer.last().next();
        let records = forgotten.into_iter().zip(0_u16..).map(|(key, index)| {
            let record = self.record(RecordKind::Compact, key, Bytes::from_static(&[0]));
            Record { revision: first.plus(index.into()), index, ..record }
        });
        let records = records.collect();
        Ok(Some(self.append(FrameKind::Commit, bucket.id, records)))
    }

    fn expire(&mut self, bucket: &Bucket, due: &[Due]) -> Result<Option<Arc<Logged>>, EngineError> {
        if bucket.is_deleted() {
            return Ok(None);
        }
        let (config, now) = (bucket.config(), self.core.clock.now());
        let mut seen = BTreeSet::new();
        let mut expired = Vec::new();
        for due in due {
            let is_due = |newest: Newest| newest.revision == due.revision && newest.has_expired(&config, now);
            // A change of the bucket's TTL leaves two notes about one value.
            if self.newest(bucket, &due.key)?.is_some_and(is_due) && seen.insert(&due.key) {
                expired.push(due.key.clone());
            }
        }
        if expired.is_empty() {
            return Ok(None);
        }
        let first = self.writer.last().next();
        let record = |(key, index): (Key, u16)| {
            let (payload, revision) = (Payload::default(), first.plus(index.into()));
            let (kind, time, expires, faded) = (RecordKind::Expire, now, None, false);
            Record { kind, key, revision, time, expires, payload, index, faded }
        };
        let records = expired.into_iter().zip(0_u16..).map(record).collect();
        self.sync |= config.durability != Durability::Buffered;
        Ok(Some(self.append(FrameKind::Commit, bucket.id, records)))
    }

    /// Changes to buckets are rare: each is a group of its own, with nothing else under way.
    fn change_bucket(
        &mut self,
        change: BucketChange,
        reply: super::request::Reply<Option<Arc<Bucket>>, EngineError>,
    ) {
        self.finish_group();
        self.groups.drain();
        let ready = match &change {
            // Under a longer TTL, what has expired by now would come back.
            BucketChange::Update(..) => self.record_all_expired(),
            BucketChange::Create(..) | BucketChange::Delete(_) => Ok(()),
        };
        let (logged, result) = match ready.and_then(|()| self.log_bucket_change(change)) {
            Ok((logged, name)) => (logged, Ok(name)),
            Err(error) => (None, Err(error)),
        };
        self.sync = true;
        self.group.steps.push(Step::new(logged, Answer::Bucket(reply, result)));
        self.finish_group();
        self.groups.drain();
    }

    /// Records everything that has expired, with nothing else under way.
    fn record_all_expired(&mut self) -> Result<(), EngineError> {
        loop {
            let found = Found::look(&self.core)?;
            if found.due.is_empty() && found.tidy.is_empty() {
                return Ok(());
            }
            let (reply, answer) = oneshot::channel();
            let mut answers = vec![answer];
            self.add(Request::Tidy { notes: found.tidy, reply });
            for (bucket, due) in found.due {
                let (reply, answer) = oneshot::channel();
                self.add(Request::Expire { bucket, due, reply });
                answers.push(answer);
            }
            self.finish_group();
            self.groups.drain();
            for mut answer in answers {
                answer.try_recv().map_err(|_| EngineError::Closed)??;
            }
        }
    }

    fn log_bucket_change(
        &mut self,
        change: BucketChange,
    ) -> Result<(Option<Arc<Logged>>, Option<pleach_engine::BucketName>), EngineError> {
        let catalog = &self.core.catalog;
        let (kind, id, name, config) = match change {
            BucketChange::Create(name, config) => match catalog.find(&name) {
                Some(bucket) => {
                    let differences = bucket.config().differences(&config);
                    if differences.is_empty() {
                        return Ok((None, Some(name)));
                    }
                    return Err(EngineError::BucketExists { bucket: name, differences });
                }
                None if catalog.len() >= BUCKETS_MAX => {
                    return Err(EngineError::TooManyBuckets { limit: BUCKETS_MAX });
                }
                None => (RecordKind::CreateBucket, catalog.next_id(), name, Some(config)),
            },
            BucketChange::Update(name, config) => {
                (RecordKind::UpdateBucket, catalog.get(&name)?.id, name, Some(config))
            }
            BucketChange::Delete(name) => (RecordKind::DeleteBucket, catalog.get(&name)?.id, name, None),
        };
        let value = config.map_or(Ok(Vec::new()), |config| encode_config(&config))?;
        let record = self.record(kind, bucket_key(&name)?, value.into());
        let logged = self.append(FrameKind::Bucket, id, vec![record]);
        Ok((Some(logged), (kind != RecordKind::DeleteBucket).then_some(name)))
    }

    /// A record of its own, at the next revision.
    pub(super) fn record(&self, kind: RecordKind, key: Key, value: Bytes) -> Record {
        let (revision, time) = (self.writer.last().next(), self.core.clock.now());
        let payload = Payload::plain(Headers::new(), value);
        Record { kind, key, revision, time, expires: None, payload, index: 0, faded: false }
    }

    pub(super) fn append(&mut self, kind: FrameKind, bucket: BucketId, records: Vec<Record>) -> Arc<Logged> {
        let positions = self.writer.append(kind, bucket, &records);
        for record in &records {
            if let Some(op) = record.kind.op() {
                let (revision, time, expires) = (record.revision, record.time, record.expires);
                self.overlay.insert(bucket, &record.key, Newest { op, revision, time, expires });
            }
        }
        // A frame without records takes a revision too.
        let size = u16::try_from(records.len().max(1)).unwrap_or(u16::MAX);
        let records = positions.into_iter().zip(records).collect();
        Arc::new(Logged { kind, bucket, size, last: self.writer.last(), records })
    }
}

fn record_of(
    operation: Operation,
    config: &BucketConfig,
    revision: Revision,
    index: u16,
    time: Timestamp,
) -> Record {
    let Operation { key, action, headers, .. } = operation;
    let (kind, value, expires) = match action {
        Action::Put { value, expiry } => (RecordKind::Put, value, expiry.moment(time)),
        Action::Delete => (RecordKind::Delete, Bytes::new(), None),
        Action::Purge => (RecordKind::Purge, Bytes::new(), None),
    };
    let payload = match config.compression {
        Compression::Lz4 => Payload::compressed(headers, value),
        _ => Payload::plain(headers, value),
    };
    Record { kind, key, revision, time, expires, payload, index, faded: false }
}
