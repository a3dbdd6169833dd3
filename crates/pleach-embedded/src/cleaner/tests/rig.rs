use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use pleach_engine::{Batch, BucketName, Clock, Engine, Key, ManualClock, Timestamp};
use pollster::block_on;

use crate::apply::seal_index;
use crate::cleaner::Cleaner;
use crate::cleaner::plan::Plan;
use crate::commit::{Applier, CommitQueue, GroupQueue, Sequencer};
use crate::core::Core;
use crate::engine::finish;
use crate::lock::DirectoryLock;
use crate::log::LogWriter;
use crate::recovery::{self, Media, Opened};
use crate::{EmbeddedEngine, Settings};

/// An open store whose cleaner and upkeep a test plays. Every group of commits is a segment of its own.
pub(super) struct Rig {
    pub(super) core: Arc<Core>,
    pub(super) engine: EmbeddedEngine,
    pub(super) cleaner: Cleaner,
    queue: Arc<CommitQueue>,
    groups: Arc<GroupQueue>,
    sequencer: JoinHandle<LogWriter>,
    applier: JoinHandle<()>,
    _lock: DirectoryLock,
}

impl Rig {
    pub(super) fn open(path: &Path, settings: Settings, clock: &Arc<ManualClock>) -> Self {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
        Self::of(recovery::open(path, settings, clock, Media::real(path)).expect("the store opens"))
    }

    #[allow(clippy::disallowed_methods, reason = "threads of a test, which joins them")]
    pub(super) fn of(opened: Opened) -> Self {
        let Opened { core, writer, lock } = opened;
        let (queue, groups) = (Arc::new(CommitQueue::new()), Arc::new(GroupQueue::default()));
        let sequencer = Sequencer::new(Arc::clone(&core), writer, Arc::clone(&groups));
        let applier = Applier::new(Arc::clone(&core));
        let (requests, written) = (Arc::clone(&queue), Arc::clone(&groups));
        let sequencer = std::thread::spawn(move || sequencer.run(&requests));
        let applier = std::thread::spawn(move || applier.run(&written));
        let engine = EmbeddedEngine::without_threads(Arc::clone(&core), Arc::clone(&queue));
        let submit = Arc::clone(&queue);
        let cleaner = Cleaner::new(&core, move |request| submit.push(request));
        Self { core, engine, cleaner, queue, groups, sequencer, applier, _lock: lock }
    }

    /// Writes the index out.
    pub(super) fn flush(&self) {
        let applied = self.core.snapshots.visible();
        self.core.sync_log().expect("synced");
        seal_index(&self.core, applied, self.core.clock.now()).expect("sealed");
        self.core.flush_index(self.core.snapshots.oldest(self.core.elapsed())).expect("flushed");
    }

    /// Cleans the segments that hold the revisions from `first` to `last`, and points the index to the new one.
    pub(super) fn clean(&mut self, first: u64, last: u64) {
        self.flush();
        let run: Vec<_> = self.core.log.segments();
        let run = run.into_iter().filter(|one| (first..=last).contains(&one.first().get())).collect();
        let since = self.cleaner.clean_since();
        let plan = Plan { run, thorough: true, urgent: false };
        self.cleaner.clean(&plan, &since).expect("cleaned");
        while let Some((new, old)) = self.cleaner.unfinished.pop_front() {
            self.cleaner.repoint(&new, &old).expect("re-pointed");
        }
    }

    pub(super) fn close(self) {
        self.core.health.close();
        self.queue.close();
        let writer = self.sequencer.join().expect("the sequencer");
        self.groups.close();
        self.applier.join().expect("the applier");
        finish(&self.core, writer).expect("closed");
    }
}

pub(super) fn settings() -> Settings {
    Settings { segment_bytes: 100, clean_bytes_per_second: u64::MAX, ..Settings::default() }
}

pub(super) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)))
}

pub(super) fn name() -> BucketName {
    BucketName::parse("b").expect("a name")
}

pub(super) fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}

pub(super) fn commit(rig: &Rig, batch: Batch) -> u64 {
    block_on(rig.engine.commit(&name(), batch)).expect("a commit").last.get()
}
