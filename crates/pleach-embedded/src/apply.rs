use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pleach_engine::{BucketConfig, BucketName, ConsumerName, EngineError, Key, Revision, Timestamp};

use crate::catalog::{Bucket, decode_config, encode_config};
use crate::commit::{IndexUpkeep, Moved, NoteChange};
use crate::consumers::{Consumer, decode_info};
use crate::core::{Core, damaged_head};
use crate::feed::Logged;
use crate::index::{Head, INLINE_BYTES_MAX, IndexChange, IndexKey, Meta, ReadAt, key_of_head, with_head_key};
use crate::log::{BucketId, FrameKind, Position, Record, RecordKind};

/// Brings the index and the catalog up to a frame of the log. The same for a commit just made and for one
/// read back when the store is opened.
pub(crate) fn apply(core: &Core, frame: &Logged) -> Result<(), EngineError> {
    core.unsealed_log.fetch_add(frame.bytes() as u64, Ordering::AcqRel);
    core.written_log.fetch_add(frame.bytes() as u64, Ordering::AcqRel);
    match frame.kind {
        FrameKind::Commit => apply_commit(core, frame),
        FrameKind::Bucket => {
            frame.records.iter().try_for_each(|(_, record)| apply_bucket(core, frame.bucket, record))
        }
        FrameKind::Consumer => {
            frame.records.iter().try_for_each(|(_, record)| apply_consumer(core, frame.bucket, record))
        }
        FrameKind::Mark | FrameKind::Upkeep | FrameKind::Footer => Ok(()),
    }
}

/// The bucket that a record is about. None if it was deleted later: then its creation may be gone from the log
/// before everything else of it is.
fn bucket_at(core: &Core, id: BucketId, revision: Revision) -> Result<Option<Arc<Bucket>>, EngineError> {
    match core.catalog.by_id(id) {
        None if id >= core.catalog.next_id() => Err(nonsense(id, revision)),
        bucket => Ok(bucket),
    }
}

fn apply_commit(core: &Core, frame: &Logged) -> Result<(), EngineError> {
    let Some(bucket) = bucket_at(core, frame.bucket, frame.last)? else { return Ok(()) };
    let config = bucket.config();
    let mut first_expiry: Option<Timestamp> = None;
    for (position, record) in &frame.records {
        let head_key = || IndexKey::head(bucket.id, record.key.as_bytes());
        if record.faded {
            // A purge that its key has forgotten leaves no marker, but what came before it stays purged.
            if record.kind == RecordKind::Purge {
                core.write_index(record.revision, vec![IndexChange::Remove(head_key())]);
            }
            continue;
        }
        if record.forgets_its_key() {
            bucket.forget_at(record.revision);
            core.write_index(record.revision, vec![IndexChange::Remove(head_key())]);
            continue;
        }
        let Some(head) = head_after(core, &bucket, &config, *position, record)? else { continue };
        if record.kind == RecordKind::Compact {
            core.write_index(record.revision, vec![IndexChange::Insert(head_key(), head.encode())]);
            continue;
        }
        if head.op.is_put()
            && let Some(at) = config.expiry(head.time, head.expires)
        {
            let note_key = IndexKey::expiry(at, bucket.id, &record.key);
            core.index.put(head.revision, &note_key, Some(&note(head.revision)));
            first_expiry = Some(first_expiry.map_or(at, |first| first.min(at)));
        }
        with_head_key(bucket.id, record.key.as_bytes(), |head_key| {
            core.write_head(head_key, &head, &record.payload);
        });
    }
    if let Some(at) = first_expiry {
        core.reaper.wake_by(at);
    }
    Ok(())
}

/// The head of a key after `record`; none if the key has none and gets none.
fn head_after(
    core: &Core,
    bucket: &Bucket,
    config: &BucketConfig,
    position: Position,
    record: &Record,
) -> Result<Option<Head>, EngineError> {
    let older_max = usize::from(config.history.get()) - 1;
    let Some(op) = record.kind.op() else {
        let keep = usize::from(record.payload.value.first().copied().unwrap_or(1).max(1));
        let head = core.head(bucket, &record.key, ReadAt::Newest)?;
        return Ok(head.map(|mut head| {
            head.past.truncate(keep - 1);
            head
        }));
    };
    let mut past = Vec::new();
    // Without history the record before is not needed, and looking for it would cost more than the write.
    if older_max > 0
        && record.kind != RecordKind::Purge
        && let Some(before) = core.head(bucket, &record.key, ReadAt::Newest)?
    {
        past.push(before.as_past());
        past.extend(before.past);
        past.truncate(older_max);
    }
    let inline = record.payload.encoded_len() <= INLINE_BYTES_MAX;
    let payload = if inline { record.payload.clone() } else { record.payload.without_value() };
    let Record { revision, time, expires, .. } = *record;
    Ok(Some(Head { op, revision, time, expires, position, payload, inline, past }))
}

