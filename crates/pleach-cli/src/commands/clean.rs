use clap::Args;
use pleach::Error;
use pleach::inspect;
use serde_json::json;

use super::verify::Bar;
use crate::app::App;
use crate::record::JSON_VERSION;
use crate::size::Size;

/// Cleans the log of a store in a directory, so that it takes less space
#[derive(Args, Debug)]
#[command(
    after_help = "A store cleans itself while a program has it open. Commands are gone in a moment; so if nothing\n\
                  else uses a store, run this now and then. Nothing is lost but what can no longer be read: see\n\
                  --history, --feed-time, --feed-bytes and --marker-ttl of `pleach kv bucket add`. The store must\n\
                  not be in use.\n\n\
                  Examples:\n  pleach clean\n  pleach --store file:/srv/data clean"
)]
pub(crate) struct CleanArgs {}

const ON_SERVERS: &str = "the servers forget by themselves what no bucket keeps: see --history, --ttl and --marker-ttl of `pleach kv bucket edit`";

impl CleanArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let (directory, place) = (app.directory(ON_SERVERS)?, app.place());
        let mut bar = Bar::new(&app.output);
        let report = inspect::clean(directory, &mut |at| bar.show(at)).map_err(Error::from)?;
        drop(bar);
        let object = json!({
            "v": JSON_VERSION, "event": "cleaned", "bytes_before": report.before, "bytes": report.after,
        });
        let (before, after) = (Size(report.before), Size(report.after));
        app.output.confirm(&object, format!("the log of {place} had {before} and has {after}"))
    }
}
