//! The commands on state: what a contract keeps for each of its users and devices.

mod admin;
mod entry;
mod list;
mod watch;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pleach::state::{MapStore, Principal, Session, State};
use pleach_contract::Contract;
use serde_json::Value;

use crate::app::App;
use crate::contract::source::Source;
use crate::failure::Problem;

/// The commands on state.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "A contract declares stores by name: one that holds a value, or a map of values under keys. Every\n\
                  user and every device has entries of their own in them; --as says whose they are, and stands for the\n\
                  authentication that a server would do. The store must have accepted the contract: plan it, and apply\n\
                  the plan. docs/state.md has all of it.\n\n\
                  Exit codes: 0 if it was done; 2 if the command, key or value is against the rules; 3 if there is no\n\
                  entry, or no contract was accepted; 4 if there is another entry than expected, or one of an older\n\
                  version that the program has to migrate; 9 if the entry is damaged or breaks its schema. See `pleach\n\
                  help exit-codes` for the others.\n\n\
                  Examples:\n  \
                  pleach contract plan notes.yaml --out plan.json && pleach contract apply plan.json\n  \
                  pleach state put --as user:ann --contract notes.yaml drafts first --value '{\"title\": \"Dear\"}'\n  \
                  pleach state get --as user:ann --contract notes.yaml drafts first\n  \
                  pleach state list --as user:ann --contract notes.yaml drafts\n  \
                  pleach state admin find --who olga --why 'ticket 7' --of user:ann"
)]
pub(crate) enum StateCommand {
    Get(entry::GetArgs),
    Put(entry::PutArgs),
    Delete(entry::DeleteArgs),
    List(list::ListArgs),
    Watch(watch::WatchArgs),
    /// Looks at and changes the state of anyone, and records every act
    #[command(subcommand, arg_required_else_help = true)]
    Admin(admin::AdminCommand),
}

impl StateCommand {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Get(args) => args.run(app).await,
            Self::Put(args) => args.run(app).await,
            Self::Delete(args) => args.run(app).await,
            Self::List(args) => args.run(app).await,
            Self::Watch(args) => args.run(app).await,
            Self::Admin(command) => command.run(app).await,
        }
    }
}

/// Whose state, under which contract.
#[derive(Args, Debug)]
struct SessionArgs {
    /// Whose state it is: `user:ID` or `device:ID`
    #[arg(long = "as", value_name = "PRINCIPAL")]
    principal: Principal,

    /// The contract that declares the store: a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    contract: PathBuf,
}

/// The entry a command is about.
#[derive(Args, Debug)]
struct PlaceArgs {
    /// The store, as the contract names it
    // The global option has the id `store`.
    #[arg(id = "state_store", value_name = "STORE")]
    store: String,

    /// The key, for a map
    key: Option<String>,
}

impl PlaceArgs {
    /// The entry, for messages.
    fn shown(&self) -> String {
        match &self.key {
            Some(key) => format!("{}/{key}", self.store),
            None => self.store.clone(),
        }
    }
}

impl SessionArgs {
    /// A session on the state of a store that is there, and has accepted the contract.
    async fn open(self, app: &mut App) -> anyhow::Result<Session> {
        let contract = self.read()?;
        let state = app.store().await?.state().await?;
        let compiled = state.contract(&contract).await?;
        Ok(state.session(self.principal, &compiled))
    }

    fn read(&self) -> anyhow::Result<Contract> {
        let source = Source::read(&self.contract)?;
        let parsed = source.parse().map_err(|_| {
            let problem = Problem::invalid(format!("the contract {} cannot be used", source.name));
            problem.help(format!("see what is wrong with `pleach contract check {}`", source.name))
        })?;
        Ok(parsed.contract)
    }
}

/// What is below a path of a map; the whole map if the path is empty.
fn view(map: MapStore<Value>, path: &str) -> MapStore<Value> {
    if path.is_empty() { map } else { map.prefix(path) }
}

/// The state of a store that is there.
async fn state(app: &mut App) -> anyhow::Result<State> {
    Ok(app.store().await?.state().await?)
}
