use clap::Args;
use pleach::state::{Cell, LIST_LIMIT_MAX, ListOptions};
use serde_json::Value;

use super::SessionArgs;
use crate::app::App;
use crate::table::{Column, Table};
use crate::text;

/// Lists the entries of a map
#[derive(Args, Debug)]
#[command(
    after_help = "Entries come in the byte order of their keys. Pages are live: what is written between two of them\n\
                  moves what comes after it. With --prefix keys are relative to it; `a/b` lists `a/b/c`, and not\n\
                  `a/bc`. A bad entry is listed with what is wrong with it, and is no failure. With --json the page is\n\
                  one object, with the number of all entries and where the next page begins.\n\n\
                  Exit codes: 0 if the page could be read; at the end and past it the page is empty.\n\n\
                  Examples:\n  \
                  pleach state list --as user:ann --contract notes.yaml drafts\n  \
                  pleach state list --as user:ann --contract notes.yaml drafts --prefix inbox --limit 20 --offset 40"
)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// The store, as the contract names it
    #[arg(id = "state_store", value_name = "STORE")]
    store: String,

    /// Only keys below this path
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    prefix: String,

    /// How many entries to pass over
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,

    /// How many entries to print, at most 100; 0 only counts
    #[arg(long, value_name = "N", default_value_t = LIST_LIMIT_MAX)]
    limit: usize,
}

impl ListArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let map = super::view(self.session.open(app).await?.map::<Value>(&self.store)?, &self.prefix);
        let page = map.list(ListOptions { offset: self.offset, limit: self.limit }).await?;
        if app.output.is_json() {
            return app.output.object(&page.to_json());
        }
        let mut table = Table::new([Column::Left("KEY"), Column::Left("REVISION"), Column::Left("VALUE")]);
        for cell in &page.entries {
            let key = text::shown(cell.key().unwrap_or_default().as_bytes());
            let (revision, value) = match cell {
                Cell::Entry(entry) => (entry.revision, text::excerpt(entry.value.to_string().as_bytes())),
                Cell::MigrationRequired(old) => {
                    let value = text::excerpt(old.entry.value.to_string().as_bytes());
                    (old.entry.revision, format!("{value} (version {})", old.state_version))
                }
                Cell::Bad(bad) => (bad.revision, format!("({})", bad.error)),
            };
            table.row([key, revision.to_string(), value]);
        }
        if !page.entries.is_empty() {
            table.write(&mut app.output)?;
        }
        let rest = page.next_offset.map_or(String::new(), |next| format!("; go on with --offset {next}"));
        app.output.note(format_args!("{} of {} entries{rest}", page.entries.len(), page.count));
        Ok(())
    }
}
