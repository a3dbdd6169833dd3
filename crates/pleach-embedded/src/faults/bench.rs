use std::sync::Arc;

use pleach_engine::{Batch, CommitError, Committed};
use pollster::block_on;
use tokio::sync::oneshot;

use super::machine::{Ledger, bucket};
use crate::commit::{Applier, CommitQueue, GroupQueue, Request, Sequencer};
use crate::core::Core;
use crate::lock::DirectoryLock;
use crate::recovery::Opened;

/// An open store without threads, so that a test decides what is committed in one group.
pub(crate) struct Bench {
    pub(crate) core: Arc<Core>,
    sequencer: Sequencer,
    applier: Applier,
    queue: CommitQueue,
    groups: Arc<GroupQueue>,
    _lock: DirectoryLock,
}

type Answer = oneshot::Receiver<Result<Committed, CommitError>>;

impl Bench {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { core, writer, lock, .. } = opened;
        let groups = Arc::new(GroupQueue::default());
        let sequencer = Sequencer::new(Arc::clone(&core), writer, Arc::clone(&groups));
        let applier = Applier::new(Arc::clone(&core));
        Self { core, sequencer, applier, queue: CommitQueue::new(), groups, _lock: lock }
    }

    /// Commits `count` batches of the ledger as one group.
    pub(crate) fn commit(
        &mut self,
        ledger: &mut Ledger,
        count: usize,
    ) -> Vec<Result<Committed, CommitError>> {
        let mut requests = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..count {
            let (tag, batch) = ledger.batch();
            let (request, answer) = self.request(batch);
            requests.push(request);
            answers.push((tag, answer));
        }
        self.sequencer.sequence(requests);
        // Whoever is refused is answered by now; the others are once the group is applied.
        let mut refused = answers[0].1.try_recv().ok();
        if refused.is_none() {
            self.applier.apply_group(self.groups.take().expect("a group that was written"));
            self.groups.applied();
        }
        let mut results = Vec::new();
        for (tag, answer) in answers {
            let result = refused.take().unwrap_or_else(|| block_on(answer).expect("an answer"));
            ledger.note(tag, &result);
            results.push(result);
        }
        results
    }

    /// Handles `requests` together, and then stops.
    pub(crate) fn finish_with(mut self, requests: Vec<Request>) {
        std::thread::scope(|scope| {
            scope.spawn(|| self.applier.run(&self.groups));
            self.sequencer.sequence(requests);
            self.groups.close();
        });
    }

    pub(crate) fn request(&self, batch: Batch) -> (Request, Answer) {
        let bucket = self.core.catalog.get(&bucket()).expect("the bucket");
        let config = bucket.config();
        let batch = batch.check(&bucket.name, &config, &crate::engine::CAPABILITIES).expect("a sound batch");
        let permit = block_on(self.queue.room(batch.bytes())).expect("room");
        let (reply, answer) = oneshot::channel();
        (Request::Commit { bucket, config, batch, reply, permit }, answer)
    }
}
