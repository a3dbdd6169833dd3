use std::fmt::Write as _;

use clap::ValueEnum;
use pleach_contract::Position;
use serde_json::Value;

use super::source::Source;
use crate::output::Output;
use crate::text::shown;

/// How remarks are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
    /// For test reports of build servers.
    Junit,
    /// For annotations of GitHub Actions.
    Github,
}

impl ReportForm {
    /// The form that was asked for, by an option of its own or for the whole command line.
    pub(super) fn or_json(self, output: &Output) -> Self {
        if self == Self::Text && output.is_json() { Self::Json } else { self }
    }
}

/// How much a remark weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Good to know.
    Notice,
    /// Worth a look.
    Warning,
    /// It stands in the way.
    Failure,
}

/// Something there is to say about a contract.
#[derive(Debug)]
pub(super) struct Remark {
    pub(super) weight: Weight,
    /// What it is in a word, such as `error`.
    pub(super) word: &'static str,
    pub(super) code: String,
    pub(super) position: Option<Position>,
    /// Where it is, as a JSON Pointer.
    pub(super) path: String,
    pub(super) message: String,
    /// What else there is to say, each under a short name, such as `fix`.
    pub(super) details: Vec<(&'static str, String)>,
    /// All of it, for programs.
    pub(super) object: Value,
}

/// All there is to say about one contract.
#[derive(Debug)]
pub(super) struct Report<'s> {
    pub(super) source: &'s Source,
    pub(super) remarks: Vec<Remark>,
    /// What it comes to, for people.
    pub(super) summary: Option<String>,
    /// What it comes to, for programs.
    pub(super) object: Value,
}

impl Report<'_> {
    /// How many remarks weigh so much.
    pub(super) fn count(&self, weight: Weight) -> usize {
        self.remarks.iter().filter(|remark| remark.weight == weight).count()
    }
}

/// Prints reports of a command, such as `pleach contract check`.
pub(super) fn print(
    reports: &[Report<'_>],
    command: &str,
    form: ReportForm,
    output: &mut Output,
) -> anyhow::Result<()> {
    match form {
        ReportForm::Text => reports.iter().try_for_each(|report| text(report, output)),
        ReportForm::Json => reports.iter().try_for_each(|report| objects(report, output)),
        ReportForm::Junit => output.bytes(junit(reports, command).as_bytes()),
        ReportForm::Github => reports.iter().try_for_each(|report| annotations(report, output)),
    }
}

fn text(report: &Report<'_>, output: &mut Output) -> anyhow::Result<()> {
    let paint = output.paint();
    let name = &report.source.name;
    for remark in &report.remarks {
        let place = match remark.position {
            Some(Position { line, column }) => format!("{name}:{line}:{column}"),
            None => name.clone(),
        };
        let word = format!("{}:", remark.word);
        let word = match remark.weight {
            Weight::Failure => paint.red(&word),
            Weight::Warning | Weight::Notice => paint.cyan(&word),
        };
        let code = paint.dim(&format!("[{}]", remark.code));
        let message = shown(remark.message.as_bytes());
        output.line(format_args!("{}: {word} {message} {code}", paint.bold(&place)))?;
        if !remark.path.is_empty() {
            output.line(format_args!("  at    {}", shown(remark.path.as_bytes())))?;
        }
        if let Some(content) = remark.position.and_then(|position| report.source.line(position.line)) {
            output.line(format_args!("  line  {}", shown(content.trim().as_bytes())))?;
        }
        for (label, detail) in &remark.details {
            output.line(format_args!("  {label:<5} {}", shown(detail.as_bytes())))?;
        }
        output.line("")?;
    }
    match &report.summary {
        Some(summary) if !output.is_quiet() => output.line(summary),
        _ => Ok(()),
    }
}

fn objects(report: &Report<'_>, output: &mut Output) -> anyhow::Result<()> {
    for remark in &report.remarks {
        output.object(&remark.object)?;
    }
    output.object(&report.object)
}

fn annotations(report: &Report<'_>, output: &mut Output) -> anyhow::Result<()> {
    for remark in &report.remarks {
        let level = match remark.weight {
            Weight::Failure => "error",
            Weight::Warning => "warning",
            Weight::Notice => "notice",
        };
        let Position { line, column } = remark.position.unwrap_or(Position { line: 1, column: 1 });
        let (file, title) = (property(&report.source.name), property(&remark.code));
        let message = property_free(&whole(remark));
        output
            .line(format_args!("::{level} file={file},line={line},col={column},title={title}::{message}"))?;
    }
    Ok(())
}

/// A remark with all its details, a line each.
fn whole(remark: &Remark) -> String {
    let details = remark.details.iter().map(|(label, detail)| format!("{label}: {detail}"));
    std::iter::once(remark.message.clone()).chain(details).collect::<Vec<_>>().join("\n")
}

/// A text in the place of a message of GitHub's commands.
fn property_free(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text in the place of a property of GitHub's commands.
fn property(text: &str) -> String {
    property_free(text).replace(':', "%3A").replace(',', "%2C")
}

fn junit(reports: &[Report<'_>], command: &str) -> String {
    let failed = reports.iter().filter(|report| report.count(Weight::Failure) > 0).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let tests = reports.len();
    let _ = writeln!(xml, "<testsuites tests=\"{tests}\" failures=\"{failed}\">");
    let _ = writeln!(xml, "  <testsuite name=\"{command}\" tests=\"{tests}\" failures=\"{failed}\">");
    for report in reports {
        let name = escaped(&report.source.name);
        let _ = writeln!(xml, "    <testcase classname=\"pleach.contract\" name=\"{name}\" file=\"{name}\">");
        for remark in &report.remarks {
            let Position { line, column } = remark.position.unwrap_or_default();
            let message = escaped(&remark.message);
            let details =
                remark.details.iter().map(|(label, detail)| format!("\n{label}: {}", escaped(detail)));
            let more = format!("{line}:{column} {}{}", escaped(&remark.path), details.collect::<String>());
            let _ = if remark.weight == Weight::Failure {
                writeln!(
                    xml,
                    "      <failure type=\"{}\" message=\"{message}\">{more}</failure>",
                    remark.code
                )
            } else {
                let (word, code) = (remark.word, &remark.code);
                writeln!(xml, "      <system-out>{word} {code}: {message} {more}</system-out>")
            };
        }
        xml.push_str("    </testcase>\n");
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// A text that XML can hold; what it cannot is replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(letter),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                safe.push('\u{fffd}')
            }
            other => safe.push(other),
        }
    }
    safe
}
