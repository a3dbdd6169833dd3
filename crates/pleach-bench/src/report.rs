use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::peers::{EngineName, Layout};
use crate::row::Row;
use crate::statistics::median;
use crate::work::{Figures, Sizes};

/// Everything that was measured, and on what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) commit: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) runs: Vec<Measured>,
    /// Of the runs; for readers of the file.
    pub(crate) medians: Vec<Measured>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) repeat: u32,
    /// How many keys there were, by length of values.
    pub(crate) keys: BTreeMap<usize, u64>,
    pub(crate) memtable_bytes: usize,
    pub(crate) peer_cache_bytes: usize,
    pub(crate) sizes: Sizes,
}

/// What one engine did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) engine: EngineName,
    /// Pleach is the same in both tables, and is noted as `same`.
    pub(crate) layout: Layout,
    pub(crate) value_bytes: usize,
    /// Which repetition; none for a median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repetition: Option<u32>,
    pub(crate) figures: Figures,
}

impl Report {
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} does not hold what --json writes", path.display()))
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Works out the medians of the runs.
    pub(crate) fn finish(&mut self) {
        let mut groups: BTreeMap<(EngineName, Layout, usize), Vec<&Figures>> = BTreeMap::new();
        for run in &self.runs {
            groups.entry((run.engine, run.layout, run.value_bytes)).or_default().push(&run.figures);
        }
        let medians = groups.into_iter().map(|((engine, layout, value_bytes), figures)| {
            let of_row = |row: Row| {
                let values: Vec<f64> = figures.iter().filter_map(|run| run.get(&row).copied()).collect();
                median(&values).map(|middle| (row, middle))
            };
            let figures = Row::ALL.into_iter().filter_map(of_row).collect();
            Measured { engine, layout, value_bytes, repetition: None, figures }
        });
        self.medians = medians.collect();
    }

    /// A median.
    pub(crate) fn figure(
        &self,
        engine: EngineName,
        layout: Layout,
        value_bytes: usize,
        row: Row,
    ) -> Option<f64> {
        let layout = if engine == EngineName::Pleach { Layout::Same } else { layout };
        let found = self.medians.iter().find(|median| {
            (median.engine, median.layout, median.value_bytes) == (engine, layout, value_bytes)
        });
        found?.figures.get(&row).copied()
    }

    /// What Pleach did, divided by what the peer did.
    pub(crate) fn ratio(
        &self,
        peer: EngineName,
        layout: Layout,
        value_bytes: usize,
        row: Row,
    ) -> Option<f64> {
        let ours = self.figure(EngineName::Pleach, layout, value_bytes, row)?;
        let theirs = self.figure(peer, layout, value_bytes, row)?;
        (theirs > 0.0).then(|| ours / theirs)
    }

    /// The engines that were measured in this table, Pleach first.
    pub(crate) fn engines(&self, layout: Layout) -> Vec<EngineName> {
        let measured = self.medians.iter();
        let named = measured.filter(|run| run.engine == EngineName::Pleach || run.layout == layout);
        named.map(|run| run.engine).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(crate) fn value_lengths(&self) -> Vec<usize> {
        self.settings.keys.keys().copied().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three runs of Pleach and RocksDB, and one of SQLite as a plain map.
    pub(crate) fn sample() -> Report {
        let run = |engine, layout, repetition, load: f64, slowest: f64| Measured {
            engine,
            layout,
            value_bytes: 100,
            repetition: Some(repetition),
            figures: Figures::from([(Row::Load, load), (Row::SlowestPut, slowest)]),
        };
        let mut report = Report {
            machine: Machine::here(),
            commit: Some("abc".into()),
            settings: Settings {
                repeat: 3,
                keys: BTreeMap::from([(100, 1000)]),
                memtable_bytes: 1,
                peer_cache_bytes: 2,
                sizes: Sizes::full(),
            },
            runs: vec![
                run(EngineName::Pleach, Layout::Same, 1, 500.0, 1.0),
                run(EngineName::RocksDb, Layout::Same, 1, 100.0, 2.0),
                run(EngineName::Pleach, Layout::Same, 2, 300.0, 3.0),
                run(EngineName::RocksDb, Layout::Same, 2, 200.0, 6.0),
                run(EngineName::Pleach, Layout::Same, 3, 200.0, 2.0),
                run(EngineName::RocksDb, Layout::Same, 3, 900.0, 4.0),
                run(EngineName::Sqlite, Layout::Raw, 1, 30.0, 9.0),
            ],
            medians: Vec::new(),
        };
        report.finish();
        report
    }

    #[test]
    fn a_ratio_is_median_by_median() {
        let report = sample();
        assert_eq!(report.ratio(EngineName::RocksDb, Layout::Same, 100, Row::Load), Some(1.5));
        assert_eq!(report.ratio(EngineName::RocksDb, Layout::Same, 100, Row::SlowestPut), Some(0.5));
        assert_eq!(report.ratio(EngineName::Sqlite, Layout::Raw, 100, Row::Load), Some(10.0));
        assert_eq!(report.ratio(EngineName::RocksDb, Layout::Raw, 100, Row::Load), None);
        assert_eq!(report.engines(Layout::Raw), [EngineName::Pleach, EngineName::Sqlite]);
    }

    #[test]
    fn a_report_comes_back_from_its_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let (path, report) = (directory.path().join("figures.json"), sample());
        report.save(&path).unwrap();
        let loaded = Report::load(&path).unwrap();
        assert_eq!((&loaded.runs, &loaded.medians), (&report.runs, &report.medians));
        assert_eq!((loaded.machine, loaded.commit), (report.machine, report.commit));
        fs::write(&path, "{}").unwrap();
        assert!(Report::load(&path).unwrap_err().to_string().contains("does not hold"));
    }
}
