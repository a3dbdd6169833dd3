//! The cleaner: takes out of the log what nobody needs any more, so that it can run for years.
//!
//! A run of old segments is copied into a new one without its dead records, the new one takes their place, the
//! index is pointed to it, and only when that is durable are the old files removed. At every moment the log has
//! everything: whoever stops in between finds old and new files, takes the new ones, and removes the old.

mod forget;
mod judge;
mod pace;
mod plan;
mod retention;
mod rewrite;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pleach_engine::{EngineError, Revision};
use tokio::sync::oneshot;

use crate::commit::{IndexUpkeep, Moved, Request};
use crate::core::Core;
use crate::index::INLINE_BYTES_MAX;
use crate::log::{Footer, FrameKind, FrameSummary, Position, Segment, SegmentFrames, SegmentId};
use judge::{CleanSince, Judge};
use pace::Pace;
use plan::{Candidates, Plan};
use rewrite::Rewrite;
use survey::Survey;
pub(crate) use survey::Usage;

/// How long the cleaner sleeps if there is nothing to do, or something went wrong.
const SLEEP: Duration = Duration::from_secs(1);

/// Segments are looked at so many times slower than they may be cleaned, while little is garbage.
const LOOKS_SLOWER: u64 = 8;

/// How many records are re-pointed together: commits wait meanwhile.
const MOVES_MAX: usize = 128;

/// How many keys are forgotten, or index keys removed, together.
const CHUNK_MAX: usize = 1000;

/// If so many bytes wait to be removed, scans that were left idle lose their snapshots for it.
const REPLACED_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How many segments may wait for the index to be written out before they can be cleaned.
const UNFLUSHED_SEGMENTS_MAX: u64 = 2;

/// How long to wait for the index to be written out before looking again.
const UPKEEP_WAIT: Duration = Duration::from_millis(20);

/// How long a segment is left alone that the disk could not read.
const UNREADABLE_WAIT: Duration = Duration::from_secs(60);

/// Rewriting a segment must free this part of it at least, in percent.
const FREED_PERCENT_MIN: u64 = 5;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There may be more to do.
    Worked,
    /// There is nothing to do.
    Idle,
}

/// Cleans the log of a store.
pub(crate) struct Cleaner {
    core: Arc<Core>,
    /// Where its requests go.
    submit: Box<dyn Fn(Request) + Send>,
    survey: Survey,
    /// Segments in which nothing dead was found, and as of when.
    checked: HashMap<SegmentId, Revision>,
    /// Segments that cannot be read, and so cannot be cleaned, what is wrong with them, and until when they are
    /// left alone.
    unreadable: BTreeMap<SegmentId, (String, Duration)>,
    /// New segments that the index is to be pointed to, with the old ones that they take the place of.
    unfinished: VecDeque<(Arc<Segment>, Vec<SegmentId>)>,
    /// Old segments that wait to be removed.
    replaced: Vec<Replaced>,
    /// Why they cannot be.
    stuck: Option<String>,
    /// Where a pass over all segments has come to, and how much had been written when the last one ended.
    sweep: Option<Revision>,
    swept_at: Option<u64>,
    /// How large segments are just now.
    segment_bytes: u64,
}

/// Segments that another has taken the place of.
struct Replaced {
    segments: Vec<SegmentId>,
    /// Older snapshots may see what is only in them.
    cleaned_at: Revision,
    /// From this revision on the index does not point to them; none if it need not be told.
    moved: Option<Revision>,
}

impl Replaced {
    /// Whether nothing points to them any more, but for what is found by its revision.
    fn is_free(&self, oldest_snapshot: Revision, flushed: Revision) -> bool {
        let seen = self.cleaned_at.max(self.moved.unwrap_or_default());
        seen <= oldest_snapshot && self.moved.is_none_or(|moved| moved <= flushed)
    }
}

impl Cleaner {
    /// A cleaner whose requests are handled by `submit`.
    pub(crate) fn new(core: &Arc<Core>, submit: impl Fn(Request) + Send + 'static) -> Self {
        let mut cleaner = Self {
            core: Arc::clone(core),
            submit: Box::new(submit),
            survey: Survey::default(),
            checked: HashMap::new(),
            unreadable: BTreeMap::new(),
            unfinished: VecDeque::new(),
            replaced: Vec::new(),
            stuck: None,
            sweep: None,
            swept_at: None,
            segment_bytes: core.settings.segment_bytes,
        };
        cleaner.take_up_unfinished();
        cleaner
    }

