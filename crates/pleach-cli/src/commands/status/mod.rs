mod look;
mod render;

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::duration;
use crate::app::App;
use crate::contract::health;
use crate::record::JSON_VERSION;
use crate::wait::{self, Interrupt};
pub(super) use look::{Seen, look};

/// Shows how a store in a directory is doing, also while a program has it open
#[derive(Args, Debug)]
#[command(
    after_help = "A program that has a store open writes its figures to the store's directory about once a second; this\n\
                  shows them. If nobody has the store open, it is opened for a moment to see how large it is, and the\n\
                  figures that the last program left are shown. docs/health.md explains each of them; with --json they\n\
                  have names that stay, and times in seconds.\n\n\
                  Examples:\n  pleach status\n  pleach status file:/srv/data --watch\n  pleach --json status"
)]
pub(crate) struct StatusArgs {
    /// The store, if it is not named otherwise
    #[arg(value_name = "URL", value_parser = crate::args::store_url)]
    store: Option<String>,

    /// Shows it again and again, every two seconds or as given, until Ctrl-C; never opens the store
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s", value_parser = duration)]
    watch: Option<Duration>,

    /// Ends the watch after this many times
    #[arg(long, value_name = "NUMBER", requires = "watch")]
    count: Option<u64>,
}

/// A watch looks no more often than this.
const WATCH_INTERVAL_MIN: Duration = Duration::from_millis(100);

impl StatusArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        app.name_store(self.store.as_deref());
        match self.watch {
            None => {
                let seen = look(app).await?;
                show(&seen, app)?;
                if seen.holder.is_none() && !app.output.is_json() {
                    show_contracts(app).await?;
                }
                Ok(())
            }
            Some(interval) => watch(app, interval.max(WATCH_INTERVAL_MIN), self.count),
        }
    }
}

fn show(seen: &Seen, app: &mut App) -> anyhow::Result<()> {
    if app.output.is_json() {
        return app.output.object(&object(seen));
    }
    let place = app.place();
    let lines = render::lines(seen, &place, &app.output);
    lines.into_iter().try_for_each(|line| app.output.line(line))
}

/// What is wrong with the contracts of a store that nobody has open.
async fn show_contracts(app: &mut App) -> anyhow::Result<()> {
    for finding in health::findings(app).await? {
        let label = app.output.paint().dim("contracts ");
        app.output.line(format_args!("{label} {}; {}", finding.what, finding.next))?;
    }
    Ok(())
}

fn object(seen: &Seen) -> serde_json::Value {
    json!({
        "v": JSON_VERSION, "event": "status", "state": if seen.holder.is_some() { "open" } else { "closed" },
        "holder": seen.holder, "age": seen.age.map(|age| age.as_secs_f64()), "status": seen.status,
    })
}

/// Looks again and again: in place on a terminal, else in a line each time.
fn watch(app: &mut App, interval: Duration, count: Option<u64>) -> anyhow::Result<()> {
    let (directory, place) = (app.directory(look::ON_SERVERS)?, app.place());
    let interrupt = Interrupt::catch()?;
    let in_place = app.output.is_terminal() && !app.output.is_json();
    if in_place {
        app.output.bytes(b"\x1b[2J")?;
    }
    for round in 1.. {
        let seen = look::from_outside(&directory);
        match &seen {
            Err(problem) if in_place => app.output.bytes(format!("\x1b[H{problem}\x1b[J").as_bytes())?,
            Err(problem) if !app.output.is_json() => app.output.line(problem)?,
            Err(problem) => app.output.object(&json!({
                "v": JSON_VERSION, "event": "status", "state": "unknown", "message": problem.to_string(),
            }))?,
            Ok(seen) if in_place => {
                let lines = render::lines(seen, &place, &app.output).join("\x1b[K\n");
                app.output.bytes(format!("\x1b[H{lines}\x1b[K\n\x1b[J").as_bytes())?;
            }
            Ok(seen) if !app.output.is_json() => app.output.line(render::summary(seen))?,
            Ok(seen) => app.output.object(&object(seen))?,
        }
        app.output.flush()?;
        if count.is_some_and(|count| round >= count) || !wait::sleep(interval, &interrupt) {
            break;
        }
    }
    Ok(())
}
