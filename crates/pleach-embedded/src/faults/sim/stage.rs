use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use pleach_engine::{BucketInfo, BucketName, CommitError, ConsumerName, Engine, EngineError, Revision};
use tokio::sync::oneshot;

use super::ask::{Ask, Asked, Outcome};
use super::state::State;
use crate::EmbeddedEngine;
use crate::apply::seal_index;
use crate::cleaner::{self, Cleaner};
use crate::commit::{Applier, CommitQueue, ConsumerChange, GroupQueue, Request, Sequencer};
use crate::core::Core;
use crate::engine::finish;
use crate::faults::SimDisk;
use crate::lock::DirectoryLock;
use crate::log::{Frame, LogReader};
use crate::reaper::Found;
use crate::recovery::Opened;
use crate::upkeep::Upkeep;

/// An open store without threads: whoever holds it plays the sequencer, the applier, the upkeep, the reaper
/// and the cleaner, one after the other.
pub(super) struct Stage {
    pub(super) engine: Arc<EmbeddedEngine>,
    pub(super) core: Arc<Core>,
    pub(super) upkeep: Upkeep,
    works: Arc<Mutex<Works>>,
    cleaner: Cleaner,
    queue: Arc<CommitQueue>,
    /// Asked for, and not sequenced.
    waiting: Vec<Waiting>,
    /// Sequenced, and not applied.
    flying: Vec<Waiting>,
    /// How many groups were written and not applied.
    outstanding: usize,
    _lock: DirectoryLock,
}

/// What the cleaner is to do next.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToClean {
    /// Whatever it thinks best.
    Best,
    /// These segments, or what it has begun.
    Run { at: usize, len: usize, thorough: bool },
}

/// What writes and applies; the cleaner uses it too.
struct Works {
    core: Arc<Core>,
    sequencer: Sequencer,
    applier: Applier,
    groups: Arc<GroupQueue>,
}

impl Works {
    /// Writes and applies a request of the cleaner, with nothing else under way.
    fn handle(&mut self, request: Request) {
        // As often as the applier would otherwise have to wait for it.
        keep_up(&self.core);
        self.sequencer.sequence(vec![request]);
        // An empty group says that there are no more.
        self.groups.push(Default::default());
        while let Some(group) = self.groups.take().filter(|group| !group.steps.is_empty()) {
            self.applier.apply_group(group);
            self.groups.applied();
        }
        self.groups.applied();
        self.applier.seal_if_large();
    }
}

/// Does upkeep if much is waiting for it.
fn keep_up(core: &Arc<Core>) {
    if core.index.backlog().sealed >= 2 && !core.health.is_poisoned() {
        Upkeep::new(Arc::clone(core)).step();
    }
}

/// An ask that waits for its answer.
struct Waiting {
    asked: Asked,
    answer: Answering,
    outcome: Option<Outcome>,
}

type Answering = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl Waiting {
    /// Looks for the answer.
    fn poll(&mut self) -> bool {
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.outcome = Some(outcome);
        }
        self.outcome.is_some()
    }
}

