use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{Clock, EngineError, PAGE_LEASE, Revision, Timestamp};

use super::ask::{Asked, Outcome};
use super::dice::Dice;
use super::history::HeldHistory;
use super::old_index::OldIndex;
use super::plan::{Plan, Step};
use super::readers::{HeldPage, HeldWatch};
use super::stage::Stage;
use super::truth::Truth;
use crate::faults::machine::Machine;
use crate::faults::{DiskOp, Fault, Survival};
use crate::index::{FlushFault, MemoryHome};
use crate::random::seeded;
use crate::recovery::Media;

/// How often the store may fail to open in a row: every failure uses up a fault.
const OPENINGS_MAX: usize = 40;

/// One history of a store on a machine that fails, as its seed has it.
pub(super) struct Run {
    pub(super) dice: Dice,
    pub(super) plan: Plan,
    pub(super) machine: Machine,
    pub(super) home: MemoryHome,
    pub(super) stage: Option<Stage>,
    pub(super) truth: Truth,
    pub(super) pages: Vec<HeldPage>,
    pub(super) watches: Vec<HeldWatch>,
    pub(super) histories: Vec<HeldHistory>,
    /// What someone may take for the index.
    old_index: Option<OldIndex>,
    /// How often the store was opened.
    pub(super) session: usize,
    /// Whether anything was told to fail since the store was opened.
    pub(super) excused: bool,
    /// The latest time at which the cleaner has decided what is old.
    pub(super) cleaned_at: Timestamp,
    story: Story,
    pub(super) seen: Seen,
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Follows from everything that happened.
    pub(super) fingerprint: u64,
    pub(super) seen: Seen,
}

/// How often something was seen to happen that a simulation is there for.
pub(super) type Seen = BTreeMap<&'static str, usize>;

/// What was done, for whoever has to find out what went wrong.
pub(super) type Story = Arc<Mutex<Vec<String>>>;

impl Run {
    pub(super) fn new(seed: u64, story: Story) -> Self {
        let mut dice = Dice::new(seed);
        seeded::set(Some(dice.word()));
        let plan = Plan::new(&mut dice);
        let mut machine = Machine::new();
        machine.settings = plan.settings.clone();
        let home = MemoryHome::new(machine.disk.clone());
        Self {
            dice,
            plan,
            machine,
            home,
            stage: None,
            truth: Truth::default(),
            pages: Vec::new(),
            watches: Vec::new(),
            histories: Vec::new(),
            old_index: None,
            session: 0,
            excused: false,
            cleaned_at: Timestamp::default(),
            story,
            seen: Seen::new(),
        }
    }

