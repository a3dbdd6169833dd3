use clap::Args;
use pleach::{Entry, ErrorKind, Expectation, Expiry, Revision};

use super::write::{Put, put};
use super::{EntryArgs, revision};
use crate::app::App;
use crate::failure::Problem;

/// Puts an older value of a key again
#[derive(Args, Debug)]
#[command(
    after_help = "The value and headers of that revision become a new revision. If someone writes the key\n\
                  meanwhile, nothing is written, and the exit code is 4.\n\n\
                  Examples:\n  pleach kv history carts user.42\n  pleach kv revert carts user.42 7"
)]
pub(crate) struct RevertArgs {
    #[command(flatten)]
    entry: EntryArgs,

    /// The revision of the value, as `pleach kv history` shows it
    #[arg(value_parser = revision)]
    revision: Revision,
}

impl RevertArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let EntryArgs { bucket: name, key } = self.entry;
        let bucket = app.bucket(&name).await?;
        let records = bucket.history(&key).await?;
        let place = format!("{name}/{key}");
        let old = find(&records, self.revision, &place).map_err(|problem| {
            problem.help(format!("see what there is with `pleach kv history {name} {key}`"))
        })?;
        let now = bucket.store().now();
        let expect = match records.last() {
            // A value that has expired is no longer any record: what is expected is that there is still none.
            Some(newest) if newest.op.is_put() && newest.expires.is_some_and(|expires| expires <= now) => {
                Expectation::Absent
            }
            Some(newest) => Expectation::Revision(newest.revision),
            None => Expectation::Absent,
        };
        let Entry { value, headers, .. } = old.clone();
        put(app, &bucket, Put { key, value, expiry: Expiry::Bucket, headers, expect }).await
    }
}

fn find<'a>(records: &'a [Entry], revision: Revision, place: &str) -> Result<&'a Entry, Problem> {
    match records.iter().find(|record| record.revision == revision) {
        Some(record) if record.op.is_put() => Ok(record),
        Some(record) => Err(Problem::invalid(format!(
            "revision {revision} of {place} is a {} without a value",
            record.op
        ))),
        None if records.first().is_some_and(|oldest| revision < oldest.revision) => {
            let message = format!("{place} keeps no record as old as revision {revision}");
            Err(Problem::new(ErrorKind::Compacted, message))
        }
        None => Err(Problem::not_found(format!("{place} has no record with revision {revision}"))),
    }
}
