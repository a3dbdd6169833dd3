//! A simulation: random histories of a store on a machine that fails, each the pure result of its seed.
//!
//! One thread plays everyone: callers, sequencer, applier, upkeep and reaper. The disk and the index are in
//! memory and fail, forget and lose power when the dice say so. Beside the store runs the truth: what was
//! acknowledged must be there after every crash, what was refused must not, and what nobody knows about is
//! there up to some commit.
//!
//! 1. [`plan`]: what may happen, and how likely.
//! 2. [`stage`]: an open store whose threads are played.
//! 3. [`ask`], [`state`] and [`truth`]: what must come of it.
//! 4. [`run`] with [`cleaning`], [`readers`] and [`history`]: a run, and the comparison of everything that can
//!    be read.

mod ask;
mod cleaning;
mod dice;
mod history;
mod old_index;
mod plan;
mod readers;
mod run;
mod stage;
mod state;
mod tests;
mod truth;
