use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::app::App;
use crate::commands::{
    bucket, clean, compact, completions, consumer, doctor, export, get, help, history, import, ls, migrate,
    rebuild, remove, revert, salvage, status, verify, watch, write,
};
use crate::contract::ContractCommand;
use crate::credentials::Credentials;
use crate::demo::DemoArgs;
use crate::output::{ColorChoice, Form, Output};
use crate::state::StateCommand;

/// A key-value store that keeps its promises: durable, ordered, revisioned, watched.
#[derive(Debug, Parser)]
#[command(
    name = "pleach",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  pleach kv bucket add carts --history 5\n  pleach kv put carts user.42 '3 apples'\n  \
                  pleach kv get carts user.42\n\nSee `pleach help stores` for where a store can be, and\n`pleach help exit-codes` for what exit codes mean."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// The store: `file:PATH`, `nats://HOST`, or `mem:` for an empty one that is gone afterwards; see
    /// `pleach help stores` [default: file:./.pleach]
    #[arg(long, global = true, value_name = "URL", env = "PLEACH_STORE", hide_env_values = true)]
    #[arg(help_heading = "Global options", value_parser = store_url)]
    store: Option<String>,

    /// A file of credentials for a store on NATS
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    creds: Option<PathBuf>,

    /// Writes past the guards of contracts, for this reason, which is recorded
    #[arg(long, global = true, value_name = "WHY", help_heading = "Global options")]
    break_glass: Option<String>,

    /// Prints one JSON object a line, and errors as one on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    /// Prints no confirmations, notes or progress
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,

    /// When to use colours: auto, always or never; NO_COLOR means never, too
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true, help_heading = "Global options")]
    color: ColorChoice,
}

/// The URL of a store as it was given. An empty one is more likely a variable that was never set than the default store.
pub(crate) fn store_url(text: &str) -> Result<String, String> {
    match text {
        "" => {
            Err("the URL of a store is empty; leave --store out and PLEACH_STORE unset for file:./.pleach"
                .into())
        }
        url => Ok(url.to_owned()),
    }
}

impl Global {
    /// The form of what is printed.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Human }
    }

    /// When to use colours.
    pub(crate) fn color(&self) -> ColorChoice {
        self.color
    }

    /// What the commands work with.
    pub(crate) fn app(self) -> App {
        let output = Output::new(self.form(), self.color).quiet(self.quiet);
        App::new(self.store, Credentials { file: self.creds }, output).breaking_glass(self.break_glass)
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Works on buckets and their entries
    #[command(subcommand, arg_required_else_help = true)]
    Kv(Kv),
    /// Lists, describes, moves and deletes consumers: places in the changes of a bucket
    #[command(subcommand, arg_required_else_help = true)]
    Consumer(consumer::ConsumerCommand),
    /// Works on contracts: what keys and values mean
    #[command(subcommand, arg_required_else_help = true)]
    Contract(ContractCommand),
    Demo(DemoArgs),
    /// Works on the state that contracts keep for users and devices
    #[command(subcommand, arg_required_else_help = true)]
    State(StateCommand),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    Verify(verify::VerifyArgs),
    Rebuild(rebuild::RebuildArgs),
    Salvage(salvage::SalvageArgs),
    Clean(clean::CleanArgs),
    Migrate(migrate::MigrateArgs),
    Completions(completions::CompletionsArgs),
    Help(help::HelpArgs),
}

/// The commands on buckets and their entries.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Arguments come in the same order everywhere: bucket, then key, then value.\n\nExamples:\n  \
                  pleach kv bucket add carts --history 5\n  pleach kv put carts user.42 '3 apples'\n  \
                  pleach kv ls carts 'user.*'"
)]
pub(crate) enum Kv {
    /// Creates, lists, describes, changes and deletes buckets
    #[command(subcommand, arg_required_else_help = true)]
    Bucket(bucket::BucketCommand),
    Get(get::GetArgs),
    Put(write::PutArgs),
    Create(write::CreateArgs),
    Update(write::UpdateArgs),
    Del(remove::DelArgs),
    Purge(remove::PurgeArgs),
    History(history::HistoryArgs),
    Revert(revert::RevertArgs),
    Ls(ls::LsArgs),
    Watch(watch::WatchArgs),
    Compact(compact::CompactArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
}

impl Command {
    /// Does what was asked for.
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Kv(command) => command.run(app).await,
            Self::Consumer(command) => command.run(app).await,
            Self::Contract(command) => command.run(app).await,
            Self::Demo(args) => args.run(app).await,
            Self::State(command) => command.run(app).await,
            Self::Status(args) => args.run(app).await,
            Self::Doctor(args) => args.run(app).await,
            Self::Verify(args) => args.run(app),
            Self::Rebuild(args) => args.run(app),
            Self::Salvage(args) => args.run(app),
            Self::Clean(args) => args.run(app),
            Self::Migrate(args) => args.run(app).await,
            Self::Completions(args) => args.run(app),
            Self::Help(args) => args.run(app),
        }
    }
}

impl Kv {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Bucket(command) => command.run(app).await,
            Self::Get(args) => args.run(app).await,
            Self::Put(args) => args.run(app).await,
            Self::Create(args) => args.run(app).await,
            Self::Update(args) => args.run(app).await,
            Self::Del(args) => args.run(app).await,
            Self::Purge(args) => args.run(app).await,
            Self::History(args) => args.run(app).await,
            Self::Revert(args) => args.run(app).await,
            Self::Ls(args) => args.run(app).await,
            Self::Watch(args) => args.run(app).await,
            Self::Compact(args) => args.run(app).await,
            Self::Export(args) => args.run(app).await,
            Self::Import(args) => args.run(app).await,
        }
    }
}
