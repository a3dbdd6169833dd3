//! `pleach demo`: a deploy that would have lost data, stopped by its plan, mended, and applied under live writes.

mod cases;
mod story;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use crate::app::App;
use crate::failure::Problem;
use story::Story;

/// How long a step is left to be read.
const PAUSE: Duration = Duration::from_millis(2500);

/// Shows in half a minute what contracts are for, on fifty thousand cases in a store of its own
#[derive(Args, Debug)]
#[command(
    after_help = "The store is in a temporary directory and gone afterwards. On a terminal there are pauses to read; --fast leaves them out.\n\n\
                  Examples:\n  pleach demo\n  pleach demo --fast --keep ./demo-store"
)]
pub(crate) struct DemoArgs {
    /// How many cases there are
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    cases: u64,

    /// Makes no pauses
    #[arg(long)]
    fast: bool,

    /// Makes the store in this directory, which must not be there yet, and leaves it there
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
}

impl DemoArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let is_kept = self.keep.is_some();
        let name = format!("pleach-demo-{}", std::process::id());
        let directory = self.keep.unwrap_or_else(|| std::env::temp_dir().join(name));
        std::fs::create_dir(&directory).with_context(|| {
            let problem = Problem::invalid(format!("cannot make the directory {}", directory.display()));
            problem.help("name one with --keep that is not there yet, in a directory that can be written to")
        })?;
        let pause = if self.fast || !app.output.is_terminal() { Duration::ZERO } else { PAUSE };
        let told = Story::new(self.cases, pause, &mut app.output).tell(&directory.join("store")).await;
        if is_kept {
            app.output.note(format_args!("the store is in {}", directory.join("store").display()));
        } else {
            // What is left of it in a temporary directory harms nobody.
            let _ = std::fs::remove_dir_all(&directory);
        }
        told
    }
}
