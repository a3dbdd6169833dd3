use std::ops::Bound;
use std::sync::Arc;

use pleach_engine::EngineError;

use super::judge::{CleanSince, Judge, bucket_with_markers};
use super::plan::Plan;
use super::{CHUNK_MAX, Cleaner};
use crate::catalog::decode_config;
use crate::commit::{IndexUpkeep, Request};
use crate::index::{Head, IndexKey, ReadAt, bucket_of, key_of_head};
use crate::log::SegmentFrames;

/// What the index forgets, so that it can be cleaned out of the log, or because it was.
impl Cleaner {
    /// Forgets the keys whose markers in the run have been kept long enough.
    pub(super) fn forget_keys(&mut self, plan: &Plan) -> Result<(), EngineError> {
        let core = Arc::clone(&self.core);
        let judge = Judge::new(&core, CleanSince::new());
        let (now, mut pace) = (core.clock.now(), self.pace(plan));
        for segment in &plan.run {
            let mut frames = SegmentFrames::of(segment);
            loop {
                let frame = match frames.next() {
                    Ok(Some((_, frame))) => frame,
                    Ok(None) => break,
                    Err(error) => return self.cannot_read(segment, error),
                };
                pace.did(&core, frame.header.frame_len());
                let bucket = bucket_with_markers(&core, frame.header.bucket, frame.header.kind);
                let Some(bucket) = bucket else { continue };
                let mut keys = Vec::new();
                for (_, record) in &frame.records {
                    if judge.is_forgettable(&bucket, record, now)? {
                        keys.push((record.key.clone(), record.revision));
                    }
                }
                if !keys.is_empty() {
                    self.ask(|reply| Request::Forget { bucket, keys, reply })?;
                }
            }
        }
        Ok(())
    }

    /// Removes some of what deleted buckets have left in the index; says whether there was anything.
    pub(super) fn remove_deleted_buckets(&mut self) -> Result<bool, EngineError> {
        let prefix = IndexKey::all_deleted();
        let end = Bound::Excluded(IndexKey::after(&prefix));
        let note = self.core.index.range(Bound::Included(prefix), end, ReadAt::Newest).next().transpose()?;
        let Some((note, config)) = note else { return Ok(false) };
        let unreadable =
            || EngineError::CorruptIndex { what: "what is left of a bucket is unreadable".into() };
        let (bucket, _) = bucket_of(&note).ok_or_else(unreadable)?;
        let config = decode_config(&config).ok_or_else(unreadable)?;
        let prefix = IndexKey::head(bucket, &[]);
        let end = Bound::Excluded(IndexKey::after(&prefix));
        let mut keys = Vec::new();
        let mut heads = 0;
        for item in self.core.index.range(Bound::Included(prefix), end, ReadAt::Newest).take(CHUNK_MAX) {
            let (head_key, bytes) = item?;
            let head = Head::decode(&bytes).ok_or_else(unreadable)?;
            let key = key_of_head(&head_key).ok_or_else(unreadable)?;
            let expiry = config.expiry(head.time, head.expires).filter(|_| head.op.is_put());
            keys.extend(expiry.map(|at| IndexKey::expiry(at, bucket, &key)));
            keys.push(head_key);
            heads += 1;
        }
        if heads < CHUNK_MAX {
            keys.push(note);
        }
        self.upkeep(IndexUpkeep::Remove(keys))?;
        Ok(true)
    }
}
