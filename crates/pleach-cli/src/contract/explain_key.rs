use clap::Args;
use pleach_contract::key::{Explanation, Grammar, GrammarError, Part, Problem as KeyProblem};
use serde::Serialize;

use crate::app::App;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;
use crate::table::{Column, Table};
use crate::text::counted;

/// Shows what a key says, part by part
#[derive(Args, Debug)]
#[command(
    after_help = "A key that does not fit is refused with the segment at fault. docs/keys.md describes grammars.\n\n\
                  Examples:\n  \
                  pleach contract explain-key --grammar 'order.{day:date}.{n:uint(4)}' order.20260705.0042\n  \
                  pleach contract explain-key --grammar 't.{tenant}.case.{case:ulid}' \\\n    \
                  t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV"
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
        let grammar = match self.grammar() {
            Ok(grammar) => grammar,
            Err(error) => {
                return Err(refuse(&mut app.output, "the grammar", &self.grammar, &error.problems)?.into());
            }
        };
        let explanation = match grammar.explain(&self.key) {
            Ok(explanation) => explanation,
            Err(problem) => return Err(refuse(&mut app.output, "the key", &self.key, &[problem])?.into()),
        };
        if app.output.is_json() {
            return app.output.object(&Explained { v: JSON_VERSION, explanation: &explanation });
        }
        print(&explanation, &mut app.output)
    }

    /// The grammar that the key is read by: the one place to look it up in a contract instead.
    fn grammar(&self) -> Result<Grammar, GrammarError> {
        Grammar::parse(&self.grammar)
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
