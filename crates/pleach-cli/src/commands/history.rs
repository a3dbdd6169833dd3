use clap::Args;

use super::EntryArgs;
use crate::app::App;
use crate::failure::Problem;
use crate::record::{Record, moment};
use crate::size::Size;
use crate::table::{Column, Table};
use crate::text;

/// Prints the kept records of a key, oldest first
#[derive(Args, Debug)]
#[command(
    after_help = "How many are kept is up to the bucket: `pleach kv bucket edit BUCKET --history N`.\n\n\
                  Examples:\n  pleach kv history carts user.42\n  pleach --json kv history carts user.42"
)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    entry: EntryArgs,
}

impl HistoryArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let EntryArgs { bucket: name, key } = self.entry;
        let records = app.bucket(&name).await?.history(&key).await?;
        if records.is_empty() {
            let problem = Problem::not_found(format!("{name}/{key} has no history"));
            return Err(problem.help(format!("list the keys with `pleach kv ls {name}`")).into());
        }
        if app.output.is_json() {
            return records.iter().try_for_each(|record| app.output.object(&Record::new(&name, record)));
        }
        let mut table = Table::new([
            Column::Right("REVISION"),
            Column::Left("TIME"),
            Column::Left("OP"),
            Column::Right("SIZE"),
            Column::Left("EXPIRES"),
            Column::Left("VALUE"),
        ]);
        for record in &records {
            let value = |shown: String| if record.op.is_put() { shown } else { String::new() };
            table.row([
                record.revision.to_string(),
                moment(record.time),
                record.op.to_string(),
                value(Size(record.value.len() as u64).to_string()),
                record.expires.map(moment).unwrap_or_default(),
                value(text::excerpt(&record.value)),
            ]);
        }
        table.write(&mut app.output)
    }
}
