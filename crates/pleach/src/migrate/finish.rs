use pleach_engine::{ConsumerStart, Op, Revision, WatchEvent};

use super::verify::{Comparison, Verified};
use super::{Begun, IDLE_MAX, MigrateError, Migration, Progress};
use crate::Error;

/// How often to look for changes that should come, where a clock stands still.
const LOOKS_MAX: usize = 100_000;

/// What a migration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was compared.
    pub verified: Verified,
    /// What was written in all.
    pub progress: Progress,
    /// Consumers that had seen everything and go on with the next change.
    pub consumers_kept: usize,
    /// Consumers that had not, and see everything that the target has once more.
    pub consumers_reset: usize,
}

/// The end of a migration.
impl Migration {
    /// Compares both sides, and completes the target if they are the same.
    ///
    /// # Errors
    /// [`MigrateError::StillWritten`] if the source changes meanwhile, [`MigrateError::Different`] with the first key
    /// that is not the same, or what an engine could not do. The migration can be begun again after either.
    pub async fn cut_over(mut self) -> Result<Finished, Error> {
        let newest = self.newest().await?;
        let is_late = self.position.next <= newest && !self.is_idle();
        if is_late && self.plan.begun != Begun::Done {
            return Err(self.still_written());
        }
        let comparison =
            Comparison { source: &self.source, target: &self.target, plan: &self.plan, reads: self.reads() };
        let compared = comparison.run().await;
        let is_quiet = self.is_quiet_since(newest).await?;
        let verified = match compared {
            Ok(verified) if is_quiet || self.plan.begun == Begun::Done => verified,
            Err(Error::Migrate(error @ MigrateError::Different { .. })) if is_quiet => {
                return Err(error.into());
            }
            Ok(_) | Err(Error::Migrate(MigrateError::Different { .. })) => {
                return Err(self.still_written());
            }
            Err(error) => return Err(error),
        };
        // In this order: as long as the bucket is said to be in the making, its position must be there.
        let there = self.target.engine().bucket(&self.plan.target).await?.config;
        if there != self.plan.config {
            self.target.engine().update_bucket(&self.plan.target, self.plan.config.clone()).await?;
        }
        self.writer.finish().await?;
        let (consumers_kept, consumers_reset) = self.move_consumers(newest).await?;
        let progress = self.progress();
        Ok(Finished { verified, progress, consumers_kept, consumers_reset })
    }

    fn still_written(&self) -> Error {
        MigrateError::StillWritten { bucket: self.plan.source.name.clone() }.into()
    }

    async fn newest(&self) -> Result<Revision, Error> {
        Ok(self.source.engine().bucket(&self.plan.source.name).await?.last_revision)
    }

    /// Whether nobody has written to the source since its newest revision was `newest`. What expires, nobody writes.
    async fn is_quiet_since(&mut self, newest: Revision) -> Result<bool, Error> {
        let now = self.newest().await?;
        if now == newest {
            return Ok(true);
        }
        if self.feed.is_none() {
            return Ok(false);
        }
        let started = self.source.clock().elapsed();
        for _ in 0..LOOKS_MAX {
            match self.next_event()? {
                Some(WatchEvent::Change(change)) if change.entry.op != Op::Expire => return Ok(false),
                Some(WatchEvent::Change(change)) if change.entry.revision >= now => return Ok(true),
                Some(_) => {}
                // What has the revision may be no entry, and then nothing comes.
                None if self.source.clock().elapsed().saturating_sub(started) > IDLE_MAX => break,
                // Asking gives it the time to come.
                None => {
                    self.newest().await?;
                }
            }
        }
        Ok(false)
    }

    /// Makes the source's consumers in the target. Their places are revisions, which mean nothing there: those that have
    /// seen everything up to `newest` begin with the next change, others with the oldest.
    async fn move_consumers(&self, newest: Revision) -> Result<(usize, usize), Error> {
        let (source, target) = (self.source.engine(), self.target.engine());
        let (mut kept, mut reset) = (0, 0);
        if !source.capabilities().consumers || !target.capabilities().consumers {
            return Ok((kept, reset));
        }
        for consumer in source.consumers(&self.plan.source.name).await? {
            let is_done = consumer.next > newest;
            let start = if is_done { ConsumerStart::Now } else { ConsumerStart::Oldest };
            target.create_consumer(&self.plan.target, &consumer.name, start).await?;
            *(if is_done { &mut kept } else { &mut reset }) += 1;
        }
        Ok((kept, reset))
    }
}
