use clap::Args;
use pleach::{BucketName, Direction, KeyFilter, KeyRange, ScanOptions, Selection};
use std::ops::Bound;

use crate::app::App;
use crate::record::Record;
use crate::text;

/// Lists the keys that have values, in order
#[derive(Args, Debug)]
#[command(
    after_help = "In a filter, `*` stands for one token and `>` at the end for one or more. All that is listed is\n\
                  from one snapshot. With --json, values are printed too, unless --keys-only is given.\n\n\
                  Examples:\n  pleach kv ls carts\n  pleach kv ls carts 'user.*.cart' --values\n  \
                  pleach kv ls events --from 2026-07 --to 2026-08 --reverse --limit 10\n  \
                  pleach --json kv ls carts --prefix user."
)]
pub(crate) struct LsArgs {
    /// The bucket
    bucket: BucketName,

    /// Only keys that pass this filter
    filter: Option<KeyFilter>,

    /// Only keys that start with this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,

    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<String>,

    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,

    /// Begins with the last key
    #[arg(long)]
    reverse: bool,

    /// At most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Prints each value after its key and a tab
    #[arg(long)]
    values: bool,

    /// Leaves the values out of JSON
    #[arg(long, conflicts_with = "values")]
    keys_only: bool,
}

impl LsArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let bucket = app.bucket(&self.bucket).await?;
        let keys_only = self.keys_only || !(self.values || app.output.is_json());
        let mut scan = bucket.scan_with(ScanOptions {
            selection: Selection { range: self.range(), filter: self.filter },
            direction: if self.reverse { Direction::Backward } else { Direction::Forward },
            limit: self.limit,
            keys_only,
        });
        while let Some(entry) = scan.next().await? {
            if app.output.is_json() {
                let record = Record::new(&self.bucket, &entry);
                app.output.object(&if keys_only { record.without_value() } else { record })?;
            } else if self.values {
                app.output.line(format_args!("{}\t{}", entry.key, text::shown(&entry.value)))?;
            } else {
                app.output.line(&entry.key)?;
            }
        }
        Ok(())
    }

    fn range(&self) -> KeyRange {
        if let Some(prefix) = &self.prefix {
            return KeyRange::prefix(prefix);
        }
        let bytes = |text: &String| text.as_bytes().to_vec();
        KeyRange {
            start: self.from.as_ref().map_or(Bound::Unbounded, |from| Bound::Included(bytes(from))),
            end: self.to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(bytes(to))),
        }
    }
}