    /// Works until the store is closed.
    pub(crate) fn run(mut self) {
        let core = Arc::clone(&self.core);
        // A process that is gone in a moment has other things to do.
        core.cleaner.wait(SLEEP);
        while !core.health.is_closed() {
            let outcome = if core.health.is_poisoned() { Ok(Outcome::Idle) } else { self.step() };
            if outcome.is_err() {
                // Commits shall not be slowed down for what cannot be done.
                core.cleaned.set_estimate(0, 0);
            }
            let unreadable = || self.unreadable.values().next().map(|(what, _)| what.clone());
            let trouble = outcome.as_ref().err().map(ToString::to_string).or_else(unreadable);
            core.health.set_cleaning_trouble(trouble.or_else(|| self.stuck.clone()));
            if !matches!(outcome, Ok(Outcome::Worked)) {
                core.clean_wanted.store(false, Ordering::Release);
                core.cleaner.done();
                core.cleaner.wait(SLEEP);
            }
        }
    }

    /// Does the most useful thing, if there is any.
    pub(crate) fn step(&mut self) -> Result<Outcome, EngineError> {
        self.core.health.check_open()?;
        // Files that cannot be removed must not keep others from being cleaned.
        self.stuck = self.remove_replaced().err().map(|error| error.to_string());
        if let Some((new, old)) = self.unfinished.pop_front() {
            if let Err(error) = self.repoint(&new, &old) {
                self.unfinished.push_front((new, old));
                return Err(error);
            }
            return Ok(Outcome::Worked);
        }
        if !self.core.settings.clean {
            return Ok(Outcome::Idle);
        }
        if self.remove_deleted_buckets()? {
            return Ok(Outcome::Worked);
        }
        self.segment_bytes = self.core.log.segment_bytes(self.core.settings.segment_bytes);
        let segments = self.candidates()?;
        self.ask_for_seal(&segments, UNFLUSHED_SEGMENTS_MAX * self.segment_bytes)?;
        let clean_since = self.clean_since();
        // Looking takes more of the processor than of the disk, and there is no hurry while little is garbage.
        let (bytes, dead) = self.core.cleaned.estimate();
        let hurries = self.is_wanted() || dead.saturating_mul(10) > bytes;
        let slower = if hurries { 1 } else { LOOKS_SLOWER };
        let mut pace = Pace::new(&self.core, Some(self.core.settings.clean_bytes_per_second / slower));
        let found =
            self.survey.refresh(&self.core, &segments, &clean_since, self.segment_bytes, &mut pace)?;
        for (id, error) in found.unreadable {
            self.set_aside(id, &error);
        }
        match self.plan(&segments) {
            Some(plan) => self.clean(&plan, &clean_since),
            None if found.more => Ok(Outcome::Worked),
            None => self.rest(&segments),
        }
    }

    /// There is nothing to do, but perhaps for the index, for which someone may wait.
    fn rest(&mut self, candidates: &[Arc<Segment>]) -> Result<Outcome, EngineError> {
        self.ask_for_seal(candidates, 0)?;
        let flushed = self.core.flushed();
        let unflushed =
            self.core.log.segments().len().saturating_sub(candidates.len() + self.unreadable.len());
        let waits = unflushed > 1 || self.replaced.iter().any(|replaced| replaced.moved > Some(flushed));
        if !waits || !self.is_wanted() || self.core.health.obstacle().is_some() {
            return Ok(Outcome::Idle);
        }
        self.core.upkeep.wake_and_wait(UPKEEP_WAIT);
        Ok(Outcome::Worked)
    }

    /// Whether someone waits for the log to be as clean as can be.
    fn is_wanted(&self) -> bool {
        self.core.clean_wanted.load(Ordering::Acquire)
    }

