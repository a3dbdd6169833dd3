use clap::Args;
use pleach::inspect::{self, Damage, IndexReport, LogReport, RevisionRange, Step, TornTail, VerifyReport};
use pleach::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::Progress;
use crate::record::JSON_VERSION;
use crate::size::Size;
use crate::text::counted;

/// Checks every byte of a store in a directory
#[derive(Args, Debug)]
#[command(
    after_help = "Reads the whole log, compares the index with it, and changes nothing. Says what is damaged, where,\n\
                  and which commits a repair would lose. Ends with exit code 9 if anything is damaged. The store\n\
                  must not be in use.\n\n\
                  Examples:\n  pleach verify\n  pleach --store file:/srv/data verify\n  pleach --json verify"
)]
pub(crate) struct VerifyArgs {}

const ON_SERVERS: &str = "the servers check what they store themselves: see their logs, and `pleach kv bucket info BUCKET` for what is there";

impl VerifyArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let (directory, place) = (app.directory(ON_SERVERS)?, app.place());
        let mut bar = Bar::new(&app.output);
        let report = inspect::verify(directory, &mut |at| bar.show(at)).map_err(Error::from)?;
        drop(bar);
        if app.output.is_json() {
            print_json(&report, &mut app.output)?;
        } else {
            print(&report, &place, &mut app.output)?;
        }
        match (report.log.is_sound(), report.index.is_sound()) {
            (true, true) => Ok(()),
            (true, false) => {
                let problem = Problem::new(ErrorKind::Corrupt, "the index is damaged; nothing is lost");
                Err(problem.help("build it anew from the log with `pleach rebuild`").into())
            }
            (false, _) => {
                let places = counted(report.log.damage_count, "place", "places");
                let problem = Problem::new(ErrorKind::Corrupt, format!("the log is damaged in {places}"));
                Err(problem.help(SALVAGE_HELP).into())
            }
        }
    }
}

const SALVAGE_HELP: &str = "keep a copy of the store's directory; restore from a backup, or copy out all that is \
                            readable with `pleach salvage --to PATH`";

fn print(report: &VerifyReport, place: &str, output: &mut Output) -> anyhow::Result<()> {
    if !output.is_quiet() {
        let verdict =
            if report.is_sound() { output.paint().bold("sound") } else { output.paint().red("damaged") };
        output.line(format_args!("The store at {place} is {verdict}."))?;
        print_totals(&report.log, output)?;
        output.line(format_args!("  index     {}", describe_index(&report.index)))?;
    }
    if let Some(TornTail { bytes, offset, path }) = &report.log.torn_tail {
        let bytes = counted(*bytes, "byte", "bytes");
        output.line(format_args!(
            "  tail      {bytes} of an unfinished write, from byte {offset} of {}: no damage; the next open cuts \
             them off",
            path.display()
        ))?;
    }
    print_damages(&report.log, output)
}

/// What is in a log.
fn print_totals(log: &LogReport, output: &mut Output) -> anyhow::Result<()> {
    let (segments, records) =
        (counted(log.segments, "segment", "segments"), counted(log.records, "record", "records"));
    let revisions = log.revisions.map_or_else(|| "no revisions yet".into(), described);
    output.line(format_args!("  log       {segments}, {}, {records}, {revisions}", Size(log.bytes)))?;
    let entries =
        log.live_entries.map_or_else(|| "very many entries".into(), |n| counted(n, "entry", "entries"));
    output.line(format_args!("  contents  {}, {entries}", counted(log.buckets, "bucket", "buckets")))
}

/// What is damaged in a log, and what that costs.
pub(super) fn print_damages(log: &LogReport, output: &mut Output) -> anyhow::Result<()> {
    for (damage, number) in log.damages.iter().zip(1_u64..) {
        print_damage(damage, number, output)?;
    }
    let listed = log.damages.len() as u64;
    if listed < log.damage_count {
        output.line(format_args!("  …and {} more", counted(log.damage_count - listed, "place", "places")))?;
    }
    let lost = log.lost();
    if !lost.is_empty() {
        let count = counted(lost.iter().map(RevisionRange::count).sum(), "revision is", "revisions are");
        let ranges: Vec<String> = lost.iter().take(RANGES_SHOWN_MAX).map(|range| described(*range)).collect();
        let more = if lost.len() > RANGES_SHOWN_MAX { ", …" } else { "" };
        output.line("")?;
        output.line(format_args!("{count} lost to any repair: {}{more}.", ranges.join(", ")))?;
    }
    Ok(())
}

const RANGES_SHOWN_MAX: usize = 20;
const KEYS_SHOWN_MAX: usize = 10;

fn print_damage(damage: &Damage, number: u64, output: &mut Output) -> anyhow::Result<()> {
    let title = output.paint().red(&format!("Damage {number}:"));
    output.line("")?;
    output.line(format_args!("{title} {}", damage.what))?;
    let length = damage.length.filter(|length| *length > 0).map(|length| counted(length, "byte", "bytes"));
    let length = length.map(|length| format!(", {length}")).unwrap_or_default();
    output.line(format_args!(
        "  where     {}, from byte {}{length}",
        damage.path.display(),
        damage.offset
    ))?;
    let lost = match (damage.lost, damage.commits) {
        (None, _) => "nothing that is known of".into(),
        (Some(range), Some(commits)) => {
            format!("{} ({})", described(range), counted(commits, "commit", "commits"))
        }
        (Some(range), None) => described(range),
    };
    output.line(format_args!("  lost      {lost}"))?;
    if let Some(bucket) = &damage.bucket {
        output.line(format_args!("  bucket    {bucket}"))?;
    }
    if !damage.keys.is_empty() {
        let keys: Vec<&str> = damage.keys.iter().take(KEYS_SHOWN_MAX).map(|lost| lost.key.as_str()).collect();
        let more = if damage.keys.len() > KEYS_SHOWN_MAX { ", …" } else { "" };
        output.line(format_args!("  keys      {}{more}", keys.join(", ")))?;
    }
    Ok(())
}

