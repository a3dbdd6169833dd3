use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pleach_engine::{EngineError, Timestamp};

use super::judge::{CleanSince, Judge, Verdict, bucket_with_markers};
use super::pace::Pace;
use crate::core::Core;
use crate::log::{BucketId, Frame, FrameKind, Segment, SegmentFrames, SegmentId};

/// Segments up to this size are looked at in full.
const WHOLE_BYTES_MAX: u64 = 256 * 1024;

/// Of larger ones, frames are looked at in so many places: one of sixteen strides, within limits.
const STRIDES_PER_SAMPLE: usize = 16;
const SAMPLES_MIN: usize = 8;
const SAMPLES_MAX: usize = 24;

/// How much is looked at in each place, and in all of them together.
const SAMPLE_BYTES: u64 = 8 * 1024;
const SAMPLES_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// An estimate is good for so long, and in a log of many segments for longer: time lets entries and changes die
/// as well.
const ESTIMATE_AGE_MAX: Duration = Duration::from_secs(30);
const ESTIMATE_AGE_PER_SEGMENT: Duration = Duration::from_millis(100);

/// How many segments are looked at before something else is done.
const LOOKS_MAX: usize = 16;

/// How much of each segment is garbage, as far as a look at some of its records tells.
///
/// Nothing is counted when records are overwritten: to find the record that dies would cost more than the
/// write that kills it. Instead the cleaner looks at samples, which see every way for a record to die.
#[derive(Debug, Default)]
pub(super) struct Survey {
    estimates: HashMap<SegmentId, Estimate>,
    /// The same by bucket.
    usages: HashMap<SegmentId, Vec<(BucketId, Usage)>>,
}

/// What bytes of the log are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) bytes: u64,
    /// Those that only the feed needs.
    pub(crate) faded: u64,
    /// Those that nobody needs.
    pub(crate) dead: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.faded += other.faded;
        self.dead += other.dead;
    }

    /// What it comes to for `bytes` of which it is a sample.
    fn scaled(self, bytes: u64) -> Self {
        let scale = |part: u64| {
            let scaled = u128::from(part) * u128::from(bytes) / u128::from(self.bytes.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX).min(bytes)
        };
        Self { bytes, faded: scale(self.faded), dead: scale(self.dead) }
    }
}

/// What was found in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// Bytes that cleaning would free.
    pub(super) dead: u64,
    /// How long the segment is.
    pub(super) bytes: u64,
    /// How much had been written to the log when this was found.
    written: u64,
    elapsed: Duration,
    /// How often in a row it was found not to have changed, more or less: what does not change is looked at less
    /// often.
    steady: u32,
}

/// A segment that does not change is looked at up to so many times less often, as a power of two.
const STEADY_MAX: u32 = 3;

impl Estimate {
    /// That of a segment nobody has looked at.
    pub(super) fn unknown(bytes: u64) -> Self {
        Self { dead: 0, bytes, written: 0, elapsed: Duration::ZERO, steady: 0 }
    }

    pub(super) fn live(&self) -> u64 {
        self.bytes - self.dead.min(self.bytes)
    }
}

/// What a refresh has found.
#[derive(Debug, Default)]
pub(super) struct Refreshed {
    pub(super) unreadable: Vec<(SegmentId, EngineError)>,
    /// Whether there are more segments to look at.
    pub(super) more: bool,
}

impl Survey {
    /// Brings the estimates of some of `segments` up to date, those first that were never looked at.
    pub(super) fn refresh(
        &mut self,
        core: &Arc<Core>,
        segments: &[Arc<Segment>],
        clean_since: &CleanSince,
        segment_bytes: u64,
        pace: &mut Pace,
    ) -> Result<Refreshed, EngineError> {
        let (written, elapsed) = (core.written_log.load(Ordering::Acquire), core.elapsed());
        let total: u64 = segments.iter().map(|segment| segment.len()).sum();
        let fresh = (total / 32).max(segment_bytes / 8);
        let count = u32::try_from(segments.len()).unwrap_or(u32::MAX);
        let age_max = ESTIMATE_AGE_MAX.max(ESTIMATE_AGE_PER_SEGMENT.saturating_mul(count));
        let present: HashSet<_> = segments.iter().map(|segment| segment.id()).collect();
        self.estimates.retain(|id, _| present.contains(id));
        self.usages.retain(|id, _| present.contains(id));
        let is_good = |estimate: &Estimate| {
            written - estimate.written < fresh << estimate.steady
                && elapsed.saturating_sub(estimate.elapsed) < age_max
        };
        let known = |segment: &Arc<Segment>| self.estimates.get(&segment.id()).copied();
        let mut due: Vec<_> =
            segments.iter().filter(|segment| !known(segment).is_some_and(|found| is_good(&found))).collect();
        due.sort_by_key(|segment| known(segment).map(|estimate| estimate.written));
        let mut refreshed = Refreshed { more: due.len() > LOOKS_MAX, ..Refreshed::default() };
        due.truncate(LOOKS_MAX);
        if due.is_empty() {
            return Ok(refreshed);
        }
        let judge = Judge::new(core, clean_since.clone());
        for segment in due {
            core.health.check_open()?;
            let bytes = segment.len();
            let looked = match look(core, &judge, segment) {
                Ok(found) => found,
                Err(error @ (EngineError::Corrupt { .. } | EngineError::Io { action: "read", .. })) => {
                    refreshed.unreadable.push((segment.id(), error));
                    Looked { all: Usage { bytes, ..Usage::default() }, ..Looked::default() }
                }
                Err(error) => return Err(error),
            };
            pace.did(core, looked.all.bytes);
            let Usage { dead, .. } = looked.all.scaled(bytes);
            self.usages.insert(segment.id(), looked.by_bucket(segment));
            let before = self.estimates.get(&segment.id());
            let is_same = |before: &&Estimate| before.dead.abs_diff(dead) <= bytes / 64;
            let steady = before.filter(is_same).map_or(0, |before| (before.steady + 1).min(STEADY_MAX));
            self.estimates.insert(segment.id(), Estimate { dead, bytes, written, elapsed, steady });
        }
        Ok(refreshed)
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, segment: SegmentId, estimate: Estimate) {
        self.estimates.insert(segment, estimate);
    }