    /// Runs to the end, and says what a run of the same seed must come to as well.
    pub(super) fn finish(mut self) -> End {
        self.open(false);
        for _ in 0..self.plan.steps {
            let step = self.plan.step(&mut self.dice);
            self.tell(|| format!("{step:?}"));
            self.take(step);
            if self.machine.disk.is_off() {
                self.cut();
            } else if self.stage().core.health.is_poisoned() {
                // A damaged index leaves a commit half applied: what readers see of buckets is of no use.
                if self.home.is_damaged() || self.dice.chance(40) {
                    self.kill();
                }
            }
        }
        self.settle();
        self.clean();
        match (self.machine.disk.is_off(), self.dice.chance(70)) {
            (true, _) => self.cut(),
            (false, true) => self.rebuild(),
            (false, false) => self.kill(),
        }
        self.stage = None;
        seeded::set(None);
        let story = self.story.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        let fingerprint = self.machine.disk.fingerprint() ^ u64::from(crc32fast::hash(story.as_bytes()));
        End { fingerprint, seen: self.seen }
    }

    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        self.story.lock().unwrap_or_else(PoisonError::into_inner).push(what());
    }

    pub(super) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub(super) fn stage(&self) -> &Stage {
        self.stage.as_ref().expect("an open store")
    }

    pub(super) fn now(&self) -> Timestamp {
        self.stage().core.clock.now()
    }

    /// Whether an error is one that may come from what was told to fail.
    pub(super) fn excuses(&self, error: &EngineError) -> bool {
        let off = self.machine.disk.is_off();
        off || (matches!(error, EngineError::CorruptIndex { .. }) && self.home.is_damaged())
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Write => self.write(true),
            Step::WriteOnly => self.write(false),
            Step::Reap => self.reap(),
            Step::Upkeep => self.upkeep(),
            Step::Seal => self.seal(),
            Step::Flush => self.flush(),
            Step::Clean => self.clean_some(),
            Step::Read => self.read(),
            Step::Scan => self.scan(),
            Step::NextPage => self.next_page(),
            Step::Watch => self.watch(),
            Step::NextChanges => self.next_changes(),
            Step::WatchHistory => self.watch_history(),
            Step::NextHistory => self.next_history(),
            Step::Check => self.check(),
            Step::PassTime | Step::JumpInTime => self.change_time(step),
            Step::FailDisk | Step::FillDisk | Step::FailIndex | Step::ArmCut => self.arm(step),
            Step::Cut => self.cut(),
            Step::Kill => self.kill(),
            Step::Rebuild => self.rebuild(),
            Step::Close => self.close(),
        }
    }

    pub(super) fn write(&mut self, applied: bool) {
        for _ in 0..self.dice.between(1, 4) {
            let ask = self.plan.ask(&mut self.dice, &self.truth.state);
            self.tell(|| format!("  {ask:?}"));
            let stage = self.stage.as_mut().expect("an open store");
            if let Some((asked, outcome)) = stage.ask(ask, &self.truth.state) {
                self.check_refusal(&asked, &outcome);
            }
        }
        self.sequence(applied);
    }

    /// Checks what a caller was told at once, without anything having been written.
    fn check_refusal(&self, asked: &Asked, outcome: &Outcome) {
        match (asked.refused_at_once(&self.truth.state), outcome) {
            (Some(expected), Outcome::Answered(answer)) => assert_eq!(*answer, expected, "to {asked:?}"),
            (_, Outcome::Unknown) if self.stage().core.health.is_poisoned() => {}
            (expected, outcome) => panic!("{outcome:?} to {asked:?} instead of {expected:?}"),
        }
    }

    /// Sequences what waits, and applies it unless it is left for later.
    fn sequence(&mut self, applied: bool) {
        let excused = self.excused;
        let stage = self.stage.as_mut().expect("an open store");
        if !stage.has_waiting() {
            return;
        }
        if self.home.is_damaged() {
            stage.doubt();
            // Two threads would meet the damage in an order that follows from no seed.
            self.settle();
        }
        let stage = self.stage.as_mut().expect("an open store");
        stage.sequence(stage.outstanding() > 0 && excused);
        if applied || stage.outstanding() != 1 {
            self.settle();
        }
    }

    /// Applies what was written, and takes the answers up into the truth.
    pub(super) fn settle(&mut self) {
        let excused = self.excused;
        let stage = self.stage.as_mut().expect("an open store");
        stage.apply();
        let answers = stage.answers();
        let (newest, visible) = (self.truth.state.newest, stage.core.snapshots.visible());
        let frames = self.machine.disk.peek(|| stage.frames_from(newest.next()));
        for (asked, outcome) in &answers {
            let sound = matches!(outcome, Outcome::Answered(_));
            assert!(sound || excused, "{outcome:?} to {asked:?}, though nothing failed");
            *self.seen.entry(outcome.kind()).or_default() += 1;
        }
        let outcomes: Vec<_> = answers.iter().map(|(_, outcome)| format!("{outcome:?}")).collect();
        self.tell(|| format!("  -> {}", outcomes.join(", ")));
        self.truth.settle(answers, frames, visible);
    }

    fn reap(&mut self) {
        self.settle();
        for _ in 0..20 {
            let stage = self.stage.as_mut().expect("an open store");
            match stage.reap(&self.truth.state) {
                Ok(true) => self.sequence(true),
                Ok(false) => {
                    let overdue = self.truth.state.overdue(self.now());
                    assert!(overdue.is_empty(), "{overdue:?} have expired, and the reaper does not know");
                    return;
                }
                Err(EngineError::ReadOnly { .. }) => return,
                Err(error) => return assert!(self.excuses(&error), "{error}"),
            }
            if self.excused {
                return;
            }
        }
        unreachable!("the reaper finds ever more")
    }

    pub(super) fn upkeep(&mut self) {
        let stage = self.stage();
        if stage.core.health.is_poisoned() {
            return;
        }
        stage.upkeep.step();
        let poisoned = stage.core.health.is_poisoned();
        assert!(!poisoned || self.excused, "upkeep fails, though nothing was told to");
        if !poisoned && stage.outstanding() == 0 {
            self.truth.synced();
        }
    }

    pub(super) fn seal(&mut self) {
        if self.stage().core.health.is_poisoned() || self.stage().core.index.backlog().sealed >= 2 {
            return;
        }
        if let Err(error) = self.stage().seal() {
            assert!(self.excused, "{error}");
            // What the applier does.
            self.stage().core.health.poison(format!("its index could not be sealed: {error}"));
        }
    }

    fn flush(&mut self) {
        let core = &self.stage().core;
        if !core.health.is_poisoned()
            && let Err(error) = core.flush_index(core.snapshots.oldest(core.elapsed()))
        {
            assert!(self.excused, "{error}");
        }
    }

    fn change_time(&mut self, step: Step) {
        let millis = self.dice.between(1, 2000) as u64;
        let clock = &self.machine.clock;
        match (step, self.dice.below(10)) {
            (Step::PassTime, 0) => clock.advance(PAGE_LEASE),
            (Step::PassTime, _) => clock.advance(Duration::from_millis(millis)),
            (_, 0..5) => {
                let back = clock.now().as_micros().saturating_sub(millis * 20_000);
                clock.jump_to(Timestamp::from_micros(back));
            }
            _ => clock.jump_to(clock.now().saturating_add(Duration::from_millis(millis * 5))),
        }
    }

    fn arm(&mut self, step: Step) {
        self.excused = true;
        let (disk, dice) = (&self.machine.disk, &mut self.dice);
        match step {
            Step::FailDisk => {
                const OPS: [DiskOp; 5] =
                    [DiskOp::Create, DiskOp::Write, DiskOp::Sync, DiskOp::Truncate, DiskOp::SyncDirectory];
                let (skip, fault) = (dice.below(8), *dice.pick(&[Fault::Io, Fault::Full]));
                if dice.chance(50) {
                    disk.fail_any(skip, fault);
                } else {
                    disk.fail(*dice.pick(&OPS), skip / 2, fault);
                }
            }
            Step::FillDisk => disk.set_full(dice.chance(60)),
            Step::FailIndex => match dice.below(4) {
                0 => self.home.fail_flush(Some(FlushFault::Full)),
                1 => self.home.fail_flush(Some(FlushFault::Io)),
                2 => self.home.fail_flush(None),
                _ => {
                    // What is under way could otherwise meet the damage sooner or later.
                    self.home.damage_after(dice.below(30));
                    self.settle();
                }
            },
            _ => disk.cut_power_after(dice.below(16)),
        }
    }

    fn survival(&mut self) -> Survival {
        let seed = self.dice.word() >> 8;
        *self.dice.pick(&[Survival::Synced, Survival::Prefix(seed), Survival::Any(seed)])
    }

    pub(super) fn cut(&mut self) {
        self.leave(false);
        self.cycle();
        self.open(true);
    }

    fn cycle(&mut self) {
        let survival = self.survival();
        self.saw("power cut");
        self.tell(|| format!("  the power goes: {survival:?}"));
        self.machine.disk.power_cycle(survival);
    }

    fn kill(&mut self) {
        self.leave(false);
        self.open(false);
    }

    /// Opens the store without its index: everything comes from the log.
    pub(super) fn rebuild(&mut self) {
        self.saw("rebuilt");
        if self.stage().has_faded(&self.machine.disk) {
            self.saw("rebuilt without the faded");
        }
        self.leave(false);
        self.home.lose();
        self.open(false);
    }

    fn close(&mut self) {
        self.settle();
        self.leave(true);
        let cut = self.machine.disk.is_off();
        if cut {
            self.cycle();
        }
        self.open(cut);
    }

    /// Lets go of the store, closed or not.
    fn leave(&mut self, closed: bool) {
        self.let_go(closed);
        if !self.home.is_damaged() && self.dice.chance(40) {
            self.old_index = OldIndex::copy(&self.home);
        }
    }

    fn let_go(&mut self, closed: bool) {
        self.watches.iter_mut().for_each(HeldWatch::let_go);
        self.histories.clear();
        let mut stage = self.stage.take().expect("an open store");
        if !closed {
            self.truth.lose_sight_of(stage.unanswered());
            return;
        }
        let poisoned = stage.core.health.is_poisoned();
        match stage.close() {
            Ok(()) if !poisoned => self.truth.synced(),
            Ok(()) => {}
            Err(error) => assert!(self.excused, "the store does not close: {error}"),
        }
    }

    /// Opens the store, however often that takes, and checks what is there.
    fn open(&mut self, mut cut: bool) {
        match self.dice.below(15) {
            0..2 => self.home.lose(),
            2 => self.home.damage(),
            3 => self.home.damage_after(self.dice.below(20)),
            4 => self.machine.disk.cut_power_after(self.dice.below(10)),
            5 => self.machine.disk.fail_any(self.dice.below(8), *self.dice.pick(&[Fault::Io, Fault::Full])),
            6..9 => self.put_back_old_index(),
            _ => {}
        }
        let opened = (0..OPENINGS_MAX).find_map(|_| {
            let media =
                Media { disk: Arc::new(self.machine.disk.clone()), index: Arc::new(self.home.clone()) };
            let armed = !self.machine.disk.is_calm() || self.home.is_failing();
            match self.machine.open_on(media) {
                Ok(opened) => Some(opened),
                Err(error) => {
                    // Without the directory, which is another one every time.
                    let text = error.to_string().replace(&self.machine.path().display().to_string(), "");
                    self.tell(|| format!("  the store does not open: {text}"));
                    self.saw("fails to open");
                    assert!(armed, "the store does not open: {error}");
                    self.relent(&mut cut);
                    None
                }
            }
        });
        let stage = Stage::new(opened.expect("the store opens once nothing fails"));
        let visible = stage.core.snapshots.visible();
        self.tell(|| format!("  opened at {visible}"));
        let known = self.truth.state.newest;
        self.saw(if visible > known { "unknown found" } else { "opened" });
        if visible < known {
            self.saw("buffered lost");
            // What was held of the lost revisions cannot be held against the store.
            self.pages.retain(|page| page.revision <= visible);
        }
        let frames = stage.frames_from(known.next());
        self.truth.recover(visible, frames, cut);
        self.session += 1;
        self.excused = !self.machine.disk.is_calm() || self.home.is_failing() || self.home.is_damaged();
        let now = stage.core.clock.now();
        assert!(now >= self.truth.time(), "the clock shows {now}, and {} is recorded", self.truth.time());
        self.stage = Some(stage);
        self.watches.iter_mut().for_each(|watch| watch.forget_after(visible));
        self.check();
    }

    /// Someone has restored the index from before.
    fn put_back_old_index(&mut self) {
        if self.home.is_damaged() || self.home.is_failing() || self.machine.disk.is_off() {
            return;
        }
        if let Some(old) = &self.old_index {
            let applied = old.put_back(&self.home);
            self.tell(|| format!("  the index is an old one, up to {applied}"));
            self.saw("old index");
        }
    }

    /// After a failed opening: faults that would last for ever end.
    fn relent(&mut self, cut: &mut bool) {
        if self.machine.disk.is_off() {
            *cut = true;
            self.cycle();
        }
        if self.dice.chance(60) {
            self.machine.disk.set_full(false);
            self.home.fail_flush(None);
        }
    }

    /// The newest revision that readers can see.
    pub(super) fn newest(&self) -> Revision {
        self.truth.state.newest
    }

    pub(super) fn any_bucket(&mut self) -> pleach_engine::BucketName {
        self.plan.bucket(&mut self.dice)
    }
}