impl Stage {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened { core, writer, lock, .. } = opened;
        let (queue, groups) = (Arc::new(CommitQueue::new()), Arc::new(GroupQueue::default()));
        let sequencer = Sequencer::new(Arc::clone(&core), writer, Arc::clone(&groups));
        let applier = Applier::new(Arc::clone(&core));
        let works = Arc::new(Mutex::new(Works { core: Arc::clone(&core), sequencer, applier, groups }));
        let works_of_cleaner = Arc::clone(&works);
        Self {
            engine: Arc::new(EmbeddedEngine::without_threads(Arc::clone(&core), Arc::clone(&queue))),
            upkeep: Upkeep::new(Arc::clone(&core)),
            cleaner: Cleaner::new(&core, move |request| at_work(&works_of_cleaner).handle(request)),
            core,
            works,
            queue,
            waiting: Vec::new(),
            flying: Vec::new(),
            outstanding: 0,
            _lock: lock,
        }
    }

    /// Hands in an ask as a caller would; says what it was told if that was at once.
    pub(super) fn ask(&mut self, ask: Ask, state: &State) -> Option<(Asked, Outcome)> {
        let answer = asking(Arc::clone(&self.engine), ask.clone());
        self.wait_for(ask, state, answer)
    }

    fn wait_for(&mut self, ask: Ask, state: &State, answer: Answering) -> Option<(Asked, Outcome)> {
        let bucket = match &ask {
            Ask::Commit(name, _)
            | Ask::Compact(name, ..)
            | Ask::Expire(name, _)
            | Ask::Consumer(name, ..) => state.buckets.get(name).map(|bucket| bucket.created_at),
            Ask::Create(..) | Ask::Update(..) | Ask::Delete(_) | Ask::Tidy | Ask::Clean => None,
        };
        let floor = match &ask {
            Ask::Consumer(name, ..) => self.core.catalog.find(name).map(|bucket| bucket.feed_floor()),
            _ => None,
        };
        let floor = floor.unwrap_or_default();
        let asked = Asked { ask, bucket, floor, now: self.core.clock.now(), doubtful: false };
        let mut waiting = Waiting { asked, answer, outcome: None };
        if waiting.poll() {
            return waiting.outcome.map(|outcome| (waiting.asked, outcome));
        }
        self.waiting.push(waiting);
        None
    }

    /// Looks at the notes about expiry and hands in what the reaper would; says whether that was anything.
    pub(super) fn reap(&mut self, state: &State) -> Result<bool, EngineError> {
        self.core.health.check_writable()?;
        let found = Found::look(&self.core)?;
        for (bucket, due) in found.due {
            let (reply, answer) = oneshot::channel();
            let keys = due.iter().map(|due| (due.key.clone(), due.revision)).collect();
            let ask = Ask::Expire(bucket.name.clone(), keys);
            self.queue.push(Request::Expire { bucket, due, reply });
            self.wait_for(ask, state, plain(answer));
        }
        if !found.tidy.is_empty() {
            let (reply, answer) = oneshot::channel();
            self.queue.push(Request::Tidy { notes: found.tidy, reply });
            self.wait_for(Ask::Tidy, state, plain(answer));
        }
        Ok(!self.waiting.is_empty())
    }

    /// Whether there is something to sequence.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes that what waits may be refused because of the index, whatever it is answered.
    pub(super) fn doubt(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.asked.doubtful = true);
    }

    /// How many groups were written and not applied.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Writes what waits as one group. Where the sequencer may wait for the applier, another thread plays
    /// that one, and nothing is left to apply.
    pub(super) fn sequence(&mut self, may_wait: bool) {
        let requests = self.queue.take().expect("something to sequence");
        let now = self.core.clock.now();
        self.waiting.iter_mut().for_each(|waiting| waiting.asked.now = now);
        let new = self.flying.len();
        self.flying.append(&mut self.waiting);
        let changes_bucket = |request: &Request| matches!(request, Request::Bucket { .. });
        if may_wait || requests.iter().any(changes_bucket) {
            self.sequence_with_applier(requests);
        } else {
            keep_up(&self.core);
            at_work(&self.works).sequencer.sequence(requests);
            // Whoever is refused is answered by now; the others are once their group is applied.
            let written = self.flying[new..].iter_mut().any(|one| !one.poll());
            self.outstanding += usize::from(written);
        }
    }

    fn sequence_with_applier(&mut self, requests: Vec<Request>) {
        keep_up(&self.core);
        let mut works = at_work(&self.works);
        let Works { applier, groups, sequencer, .. } = &mut *works;
        let (applier, groups) = (&*applier, &**groups);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let applied = catch_unwind(AssertUnwindSafe(|| {
                    while let Some(group) = groups.take().filter(|group| !group.steps.is_empty()) {
                        applier.apply_group(group);
                        groups.applied();
                    }
                }));
                if let Err(panic) = applied {
                    // Or the sequencer would wait for ever.
                    groups.close();
                    resume_unwind(panic);
                }
                groups.applied();
            });
            sequencer.sequence(requests);
            // An empty group says that there are no more.
            groups.drain();
            groups.push(Default::default());
        });
        self.outstanding = 0;
        applier.seal_if_large();
    }

    /// Applies what was written.
    pub(super) fn apply(&mut self) {
        for _ in 0..std::mem::take(&mut self.outstanding) {
            let works = at_work(&self.works);
            works.applier.apply_group(works.groups.take().expect("a group that was written"));
            works.groups.applied();
            works.applier.seal_if_large();
        }
    }

    /// What was answered, in the order in which it was sequenced.
    pub(super) fn answers(&mut self) -> Vec<(Asked, Outcome)> {
        let answered = |mut waiting: Waiting| {
            assert!(waiting.poll(), "no answer to {:?}", waiting.asked);
            (waiting.asked, waiting.outcome.expect("an outcome"))
        };
        self.flying.drain(..).map(answered).collect()
    }

    /// What was asked for and not answered.
    pub(super) fn unanswered(&mut self) -> Vec<Asked> {
        self.flying.drain(..).map(|waiting| waiting.asked).collect()
    }

    /// What is in the log from a revision on.
    pub(super) fn frames_from(&self, revision: Revision) -> Vec<Frame> {
        let mut reader = LogReader::from(&self.core.log, revision);
        let next = || reader.next().expect("a sound log").map(|(_, frame)| frame);
        let frames = std::iter::from_fn(next);
        frames.filter(|frame| frame.header.first >= revision).collect()
    }

    /// Whether the log holds records that only the feed needs.
    pub(super) fn has_faded(&self, disk: &SimDisk) -> bool {
        let frames = disk.peek(|| self.frames_from(Revision::new(1)));
        frames.iter().flat_map(|frame| &frame.records).any(|(_, record)| record.faded)
    }

    /// Ends a stretch of the index, as the applier does when it has grown large.
    pub(super) fn seal(&self) -> Result<(), EngineError> {
        seal_index(&self.core, self.core.snapshots.visible(), self.core.clock.now())
    }

    /// Lets the cleaner do something, with nothing else under way; says whether there was anything.
    pub(super) fn clean(&mut self, what: ToClean) -> Result<bool, EngineError> {
        assert!(self.outstanding == 0 && self.flying.is_empty() && self.waiting.is_empty());
        let outcome = match what {
            ToClean::Best => self.cleaner.step(),
            ToClean::Run { at, len, thorough } => self.cleaner.clean_run(at, len, thorough),
        };
        outcome.map(|outcome| outcome == cleaner::Outcome::Worked)
    }

    /// Closes the store as its owner would.
    pub(super) fn close(self) -> Result<(), EngineError> {
        assert!(self.outstanding == 0 && self.waiting.is_empty(), "threads end when everything is done");
        self.core.health.close();
        self.queue.close();
        drop(self.cleaner);
        let works = Arc::into_inner(self.works).expect("nobody else at work");
        let works = works.into_inner().unwrap_or_else(PoisonError::into_inner);
        let writer = works.sequencer.run(&self.queue);
        self.core.catalog.all().iter().for_each(|bucket| bucket.feed.wake_all());
        if self.core.health.is_poisoned() { Ok(()) } else { finish(&self.core, writer) }
    }
}

