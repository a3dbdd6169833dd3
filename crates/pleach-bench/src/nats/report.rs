use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::NatsRow;
use super::client::ClientName;
use crate::chart::{Bar, Chart};
use crate::machine::Machine;
use crate::statistics::median;
use crate::table::{grouped, length, rendered};

/// Everything that was measured, and on what.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NatsReport {
    pub(super) machine: Machine,
    pub(super) commit: Option<String>,
    pub(super) settings: NatsSettings,
    pub(super) runs: Vec<Measured>,
    /// Of the runs; for readers of the file.
    pub(super) medians: Vec<Measured>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct NatsSettings {
    pub(super) servers: usize,
    pub(super) keys: u64,
    pub(super) value_bytes: usize,
    pub(super) seconds: f64,
    pub(super) repeat: u32,
    pub(super) own_threads: bool,
    pub(super) watchers: u64,
    /// How long Pleach took to load its ordered copy, if it did.
    pub(super) cache_seconds: Option<f64>,
}

/// What one client did.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) client: ClientName,
    pub(super) row: NatsRow,
    /// Which repetition; none for a median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repetition: Option<u32>,
    pub(super) per_second: f64,
}

impl NatsReport {
    /// Works out the medians of the runs.
    pub(super) fn finish(&mut self) {
        let mut groups: BTreeMap<(NatsRow, ClientName), Vec<f64>> = BTreeMap::new();
        for run in &self.runs {
            groups.entry((run.row, run.client)).or_default().push(run.per_second);
        }
        let of_group = |((row, client), values): ((NatsRow, ClientName), Vec<f64>)| {
            Some(Measured { client, row, repetition: None, per_second: median(&values)? })
        };
        self.medians = groups.into_iter().filter_map(of_group).collect();
    }

    fn figure(&self, client: ClientName, row: NatsRow) -> Option<f64> {
        let found = self.medians.iter().find(|median| median.client == client && median.row == row);
        found.map(|median| median.per_second)
    }

    /// What Pleach did, divided by what the plain client did.
    fn ratio(&self, row: NatsRow) -> Option<f64> {
        let plain = self.figure(ClientName::Plain, row).filter(|plain| *plain > 0.0)?;
        Some(self.figure(ClientName::Pleach, row)? / plain)
    }

    fn title(&self) -> String {
        let NatsSettings { servers, keys, value_bytes, .. } = &self.settings;
        let servers = if *servers == 1 { "one server".to_owned() } else { format!("{servers} servers") };
        format!("Pleach on NATS, {servers}, {} keys, values of {}", grouped(*keys), length(*value_bytes))
    }

    /// The table, as Markdown that also reads well as it is.
    pub(super) fn table(&self) -> String {
        let titles = [ClientName::Pleach, ClientName::Plain].map(|client| format!("{}, /s", client.title()));
        let mut lines = vec![["work".to_owned()].into_iter().chain(titles).collect::<Vec<_>>()];
        lines[0].extend(["ratio".to_owned(), "aim".to_owned()]);
        for row in NatsRow::ALL {
            let Some(ratio) = self.ratio(row) else { continue };
            let figure = |client| self.figure(client, row).map(shown).unwrap_or_default();
            lines.push(vec![
                row.title().to_owned(),
                figure(ClientName::Pleach),
                figure(ClientName::Plain),
                format!("{ratio:.2}"),
                format!("{}", row.aim()),
            ]);
        }
        let copy = self.settings.cache_seconds.map(|seconds| {
            format!("\nThe ordered copy behind lists and pages was loaded in {seconds:.2} s.\n")
        });
        let head = format!("\n{}, median of {}\n\n", self.title(), self.settings.repeat);
        head + &rendered(&lines) + &copy.unwrap_or_default()
    }

    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Draws the ratios.
    pub(super) fn draw(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let class = "nats";
        let bar = |row: NatsRow| Some((row.title(), vec![Bar { class, better: self.ratio(row)? }]));
        let groups = NatsRow::ALL.into_iter().filter_map(bar).collect();
        let peers = vec![(class, ClientName::Plain.title())];
        let Some(picture) = (Chart { title: self.title(), peers, groups }).draw() else { return Ok(()) };
        let path = directory.join(format!("nats-{}.svg", self.settings.servers));
        fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a rate, rounded")]
fn shown(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.2}") } else { grouped(rate.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> NatsReport {
        let run = |client, repetition, per_second| Measured {
            client,
            row: NatsRow::Put1,
            repetition: Some(repetition),
            per_second,
        };
        let mut report = NatsReport {
            machine: Machine::here(),
            commit: None,
            settings: NatsSettings {
                servers: 3,
                keys: 2000,
                value_bytes: 100,
                seconds: 1.0,
                repeat: 3,
                own_threads: false,
                watchers: 100,
                cache_seconds: Some(0.5),
            },
            runs: vec![
                run(ClientName::Pleach, 1, 1800.0),
                run(ClientName::Plain, 1, 1000.0),
                run(ClientName::Pleach, 2, 1500.0),
                run(ClientName::Plain, 2, 3000.0),
                run(ClientName::Pleach, 3, 100.0),
                run(ClientName::Plain, 3, 500.0),
            ],
            medians: Vec::new(),
        };
        report.finish();
        report
    }

    #[test]
    fn a_table_compares_medians_and_says_what_the_aim_is() {
        let table = sample().table();
        assert!(
            table.contains("Pleach on NATS, 3 servers, 2,000 keys, values of 100 B, median of 3"),
            "{table}"
        );
        assert!(
            table.contains("| put, 1 caller |              1,500 |             1,000 |  1.50 | 0.9 |"),
            "{table}"
        );
    }

    #[test]
    fn figures_and_a_chart_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nats.json");
        sample().save(&path).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(read["medians"][0]["row"], "put1");
        sample().draw(directory.path()).unwrap();
        let chart = fs::read_to_string(directory.path().join("nats-3.svg")).unwrap();
        assert!(chart.contains("1.50×") && chart.contains("async-nats KV"), "{chart}");
    }
}