    /// What all segments that were looked at hold of each bucket.
    pub(super) fn usage(&self) -> BTreeMap<BucketId, Usage> {
        let mut sums = BTreeMap::<BucketId, Usage>::new();
        for (bucket, usage) in self.usages.values().flatten() {
            sums.entry(*bucket).or_default().add(*usage);
        }
        sums
    }

    pub(super) fn get(&self, segment: SegmentId) -> Option<Estimate> {
        self.estimates.get(&segment).copied()
    }

    /// Says that cleaning a segment would free nothing worth the work.
    pub(super) fn found_clean(&mut self, segment: SegmentId) {
        if let Some(estimate) = self.estimates.get_mut(&segment) {
            estimate.dead = 0;
        }
        for (_, usage) in self.usages.get_mut(&segment).into_iter().flatten() {
            usage.dead = 0;
        }
    }
}

/// What a look at a segment, or at samples of it, has found.
#[derive(Debug, Default)]
struct Looked {
    all: Usage,
    buckets: HashMap<BucketId, Usage>,
}

impl Looked {
    fn add(&mut self, bucket: BucketId, usage: Usage) {
        self.all.add(usage);
        self.buckets.entry(bucket).or_default().add(usage);
    }

    /// What the segment holds of each bucket; one that no sample met is taken to be like the others.
    fn by_bucket(&self, segment: &Segment) -> Vec<(BucketId, Usage)> {
        let footer = segment.footer().into_iter().flat_map(|footer| &footer.buckets);
        let usage = |id| self.buckets.get(id).copied().unwrap_or(self.all);
        footer.map(|(id, summary)| (*id, usage(id).scaled(summary.bytes))).collect()
    }
}

/// Looks at a segment or at samples of it.
fn look(core: &Core, judge: &Judge, segment: &Arc<Segment>) -> Result<Looked, EngineError> {
    let now = core.clock.now();
    let mut looked = Looked::default();
    let strides = segment.footer().map(|footer| &footer.strides[..]).unwrap_or_default();
    if segment.len() <= WHOLE_BYTES_MAX || strides.len() < 2 {
        let mut frames = SegmentFrames::of(segment);
        while let Some((_, frame)) = frames.next()? {
            looked.add(frame.header.bucket, usage_of(core, judge, segment.id(), &frame, now)?);
        }
        return Ok(looked);
    }
    let samples = (strides.len() / STRIDES_PER_SAMPLE).clamp(SAMPLES_MIN, SAMPLES_MAX);
    let every = strides.len().div_ceil(samples);
    for (_, offset) in strides.iter().step_by(every) {
        let window = usize::try_from(SAMPLE_BYTES).unwrap_or(usize::MAX);
        let mut frames = SegmentFrames::at(segment, *offset, window);
        let enough = looked.all.bytes + SAMPLE_BYTES;
        while looked.all.bytes < enough
            && let Some((_, frame)) = frames.next()?
        {
            looked.add(frame.header.bucket, usage_of(core, judge, segment.id(), &frame, now)?);
        }
        if looked.all.bytes >= SAMPLES_BYTES_MAX {
            break;
        }
    }
    Ok(looked)
}

/// How many bytes of a frame would be freed, and how many only the feed needs.
fn usage_of(
    core: &Core,
    judge: &Judge,
    segment: SegmentId,
    frame: &Frame,
    now: Timestamp,
) -> Result<Usage, EngineError> {
    let mut usage = Usage { bytes: frame.header.frame_len(), ..Usage::default() };
    if frame.header.kind == FrameKind::Footer {
        return Ok(usage);
    }
    let markers_in = bucket_with_markers(core, frame.header.bucket, frame.header.kind);
    let mut dead_records = 0;
    for (_, record) in &frame.records {
        let is_dead = match judge.judge(segment, &frame.header, record)? {
            Verdict::Drop => true,
            Verdict::Fade => {
                usage.faded += record.encoded_len() as u64;
                false
            }
            Verdict::Keep => match &markers_in {
                Some(bucket) => judge.is_forgettable(bucket, record, now)?,
                None => false,
            },
        };
        if is_dead {
            usage.dead += record.encoded_len() as u64;
            dead_records += 1;
        }
    }
    // With its last record the frame itself goes.
    if dead_records == frame.records.len() {
        usage.dead = usage.bytes;
    }
    Ok(usage)
}
