//! How the costs of Pleach grow: with keys, buckets, watchers and the size of values.

mod buckets;
mod growth;
mod keys;
mod large;
mod watchers;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::args::ScaleArguments;
use crate::output::{progress, show};
use crate::peers::{Layout, Opening, PleachPeer};
use crate::run::Scratch;
use crate::work::Sizes;

/// Measures all of it and prints a table each.
pub(crate) fn run(arguments: &ScaleArguments) -> Result<()> {
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    let sizes = Sizes {
        write_seconds: arguments.seconds,
        read_seconds: arguments.seconds,
        warm_seconds: arguments.seconds / 3.0,
        ..Sizes::full()
    };
    let mut counts = arguments.keys.clone();
    counts.sort_unstable();
    let mut growth = growth::Growth::new("keys");
    for count in counts {
        progress(&format!("{count} keys"));
        growth.add(count, keys::measure(&scratch.fresh("keys")?, count, arguments.value, &sizes)?);
    }
    show(&growth.shown());
    let mut growth = growth::Growth::new("buckets");
    for count in from_one_to(arguments.buckets) {
        progress(&format!("{count} buckets"));
        growth.add(count, buckets::measure(&scratch.fresh("buckets")?, count, &sizes)?);
    }
    show(&growth.shown());
    let mut growth = growth::Growth::new("watchers");
    for count in [0].into_iter().chain(from_one_to(arguments.watchers)) {
        progress(&format!("{count} watchers"));
        growth.add(count, watchers::measure(&scratch.fresh("watchers")?, count, &sizes)?);
    }
    show(&growth.shown());
    let mut growth = growth::Growth::new("MiB in a value");
    for mebibytes in from_one_to(arguments.large) {
        progress(&format!("values of {mebibytes} MiB"));
        growth.add(mebibytes, large::measure(&scratch.fresh("large")?, mebibytes)?);
    }
    show(&growth.shown());
    Ok(())
}

/// What was measured, by the name it has in the table, in the order of its letters.
pub(crate) type Costs = BTreeMap<&'static str, f64>;

fn from_one_to(most: u64) -> Vec<u64> {
    if most > 1 { vec![1, most] } else { vec![1] }
}

/// Opens Pleach with its default settings.
fn open(directory: &Path) -> Result<PleachPeer> {
    PleachPeer::open(Opening { directory, layout: Layout::Same, unflushed: false })
}
