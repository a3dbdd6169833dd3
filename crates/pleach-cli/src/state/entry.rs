use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pleach::ErrorKind;
use pleach::state::{
    DeleteOptions, DeleteOutcome, Expect, GetOutcome, Migration, PutOptions, PutOutcome, StateEntry,
    StateRevision,
};
use serde_json::Value;

use super::{PlaceArgs, SessionArgs};
use crate::app::App;
use crate::commands::duration;
use crate::failure::Problem;
use crate::input::ValueArgs;

/// Prints an entry
#[derive(Args, Debug)]
#[command(
    after_help = "Prints the value; with --json the whole reply. Exit codes: 0 if it was found, 3 if there is none, 4\n\
                  if it is of an older version (the old value is printed), 9 if it is damaged.\n\n\
                  Examples:\n  \
                  pleach state get --as user:ann --contract notes.yaml preferences\n  \
                  pleach --json state get --as device:tv --contract notes.yaml drafts inbox/first"
)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    place: PlaceArgs,
}

/// Writes an entry
#[derive(Args, Debug)]
#[command(
    after_help = "Without --create and --revision, whatever is there is written over. Exit codes: 0 if it was written;\n\
                  2 if key or value are against the rules; 3 if --revision expected an entry and there is none; 4 if\n\
                  there is another one than expected, which is printed.\n\n\
                  Examples:\n  \
                  pleach state put --as user:ann --contract notes.yaml preferences --value '{\"theme\": \"dark\"}'\n  \
                  pleach state put --as user:ann --contract notes.yaml drafts first --create < draft.json\n  \
                  pleach state put --as user:ann --contract notes.yaml drafts first --revision r12 --file draft.json"
)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    place: PlaceArgs,

    /// The value as JSON [default: what is on stdin]
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    value: Option<String>,

    /// Reads the value from a file
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Only if there is no entry
    #[arg(long, conflicts_with = "revision")]
    create: bool,

    /// Only if the entry is the one of this revision
    #[arg(long, value_name = "REVISION")]
    revision: Option<StateRevision>,

    /// How long it lives, such as 30s or 7days [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
}

/// Deletes an entry
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 if it was deleted, whether it could be read or not; 3 if there was none; 4 if\n\
                  --revision was given and the entry is not that one.\n\n\
                  Examples:\n  \
                  pleach state delete --as user:ann --contract notes.yaml drafts first\n  \
                  pleach state delete --as user:ann --contract notes.yaml drafts first --revision r12"
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    place: PlaceArgs,

    /// Only the entry of this revision
    #[arg(long, value_name = "REVISION")]
    revision: Option<StateRevision>,
}

impl GetArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let store = self.session.open(app).await?.store(&self.place.store)?;
        let outcome = store.get(self.place.key.as_deref()).await?;
        show(app, &outcome.to_json(), shown_by(&outcome))?;
        match outcome {
            GetOutcome::Found(_) => Ok(()),
            GetOutcome::Absent => Err(absent(&self.place).into()),
            GetOutcome::MigrationRequired(old) => Err(migration(&self.place, &old).into()),
        }
    }
}

impl PutArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let value = ValueArgs::new(self.value.map(Into::into), self.file).read(&app.output)?;
        let store = self.session.open(app).await?.store(&self.place.store)?;
        let expect = match (self.create, self.revision) {
            (true, _) => Expect::Absent,
            (false, Some(revision)) => Expect::Revision(revision),
            (false, None) => Expect::Anything,
        };
        let options = PutOptions { expect, ttl: self.ttl };
        let outcome = store.put_json(self.place.key.as_deref(), &value, options).await?;
        match outcome {
            PutOutcome::Applied(ref entry) => {
                let line = format!("{} is written, revision {}", self.place.shown(), entry.revision);
                app.output.confirm(&outcome.to_json(), line)
            }
            PutOutcome::Absent => {
                show(app, &outcome.to_json(), None)?;
                Err(absent(&self.place).into())
            }
            PutOutcome::Present(ref entry) => {
                show(app, &outcome.to_json(), Some(entry))?;
                let message = format!("{} is there with revision {}", self.place.shown(), entry.revision);
                let help = "decide anew with what is there, and retry with its revision";
                Err(Problem::new(ErrorKind::Conflict, message).help(help).into())
            }
            PutOutcome::MigrationRequired(ref old) => {
                show(app, &outcome.to_json(), Some(&old.entry))?;
                Err(migration(&self.place, old).into())
            }
        }
    }
}

impl DeleteArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let store = self.session.open(app).await?.store(&self.place.store)?;
        let outcome =
            store.delete(self.place.key.as_deref(), DeleteOptions { expect: self.revision }).await?;
        if outcome == DeleteOutcome::Deleted {
            return app.output.confirm(&outcome.to_json(), format!("{} is deleted", self.place.shown()));
        }
        show(app, &outcome.to_json(), None)?;
        Err(match self.revision {
            None => absent(&self.place).into(),
            Some(_) => {
                let message = format!("{} is not there with that revision", self.place.shown());
                Problem::new(ErrorKind::Conflict, message).help("look again, and decide anew").into()
            }
        })
    }
}

/// Prints a reply: all of it as JSON, or the value for people.
fn show(app: &mut App, reply: &Value, entry: Option<&StateEntry<Value>>) -> anyhow::Result<()> {
    match entry {
        _ if app.output.is_json() => app.output.object(reply),
        Some(entry) => app.output.line(&entry.value),
        None => Ok(()),
    }
}

fn shown_by(outcome: &GetOutcome<Value>) -> Option<&StateEntry<Value>> {
    match outcome {
        GetOutcome::Found(entry) => Some(entry),
        GetOutcome::MigrationRequired(old) => Some(&old.entry),
        GetOutcome::Absent => None,
    }
}

fn absent(place: &PlaceArgs) -> Problem {
    let problem = Problem::not_found(format!("there is no entry {}", place.shown()));
    problem.help("put one, or list what is there with `pleach state list`")
}

fn migration(place: &PlaceArgs, old: &Migration) -> Problem {
    let Migration { state_version, current_state_version, .. } = old;
    let message = format!(
        "{} is of version {state_version}, and the contract writes {current_state_version}",
        place.shown()
    );
    let help =
        format!("turn the value into the new version, and put it with --revision {}", old.entry.revision);
    Problem::new(ErrorKind::Conflict, message).help(help)
}
