//! The work that every engine does.

mod load;
mod overwrite;
mod reads;
pub(crate) mod reopen;
mod writes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::peers::{self, EngineName, Layout, Opening, Peer};
use crate::process::wait_until_idle;
use crate::row::Row;
use crate::value;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Work {
    Load,
    Feed,
    HotGet,
    RandomGet,
    Missing,
    #[value(name = "scan-100")]
    Scan100,
    #[value(name = "durable-64")]
    Durable64,
    #[value(name = "durable-256")]
    Durable256,
    Mixed,
    Overwrite,
    Reopen,
}

impl Work {
    /// In the order in which it is done.
    pub(crate) const ALL: [Self; 11] = [
        Self::Load,
        Self::Feed,
        Self::HotGet,
        Self::RandomGet,
        Self::Missing,
        Self::Scan100,
        Self::Durable64,
        Self::Durable256,
        Self::Mixed,
        Self::Overwrite,
        Self::Reopen,
    ];

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Load => {
                "all keys once, in random order, in batches of 100 that are not synced; one sync at the end"
            }
            Self::Feed => "every change from the beginning",
            Self::HotGet => "keys that are there, zipf 0.99, by 1 thread and by 2",
            Self::RandomGet => "keys that are there, each as likely as any other, by 1 thread",
            Self::Missing => "keys that are not there but sort between those that are, by 1 thread",
            Self::Scan100 => "100 entries with their values, in order, from random keys, by 1 thread",
            Self::Durable64 => "single durable puts of random keys by 64 writers",
            Self::Durable256 => "single durable puts of random keys by 256 writers, with their p99.9",
            Self::Mixed => "gets and durable puts in turns, zipf 0.99, by 16 callers",
            Self::Overwrite => {
                "4 times the data, zipf 0.9, in batches of 100, until the engine is idle again"
            }
            Self::Reopen => "from opening after a kill, with 200 MB in the log only, to the answer of a get",
        }
    }
}

/// How much of everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    /// How many of the callers there are: one in so many.
    pub(crate) callers_divisor: usize,
    /// How long work with a fixed time takes.
    pub(crate) write_seconds: f64,
    pub(crate) read_seconds: f64,
    /// How long reads run before they are measured.
    pub(crate) warm_seconds: f64,
    /// How long an engine must rest to count as idle, and how long that is waited for.
    pub(crate) quiet_seconds: f64,
    pub(crate) idle_seconds_max: f64,
    /// How often the data are overwritten, and after how long that ends anyway.
    pub(crate) overwrite_times: u64,
    pub(crate) overwrite_seconds_max: f64,
    /// How many bytes of changes peers keep while data are overwritten, as Pleach does by default.
    pub(crate) feed_bytes: u64,
    /// How many bytes of values are in the log only when an engine is killed.
    pub(crate) tail_bytes: u64,
    /// Whether what is read is checked. It costs time, so figures are not for comparing then.
    pub(crate) check: bool,
}

impl Sizes {
    pub(crate) fn full() -> Self {
        Self {
            batch: 100,
            callers_divisor: 1,
            write_seconds: 4.0,
            read_seconds: 3.0,
            warm_seconds: 1.0,
            quiet_seconds: 1.5,
            idle_seconds_max: 120.0,
            overwrite_times: 4,
            overwrite_seconds_max: 240.0,
            feed_bytes: 256 * 1024 * 1024,
            tail_bytes: 200_000_000,
            check: false,
        }
    }

    /// Just enough to see that everything works.
    pub(crate) fn small() -> Self {
        Self {
            callers_divisor: 8,
            write_seconds: 0.06,
            read_seconds: 0.04,
            warm_seconds: 0.01,
            quiet_seconds: 0.02,
            idle_seconds_max: 0.1,
            overwrite_times: 2,
            overwrite_seconds_max: 5.0,
            feed_bytes: 64 * 1024,
            tail_bytes: 1_000_000,
            check: true,
            ..Self::full()
        }
    }

    /// How many keys there are, unless someone says otherwise.
    pub(crate) fn keys(&self, value_bytes: usize) -> u64 {
        match (self.check, value_bytes < 512) {
            (true, true) => 3_000,
            (true, false) => 1_000,
            (false, true) => 1_000_000,
            (false, false) => 300_000,
        }
    }

    /// Waits until the engine is idle.
    pub(crate) fn settle(&self) {
        wait_until_idle(seconds(self.quiet_seconds), seconds(self.idle_seconds_max));
    }

    /// The same, until also those are done who first look whether there is something to do, and not in haste.
    pub(crate) fn settle_thoroughly(&self) {
        wait_until_idle(seconds(self.quiet_seconds * 4.0), seconds(self.idle_seconds_max));
    }
}

pub(crate) fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number)
}