    /// Cleans a run of at most `len` segments from the one at `at` on, counted round and round, whatever it frees:
    /// years bring about orders of cleaning that no plan would come to in a test. As always, what was begun is
    /// finished first.
    #[cfg(test)]
    pub(crate) fn clean_run(
        &mut self,
        at: usize,
        len: usize,
        thorough: bool,
    ) -> Result<Outcome, EngineError> {
        let segments = self.candidates()?;
        if !self.unfinished.is_empty() || segments.is_empty() {
            return self.step();
        }
        let mut run = vec![Arc::clone(&segments[at % segments.len()])];
        for next in segments.iter().skip(at % segments.len() + 1).take(len - 1) {
            let last = run[run.len() - 1].footer().map(|footer| footer.last.next());
            if last != Some(next.first()) {
                break;
            }
            run.push(Arc::clone(next));
        }
        let clean_since = self.clean_since();
        self.clean(&Plan { run, thorough, urgent: false }, &clean_since)
    }

    /// What an earlier process has not finished: new segments are there, and so are the old ones.
    fn take_up_unfinished(&mut self) {
        for old in self.core.log.replaced() {
            let Some(new) = self.core.log.segment_of(old.first()) else { continue };
            match self.unfinished.iter_mut().find(|(known, _)| known.id() == new.id()) {
                Some((_, together)) => together.push(old.id()),
                None => self.unfinished.push_back((new, vec![old.id()])),
            }
        }
    }

    /// The finished segments that can be cleaned: the index, as it is on the disk, has all of their records. What
    /// it has not yet would have to be read from them again.
    fn candidates(&mut self) -> Result<Vec<Arc<Segment>>, EngineError> {
        let (flushed, now) = (self.core.flushed(), self.core.elapsed());
        self.unreadable.retain(|_, (_, until)| now < *until);
        let segments = self.core.log.segments();
        let mut candidates = Vec::new();
        for pair in segments.windows(2) {
            let (segment, last) = (&pair[0], Revision::new(pair[1].first().get() - 1));
            if last > flushed {
                break;
            }
            if segment.footer().is_none() && !self.unreadable.contains_key(&segment.id()) {
                self.make_footer(segment, last)?;
            }
            if !self.unreadable.contains_key(&segment.id()) {
                candidates.push(Arc::clone(segment));
            }
        }
        Ok(candidates)
    }

    /// Reads a segment of the first format, which has no footer.
    fn make_footer(&mut self, segment: &Arc<Segment>, last: Revision) -> Result<(), EngineError> {
        let mut footer = Footer { last, ..Footer::empty(segment.first()) };
        let mut frames = SegmentFrames::of(segment);
        loop {
            match frames.next() {
                Ok(Some((offset, frame))) => footer.add(&FrameSummary::of(&frame, offset)),
                Ok(None) => break,
                Err(error) => return self.cannot_read(segment, error),
            }
        }
        segment.finish(footer);
        Ok(())
    }

    /// The rest of the log is cleaned without a segment that cannot be read. Damage is for a person to look at; a
    /// disk that could not read something may another time.
    fn set_aside(&mut self, id: SegmentId, error: &EngineError) {
        let until = match error {
            EngineError::Corrupt { .. } => Duration::MAX,
            _ => self.core.elapsed() + UNREADABLE_WAIT,
        };
        self.unreadable.insert(id, (error.to_string(), until));
    }

    fn cannot_read(&mut self, segment: &Segment, error: EngineError) -> Result<(), EngineError> {
        if matches!(error, EngineError::Corrupt { .. } | EngineError::Io { action: "read", .. }) {
            self.set_aside(segment.id(), &error);
        }
        Err(error)
    }

    /// For each segment, since when all before it are clean.
    fn clean_since(&self) -> CleanSince {
        let mut clean_since = CleanSince::new();
        let mut oldest = Revision::new(u64::MAX);
        for segment in self.core.log.segments() {
            clean_since.insert(segment.id(), oldest);
            let cleaned = segment.footer().map_or(Revision::ZERO, |footer| footer.cleaned_at);
            let checked = self.checked.get(&segment.id()).copied().unwrap_or_default();
            oldest = oldest.min(cleaned.max(checked));
        }
        clean_since
    }

