use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use pleach::state::{Cell, StateEvent, StateRevision, StateWatch, WatchFrom};
use pleach_contract::StoreKind;
use serde_json::Value;

use super::SessionArgs;
use crate::app::App;
use crate::commands::duration;
use crate::text;
use crate::wait::{self, Interrupt, Waited};

/// Prints what happens to the entries of a store
#[derive(Args, Debug)]
#[command(
    after_help = "Nothing of anyone else is ever seen. Ctrl-C ends the watch. A `file:` store belongs to one process:\n\
                  what is shown is what was there before, and what expires meanwhile.\n\n\
                  Exit codes: 0 when it ends; 5 if the changes after --from are no longer kept.\n\n\
                  Examples:\n  \
                  pleach state watch --as user:ann --contract notes.yaml drafts --from latest --idle 1s\n  \
                  pleach --json state watch --as user:ann --contract notes.yaml drafts --prefix inbox --from r12"
)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// The store, as the contract names it
    #[arg(id = "state_store", value_name = "STORE")]
    store: String,

    /// Only keys below this path
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    prefix: String,

    /// Where to begin: now, latest (every entry first), or after a revision
    #[arg(long, value_name = "WHERE", default_value = "now")]
    from: From,

    /// Ends after this many events
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU64>,

    /// Ends when nothing has come for this time, such as 2s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct From(WatchFrom);

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "now" => WatchFrom::Now,
            "latest" => WatchFrom::Latest,
            text => match text.parse::<StateRevision>() {
                Ok(revision) if !revision.is_unknown() => WatchFrom::After(revision),
                _ => return Err("expected now, latest or a revision such as r12".into()),
            },
        }))
    }
}

impl WatchArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let interrupt = Interrupt::catch()?;
        let session = self.session.open(app).await?;
        let mut events: StateWatch<Value> = match session.store(&self.store)?.kind() {
            StoreKind::Value if self.prefix.is_empty() => {
                session.value(&self.store)?.watch(self.from.0).await?
            }
            // Only a map has something below a path: of a value store that is an error.
            StoreKind::Value | StoreKind::Map => {
                super::view(session.map(&self.store)?, &self.prefix).watch(self.from.0).await?
            }
        };
        let mut left = self.count.map(NonZeroU64::get);
        // The entries that were there before come first, however long a busy machine takes for them.
        let mut on_its_way = matches!(self.from.0, WatchFrom::Latest).then_some(wait::KNOWN_MAX);
        while left != Some(0) {
            let patience = wait::patience(self.idle, on_its_way);
            let event = match wait::next(&mut events, patience, &interrupt) {
                Waited::Item(event) => event?,
                Waited::Ended | Waited::Idle | Waited::Interrupted => break,
            };
            on_its_way = on_its_way.filter(|_| !matches!(event, StateEvent::Ready));
            print(app, &event)?;
            app.output.flush()?;
            left = left.map(|left| left - 1);
        }
        Ok(())
    }
}

fn print(app: &mut App, event: &StateEvent<Value>) -> anyhow::Result<()> {
    if app.output.is_json() {
        return app.output.object(&event.to_json());
    }
    let key = text::shown(event.key().unwrap_or("-").as_bytes());
    app.output.line(match event {
        StateEvent::Put(Cell::Entry(entry)) => format!("{} put {key} {}", entry.revision, entry.value),
        StateEvent::Put(Cell::MigrationRequired(old)) => {
            format!("{} put {key} {} (version {})", old.entry.revision, old.entry.value, old.state_version)
        }
        StateEvent::Put(Cell::Bad(bad)) => format!("{} put {key} ({})", bad.revision, bad.error),
        StateEvent::Deleted { revision, .. } => format!("{revision} deleted {key}"),
        StateEvent::Expired { revision, .. } => format!("{revision} expired {key}"),
        StateEvent::Ready => "-- that was everything; now the changes".to_owned(),
    })
}
