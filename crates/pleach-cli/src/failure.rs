use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use pleach::state::StateError;
use pleach::stores::{AuthorityError, KvError, KvWriteError};
use pleach::{Conflict, EngineError, Error, ErrorKind, InvalidHeader, InvalidName, InvalidUrl, WriteError};
use serde::Serialize;

use crate::exit;
use crate::output::{ColorChoice, Form, OutputLost};

/// An error that begins in the command line itself.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
}

impl Problem {
    /// An error of this kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    /// A command or input that cannot work.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Something that is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// A file that cannot be read: it is not there, or it is not what was asked for.
    pub(crate) fn unreadable(error: &io::Error, message: impl Into<String>) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::not_found(message),
            _ => Self::invalid(message),
        }
    }

    /// The same with the next step.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Tells why a command failed, on stderr, and returns its exit code.
pub(crate) fn report(error: &anyhow::Error, form: Form, color: ColorChoice) -> ExitCode {
    if error.chain().filter_map(|cause| cause.downcast_ref::<OutputLost>()).any(OutputLost::reader_left) {
        return ExitCode::SUCCESS;
    }
    let report = Report::of(error);
    report.print(form, color);
    exit::code(report.kind)
}

/// Tells what is wrong with the arguments, or prints the help that was asked for.
pub(crate) fn report_usage(error: &clap::Error, form: Form, color: ColorChoice) -> ExitCode {
    use clap::error::ErrorKind as Usage;
    if matches!(error.kind(), Usage::DisplayHelp | Usage::DisplayVersion) {
        // If its reader left, nobody misses the help.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let specific = std::error::Error::source(error).and_then(advice).and_then(|(_, help)| help);
    if form == Form::Human {
        match specific {
            None => {
                let _ = error.print();
            }
            Some(help) => {
                // The way to the usage would only stand between the error and its help.
                let paint = color.paint_stderr();
                let message = usage_message(error);
                let _ = writeln!(io::stderr(), "{} {message}", paint.red("error:"));
                let _ = writeln!(io::stderr(), "{} {help}", paint.cyan("help:"));
            }
        }
        return exit::usage();
    }
    let report = Report {
        kind: ErrorKind::Invalid,
        message: usage_message(error),
        causes: Vec::new(),
        help: Some(specific.unwrap_or_else(|| "see the usage with `--help`".into())),
    };
    report.print(form, color);
    exit::usage()
}

/// What is wrong with the arguments, in a line and without the way to the usage.
fn usage_message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error as it is printed.
#[derive(Debug)]
struct Report {
    kind: ErrorKind,
    message: String,
    causes: Vec<String>,
    help: Option<String>,
}

#[derive(Serialize)]
struct ReportObject<'a> {
    v: u8,
    kind: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

impl Report {
    fn of(error: &anyhow::Error) -> Self {
        // A problem may be the context of another error, which only a look through all of it finds.
        let problem = error.downcast_ref::<Problem>().map(|problem| (problem.kind, problem.help.clone()));
        let (kind, help) =
            problem.or_else(|| error.chain().find_map(advice)).unwrap_or((ErrorKind::Bug, None));
        let help = help.or_else(|| error.chain().find_map(|cause| advice(cause)?.1));
        let mut texts = error.chain().map(ToString::to_string);
        let message = texts.next().unwrap_or_default();
        Self { kind, message, causes: texts.collect(), help }
    }

    // If stderr is gone, there is nobody to tell; the exit code still does.
    fn print(&self, form: Form, color: ColorChoice) {
        let mut stderr = io::stderr().lock();
        if form == Form::Json {
            let message = [std::slice::from_ref(&self.message), &self.causes].concat().join(": ");
            let object = ReportObject {
                v: 1,
                kind: self.kind.as_str(),
                message: &message,
                help: self.help.as_deref(),
            };
            let _ = writeln!(stderr, "{}", serde_json::to_string(&object).unwrap_or(message.clone()));
            return;
        }
        let paint = color.paint_stderr();
        let _ = writeln!(stderr, "{} {}", paint.red("error:"), self.message);
        for cause in &self.causes {
            let _ = writeln!(stderr, "  because: {cause}");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(stderr, "{} {help}", paint.cyan("help:"));
        }
    }
}

/// What kind of error it is and what to do next, if it is one we know.
fn advice(error: &(dyn std::error::Error + 'static)) -> Option<(ErrorKind, Option<String>)> {
    if let Some(problem) = error.downcast_ref::<Problem>() {
        return Some((problem.kind, problem.help.clone()));
    }
    if let Some(error) = error.downcast_ref::<WriteError>() {
        let help = match error {
            WriteError::Conflict(conflict) => conflict_help(conflict),
            WriteError::Failed(error) => library_help(error),
        };
        return Some((error.kind(), Some(help)));
    }
    if let Some(error) = error.downcast_ref::<Error>() {
        return Some((error.kind(), Some(library_help(error))));
    }
    if let Some(error) = error.downcast_ref::<AuthorityError>() {
        return Some((error.kind(), Some(contract_help(error))));
    }
    if let Some(error) = error.downcast_ref::<KvError>() {
        return Some((error.kind(), Some(error.help().into())));
    }
    if let Some(error) = error.downcast_ref::<KvWriteError>() {
        return Some((error.kind(), Some(error.help().into())));
    }
    if let Some(error) = error.downcast_ref::<StateError>() {
        return Some((error.kind(), Some(error.help().into())));
    }
    if let Some(error) = error.downcast_ref::<InvalidName>() {
        return Some((error.kind(), Some(error.help().into())));
    }
    if let Some(error) = error.downcast_ref::<InvalidHeader>() {
        return Some((error.kind(), Some(error.help().into())));
    }
    if let Some(error) = error.downcast_ref::<InvalidUrl>() {
        return Some((error.kind(), Some(url_help(error))));
    }
    let help = "send the output where there is space; what was committed before stays committed";
    error.downcast_ref::<OutputLost>().map(|_| (ErrorKind::Unavailable, Some(help.into())))
}

/// What to do about a contract, as a command where there is one.
fn contract_help(error: &AuthorityError) -> String {
    match error {
        AuthorityError::Engine(error) => engine_help(error),
        AuthorityError::InTheWay { bucket } => {
            format!("take it over with `--adopt ALIAS={bucket}`, or name another service with --service NAME")
        }
        AuthorityError::Unacknowledged { .. } => {
            "read them, and say why that may be with --acknowledge WHY; or mend the contract".into()
        }
        AuthorityError::Moved { .. }
        | AuthorityError::PlanOver { .. }
        | AuthorityError::UnknownPlan { .. } => {
            "make a new plan with `pleach contract plan FILE`, and look at it again".into()
        }
        AuthorityError::Unfinished { .. } => {
            "mend the cause, then go on with the same `pleach contract apply`".into()
        }
        _ => error.help().into(),
    }
}

/// The next step as a command, where there is one.
fn library_help(error: &Error) -> String {
    if let Error::ConsumerBehind { bucket, consumer, .. } = error {
        return format!(
            "read the latest values with `pleach kv export {bucket}`, \
             then go on with `pleach consumer reset {bucket} {consumer} --to oldest`"
        );
    }
    if let Error::Url(error) = error {
        return url_help(error);
    }
    match error {
        Error::Engine(error) => engine_help(error),
        Error::Contract(error) => contract_help(error),
        _ => error.help().into(),
    }
}

fn engine_help(error: &EngineError) -> String {
    match error {
        EngineError::BucketNotFound { bucket } => {
            format!(
                "create it with `pleach kv bucket add {bucket}`, or list what there is with `pleach kv bucket ls`"
            )
        }
        EngineError::BucketExists { bucket, .. } => {
            format!(
                "see it with `pleach kv bucket info {bucket}`, change it with `pleach kv bucket edit {bucket}`"
            )
        }
        EngineError::ConsumerNotFound { bucket, .. } => {
            format!("list what there is with `pleach consumer ls {bucket}`")
        }
        EngineError::TooManyConsumers { bucket, .. } => {
            format!("delete those nobody reads for any more with `pleach consumer rm {bucket} NAME`")
        }
        EngineError::ValueTooLarge { bucket, .. } => {
            format!("raise the bucket's limit with `pleach kv bucket edit {bucket} --value-max SIZE`")
        }
        EngineError::Corrupt { .. } => {
            "keep a copy of the store's directory, and see what is damaged with `pleach verify`".into()
        }
        EngineError::CorruptIndex { .. } => "build it anew with `pleach rebuild`: nothing is lost".into(),
        EngineError::InvalidConfig { .. } => {
            "correct it; `pleach help kv bucket add` shows what the options take".into()
        }
        // Here the cause stands above.
        EngineError::Io { .. } => {
            "mend the cause, and try again; the store's directory must be writable, too, to be read".into()
        }
        EngineError::Locked { .. } => {
            "wait for that process or end it, as a store belongs to one at a time; or name another with --store"
                .into()
        }
        EngineError::Unsupported { .. } => {
            "do without, or use a store that can: docs/engines.md has a table, `pleach help stores` says how".into()
        }
        EngineError::Unreachable { .. } => {
            "see that the servers run and --store names them, and try again; see `pleach help stores`".into()
        }
        EngineError::Refused { .. } => {
            "correct what the server names: a limit or a setting; `pleach help stores` says what can be set"
                .into()
        }
        EngineError::Denied { .. } => {
            "log in as someone who may, or have the permission granted; `pleach help stores` says how".into()
        }
        EngineError::ContractOwned { .. } => {
            "change it with `pleach contract plan FILE` and apply; only in an emergency with --break-glass WHY".into()
        }
        EngineError::BrokenContract { .. } => {
            "correct the key or the value; `pleach contract explain-key` shows what a key says".into()
        }
        EngineError::Compacted { oldest } => format!("ask for revision {oldest} or newer, or for the latest"),
        _ => error.help().into(),
    }
}

fn url_help(error: &InvalidUrl) -> String {
    match error {
        InvalidUrl::Nats { .. } => "see `pleach help stores` for what can be in it".into(),
        InvalidUrl::UnknownScheme { .. } => "use one of these; see `pleach help stores`".into(),
        _ => error.help().into(),
    }
}

fn conflict_help(Conflict { bucket, key, .. }: &Conflict) -> String {
    format!("look again with `pleach kv history {bucket} {key}`, and retry with the revision you see")
}
