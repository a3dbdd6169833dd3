use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use tempfile::TempDir;

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::machine::{Machine, commit};
use crate::output::{progress, show};
use crate::peers::{CACHE_BYTES, EngineName, Layout, MEMTABLE_BYTES};
use crate::report::{Measured, Report, Settings};
use crate::work::{Run, Sizes, Work};
use crate::{chart, table};

/// Measures what the arguments ask for, and prints it.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.list {
        show(&list());
        return Ok(());
    }
    let engines = engines(&arguments.engines)?;
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    let report = measure(arguments, &engines, &scratch)?;
    show(&table::tables(&report));
    if let Some(path) = &arguments.json {
        report.save(path)?;
    }
    if let Some(directory) = &arguments.charts {
        chart::draw_all(&report, directory)?;
    }
    Ok(())
}

/// Where stores go: a directory that is removed afterwards.
#[derive(Debug)]
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self> {
        let made = match parent {
            Some(parent) => {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make {}", parent.display()))?;
                TempDir::with_prefix_in("pleach-bench-", parent)
            }
            None => TempDir::with_prefix("pleach-bench-"),
        };
        Ok(Self(made.context("cannot make a directory for the stores: name one with --dir")?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// An empty directory.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}

fn engines(asked: &[EngineName]) -> Result<Vec<EngineName>, Failure> {
    if let Some(missing) = asked.iter().find(|engine| !engine.is_built()) {
        let help = "run it with: cargo run --release -p pleach-bench --features rocksdb";
        return Err(Failure::Usage(format!("{} was not compiled in; {help}", missing.title())));
    }
    let all = EngineName::value_variants();
    let wanted = |engine: &EngineName| {
        if asked.is_empty() { engine.is_built() } else { asked.contains(engine) }
    };
    Ok(all.iter().copied().filter(wanted).collect())
}

fn measure(arguments: &RunArguments, engines: &[EngineName], scratch: &Scratch) -> Result<Report> {
    let sizes = if arguments.small { Sizes::small() } else { Sizes::full() };
    let repeat = arguments.repeat.unwrap_or(if arguments.small { 1 } else { 3 });
    let works = if arguments.work.is_empty() { Work::ALL.to_vec() } else { arguments.work.clone() };
    let keys: BTreeMap<usize, u64> = arguments
        .value
        .iter()
        .map(|value_bytes| (*value_bytes, arguments.keys.unwrap_or_else(|| sizes.keys(*value_bytes))))
        .collect();
    let mut runs = Vec::new();
    for repetition in 1..=repeat {
        for (&value_bytes, &keys) in &keys {
            for (engine, layout) in contestants(engines, arguments.table.layouts()) {
                let name = format!("{} {layout:?}", engine.title());
                let directory = scratch.fresh("run")?;
                let (sizes, works, directory) = (&sizes, &works, &directory);
                let run = Run { engine, layout, value_bytes, keys, sizes, works, directory };
                let place = format!("{repetition}/{repeat} {value_bytes} B {name}");
                let figures = run
                    .perform(&|work| progress(&format!("{place}: {work}")))
                    .with_context(|| format!("{name}, values of {value_bytes} B"))?;
                let repetition = Some(repetition);
                runs.push(Measured { engine, layout, value_bytes, repetition, figures });
            }
        }
    }
    let (memtable_bytes, peer_cache_bytes) = (MEMTABLE_BYTES, CACHE_BYTES);
    let settings = Settings { repeat, keys, memtable_bytes, peer_cache_bytes, sizes };
    let (machine, commit) = (Machine::here(), commit());
    let mut report = Report { machine, commit, settings, runs, medians: Vec::new() };
    report.finish();
    Ok(report)
}

/// Who runs: Pleach once, each peer once for each layout.
fn contestants(engines: &[EngineName], layouts: &[Layout]) -> Vec<(EngineName, Layout)> {
    let mut contestants = Vec::new();
    for &engine in engines {
        match engine {
            EngineName::Pleach => contestants.push((engine, Layout::Same)),
            _ => contestants.extend(layouts.iter().map(|layout| (engine, *layout))),
        }
    }
    contestants
}

fn list() -> String {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let mut text = String::from("Work:\n");
    for work in Work::ALL {
        text += &format!("  {:<12} {}\n", name(work.to_possible_value()), work.about());
    }
    text += "Engines:\n";
    for engine in EngineName::value_variants() {
        let note = if engine.is_built() { "" } else { " (not compiled in: build with --features rocksdb)" };
        text += &format!("  {:<12} {}{note}\n", name(engine.to_possible_value()), engine.title());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pleach_runs_once_and_each_peer_in_both_layouts() {
        let layouts = [Layout::Same, Layout::Raw];
        let contestants = contestants(&[EngineName::Pleach, EngineName::Redb], &layouts);
        assert_eq!(
            contestants,
            [
                (EngineName::Pleach, Layout::Same),
                (EngineName::Redb, Layout::Same),
                (EngineName::Redb, Layout::Raw)
            ]
        );
    }

    #[test]
    fn the_list_names_all_work_and_all_engines() {
        let list = list();
        for name in ["load", "scan-100", "durable-256", "reopen", "pleach", "sqlite", "rocksdb"] {
            assert!(list.contains(&format!("  {name} ")), "{list}");
        }
    }
}
