use std::collections::HashMap;

use anyhow::Result;

use super::load::fill;
use super::{Stage, seconds};
use crate::keys::{KEY_BYTES, Spread};
use crate::peers::Record;
use crate::process::{disk_bytes, now, written_bytes};
use crate::random::Random;
use crate::row::Row;

/// How skewed overwriting is: less than reading, so that the cold keys move too.
const OVERWRITE_SKEW: f64 = 0.9;

/// How often the feed of a peer is trimmed while it grows by what it may keep.
const TRIMS: u64 = 8;

impl Stage<'_> {
    /// Overwrites the data several times, and waits until the engine has tidied up.
    pub(super) fn overwrite(&mut self) -> Result<()> {
        let (sizes, keys) = (self.run.sizes, self.run.keys);
        let user_bytes = (KEY_BYTES + self.run.value_bytes) as u64;
        let kept_changes = sizes.feed_bytes / user_bytes;
        let trim_every = (kept_changes / TRIMS).max(1);
        let (spread, mut random) = (Spread::zipf(keys, OVERWRITE_SKEW), Random::new(0x0e11));
        let (mut records, mut wrote): (Vec<Record>, HashMap<u64, u64>) = Default::default();
        let before = written_bytes();
        let deadline = now() + seconds(sizes.overwrite_seconds_max);
        let (mut puts, mut untrimmed) = (0, 0);
        while puts < keys * sizes.overwrite_times && now() < deadline {
            let picked: HashMap<u64, u64> =
                (0..sizes.batch).map(|_| (spread.pick(&mut random), random.next())).collect();
            if sizes.check {
                wrote.extend(&picked);
            }
            // A key may come once in a batch of Pleach; the same is asked of all.
            fill(&mut records, picked.into_iter(), self.run.value_bytes);
            self.peer.put_batch(&records)?;
            puts += records.len() as u64;
            untrimmed += records.len() as u64;
            if untrimmed >= trim_every {
                self.peer.trim_feed(kept_changes)?;
                untrimmed = 0;
            }
        }
        self.peer.sync()?;
        sizes.settle_thoroughly();
        self.puts += puts;
        if let Some((after, before)) = written_bytes().zip(before).filter(|(after, before)| after > before) {
            self.figures.insert(Row::Written, ratio(after - before, puts * user_bytes));
        }
        let space = disk_bytes(&self.run.directory.join("store"));
        self.figures.insert(Row::Space, ratio(space, keys * user_bytes));
        wrote.into_iter().try_for_each(|(index, version)| self.check_version(index, version))
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