fn describe_index(index: &IndexReport) -> String {
    match index {
        IndexReport::Absent => "not written yet; the next open reads the log".into(),
        IndexReport::NotChecked => "not compared, because the log is damaged".into(),
        IndexReport::Unreadable { what } => format!("damaged: {what}"),
        IndexReport::Checked(check) if index.is_sound() => {
            let keys = counted(check.heads, "key", "keys");
            format!("agrees with the log up to revision {}, {keys}", check.applied)
        }
        IndexReport::Checked(check) => {
            let examples: Vec<String> =
                check.examples.iter().take(KEYS_SHOWN_MAX).map(|(b, key)| format!("{b}/{key}")).collect();
            format!(
                "differs from the log: {} missing, {} stale, {} wrong, {} wrong, {} wrong; such as {}",
                counted(check.missing, "key", "keys"),
                counted(check.stale, "key", "keys"),
                counted(check.wrong, "key", "keys"),
                counted(check.buckets_wrong, "bucket", "buckets"),
                counted(check.consumers_wrong, "consumer", "consumers"),
                examples.join(", ")
            )
        }
    }
}

fn described(range: RevisionRange) -> String {
    match range {
        RevisionRange { first, last } if first == last => format!("revision {first}"),
        RevisionRange { first, last } => format!("revisions {first} to {last}"),
    }
}

fn print_json(report: &VerifyReport, output: &mut Output) -> anyhow::Result<()> {
    print_findings(&report.log, output)?;
    output.object(&index_object(&report.index))?;
    let mut summary = log_object("verified", &report.log);
    summary.insert("sound".into(), report.is_sound().into());
    output.object(&summary)
}

/// One object a finding.
pub(super) fn print_findings(log: &LogReport, output: &mut Output) -> anyhow::Result<()> {
    for damage in &log.damages {
        let keys: Vec<Value> =
            damage.keys.iter().map(|lost| json!({"key": lost.key.as_str(), "sound": lost.sound})).collect();
        output.object(&json!({
            "v": JSON_VERSION, "event": "damage", "path": damage.path.display().to_string(),
            "offset": damage.offset, "length": damage.length, "what": damage.what,
            "lost": damage.lost.map(range_object), "commits": damage.commits,
            "bucket": damage.bucket.as_ref().map(|bucket| bucket.as_str()), "keys": keys,
        }))?;
    }
    if let Some(TornTail { path, offset, bytes }) = &log.torn_tail {
        output.object(&json!({
            "v": JSON_VERSION, "event": "torn_tail", "path": path.display().to_string(),
            "offset": offset, "bytes": bytes,
        }))?;
    }
    Ok(())
}

/// What a log comes to, under the name of what was done with it.
pub(super) fn log_object(event: &str, log: &LogReport) -> Map<String, Value> {
    let lost = log.lost();
    let object = json!({
        "v": JSON_VERSION, "event": event, "segments": log.segments, "bytes": log.bytes,
        "frames": log.frames, "records": log.records, "buckets": log.buckets,
        "entries": log.live_entries, "revisions": log.revisions.map(range_object),
        "damages": log.damage_count, "lost_revisions": lost.iter().map(RevisionRange::count).sum::<u64>(),
        "lost": lost.into_iter().map(range_object).collect::<Vec<_>>(),
    });
    if let Value::Object(object) = object { object } else { Map::new() }
}

fn range_object(range: RevisionRange) -> Value {
    json!({"first": range.first, "last": range.last})
}

fn index_object(index: &IndexReport) -> Value {
    let mut object = json!({"v": JSON_VERSION, "event": "index", "sound": index.is_sound()});
    let (state, more) = match index {
        IndexReport::Absent => ("absent", json!({})),
        IndexReport::NotChecked => ("not_checked", json!({})),
        IndexReport::Unreadable { what } => ("unreadable", json!({"what": what})),
        IndexReport::Checked(check) => {
            let examples: Vec<Value> = check
                .examples
                .iter()
                .map(|(bucket, key)| json!({"bucket": bucket.as_str(), "key": key.as_str()}))
                .collect();
            let counts = json!({
                "applied": check.applied, "keys": check.heads, "missing": check.missing,
                "stale": check.stale, "wrong": check.wrong, "buckets_wrong": check.buckets_wrong,
                "consumers_wrong": check.consumers_wrong, "examples": examples,
            });
            ("checked", counts)
        }
    };
    object["state"] = state.into();
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A bar for each step of an inspection.
pub(super) struct Bar<'a> {
    output: &'a Output,
    shown: Option<(Step, Progress)>,
}

impl<'a> Bar<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, shown: None }
    }

    pub(super) fn show(&mut self, at: inspect::Progress) {
        if let Some((step, progress)) = &self.shown
            && *step == at.step
        {
            return progress.reach(at.done);
        }
        // The bar of the step before goes first.
        self.shown = None;
        let progress = Progress::bytes(Some(at.total), self.output);
        progress.say(match at.step {
            Step::ReadLog => "reading the log",
            Step::CheckIndex => "comparing the index",
            Step::CopyLog => "copying",
            Step::BuildIndex => "building the index",
            Step::CleanLog => "cleaning the log",
        });
        progress.reach(at.done);
        self.shown = Some((at.step, progress));
    }
}
