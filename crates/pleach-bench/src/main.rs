//! Side-by-side measurements of Pleach and of what users would pick instead.
//!
//! One command runs the same work on all of them, and prints tables of figures and ratios: see `--help`, `--list`
//! and `docs/performance.md`. Start with `Run` for what is done and with `Peer` for whom.

mod args;
mod chart;
mod contract;
mod drive;
mod failure;
mod keys;
mod machine;
mod nats;
mod output;
mod peers;
mod process;
mod random;
mod report;
mod row;
mod run;
mod scale;
mod state;
mod statistics;
mod table;
mod value;
mod work;
mod zipf;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use failure::Failure;
use report::Report;

fn main() -> ExitCode {
    // Wrong arguments end here, with 2.
    let cli = Cli::parse();
    match perform(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (text, code) = failure.text_and_code();
            output::progress(&text);
            code
        }
    }
}

fn perform(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        None => run::run(&cli.run),
        Some(Command::Chart { file, directory }) => {
            chart::draw_all(&Report::load(&file)?, &directory)?;
            Ok(())
        }
        Some(Command::Nats(arguments)) => Ok(nats::run(&arguments)?),
        Some(Command::Fence(arguments)) => Ok(nats::fence::run(&arguments)?),
        Some(Command::Contract(arguments)) => Ok(contract::run(&arguments)?),
        Some(Command::State(arguments)) => Ok(state::run(&arguments)?),
        Some(Command::Scale(arguments)) => Ok(scale::run(&arguments)?),
        Some(Command::Tail(tail)) => Ok(work::reopen::write_tail_and_wait(&tail)?),
    }
}