fn apply_bucket(core: &Core, id: BucketId, record: &Record) -> Result<(), EngineError> {
    let damaged = || nonsense(id, record.revision);
    let name = BucketName::parse(record.key.as_str()).map_err(|_| damaged())?;
    let config = || decode_config(&record.payload.value).ok_or_else(damaged);
    let state_key = IndexKey::bucket(&name);
    let change = match record.kind {
        RecordKind::CreateBucket => {
            let bucket = Arc::new(Bucket::new(id, name, config()?, record.revision, record.time));
            let state = bucket.encode()?;
            core.catalog.add(bucket);
            vec![IndexChange::Insert(state_key, state)]
        }
        RecordKind::UpdateBucket => {
            let Some(bucket) = bucket_at(core, id, record.revision)? else { return Ok(()) };
            let (before, after) = (bucket.config(), config()?);
            // First, because the reaper looks at the notes that come next by the bucket's configuration.
            bucket.set_config(after.clone(), record.revision);
            adapt_heads(core, &bucket, &before, &after, record.revision)?;
            vec![IndexChange::Insert(state_key, bucket.encode()?)]
        }
        RecordKind::DeleteBucket => {
            let Some(bucket) = bucket_at(core, id, record.revision)? else { return Ok(()) };
            core.catalog.remove(&bucket);
            bucket.feed.wake_all();
            core.cleaner.wake();
            let consumers = bucket.consumers.all();
            let gone = |consumer: &Consumer| {
                IndexChange::Remove(IndexKey::consumer(id, consumer.info.name.as_str()))
            };
            let mut changes: Vec<_> = consumers.iter().map(gone).collect();
            // Its entries are removed from the index little by little.
            let left = encode_config(&bucket.config())?;
            changes.push(IndexChange::Insert(IndexKey::deleted(id), left.into()));
            changes.push(IndexChange::Remove(state_key));
            changes
        }
        _ => return Err(damaged()),
    };
    core.write_index(record.revision, change);
    Ok(())
}

fn apply_consumer(core: &Core, id: BucketId, record: &Record) -> Result<(), EngineError> {
    let Some(bucket) = bucket_at(core, id, record.revision)? else { return Ok(()) };
    let damaged = || nonsense(id, record.revision);
    let state_key = IndexKey::consumer(id, record.key.as_str());
    let change = match record.kind {
        RecordKind::SetConsumer => {
            let info = decode_info(record.key.as_str(), record.payload.value.clone()).ok_or_else(damaged)?;
            let consumer = Consumer { info, revision: record.revision };
            let state = consumer.encode();
            bucket.consumers.set(consumer);
            IndexChange::Insert(state_key, state)
        }
        RecordKind::DeleteConsumer => {
            let name = ConsumerName::parse(record.key.as_str()).map_err(|_| damaged())?;
            bucket.consumers.remove(&name);
            IndexChange::Remove(state_key)
        }
        _ => return Err(damaged()),
    };
    core.write_index(record.revision, vec![change]);
    Ok(())
}

/// Does some upkeep of the index under a revision of its own.
pub(crate) fn apply_upkeep(core: &Core, revision: Revision, upkeep: IndexUpkeep) -> Result<(), EngineError> {
    let changes = match upkeep {
        IndexUpkeep::Move(moves) => {
            let mut changes = Vec::with_capacity(moves.len());
            // A batch has each key once, and a chunk may hold several batches.
            let mut heads: HashMap<Bytes, Head> = HashMap::new();
            for moved in moves {
                repoint(core, &moved, &mut heads)?;
            }
            changes.extend(heads.into_iter().map(|(key, head)| IndexChange::Insert(key, head.encode())));
            changes
        }
        IndexUpkeep::Remove(keys) => keys.into_iter().map(IndexChange::Remove).collect(),
        IndexUpkeep::Seal => Vec::new(),
    };
    core.write_index(revision, changes);
    Ok(())
}

