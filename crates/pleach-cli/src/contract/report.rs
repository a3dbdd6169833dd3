use std::fmt::Write as _;

use clap::ValueEnum;
use pleach_contract::{Digest, Position, Problem, Severity};
use serde_json::json;

use super::source::Source;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::text::{counted, shown};

/// How findings are printed.
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

/// What was found in one file.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) source: Source,
    pub(super) problems: Vec<Problem>,
    /// The contract, if it can be used.
    pub(super) contract: Option<(String, Digest)>,
}

impl Findings {
    pub(super) fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

/// Prints what was found.
pub(super) fn print(findings: &[Findings], form: ReportForm, output: &mut Output) -> anyhow::Result<()> {
    match form {
        ReportForm::Text => findings.iter().try_for_each(|found| text(found, output)),
        ReportForm::Json => findings.iter().try_for_each(|found| objects(found, output)),
        ReportForm::Junit => output.bytes(junit(findings).as_bytes()),
        ReportForm::Github => findings.iter().try_for_each(|found| annotations(found, output)),
    }
}

fn text(found: &Findings, output: &mut Output) -> anyhow::Result<()> {
    let paint = output.paint();
    let name = &found.source.name;
    for problem in &found.problems {
        let Position { line, column } = problem.position.unwrap_or_default();
        let place = if line > 0 { format!("{name}:{line}:{column}") } else { name.clone() };
        let severity = match problem.severity {
            Severity::Error => paint.red("error:"),
            Severity::Warning => paint.cyan("warning:"),
        };
        let code = paint.dim(&format!("[{}]", problem.code));
        output.line(format_args!(
            "{}: {severity} {} {code}",
            paint.bold(&place),
            shown(problem.message.as_bytes())
        ))?;
        if !problem.path.is_empty() {
            output.line(format_args!("  at    {}", shown(problem.path.as_bytes())))?;
        }
        if let Some(content) = found.source.line(line) {
            output.line(format_args!("  line  {}", shown(content.trim().as_bytes())))?;
        }
        output.line(format_args!("  fix   {}\n", shown(problem.fix.as_bytes())))?;
    }
    match &found.contract {
        Some((id, digest)) if !output.is_quiet() => {
            let warnings = match found.count(Severity::Warning) as u64 {
                0 => String::new(),
                count => format!(", with {}", counted(count, "warning", "warnings")),
            };
            output.line(format_args!("{name} is the contract {id}{warnings}\n  digest  {digest}"))
        }
        _ => Ok(()),
    }
}

fn objects(found: &Findings, output: &mut Output) -> anyhow::Result<()> {
    let name = &found.source.name;
    for problem in &found.problems {
        let mut object = json!({"v": JSON_VERSION, "event": "problem", "file": name});
        if let (Some(object), serde_json::Value::Object(fields)) = (object.as_object_mut(), json!(problem)) {
            object.extend(fields);
        }
        output.object(&object)?;
    }
    let (id, digest) = found.contract.as_ref().map_or((None, None), |(id, digest)| (Some(id), Some(digest)));
    output.object(&json!({
        "v": JSON_VERSION, "event": "checked", "file": name, "id": id, "digest": digest,
        "errors": found.count(Severity::Error), "warnings": found.count(Severity::Warning),
    }))
}

fn annotations(found: &Findings, output: &mut Output) -> anyhow::Result<()> {
    for problem in &found.problems {
        let level = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Position { line, column } = problem.position.unwrap_or(Position { line: 1, column: 1 });
        let (file, title) = (property(&found.source.name), property(problem.code.as_str()));
        let message = property_free(&format!("{}\nfix: {}", problem.message, problem.fix));
        output
            .line(format_args!("::{level} file={file},line={line},col={column},title={title}::{message}"))?;
    }
    Ok(())
}

/// A text in the place of a message of GitHub's commands.
fn property_free(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text in the place of a property of GitHub's commands.
fn property(text: &str) -> String {
    property_free(text).replace(':', "%3A").replace(',', "%2C")
}

fn junit(findings: &[Findings]) -> String {
    let failed = findings.iter().filter(|found| found.count(Severity::Error) > 0).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let tests = findings.len();
    let _ = writeln!(xml, "<testsuites tests=\"{tests}\" failures=\"{failed}\">");
    let _ =
        writeln!(xml, "  <testsuite name=\"pleach contract check\" tests=\"{tests}\" failures=\"{failed}\">");
    for found in findings {
        let name = escaped(&found.source.name);
        let _ = writeln!(xml, "    <testcase classname=\"pleach.contract\" name=\"{name}\" file=\"{name}\">");
        for problem in &found.problems {
            let Position { line, column } = problem.position.unwrap_or_default();
            let message = escaped(&problem.message);
            let more = format!("{line}:{column} {}\nfix: {}", escaped(&problem.path), escaped(&problem.fix));
            let _ = match problem.severity {
                Severity::Error => {
                    writeln!(
                        xml,
                        "      <failure type=\"{}\" message=\"{message}\">{more}</failure>",
                        problem.code
                    )
                }
                Severity::Warning => {
                    writeln!(xml, "      <system-out>warning {}: {message} {more}</system-out>", problem.code)
                }
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
