use std::collections::HashSet;

use pleach_engine::{Change, Key, Operation, Revision, WatchEvent, WatchQuery, WatchStart};

use super::Migration;
use super::window::{BatchLimits, bytes, cut};
use crate::Error;

/// Changes that are taken up at once.
const CHANGES_MAX: usize = 2000;

/// Repeating what has changed since the migration began.
impl Migration {
    /// Repeats the changes that are there. Says whether there were any.
    pub(super) async fn follow_some(&mut self) -> Result<bool, Error> {
        if self.feed.is_none() {
            let start = WatchStart::Revision(self.position.next);
            self.feed = Some(self.watch(WatchQuery { filters: Vec::new(), start }).await?);
        }
        let mut pending = Pending::default();
        let mut seen = 0;
        while seen < CHANGES_MAX || pending.is_inside() {
            let Some(event) = self.next_event()? else { break };
            let WatchEvent::Change(change) = event else { continue };
            seen += 1;
            self.take_up(&mut pending, change).await?;
        }
        self.end_group(&mut pending).await?;
        self.flush(&mut pending).await?;
        self.note_idle(seen > 0);
        Ok(seen > 0)
    }

    async fn take_up(&mut self, pending: &mut Pending, change: Change) -> Result<(), Error> {
        let (revision, part) = (change.entry.revision, change.batch);
        let began = revision.get().saturating_sub(part.index.into());
        if pending.group_began != Some(began) {
            self.end_group(pending).await?;
            pending.group_began = Some(began);
        }
        if !change.entry.key.is_reserved() {
            pending.group.extend(self.operation(&change.entry)?.map(|operation| (operation, revision)));
        }
        pending.group_next = Some(revision.next());
        if part.is_last() {
            self.end_group(pending).await?;
        }
        Ok(())
    }

    /// Moves a whole batch of the source to what is written next. It stays whole there, unless it is too large.
    async fn end_group(&mut self, pending: &mut Pending) -> Result<(), Error> {
        let group = std::mem::take(&mut pending.group);
        let size: usize = group.iter().map(|(operation, _)| bytes(operation)).sum();
        let repeats = group.iter().any(|(operation, _)| pending.keys.contains(&operation.key));
        let too_many = pending.operations.len() + group.len() > self.limits.operations;
        if repeats || too_many || pending.bytes + size > self.limits.bytes {
            self.flush(pending).await?;
        }
        pending.keys.extend(group.iter().map(|(operation, _)| operation.key.clone()));
        let (operations, revisions): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        pending.operations.extend(operations);
        pending.revisions.extend(revisions);
        pending.bytes += size;
        pending.next = pending.group_next.take().or(pending.next);
        pending.group_began = None;
        Ok(())
    }

    /// Writes what is pending.
    async fn flush(&mut self, pending: &mut Pending) -> Result<(), Error> {
        let Some(next) = pending.next.take() else { return Ok(()) };
        let operations = std::mem::take(&mut pending.operations);
        let mut revisions = std::mem::take(&mut pending.revisions).into_iter();
        pending.keys.clear();
        pending.bytes = 0;
        let mut batches = cut(operations, BatchLimits::most(self.target.capabilities()));
        let Some(last) = batches.pop() else {
            // Nothing to be written; whoever goes on after a crash passes over it again.
            self.position.next = next;
            return Ok(());
        };
        for batch in batches {
            let reached = revisions.nth(batch.len() - 1);
            self.position.next = reached.map_or(self.position.next, Revision::next);
            self.commit(batch).await?;
        }
        self.position.next = next;
        self.commit(last).await
    }
}

/// Changes that are not written yet.
#[derive(Debug, Default)]
struct Pending {
    operations: Vec<Operation>,
    /// Of which change of the source each operation is.
    revisions: Vec<Revision>,
    keys: HashSet<Key>,
    bytes: usize,
    /// Where to go on after them.
    next: Option<Revision>,
    /// What has come of a batch of the source.
    group: Vec<(Operation, Revision)>,
    group_began: Option<u64>,
    group_next: Option<Revision>,
}

impl Pending {
    fn is_inside(&self) -> bool {
        self.group_began.is_some()
    }
}
