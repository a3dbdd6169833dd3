use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use pleach_engine::{EngineError, WakeHook};

use crate::cleaner::Cleaner;
use crate::commit::{Applier, CommitQueue, GroupQueue, Sequencer};
use crate::core::Core;
use crate::disk::io_error;
use crate::log::LogWriter;
use crate::reaper::Reaper;
use crate::status::Reporter;
use crate::upkeep::Upkeep;

const LOG: &str = "pleach-log";
const APPLY: &str = "pleach-apply";
const REPORT: &str = "pleach-report";

/// How far threads step back for those that someone waits for: a flush a little, because commits wait for it in
/// the end, merging and cleaning more.
const FLUSH_NICENESS: i32 = 5;
const BACKGROUND_NICENESS: i32 = 10;

/// The threads of an open store: the only place where threads are started.
pub(crate) struct Threads {
    core: Arc<Core>,
    queue: Arc<CommitQueue>,
    groups: Arc<GroupQueue>,
    sequencer: JoinHandle<Option<LogWriter>>,
    applier: JoinHandle<Option<()>>,
    upkeep: JoinHandle<Option<()>>,
    merging: JoinHandle<Option<()>>,
    reaper: JoinHandle<Option<()>>,
    cleaner: JoinHandle<Option<()>>,
    reporter: JoinHandle<Option<()>>,
    /// Kept alive for the clock, which holds it weakly.
    _jump_hook: Arc<WakeHook>,
}

impl Threads {
    pub(crate) fn start(
        core: &Arc<Core>,
        queue: &Arc<CommitQueue>,
        writer: LogWriter,
    ) -> Result<Self, EngineError> {
        let groups = Arc::new(GroupQueue::default());
        let applier = Arc::new(Applier::new(Arc::clone(core)));
        let sequencer = Sequencer::new(Arc::clone(core), writer, Arc::clone(&groups)).with_applier(&applier);
        let (upkeep, merging) = (Upkeep::new(Arc::clone(core)), Upkeep::new(Arc::clone(core)));
        let reaper = Reaper::new(Arc::clone(core), Arc::clone(queue));
        let submit = Arc::clone(queue);
        let cleaner = Cleaner::new(core, move |request| submit.push(request));
        let reporter = Reporter::new(Arc::clone(core));
        let hooked = Arc::clone(core);
        let jump_hook: Arc<WakeHook> = Arc::new(move || hooked.reaper.wake());
        let weak_hook: Weak<WakeHook> = Arc::downgrade(&jump_hook);
        core.ticks.on_jump(weak_hook);
        let (requests, written, applied) = (Arc::clone(queue), Arc::clone(&groups), Arc::clone(&groups));
        let start = || {
            let log = spawn(core, LOG, &groups, queue, move || {
                let writer = sequencer.run(&requests);
                written.close();
                writer
            })?;
            let apply = spawn(core, APPLY, &groups, queue, move || applier.run(&applied))?;
            let upkeep = spawn(core, "pleach-upkeep", &groups, queue, move || {
                step_back(FLUSH_NICENESS);
                upkeep.run();
            })?;
            let merging = spawn(core, "pleach-merge", &groups, queue, move || {
                step_back(BACKGROUND_NICENESS);
                merging.run_merges();
            })?;
            let reaper = spawn(core, "pleach-reap", &groups, queue, move || reaper.run())?;
            let cleaner = spawn(core, "pleach-clean", &groups, queue, move || {
                step_back(BACKGROUND_NICENESS);
                cleaner.run();
            })?;
            let reporter = spawn(core, REPORT, &groups, queue, move || reporter.run())?;
            Ok((log, apply, upkeep, merging, reaper, cleaner, reporter))
        };
        let (sequencer, applier, upkeep, merging, reaper, cleaner, reporter) =
            start().inspect_err(|_: &EngineError| {
                // Those that did start end by themselves.
                core.health.close();
                queue.close();
                groups.close();
            })?;
        let (core, queue) = (Arc::clone(core), Arc::clone(queue));
        let _jump_hook = jump_hook;
        Ok(Self {
            core,
            queue,
            groups,
            sequencer,
            applier,
            upkeep,
            merging,
            reaper,
            cleaner,
            reporter,
            _jump_hook,
        })
    }

    /// Ends the threads after what waits is done; gives the writer back, unless its thread broke.
    pub(crate) fn stop(self) -> Option<LogWriter> {
        self.queue.close();
        let writer = self.sequencer.join().ok().flatten();
        self.groups.close();
        let applied = self.applier.join();
        self.core.index.stop_merging();
        self.core.upkeep.wake();
        self.core.merging.wake();
        self.core.reaper.wake();
        self.core.cleaner.wake();
        self.core.reporter.wake();
        let merged = self.merging.join();
        let others = [applied, self.upkeep.join(), merged, self.reaper.join(), self.cleaner.join()];
        // Nothing but figures depends on it.
        drop(self.reporter.join());
        let all_well = others.iter().all(|ended| matches!(ended, Ok(Some(()))));
        writer.filter(|_| all_well)
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

/// Lets this thread run when others do not want to, as far as the operating system lets it.
fn step_back(niceness: i32) {
    // To Linux a thread is a process of its own here; elsewhere it would be the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, niceness);
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

/// Refuses what only the thread `role`, which is no more, would have taken.
fn abandon(core: &Core, role: &str, queue: &CommitQueue, groups: &GroupQueue) {
    let refusal = || core.health.check_writable().err().unwrap_or(EngineError::Closed);
    match role {
        LOG => {
            while let Some(requests) = queue.take() {
                requests.into_iter().for_each(|request| request.refuse(refusal()));
            }
        }
        APPLY => {
            while let Some(group) = groups.take() {
                group.refuse(refusal);
            }
        }
        _ => {}
    }
}

/// Starts a thread. If it panics the store takes no more writes, unless it only reports, and nobody waits for it in
/// vain.
fn spawn<T: Send + 'static>(
    core: &Arc<Core>,
    name: &str,
    groups: &Arc<GroupQueue>,
    queue: &Arc<CommitQueue>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, EngineError> {
    let (core, groups, queue) = (Arc::clone(core), Arc::clone(groups), Arc::clone(queue));
    let directory = core.directory.clone();
    let role = name.to_owned();
    let guarded = move || match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => Some(result),
        Err(_) if role == REPORT => None,
        Err(_) => {
            core.health.poison(format!("its thread {role} panicked"));
            queue.close();
            groups.close();
            abandon(&core, &role, &queue, &groups);
            None
        }
    };
    Builder::new().name(name.to_owned()).spawn(guarded).map_err(io_error("start a thread for", &directory))
}