/// Lets the index point to where a record has moved, if it still points to that record.
fn repoint(core: &Core, moved: &Moved, heads: &mut HashMap<Bytes, Head>) -> Result<(), EngineError> {
    let Some(bucket) = core.catalog.by_id(moved.bucket) else { return Ok(()) };
    let head_key = IndexKey::head(bucket.id, moved.key.as_bytes());
    let known = heads
        .remove(&head_key)
        .map_or_else(|| core.head(&bucket, &moved.key, ReadAt::Newest), |head| Ok(Some(head)));
    let Some(mut head) = known? else { return Ok(()) };
    if head.revision == moved.revision {
        head.position = moved.position;
    } else if let Some(past) = head.past.iter_mut().find(|past| past.revision == moved.revision) {
        past.position = moved.position;
    }
    heads.insert(head_key, head);
    Ok(())
}

/// Makes what a bucket holds fit its new configuration: a shorter history is trimmed, so that a longer one
/// later brings nothing back, and values that now expire are noted. Costs a pass over the bucket.
fn adapt_heads(
    core: &Core,
    bucket: &Bucket,
    before: &BucketConfig,
    after: &BucketConfig,
    revision: Revision,
) -> Result<(), EngineError> {
    let (trims, expires) = (after.history < before.history, after.ttl.is_some() && after.ttl != before.ttl);
    if !trims && !expires {
        return Ok(());
    }
    let prefix = IndexKey::head(bucket.id, &[]);
    let end = Bound::Excluded(IndexKey::after(&prefix));
    let older_max = usize::from(after.history.get()) - 1;
    for item in core.index.range(Bound::Included(prefix), end, ReadAt::Newest) {
        let (head_key, bytes) = item?;
        let key = key_of_head(&head_key).ok_or_else(|| nonsense(bucket.id, revision))?;
        let mut head = Head::decode(&bytes).ok_or_else(|| damaged_head(bucket, key.as_str()))?;
        let mut changes = Vec::new();
        if expires
            && head.op.is_put()
            && let Some(at) = after.expiry(head.time, head.expires)
        {
            changes.push(IndexChange::Insert(IndexKey::expiry(at, bucket.id, &key), note(head.revision)));
        }
        if head.past.len() > older_max {
            head.past.truncate(older_max);
            changes.push(IndexChange::Insert(head_key, head.encode()));
        }
        core.write_index(revision, changes);
    }
    core.reaper.wake();
    Ok(())
}

/// Writes into the index how far it goes, and ends the stretch that will be flushed together.
pub(crate) fn seal_index(core: &Core, applied: Revision, time: Timestamp) -> Result<(), EngineError> {
    let next_bucket = core.catalog.next_id();
    let meta = Meta { store: core.log.store, applied, time, next_bucket, built_over: core.built_over };
    let mut changes = vec![IndexChange::Insert(IndexKey::meta(), meta.encode())];
    for bucket in core.catalog.all() {
        changes.push(IndexChange::Insert(IndexKey::bucket(&bucket.name), bucket.encode()?));
    }
    core.write_index(applied, changes);
    core.index.seal();
    core.unsealed_log.store(0, Ordering::Release);
    core.sealed.fetch_max(applied.get(), Ordering::AcqRel);
    Ok(())
}

/// Puts notes about expiry in order; this is not in the log, so it can be forgotten and is then done again.
pub(crate) fn correct_notes(
    core: &Core,
    revision: Revision,
    corrections: Vec<NoteChange>,
) -> Result<(), EngineError> {
    let mut changes = Vec::with_capacity(corrections.len());
    for correction in corrections {
        match correction {
            NoteChange::Add { key, about } => changes.push(IndexChange::Insert(key, note(about))),
            // The same key may have got a later value that expires at the same moment: that note stays.
            NoteChange::Remove { key, about } => {
                if core.index.get(&key, ReadAt::Newest)? == Some(note(about)) {
                    changes.push(IndexChange::Remove(key));
                }
            }
        }
    }
    core.write_index(revision, changes);
    Ok(())
}

/// What an expiry note says: the revision of the value that expires.
pub(crate) fn note(revision: Revision) -> Bytes {
    Bytes::copy_from_slice(&revision.get().to_le_bytes())
}

/// A frame that is sound but fits nothing before it.
fn nonsense(bucket: BucketId, revision: Revision) -> EngineError {
    EngineError::Bug {
        what: format!(
            "the log's revision {revision} is about bucket number {}, which it cannot be",
            bucket.0
        ),
    }
}

/// A bucket's name as a record's key; the names of buckets are keys too.
pub(crate) fn bucket_key(name: &BucketName) -> Result<Key, EngineError> {
    Key::parse_reserved(name.as_str()).map_err(|error| EngineError::Bug { what: error.to_string() })
}
