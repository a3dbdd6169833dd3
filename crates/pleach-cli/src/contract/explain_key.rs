use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use pleach_contract::key::{Explanation, Grammar, Part, Problem as KeyProblem};
use serde::Serialize;

use super::digest::refused;
use super::members::{Member, members};
use super::source::Source;
use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};
use crate::text::counted;

/// Shows what a key says, part by part
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("by").required(true).args(["grammar", "contract"])),
    after_help = "A key that does not fit is refused with the segment at fault; of a contract, with that of the nearest keyspace.\n\
                  docs/keys.md describes grammars.\n\n\
                  Examples:\n  \
                  pleach contract explain-key --grammar 'order.{day:date}.{n:uint(4)}' order.20260705.0042\n  \
                  pleach contract explain-key --contract contract.yaml t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV\n  \
                  pleach contract explain-key --contract contract.yaml --resource cases t.acme.count.open"
)]
pub(crate) struct ExplainKeyArgs {
    /// The grammar to read it by, such as 't.{tenant}.order.{at:time}.{id:ulid}'
    #[arg(long, value_name = "GRAMMAR")]
    grammar: Option<String>,

    /// The contract that says what keys look like, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,

    /// The one resource of the contract to look at
    #[arg(long, value_name = "ALIAS", requires = "contract", conflicts_with = "grammar")]
    resource: Option<String>,

    /// The key
    key: String,
}

/// An explanation as a line of JSON.
#[derive(Serialize)]
struct Explained<'a> {
    v: u64,
    /// What the key is of, if a contract says it.
    #[serde(flatten)]
    member: Option<&'a Member>,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// A problem as a line of JSON.
#[derive(Serialize)]
struct Found<'a> {
    v: u64,
    event: &'static str,
    /// The text that the problem is in.
    text: &'a str,
    #[serde(flatten)]
    problem: &'a KeyProblem,
}

impl ExplainKeyArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        match (&self.grammar, &self.contract) {
            (Some(grammar), _) => self.by_grammar(grammar, &mut app.output),
            (None, Some(contract)) => self.by_contract(contract, &mut app.output),
            (None, None) => Err(Problem::invalid("give a grammar or a contract to read the key by").into()),
        }
    }

    fn by_grammar(&self, text: &str, output: &mut Output) -> anyhow::Result<()> {
        let grammar = match Grammar::parse(text) {
            Ok(grammar) => grammar,
            Err(error) => return Err(refuse(output, "the grammar", text, &error.problems)?.into()),
        };
        match grammar.explain(&self.key) {
            Ok(explanation) => print(None, &explanation, output),
            Err(problem) => Err(refuse(output, "the key", &self.key, &[problem])?.into()),
        }
    }

    fn by_contract(&self, path: &Path, output: &mut Output) -> anyhow::Result<()> {
        let source = Source::read(path)?;
        let contract = source.parse().map_err(|problems| refused(&source, &problems))?.contract;
        let members = members(&contract, self.resource.as_deref(), &source.name)?;
        let mut nearest: Option<(&Member, KeyProblem)> = None;
        let mut is_found = false;
        for (member, grammar) in &members {
            match grammar.explain(&self.key) {
                // Those of one resource never share a key; those of two may.
                Ok(explanation) => {
                    print(Some(member), &explanation, output)?;
                    is_found = true;
                }
                Err(problem) if nearest.as_ref().is_none_or(|(_, other)| problem.at > other.at) => {
                    nearest = Some((member, problem));
                }
                Err(_) => {}
            }
        }
        match nearest {
            Some((member, problem)) if !is_found => {
                let what = format!("no keys of {} are like this; for {member}, the nearest, it", source.name);
                Err(refuse(output, &what, &self.key, &[problem])?.into())
            }
            _ => Ok(()),
        }
    }
}

fn print(member: Option<&Member>, explanation: &Explanation, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        return output.object(&Explained { v: JSON_VERSION, member, explanation });
    }
    if let Some(member) = member {
        output.line(format_args!("a key of {member}: {}", explanation.grammar))?;
    }
    let columns = ["TEXT", "SEGMENT", "TYPE", "VALUE", ""].map(Column::Left);
    let columns: Vec<Column> = std::iter::once(Column::Right("AT")).chain(columns).collect();
    let mut table = Table::new(columns);
    for part in &explanation.parts {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let at = part.at.to_string();
        table.row([
            at,
            part.text.clone(),
            text(&part.name),
            part.kind.clone(),
            text(&part.value),
            remark(part),
        ]);
    }
    table.write(output)
}

/// The parts of a key of a grammar, if it is one.
pub(crate) fn print_parts(grammar: &str, key: &str, output: &mut Output) -> anyhow::Result<()> {
    let explanation = Grammar::parse(grammar).ok().and_then(|grammar| grammar.explain(key).ok());
    explanation.map_or(Ok(()), |explanation| print(None, &explanation, output))
}

fn remark(part: &Part) -> String {
    let tenant = part.tenant.then(|| "the tenant".to_owned());
    let remarks: Vec<String> = tenant.into_iter().chain(part.note.clone()).collect();
    remarks.join(", ")
}

/// What is wrong with `text`: for programs a line for each problem, for people a mark under each place.
fn refuse(output: &mut Output, what: &str, text: &str, problems: &[KeyProblem]) -> anyhow::Result<Problem> {
    let count = counted(problems.len() as u64, "problem", "problems");
    if output.is_json() {
        for problem in problems {
            output.object(&Found { v: JSON_VERSION, event: "problem", text, problem })?;
        }
        return Ok(Problem::invalid(format!("{what} has {count}")).help("see what each problem says to do"));
    }
    if let [problem] = problems {
        let message = format!("{what} is wrong {problem}\n{}", pointed(text, problem.at));
        return Ok(Problem::invalid(message).help(&problem.help));
    }
    let shown =
        |problem: &KeyProblem| format!("{problem}\n{}\n  {}", pointed(text, problem.at), problem.help);
    let all: Vec<String> = problems.iter().map(shown).collect();
    let message = format!("{what} has {count}\n\n{}\n", all.join("\n\n"));
    Ok(Problem::invalid(message).help("docs/keys.md describes grammars"))
}

fn pointed(text: &str, at: usize) -> String {
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let shown: String = text.chars().map(|c| if c.is_control() { '�' } else { c }).collect();
    format!("  {shown}\n  {}^", " ".repeat(before))
}