fn at_work(works: &Mutex<Works>) -> MutexGuard<'_, Works> {
    works.lock().unwrap_or_else(PoisonError::into_inner)
}

fn asking(engine: Arc<EmbeddedEngine>, ask: Ask) -> Answering {
    let named = |info: BucketInfo| format!("{} of {}", info.name, info.created);
    let unit = |()| "()".to_owned();
    Box::pin(async move {
        match ask {
            Ask::Commit(name, batch) => {
                Outcome::of(engine.commit(&name, batch).await, |committed| format!("{committed:?}"))
            }
            Ask::Compact(name, key, keep) => {
                Outcome::of(engine.compact_key(&name, &key, keep).await.map_err(CommitError::from), unit)
            }
            Ask::Create(name, config) => {
                Outcome::of(engine.create_bucket(&name, config).await.map_err(CommitError::from), named)
            }
            Ask::Update(name, config) => {
                Outcome::of(engine.update_bucket(&name, config).await.map_err(CommitError::from), named)
            }
            Ask::Delete(name) => {
                Outcome::of(engine.delete_bucket(&name).await.map_err(CommitError::from), unit)
            }
            Ask::Consumer(bucket, name, change) => {
                let result = change_consumer(&engine, &bucket, &name, change).await;
                Outcome::of(result.map_err(CommitError::from), |text| text)
            }
            Ask::Expire(..) | Ask::Tidy | Ask::Clean => unreachable!("no caller asks for that"),
        }
    })
}

async fn change_consumer(
    engine: &EmbeddedEngine,
    bucket: &BucketName,
    name: &ConsumerName,
    change: ConsumerChange,
) -> Result<String, EngineError> {
    match change {
        ConsumerChange::Create(start) => {
            engine.create_consumer(bucket, name, start).await.map(|info| format!("{info:?}"))
        }
        ConsumerChange::Reset(start) => {
            engine.reset_consumer(bucket, name, start).await.map(|info| format!("{info:?}"))
        }
        ConsumerChange::Acknowledge(revision) => {
            engine.acknowledge(bucket, name, revision).await.map(|()| "()".into())
        }
        ConsumerChange::Delete => engine.delete_consumer(bucket, name).await.map(|()| "()".into()),
    }
}

fn plain(answer: oneshot::Receiver<Result<(), EngineError>>) -> Answering {
    Box::pin(async move {
        let answer = answer.await.unwrap_or(Err(EngineError::Closed));
        Outcome::of(answer.map_err(CommitError::from), |()| "()".into())
    })
}
