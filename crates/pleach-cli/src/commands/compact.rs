use std::num::NonZeroU8;

use clap::Args;

use super::{EntryArgs, records};
use crate::app::App;
use crate::record::Event;
use crate::text::counted;

/// Forgets all but the newest records of a key
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach kv compact carts user.42 --keep 1")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    entry: EntryArgs,

    /// How many records to keep, 1 to 64
    #[arg(long, value_name = "N", value_parser = records)]
    keep: NonZeroU8,
}

impl CompactArgs {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let EntryArgs { bucket: name, key } = self.entry;
        app.bucket(&name).await?.compact_key(&key, self.keep).await?;
        let event = Event::new("compacted").bucket(&name).key(&key).count("keep", self.keep.get().into());
        let kept = counted(self.keep.get().into(), "record", "records");
        app.output.confirm(&event, format!("{name}/{key} keeps at most its newest {kept}"))
    }
}
