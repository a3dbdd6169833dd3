use std::path::PathBuf;

use clap::Args;
use pleach::inspect::{self, SalvageReport};
use pleach::{Error, ErrorKind};
use serde_json::Value;

use super::verify::{Bar, log_object, print_damages, print_findings};
use crate::app::App;
use crate::failure::Problem;
use crate::text::counted;

/// Copies everything readable out of a damaged store into a new one
#[derive(Args, Debug)]
#[command(
    after_help = "Commits are copied whole or not at all, with their times, headers, expiries and history. Revisions\n\
                  stay as they were, and so do consumers. The damaged store is not changed. Lists what could not be\n\
                  read, and then ends with exit code 9. The store must not be in use.\n\n\
                  Examples:\n  pleach salvage --to ./salvaged\n  pleach --store file:/srv/data salvage --to /srv/new"
)]
pub(crate) struct SalvageArgs {
    /// The directory of the new store, which must not exist or be empty
    #[arg(long, value_name = "PATH")]
    to: PathBuf,
}

const ON_SERVERS: &str =
    "a cluster mends itself from its other servers; copy what can be read with `pleach kv export`";

impl SalvageArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let directory = app.directory(ON_SERVERS)?;
        if self.to.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let problem = Problem::invalid(format!("{} is not empty", self.to.display()));
            return Err(problem.help("name a directory that does not exist yet").into());
        }
        let mut bar = Bar::new(&app.output);
        let report = inspect::salvage(directory, &self.to, &mut |at| bar.show(at)).map_err(Error::from)?;
        drop(bar);
        self.print(&report, app)?;
        if report.log.is_sound() {
            return Ok(());
        }
        let places = counted(report.log.damage_count, "place", "places");
        let problem = Problem::new(ErrorKind::Corrupt, format!("the old store is damaged in {places}"));
        let to = self.to.display();
        Err(problem.help(format!("the rest is complete: use it with `--store file:{to}`")).into())
    }

    fn print(&self, report: &SalvageReport, app: &mut App) -> anyhow::Result<()> {
        let guessed: Vec<&str> = report.guessed_buckets.iter().map(|bucket| bucket.as_str()).collect();
        if app.output.is_json() {
            print_findings(&report.log, &mut app.output)?;
            let mut summary = log_object("salvaged", &report.log);
            summary.insert("to".into(), self.to.display().to_string().into());
            summary.insert("copied_commits".into(), report.commits.into());
            summary.insert("copied_records".into(), report.records.into());
            summary.insert("revision".into(), report.last.get().into());
            summary.insert("left_out".into(), report.left_out.into());
            summary.insert("guessed_buckets".into(), Value::from(guessed));
            return app.output.object(&summary);
        }
        if !app.output.is_quiet() {
            let (commits, records) =
                (counted(report.commits, "commit", "commits"), counted(report.records, "record", "records"));
            let to = self.to.display();
            app.output
                .line(format_args!("{commits} with {records} are in {to}, up to revision {}", report.last))?;
        }
        if !guessed.is_empty() {
            let note = "the creation of these buckets is lost, so look at their names and configurations";
            app.output.line(format_args!("{note}: {}", guessed.join(", ")))?;
        }
        if report.left_out > 0 {
            let commits = counted(report.left_out, "commit", "commits");
            app.output.line(format_args!("{commits} left out, because they fit nothing before them"))?;
        }
        print_damages(&report.log, &mut app.output)
    }
}
