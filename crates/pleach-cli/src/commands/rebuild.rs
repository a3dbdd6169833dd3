use clap::Args;
use pleach::Error;
use pleach::inspect::{self, RebuildOptions};
use serde_json::json;

use super::verify::Bar;
use crate::app::App;
use crate::record::JSON_VERSION;
use crate::size::Size;

/// Builds the index of a store in a directory anew
#[derive(Args, Debug)]
#[command(
    after_help = "The index is a view of the log, so nothing is lost. A store with a damaged index does this by\n\
                  itself when it is opened. If the log is damaged, nothing is done: see `pleach verify`. The store\n\
                  must not be in use.\n\n\
                  Examples:\n  pleach rebuild\n  pleach --store file:/srv/data rebuild --discard-old"
)]
pub(crate) struct RebuildArgs {
    /// Deletes the old index once the new one is complete, instead of keeping it beside it
    #[arg(long)]
    discard_old: bool,
}

const ON_SERVERS: &str = "there is no index to build: every command reads what the servers have";

impl RebuildArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let (directory, place) = (app.directory(ON_SERVERS)?, app.place());
        let options = RebuildOptions { discard_old: self.discard_old };
        let mut bar = Bar::new(&app.output);
        let report = inspect::rebuild(directory, options, &mut |at| bar.show(at)).map_err(Error::from)?;
        drop(bar);
        let old = report.set_aside.map(|path| path.display().to_string());
        let object = json!({
            "v": JSON_VERSION, "event": "rebuilt", "revision": report.applied, "bytes": report.log_bytes,
            "set_aside": old,
        });
        let kept = old.map(|old| format!("; the old one is kept at {old}")).unwrap_or_default();
        let (size, revision) = (Size(report.log_bytes), report.applied);
        app.output.confirm(
            &object,
            format!("the index of {place} is built from {size} of log, up to revision {revision}{kept}"),
        )
    }
}
