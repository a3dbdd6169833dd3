use clap::Args;
use pleach::{GetOptions, Reads, Revision};

use super::{EntryArgs, revision, typed};
use crate::app::App;
use crate::failure::Problem;
use crate::record::Record;
use crate::size::Size;
use crate::text::printable;

/// Prints the value of a key
#[derive(Args, Debug)]
#[command(after_help = "The value is followed by a newline, unless --raw asks for its exact bytes.\n\
                  On a terminal, control characters are shown escaped, and bytes that are no text are not printed, without --raw.\n\
                  A key without a value ends with exit code 3.\n\n\
                  Examples:\n  pleach kv get carts user.42\n  pleach kv get carts user.42 --revision 7\n  \
                  pleach --store nats://localhost kv get carts user.42 --reads leader\n  \
                  pleach kv get svc_cases_cases t.acme.case.000001 --typed\n  \
                  pleach kv get images logo --raw > logo.png\n  pleach --json kv get carts user.42")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    entry: EntryArgs,

    /// As it was once this revision had been committed
    #[arg(long, value_name = "N", value_parser = revision)]
    revision: Option<Revision>,

    /// What to see at least, where servers can be behind: own (what this command knows of), any (what the
    /// first to answer has), leader, or everything up to a revision
    #[arg(long, value_name = "HOW", value_parser = reads, conflicts_with = "revision")]
    reads: Option<Reads>,

    /// Shows what the contract of the bucket says to it: the parts of the key, the version, and the value laid out
    #[arg(long, conflicts_with_all = ["raw", "revision", "reads"])]
    typed: bool,

    /// Prints the exact bytes of the value and nothing else
    #[arg(long)]
    raw: bool,
}

fn reads(text: &str) -> Result<Reads, String> {
    Ok(match text {
        "own" => Reads::OwnWrites,
        "any" => Reads::Any,
        "leader" => Reads::Leader,
        revision => {
            let expected = "expected own, any, leader or a revision";
            Reads::AtLeast(revision.parse().map_err(|_| expected)?)
        }
    })
}

impl GetArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        // A conflict that the parser overlooks if --json stands before the command.
        if self.raw && app.output.is_json() {
            let problem = Problem::invalid("--raw prints bytes and --json an object: there cannot be both");
            return Err(problem.help("leave one of them out").into());
        }
        let EntryArgs { bucket: name, key } = self.entry;
        if self.typed {
            return typed::show(app, &name, &key).await;
        }
        let bucket = app.bucket(&name).await?;
        let found = match self.revision {
            Some(revision) => bucket.get_at(&key, revision).await?,
            None => bucket.get_with(&key, GetOptions { reads: self.reads }).await?,
        };
        let Some(entry) = found else {
            let problem = match self.revision {
                Some(revision) => {
                    Problem::not_found(format!("{name}/{key} has no value as of revision {revision}"))
                }
                None => Problem::not_found(format!("{name}/{key} has no value")),
            };
            let help =
                format!("list the keys with `pleach kv ls {name}`, or see `pleach kv history {name} {key}`");
            return Err(problem.help(help).into());
        };
        if app.output.is_json() {
            return app.output.object(&Record::new(&name, &entry));
        }
        if !self.raw && app.output.is_terminal() && std::str::from_utf8(&entry.value).is_err() {
            let message =
                format!("the value of {name}/{key} is {}, not text", Size(entry.value.len() as u64));
            let help = "add `--raw > FILE` to keep its bytes, --raw to print them anyway, or --json";
            return Err(Problem::invalid(message).help(help).into());
        }
        match std::str::from_utf8(&entry.value) {
            // A value must not move the cursor of whoever looks at it, or tell the terminal anything.
            Ok(text) if !self.raw && app.output.is_terminal() => app.output.line(printable(text)),
            _ if self.raw => app.output.bytes(&entry.value),
            _ => {
                app.output.bytes(&entry.value)?;
                app.output.bytes(b"\n")
            }
        }
    }
}
