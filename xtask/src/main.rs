//! The automation of Pleach, in Rust, so that it runs wherever Pleach is built: `cargo xtask`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people, at a terminal")]

mod ci;
mod evolution;
mod metadata;
mod sim;
mod soak;
mod tidy;
mod tools;
mod verdicts;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
The automation of Pleach.

Usage: cargo xtask COMMAND

Commands:
  ci     Everything a change must pass: format, lints, each feature alone, tests,
         doc tests, docs and tidy. Stops at the first failure.
  soak   Overwrites the same keys for a while, and shows whether space, memory and open
         files level off; see `cargo xtask soak --help`.
  tools  Installs the programs that tests start: a NATS server and other clients of it.
  tidy   The rules of the house: arrows between crates, sizes of files, licences,
         leftovers, machine paths, and paths that documents name.
  sim    Random histories of the embedded engine on a machine that fails, in a release build.
         --seeds N [--from S] runs N of them, --seed S one again that failed.
  evolution
         Random schemas, changes and values: what a diff calls safe against the validator, in
         a release build. --cases N tries N of them, --from S those of another seed.
  verdicts
         Random contracts, data and changes: no plan that is called safe may make anything stored
         unreadable, in a release build. --cases N [--from S] plays N of them, --seed S one again.
  help   This text.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["ci"] => ci::run(&root()),
        ["soak", arguments @ ..] => soak::run(&root(), arguments),
        ["tools"] => tools::install(&root()),
        ["tidy"] => tidy::run(&root()),
        ["sim", arguments @ ..] => sim::run(&root(), arguments),
        ["evolution", arguments @ ..] => evolution::run(&root(), arguments),
        ["verdicts", arguments @ ..] => verdicts::run(&root(), arguments),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [] => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
        other => {
            eprint!("error: cargo xtask does not know `{}`\n\n{HELP}", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace, wherever the command was given.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