    fn plan(&mut self, segments: &[Arc<Segment>]) -> Option<Plan> {
        let (segment_bytes, eager) = (self.segment_bytes, self.is_wanted());
        let candidates = Candidates { segments, survey: &self.survey, segment_bytes, eager };
        let (bytes, dead) = candidates.totals();
        self.core.cleaned.set_estimate(bytes, dead);
        self.core.cleaned.set_usage(self.survey.usage());
        candidates.plan().or_else(|| self.sweep(segments))
    }

    /// If much of the log does nothing but say that older records are forgotten, a pass over all segments, the
    /// oldest first, can take it out.
    fn sweep(&mut self, segments: &[Arc<Segment>]) -> Option<Plan> {
        let bytes: u64 = segments.iter().map(|segment| segment.len()).sum();
        if self.sweep.is_none() {
            let footers = segments.iter().filter_map(|segment| segment.footer());
            let shadows: u64 = footers.map(|footer| footer.shadow_bytes).sum();
            let written = self.core.written_log.load(Ordering::Acquire);
            let worth_it = shadows > bytes / 10 && shadows > self.segment_bytes / 4;
            if !worth_it || self.swept_at.is_some_and(|swept_at| written - swept_at < bytes / 4) {
                return None;
            }
            self.sweep = Some(Revision::ZERO);
        }
        let done = self.sweep?;
        let Some(segment) = segments.iter().find(|segment| segment.first() > done) else {
            (self.sweep, self.swept_at) = (None, Some(self.core.written_log.load(Ordering::Acquire)));
            return None;
        };
        self.sweep = Some(segment.first());
        Some(Plan { run: vec![Arc::clone(segment)], thorough: true, urgent: false })
    }

    fn clean(&mut self, plan: &Plan, clean_since: &CleanSince) -> Result<Outcome, EngineError> {
        let core = Arc::clone(&self.core);
        self.forget_keys(plan)?;
        // Within the run everything is cleaned now, so what counts is what is before it.
        let since = clean_since.get(&plan.run[0].id()).copied().unwrap_or_default();
        let judge = Judge::new(&core, plan.run.iter().map(|segment| (segment.id(), since)).collect());
        let mut pace = self.pace(plan);
        let mut rewrite = Rewrite::prepare(&core, &judge, &plan.run)?;
        for segment in &plan.run {
            if let Err(error) = rewrite.copy(segment, &mut pace) {
                rewrite.abandon();
                return self.cannot_read(segment, error).map(|()| Outcome::Worked);
            }
        }
        let bytes: u64 = plan.run.iter().map(|segment| segment.len()).sum();
        let (gain, wanted) = match plan.thorough {
            true => (rewrite.freed + rewrite.faded, 1),
            false => (rewrite.freed, (bytes * FREED_PERCENT_MIN / 100).max(1)),
        };
        if gain < wanted && plan.run.len() == 1 {
            // What has faded and is not written so would be applied when the index is built anew.
            let is_clean = rewrite.freed + rewrite.faded == 0;
            let id = plan.run[0].id();
            rewrite.abandon();
            self.survey.found_clean(id);
            if is_clean {
                self.checked.insert(id, judge.revision());
            }
            return Ok(Outcome::Worked);
        }
        let new = rewrite.publish()?;
        self.replace(&new, &plan.run);
        Ok(Outcome::Worked)
    }

    fn pace(&self, plan: &Plan) -> Pace {
        let limit = self.core.settings.clean_bytes_per_second;
        Pace::new(&self.core, (!plan.urgent && !self.is_wanted()).then_some(limit))
    }

    /// Puts a new segment in the place of those it was made from.
    fn replace(&mut self, new: &Arc<Segment>, run: &[Arc<Segment>]) {
        self.core.log.replace(run, Arc::clone(new));
        let before: u64 = run.iter().map(|segment| segment.len()).sum();
        self.core.cleaned.add(before, new.len());
        let old: Vec<_> = run.iter().map(|segment| segment.id()).collect();
        for id in &old {
            self.checked.remove(id);
        }
        self.unfinished.push_back((Arc::clone(new), old));
    }

