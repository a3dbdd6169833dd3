use std::sync::Arc;

use super::survey::{Estimate, Survey};
use crate::log::Segment;

/// Of the segments that can be cleaned, at most so much of a hundred is garbage before the cleaner begins: with
/// what is being cleaned and what waits to be removed, the log stays within twice of what must be kept.
const DEAD_PERCENT_MAX: u64 = 20;

/// A segment of which so much is garbage is cleaned at any time: it costs next to nothing.
const DEAD_PERCENT_FREE: u64 = 95;

/// The same if someone has asked for a clean log.
const DEAD_PERCENT_EAGER: u64 = 6;

/// From this on the cleaner takes all the disk it can get.
const DEAD_PERCENT_URGENT: u64 = 28;

/// More segments than twice as many as needed, and these, are too many.
const SEGMENTS_SPARE: u64 = 8;

/// The most segments that are made into one.
const RUN_MAX: usize = 16;

/// What is left of them has at most the size of so many segments: a large one is cleaned for less, because each
/// has to be synced and put in place, but it has to be all read before anything comes of it.
const RUN_SEGMENTS_MAX: u64 = 2;

/// What to clean next.
#[derive(Debug)]
pub(super) struct Plan {
    /// Adjacent segments that become one.
    pub(super) run: Vec<Arc<Segment>>,
    /// Whether it is done however little it frees.
    pub(super) thorough: bool,
    /// Whether there is no time to be polite.
    pub(super) urgent: bool,
}

/// The segments that can be cleaned, oldest first, with what is known of them.
pub(super) struct Candidates<'a> {
    pub(super) segments: &'a [Arc<Segment>],
    pub(super) survey: &'a Survey,
    pub(super) segment_bytes: u64,
    /// Whether little garbage is too much.
    pub(super) eager: bool,
}

impl Candidates<'_> {
    /// What to clean next, if anything is worth it.
    pub(super) fn plan(&self) -> Option<Plan> {
        let (bytes, dead) = self.totals();
        let percent = percent(dead, bytes);
        let worth_it = percent >= DEAD_PERCENT_MAX && dead >= self.segment_bytes / 2;
        let free = if self.eager { DEAD_PERCENT_EAGER } else { DEAD_PERCENT_FREE };
        let best = self.best().filter(|at| worth_it || self.dead_percent(*at) >= free);
        if let Some(at) = best {
            let urgent = percent >= DEAD_PERCENT_URGENT;
            return Some(Plan { run: self.around(at, at + 1), thorough: false, urgent });
        }
        let segments_max = SEGMENTS_SPARE + 2 * (bytes / self.segment_bytes.max(1) + 1);
        let too_many = self.segments.len() as u64 > segments_max;
        let pair = too_many.then(|| self.smallest_pair()).flatten()?;
        Some(Plan { run: self.around(pair, pair + 2), thorough: true, urgent: false })
    }

    /// How many bytes there are, and how many of them are garbage.
    pub(super) fn totals(&self) -> (u64, u64) {
        let estimates = self.segments.iter().map(|segment| self.estimate(segment));
        estimates.fold((0, 0), |(bytes, dead), next| (bytes + next.bytes, dead + next.dead))
    }

    /// The segment that frees most for what has to be read and written.
    fn best(&self) -> Option<usize> {
        let gain = |at: &usize| {
            let Estimate { dead, bytes, .. } = self.estimate(&self.segments[*at]);
            // In millionths, so that whole numbers will do.
            u128::from(dead) * 1_000_000 / u128::from((bytes + (bytes - dead.min(bytes))).max(1))
        };
        (0..self.segments.len()).filter(|at| gain(at) > 0).max_by_key(gain)
    }

    fn dead_percent(&self, at: usize) -> u64 {
        let Estimate { dead, bytes, .. } = self.estimate(&self.segments[at]);
        percent(dead, bytes)
    }

    /// These segments with their neighbours, as far as they are small or worth cleaning themselves.
    fn around(&self, mut start: usize, mut end: usize) -> Vec<Arc<Segment>> {
        let mut live: u64 =
            self.segments[start..end].iter().map(|segment| self.estimate(segment).live()).sum();
        let limit = RUN_SEGMENTS_MAX * self.segment_bytes;
        let worth_it = |at: usize| {
            let live = self.estimate(&self.segments[at]).live();
            let is_small = live <= self.segment_bytes / 4;
            (is_small || self.dead_percent(at) >= DEAD_PERCENT_MAX).then_some(live)
        };
        loop {
            let before = start.checked_sub(1).filter(|_| self.adjacent(start - 1)).and_then(worth_it);
            let after = Some(end)
                .filter(|end| *end < self.segments.len() && self.adjacent(end - 1))
                .and_then(worth_it);
            if end - start >= RUN_MAX {
                break;
            }
            match (before, after) {
                (Some(more), _) if live + more <= limit => (start, live) = (start - 1, live + more),
                (_, Some(more)) if live + more <= limit => (end, live) = (end + 1, live + more),
                _ => break,
            }
        }
        self.segments[start..end].to_vec()
    }

    /// Whether no revision lies between a segment and the next.
    fn adjacent(&self, at: usize) -> bool {
        let last = self.segments[at].footer().map(|footer| footer.last.next());
        self.segments.get(at + 1).is_some_and(|next| Some(next.first()) == last)
    }

    /// The first of two neighbours that together are smallest, and fit into one segment.
    fn smallest_pair(&self) -> Option<usize> {
        let size = |at: &usize| self.segments[*at].len() + self.segments[at + 1].len();
        let pairs = (0..self.segments.len().saturating_sub(1)).filter(|at| self.adjacent(*at));
        pairs.filter(|at| size(at) <= self.segment_bytes).min_by_key(size)
    }

    fn estimate(&self, segment: &Segment) -> Estimate {
        self.survey.get(segment.id()).unwrap_or_else(|| Estimate::unknown(segment.len()))
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { u64::try_from(u128::from(part) * 100 / u128::from(whole)).unwrap_or(100) }
}
