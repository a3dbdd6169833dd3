use std::time::Duration;

use super::ask::{Asked, Outcome};
use super::run::Run;
use super::stage::ToClean;
use crate::log::Frame;

/// How many segments are gone through at once.
const PASS_MAX: usize = 12;

impl Run {
    /// Cleans for a while, and lets something happen to the store that it may not be ready for.
    pub(super) fn clean_some(&mut self) {
        if !self.machine.disk.is_off() && self.dice.chance(30) {
            self.watch_history();
        }
        // Old files go only after the index was written out again.
        for _ in 0..self.dice.between(1, 4) {
            self.clean();
        }
        // What readers see after an update that failed half-way is of no use.
        let poisoned = self.stage().core.health.is_poisoned();
        if !poisoned && !self.histories.is_empty() && self.dice.chance(70) {
            self.next_history();
        }
        match self.dice.below(100) {
            // Before anything else makes durable what it should have.
            0..15 => self.cut(),
            15..35 if !self.machine.disk.is_off() => self.rebuild(),
            _ => {}
        }
    }

    /// Lets the cleaner work.
    pub(super) fn clean(&mut self) {
        if self.machine.disk.is_off() || self.stage().core.health.is_poisoned() {
            return;
        }
        self.settle();
        // Nothing is cleaned before the index on the disk knows of it.
        if self.dice.chance(60) {
            self.seal();
            self.upkeep();
            self.machine.clock.advance(Duration::from_millis(3));
        }
        // What lets records die may be so new that it is not durable.
        if self.dice.chance(30) {
            self.write(true);
        }
        if self.dice.chance(self.plan.pass_percent) {
            return self.clean_pass();
        }
        for _ in 0..self.dice.between(1, 8) {
            let what = self.next_to_clean();
            if !self.clean_once(what) {
                return;
            }
        }
    }

    /// Lets the cleaner go through the segments one by one, the oldest first: only when all before it are clean
    /// may a record go that keeps older ones from coming back.
    fn clean_pass(&mut self) {
        let thorough = self.dice.chance(50);
        for at in 0..self.stage().core.log.segments().len().min(PASS_MAX) {
            let before = self.stage().core.log.replaced().len();
            if !self.clean_once(ToClean::Run { at, len: 1, thorough }) {
                return;
            }
            // The index is to be pointed to the new segment.
            if self.stage().core.log.replaced().len() > before && !self.clean_once(ToClean::Best) {
                return;
            }
        }
    }

    /// Lets the cleaner do one thing; says whether there may be more.
    fn clean_once(&mut self, what: ToClean) -> bool {
        if self.stage().core.health.is_poisoned() || self.machine.disk.is_off() {
            return false;
        }
        let stage = self.stage.as_mut().expect("an open store");
        let now = stage.core.clock.now();
        let before = stage.core.log.replaced().len();
        self.cleaned_at = self.cleaned_at.max(now);
        let outcome = stage.clean(what);
        let text = outcome.as_ref().map_or_else(|error| error.kind().as_str().into(), bool::to_string);
        let clean = Asked::by_cleaner(now);
        // If it failed, the end of what it put into the log may be unknown.
        let failed = stage.core.health.is_poisoned() || self.machine.disk.is_off();
        let answer = if failed { Outcome::Unknown } else { Outcome::Answered("()".into()) };
        let (newest, visible) = (self.truth.state.newest, stage.core.snapshots.visible());
        let frames = self.machine.disk.peek(|| stage.frames_from(newest.next()));
        let forgets = |frame: &&Frame| frame.records.iter().any(|(_, record)| record.forgets_its_key());
        let forgotten = frames.iter().filter(forgets).count();
        let ((read, written), left) = (stage.core.cleaned.bytes(), stage.core.log.replaced().len());
        let removed = left < before;
        self.tell(|| {
            format!(
                "  {what:?} -> {text}, up to {visible}: {read} bytes became {written}, {left} files wait, \
                 {forgotten} forgets"
            )
        });
        let sound = outcome.is_ok() || self.excused;
        assert!(sound, "the cleaner fails, though nothing was told to: {outcome:?}");
        self.truth.settle(vec![(clean, answer)], frames, visible);
        for (what, happened) in [
            ("cleaned", read > 0),
            ("forgot", forgotten > 0),
            ("removed", removed),
            ("fails to clean", outcome.is_err()),
        ] {
            *self.seen.entry(what).or_default() += usize::from(happened);
        }
        matches!(outcome, Ok(true))
    }

    fn next_to_clean(&mut self) -> ToClean {
        if !self.dice.chance(self.plan.scattered_percent) {
            return ToClean::Best;
        }
        let (at, len) = (self.dice.below(1000), *self.dice.pick(&[1, 1, 1, 2, 3, 6]));
        ToClean::Run { at, len, thorough: self.dice.chance(50) }
    }
}
