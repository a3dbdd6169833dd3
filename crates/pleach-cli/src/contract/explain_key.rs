use clap::Args;
use pleach_contract::key::{Explanation, Grammar, GrammarError, Part, Problem as KeyProblem};
use serde::Serialize;

use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};

/// Shows what a key says, part by part
#[derive(Args, Debug)]
#[command(
    after_help = "A key that does not fit is refused with the segment at fault. The notation of grammars:\n\
                  docs/keys.md\n\nExamples:\n  \
                  pleach contract explain-key --grammar 't.{tenant}.case.{case:ulid}' t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV\n  \
                  pleach --json contract explain-key --grammar 'temperature.{day:date}.{celsius:int(3)}' \\\n    \
                  temperature.20260705.-988"
)]
pub(crate) struct ExplainKeyArgs {
    /// The grammar to read it by, such as 't.{tenant}.order.{at:time}.{id:ulid}'
    #[arg(long, value_name = "GRAMMAR")]
    grammar: String,

    /// The key
    key: String,
}

/// An explanation as a line of JSON.
#[derive(Serialize)]
struct Explained<'a> {
    v: u64,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl ExplainKeyArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let grammar = self.grammar()?;
        let explanation = grammar.explain(&self.key).map_err(|problem| outside(&self.key, &problem))?;
        if app.output.is_json() {
            return app.output.object(&Explained { v: JSON_VERSION, explanation: &explanation });
        }
        print(&explanation, &mut app.output)
    }

    /// The grammar that the key is read by: the one place to look it up in a contract instead.
    fn grammar(&self) -> anyhow::Result<Grammar> {
        Grammar::parse(&self.grammar).map_err(|error| malformed(&self.grammar, &error).into())
    }
}

fn print(explanation: &Explanation, output: &mut Output) -> anyhow::Result<()> {
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

fn remark(part: &Part) -> String {
    let tenant = part.tenant.then(|| "the tenant".to_owned());
    let remarks: Vec<String> = tenant.into_iter().chain(part.note.clone()).collect();
    remarks.join(", ")
}

/// A key outside its grammar: the text, and a mark under the place.
fn outside(key: &str, problem: &KeyProblem) -> Problem {
    Problem::invalid(format!("{problem}\n{}", pointed(key, problem.at))).help(problem.help.clone())
}

/// A malformed grammar: all that is wrong with it, each with a mark under the place and what to do.
fn malformed(grammar: &str, error: &GrammarError) -> Problem {
    let shown =
        |problem: &KeyProblem| format!("{problem}\n{}\n  {}", pointed(grammar, problem.at), problem.help);
    let problems: Vec<String> = error.problems.iter().map(shown).collect();
    let count = crate::text::counted(problems.len() as u64, "problem", "problems");
    let message = format!("the grammar has {count}\n{}", problems.join("\n"));
    Problem::invalid(message).help("the notation is described in docs/keys.md")
}

fn pointed(text: &str, at: usize) -> String {
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let shown: String = text.chars().map(|c| if c.is_control() { '�' } else { c }).collect();
    format!("  {shown}\n  {}^", " ".repeat(before))
}
