use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleach_engine::EngineError;

use super::queue::GroupQueue;
use super::request::{Answer, Group};
use crate::apply::{apply, apply_upkeep, correct_notes, seal_index};
use crate::catalog::Bucket;
use crate::core::Core;
use crate::pressure::delay;
use crate::upkeep::{RUNS_MAX, SEALED_MAX};

/// Brings the index up to the log: the only one to write to the index.
#[derive(Debug)]
pub(crate) struct Applier {
    core: Arc<Core>,
    /// Whether a group could not be applied: then no later one may be, or readers would see past a gap.
    broken: AtomicBool,
}

/// Large values leave little in the index: so much of the log is enough to seal it, or opening would take long.
const UNSEALED_LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// How long to wait for upkeep before looking again.
const UPKEEP_WAIT: Duration = Duration::from_millis(50);

impl Applier {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, broken: AtomicBool::new(false) }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(&self, groups: &GroupQueue) {
        while let Some(group) = groups.take() {
            self.apply_group(group);
            // Before the group counts as applied: the sequencer may be the next to write to the index.
            self.make_room();
            groups.applied();
        }
    }

    /// Applies a durable group, lets readers see it, tells the watches, and answers.
    pub(crate) fn apply_group(&self, mut group: Group) {
        let core = &*self.core;
        let refusal = || core.health.check_writable().err().unwrap_or(EngineError::Closed);
        if self.broken.load(Ordering::Acquire) {
            return group.refuse(refusal);
        }
        if let Err(error) = self.index(&mut group) {
            // The group is in the log and not in the index: only reading the log again can mend that.
            self.broken.store(true, Ordering::Release);
            core.health.poison(format!("its index could not follow its log: {error}"));
            return group.refuse(refusal);
        }
        let newest = group.steps.iter().rev().find_map(|step| step.logged.as_ref());
        if let Some(newest) = newest {
            core.snapshots.publish(newest.last);
        }
        let mut watched: Vec<Arc<Bucket>> = Vec::new();
        for logged in group.steps.iter().filter_map(|step| step.logged.as_ref()) {
            if let Some(bucket) = core.catalog.by_id(logged.bucket) {
                bucket.advance(logged);
                let is_new = || !watched.iter().any(|known| known.id == bucket.id);
                if bucket.feed.publish(logged) && is_new() {
                    watched.push(bucket);
                }
            }
        }
        // Once for the whole group, of which a watch may want more than one commit.
        watched.iter().for_each(|bucket| bucket.feed.wake());
        self.answer(group);
    }

    fn index(&self, group: &mut Group) -> Result<(), EngineError> {
        let mut newest = self.core.snapshots.visible();
        let mut notes = Vec::new();
        for step in &mut group.steps {
            if let Some(logged) = &step.logged {
                apply(&self.core, logged)?;
                newest = logged.last;
            }
            if let Some(upkeep) = step.upkeep.take() {
                apply_upkeep(&self.core, newest, upkeep)?;
            }
            notes.append(&mut step.notes);
        }
        correct_notes(&self.core, newest, notes)
    }

    fn answer(&self, group: Group) {
        for step in group.steps {
            match step.answer {
                Answer::Commit(reply, result, _permit) => drop(reply.send(result)),
                Answer::Plain(reply, result) => drop(reply.send(result)),
                Answer::Bucket(reply, result) => {
                    let bucket = result.map(|name| name.and_then(|name| self.core.catalog.find(&name)));
                    drop(reply.send(bucket));
                }
                Answer::Consumer(reply, result) => drop(reply.send(result)),
                Answer::Upkeep(reply, revision) => drop(reply.send(Ok(revision))),
            }
        }
    }

    /// Ends a stretch of the index that has grown large, and waits for what has fallen behind: a little at
    /// first, and if too much waits to be written out, until it is.
    pub(crate) fn make_room(&self) {
        let core = &*self.core;
        // What the index has of a group that could not be applied must not be flushed.
        if self.broken.load(Ordering::Acquire) {
            return;
        }
        self.seal_if_large();
        if let Some((cause, delay)) = delay(core).filter(|_| !self.is_stuck()) {
            let started = core.elapsed();
            core.upkeep.wake_and_wait(delay);
            while self.must_wait() {
                core.upkeep.wake_and_wait(UPKEEP_WAIT);
            }
            core.pressure.stalled(cause, core.elapsed().saturating_sub(started));
        }
    }

    pub(crate) fn seal_if_large(&self) {
        let core = &*self.core;
        let unsealed_log = core.unsealed_log.load(Ordering::Acquire);
        let is_large = core.index.unsealed_bytes() >= core.settings.memtable_bytes
            || unsealed_log >= UNSEALED_LOG_BYTES_MAX;
        if !core.seal_wanted.swap(false, Ordering::AcqRel) && !is_large {
            return;
        }
        let (applied, time) = (core.snapshots.visible(), core.clock.now());
        if let Err(error) = seal_index(core, applied, time) {
            return core.health.poison(format!("its index could not be sealed: {error}"));
        }
        core.upkeep.wake();
    }

    fn must_wait(&self) -> bool {
        let backlog = self.core.index.backlog();
        !self.is_stuck() && (backlog.sealed >= SEALED_MAX || backlog.runs >= RUNS_MAX)
    }

    /// Whether waiting would not help.
    fn is_stuck(&self) -> bool {
        let health = &self.core.health;
        health.obstacle().is_some() || health.is_poisoned() || health.is_closed()
    }
}