/// The figures of one engine in one run.
pub(crate) type Figures = BTreeMap<Row, f64>;

/// One engine that does all its work once.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) engine: EngineName,
    pub(crate) layout: Layout,
    pub(crate) value_bytes: usize,
    pub(crate) keys: u64,
    pub(crate) sizes: &'a Sizes,
    pub(crate) works: &'a [Work],
    /// Empty, and for this run alone.
    pub(crate) directory: &'a Path,
}

/// A run with its engine open.
pub(crate) struct Stage<'a> {
    run: &'a Run<'a>,
    peer: &'a dyn Peer,
    figures: Figures,
    /// How many values were put.
    puts: u64,
}

impl Run<'_> {
    /// Does the work; `tell` hears what is done next.
    pub(crate) fn perform(&self, tell: &dyn Fn(&str)) -> Result<Figures> {
        let mut figures = Figures::new();
        // Overwriting has a store of its own: faster engines would bring more garbage to it from the timed work.
        for together in [vec![Work::Overwrite], self.timed_works()] {
            if together.iter().any(|work| self.works.contains(work)) {
                figures.extend(self.perform_in_one_store(&together, tell)?);
            }
        }
        if self.works.contains(&Work::Reopen) {
            tell("reopen");
            let took = reopen::measure(self).context("reopen failed")?;
            figures.insert(Row::Reopen, took.as_secs_f64());
        }
        Ok(figures)
    }

    fn timed_works(&self) -> Vec<Work> {
        let own_store = [Work::Overwrite, Work::Reopen];
        Work::ALL.into_iter().filter(|work| self.works.contains(work) && !own_store.contains(work)).collect()
    }

    fn perform_in_one_store(&self, works: &[Work], tell: &dyn Fn(&str)) -> Result<Figures> {
        let directory = self.directory.join("store");
        let opening = Opening { directory: &directory, layout: self.layout, unflushed: false };
        let peer = peers::open(self.engine, opening).context("the engine cannot be opened")?;
        let mut stage = Stage::new(self, &*peer);
        // Without the load there is nothing to work on.
        let load = [Work::Load].into_iter().filter(|load| !works.contains(load));
        for work in load.chain(works.iter().copied()) {
            let name = clap::ValueEnum::to_possible_value(&work);
            let name = name.as_ref().map_or("", |name| name.get_name());
            tell(name);
            stage.perform(work).with_context(|| format!("{name} failed"))?;
            self.sizes.settle();
        }
        let figures = stage.figures;
        peer.close().context("the engine cannot be closed")?;
        std::fs::remove_dir_all(&directory)?;
        Ok(figures)
    }
}

impl<'a> Stage<'a> {
    pub(crate) fn new(run: &'a Run<'a>, peer: &'a dyn Peer) -> Self {
        Self { run, peer, figures: Figures::new(), puts: 0 }
    }

    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Does this work, which needs the load to come first.
    pub(crate) fn perform(&mut self, work: Work) -> Result<()> {
        match work {
            Work::Load => self.load(),
            Work::Feed => self.feed(),
            Work::HotGet => self.hot_get(),
            Work::RandomGet => self.random_get(),
            Work::Missing => self.missing(),
            Work::Scan100 => self.scan(),
            Work::Durable64 => self.durable(64),
            Work::Durable256 => self.durable(256),
            Work::Mixed => self.mixed(),
            Work::Overwrite => self.overwrite(),
            Work::Reopen => Ok(()),
        }
    }

    /// Checks that a get of this key answers with this version of its value.
    fn check_version(&self, index: u64, version: u64) -> Result<()> {
        let key = crate::keys::KeyText::of(index);
        let mut found = Ok(None);
        self.peer.get(&key, &mut |_, key, bytes| {
            found = value::check(key, bytes, self.run.value_bytes).map(Some);
        })?;
        let found = found?;
        ensure!(found == Some(version), "{} has {found:?} instead of {version}", key.as_str());
        Ok(())
    }

    /// Checks that the feed has every change, in order.
    fn check_feed(&self) -> Result<()> {
        let (mut last, mut wrong) = (0, Ok(()));
        let count = self.peer.replay(&mut |revision, key, bytes| {
            if wrong.is_ok() {
                wrong = check_change(&mut last, revision, key, bytes, self.run.value_bytes);
            }
        })?;
        wrong?;
        let puts = self.puts;
        ensure!(count.is_none_or(|count| count == puts), "the feed has {count:?} changes after {puts} puts");
        Ok(())
    }
}

fn check_change(last: &mut u64, revision: u64, key: &[u8], bytes: &[u8], value_bytes: usize) -> Result<()> {
    ensure!(revision > *last, "revision {revision} comes after {last} in the feed");
    *last = revision;
    value::check(key, bytes, value_bytes).map(|_| ())
}
