use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use pleach_contract::{Contract, Notation};
use serde_json::json;

use super::template::Template;
use crate::app::App;
use crate::destination;
use crate::failure::Problem;
use crate::record::JSON_VERSION;

/// Writes a new contract with comments, ready to be filled in
#[derive(Args, Debug)]
#[command(
    after_help = "On a terminal, what is not given is asked for. The contract is valid as it is written. Exit codes: 0, 2 if\n\
                  something given cannot be, 4 if the file is there already.\n\n\
                  Examples:\n  pleach contract new\n  pleach contract new acme.notes@v1 --kind app --state drafts=map\n  \
                  pleach contract new acme.billing@v1 --kv job_cache --kv invoices -o billing.yaml"
)]
pub(crate) struct NewArgs {
    /// Who it is: dotted words and a major version, such as acme.notes@v1
    id: Option<String>,

    /// What kind of program it belongs to: service, app, device or agent [default: service]
    #[arg(long, value_parser = ["service", "app", "device", "agent"], hide_possible_values = true)]
    kind: Option<String>,

    /// Its name for people [default: made of the id]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// What it is for, in a sentence
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Adds a state store, NAME=value or NAME=map; may be given several times
    #[arg(long, value_name = "NAME=KIND", value_parser = crate::commands::name_and_value)]
    state: Vec<(String, String)>,

    /// Adds a KV resource; may be given several times
    #[arg(long, value_name = "ALIAS")]
    kv: Vec<String>,

    /// The file to write; `-` prints it
    #[arg(short, long, value_name = "PATH", default_value = "contract.yaml")]
    output: PathBuf,

    /// Writes over a file that is there
    #[arg(long)]
    force: bool,
}

impl NewArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let printed = self.output == Path::new("-");
        if !printed && !self.force && self.output.exists() {
            let message = format!("{} is there already", self.output.display());
            let problem = Problem::new(pleach::ErrorKind::Conflict, message);
            return Err(problem.help("name another with -o, or write over it with --force").into());
        }
        let path = self.output.clone();
        let template = self.template(io::stdin().is_terminal() && io::stderr().is_terminal())?;
        let text = template.text();
        let parsed = Contract::parse(text.as_bytes(), Notation::Yaml).map_err(|problems| {
            let first = problems.list().first();
            let (message, fix) = first.map_or(("it cannot be", ""), |first| (&*first.message, &*first.fix));
            Problem::invalid(message).help(fix)
        })?;
        if printed {
            return app.output.bytes(text.as_bytes());
        }
        destination::write(&path, text.as_bytes())?;
        let contract = parsed.contract;
        let object = json!({"v": JSON_VERSION, "file": path.display().to_string(), "id": contract.id, "digest": contract.digest()});
        app.output.confirm(
            &object,
            format_args!(
                "the contract {} is in {}\nfill it in, and check it with `pleach contract check {1}`",
                contract.id,
                path.display()
            ),
        )
    }

    fn template(self, asks: bool) -> anyhow::Result<Template> {
        let id = match self.id {
            Some(id) => id,
            None if asks => ask("id, such as acme.notes@v1", "acme.notes@v1")?,
            None => {
                let problem = Problem::invalid("a contract needs an id");
                return Err(problem.help("give one, such as `pleach contract new acme.notes@v1`").into());
            }
        };
        let made = name_of(&id);
        let or_ask = |given: Option<String>, question: &str, default: &str| match given {
            Some(given) => Ok(given),
            None if asks => ask(question, default),
            None => Ok(default.to_owned()),
        };
        let kind = or_ask(self.kind, "kind: service, app, device or agent", "service")?;
        let name = or_ask(self.name, "name for people", &made)?;
        let description =
            or_ask(self.description, "what it is for, in a sentence", &format!("What {name} keeps"))?;
        let mut kv = self.kv;
        if kv.is_empty() && self.state.is_empty() {
            let alias = if asks { ask("alias of its first bucket", "entries")? } else { "entries".into() };
            kv.push(alias);
        }
        Ok(Template { id, kind, name, description, state: self.state, kv })
    }
}

/// `acme.notes@v1` as `Notes`.
fn name_of(id: &str) -> String {
    let name = id.split('@').next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let mut letters = last.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().to_string() + letters.as_str(),
        None => "Contract".into(),
    }
}

/// Asks on the terminal; an empty answer is the default.
fn ask(question: &str, default: &str) -> anyhow::Result<String> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [{default}]: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
}