    /// Points the index to the records in a new segment, which is read back for it: before an old file is
    /// removed, everything in the new one has been seen to be there.
    ///
    /// A small value is in the index itself. Where its record is matters only if it becomes history, so it is
    /// left to be found by its revision then.
    fn repoint(&mut self, new: &Arc<Segment>, old: &[SegmentId]) -> Result<(), EngineError> {
        let mut frames = SegmentFrames::of(new);
        let mut moves = Vec::with_capacity(MOVES_MAX);
        let mut moved = None;
        let mut pace = Pace::new(&self.core, Some(self.core.settings.clean_bytes_per_second));
        while let Some((_, frame)) = frames.next()? {
            self.core.health.check_open()?;
            pace.did(&self.core, frame.header.frame_len());
            let bucket = self.core.catalog.by_id(frame.header.bucket);
            let Some(bucket) = bucket.filter(|_| frame.header.kind == FrameKind::Commit) else { continue };
            let has_history = bucket.config().history.get() > 1;
            for (offset, record) in frame.records {
                let is_read = has_history || record.payload.encoded_len() > INLINE_BYTES_MAX;
                if record.kind.op().is_some() && !record.faded && is_read {
                    let len = u32::try_from(record.encoded_len()).unwrap_or(u32::MAX);
                    let position = Position { segment: new.id(), offset, len };
                    let (bucket, revision) = (frame.header.bucket, record.revision);
                    moves.push(Moved { bucket, key: record.key, revision, position });
                }
            }
            if moves.len() >= MOVES_MAX {
                let moves = std::mem::take(&mut moves);
                moved = Some(self.upkeep(IndexUpkeep::Move(moves))?);
            }
        }
        if !moves.is_empty() {
            moved = Some(self.upkeep(IndexUpkeep::Move(moves))?);
        }
        // What was left out is seen by snapshots from before it was forgotten.
        let cleaned_at = new.footer().map_or(Revision::ZERO, |footer| footer.cleaned_at);
        self.replaced.push(Replaced { segments: old.to_vec(), cleaned_at, moved });
        Ok(())
    }

    /// Removes old segments to which nothing points any more: the index on the disk does not, and no snapshot.
    fn remove_replaced(&mut self) -> Result<(), EngineError> {
        let (flushed, now) = (self.core.flushed(), self.core.elapsed());
        if self.replaced_bytes() > REPLACED_BYTES_MAX
            && let Some(newest) = self.replaced.last()
        {
            self.core.snapshots.end_leases(newest.moved.unwrap_or(newest.cleaned_at));
        }
        let oldest = self.core.snapshots.oldest(now);
        while let Some(at) = self.replaced.iter().position(|replaced| replaced.is_free(oldest, flushed)) {
            self.core.log.remove(&self.replaced[at].segments)?;
            self.replaced.remove(at);
        }
        Ok(())
    }

    fn replaced_bytes(&self) -> u64 {
        self.core.log.replaced().iter().map(|segment| segment.len()).sum()
    }

    /// If the index alone keeps more than `bytes` of old segments from being removed, or many from being cleaned,
    /// it shall be written out.
    fn ask_for_seal(&mut self, candidates: &[Arc<Segment>], bytes: u64) -> Result<(), EngineError> {
        let sealed = Revision::new(self.core.sealed.load(Ordering::Acquire));
        let waits = self.replaced.iter().any(|replaced| replaced.moved > Some(sealed));
        let segments = self.core.log.segments();
        let finished = segments.len().saturating_sub(1);
        let behind = segments[candidates.len().min(finished)..finished].iter();
        let behind: u64 =
            behind.filter(|segment| segment.first() > sealed).map(|segment| segment.len()).sum();
        let behind_max = if self.is_wanted() { 1 } else { UNFLUSHED_SEGMENTS_MAX * self.segment_bytes };
        let wanted = (waits && self.replaced_bytes() > bytes) || behind >= behind_max;
        if wanted && !self.core.seal_wanted.swap(true, Ordering::AcqRel) {
            self.upkeep(IndexUpkeep::Seal)?;
        }
        Ok(())
    }

    fn upkeep(&self, upkeep: IndexUpkeep) -> Result<Revision, EngineError> {
        self.ask(|reply| Request::Upkeep { upkeep, reply })
    }

    fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Request,
    ) -> Result<T, EngineError> {
        self.core.health.check_writable()?;
        let (reply, answer) = oneshot::channel();
        (self.submit)(request(reply));
        answer.blocking_recv().map_err(|_| EngineError::Closed)?
    }
}
