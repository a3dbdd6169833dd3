//! Import: reads what `export` and `--json` print, and survives being killed.
//!
//! The input is cut into windows of consecutive lines of one bucket. A window is committed in rounds: the
//! first record of every key in it, then the second, and so on, so that each round is a batch of distinct
//! keys and the records of a key keep their order. Before each round the state file says which round comes
//! next and which revision its bucket has; so after a kill the bucket's feed tells whether that one round
//! was still committed, and no line is lost or applied twice.

mod contracts;
mod feed;
mod line;
mod lines;
mod run;
mod state;
mod window;

use std::path::PathBuf;

use clap::Args;

use crate::app::App;

/// Reads JSON lines into buckets
#[derive(Args, Debug)]
#[command(
    after_help = "Takes what `export` and --json print. Entries get new revisions; their headers and expiry stay.\n\
                  An entry that has expired meanwhile arrives as a deletion. Contracts of an export are restored\n\
                  with their buckets, which must not be there, and are in force once everything is imported.\n\n\
                  While it runs, a small file next to the input says how far it has come. After an interruption,\n\
                  --resume goes on from there: no line is lost or applied twice.\n\n\
                  Examples:\n  pleach kv import backup.ndjson --create-buckets\n  pleach kv import backup.ndjson --resume\n  \
                  gunzip < carts.gz | pleach kv import --state carts.state"
)]
pub(crate) struct ImportArgs {
    /// The input; `-` or nothing reads stdin
    file: Option<PathBuf>,

    /// Creates buckets that are missing, as the input says or with defaults
    #[arg(long)]
    create_buckets: bool,

    /// The entries alone: contracts in the input are passed over
    #[arg(long)]
    without_contracts: bool,

    /// Goes on where an interrupted import of this input ended
    #[arg(long)]
    resume: bool,

    /// Where to remember how far it has come [default: next to the input, none for stdin]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

impl ImportArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        run::run(self, app).await
    }
}
