//! How a commit becomes durable and visible.
//!
//! 1. [`CommitQueue`]: callers leave requests and wait.
//! 2. [`Sequencer`], on its own thread: takes all that wait, checks their expectations, gives them revisions,
//!    and writes and syncs them to the log as one group.
//! 3. [`Applier`], on another: brings the index up to the group, lets readers see it, tells watches, and
//!    answers the callers, while the sequencer is busy with the next group.

mod applier;
mod consumers;
mod overlay;
mod queue;
mod request;
mod sequencer;
#[cfg(test)]
mod tests;

pub(crate) use applier::Applier;
pub(crate) use queue::{CommitQueue, GroupQueue};
pub(crate) use request::{BucketChange, ConsumerChange, Due, IndexUpkeep, Moved, NoteChange, Request};
pub(crate) use sequencer::Sequencer;
