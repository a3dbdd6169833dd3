use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use pleach::{Clock as _, OpenProgress, SystemClock};

use crate::output::Output;

/// How far a long command has come, on stderr, and only if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes up to `total`, or just counts them.
    pub(crate) fn bytes(total: Option<u64>, output: &Output) -> Self {
        let quiet = output.is_quiet();
        Self::new(total, quiet, "{bytes}/{total_bytes} {bar:30} {percent}% {msg}", "{spinner} {bytes} {msg}")
    }

    /// Counts entries up to about `total`.
    pub(crate) fn entries(total: u64, output: &Output) -> Self {
        let quiet = output.is_quiet();
        Self::new(Some(total), quiet, "{human_pos}/{human_len} entries {bar:30} {msg}", "")
    }

    /// This much is done.
    pub(crate) fn reach(&self, position: u64) {
        self.0.set_position(position);
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Says what is being done.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }

    fn new(total: Option<u64>, quiet: bool, bar: &str, spinner: &str) -> Self {
        const REDRAWS_PER_SECOND: u8 = 10;
        if quiet || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        let progress = ProgressBar::with_draw_target(total, target);
        let template = if total.is_some() { bar } else { spinner };
        if let Ok(style) = ProgressStyle::with_template(template) {
            progress.set_style(style);
        }
        progress.enable_steady_tick(Duration::from_millis(200));
        Self(progress)
    }
}

/// Shows that a store takes long to open, because its index is built anew from its log.
#[derive(Debug)]
pub(crate) struct Opening {
    clock: SystemClock,
    quiet: bool,
    shown: Mutex<Option<Progress>>,
}

impl Opening {
    /// Sooner than this nobody wonders.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// What a store that is opened is given, to say how far it has come. It vanishes when the store is open.
    pub(crate) fn shown_on(output: &Output) -> OpenProgress {
        let opening = Self { clock: SystemClock::new(), quiet: output.is_quiet(), shown: Mutex::default() };
        OpenProgress::new(move |bytes| opening.reach(bytes))
    }

    fn reach(&self, bytes: u64) {
        if self.clock.elapsed() < Self::PATIENCE {
            return;
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = shown.get_or_insert_with(|| {
            let progress = Progress::new(None, self.quiet, "", "{spinner} {bytes} {msg}");
            progress.say("of the log read, to bring the index up to date");
            progress
        });
        progress.reach(bytes);
    }
}

/// Leaves no half-drawn bar behind, whichever way the command ends.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
