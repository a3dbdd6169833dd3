//! The command line of Pleach. A door: it parses, calls the library, and renders.

mod app;
mod args;
mod ask;
mod chart;
mod commands;
mod contract;
mod credentials;
mod demo;
mod destination;
mod exit;
mod failure;
mod input;
mod output;
mod progress;
mod record;
mod size;
mod state;
mod stores;
mod table;
mod text;
mod wait;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Cli;
use output::{ColorChoice, Form};

fn main() -> ExitCode {
    let parsed = Cli::command()
        .color(help_color())
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let Cli { global, command } = match parsed {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error, asked_form(), asked_color()),
    };
    let (form, color) = (global.form(), global.color());
    let mut app = global.app();
    let (done, exit) = pollster::block_on(async {
        let done = command.run(&mut app).await;
        let exit = app.exit;
        let finished = app.finish().await;
        (done.and(finished), exit)
    });
    match done {
        Ok(()) => ExitCode::from(exit.done),
        Err(error) => {
            let code = failure::report(&error, form, color);
            // A reader that left is no failure.
            exit.failed.filter(|_| code != ExitCode::SUCCESS).map_or(code, ExitCode::from)
        }
    }
}

/// Whether the arguments ask for JSON, even if they cannot be understood otherwise.
fn asked_form() -> Form {
    let json = std::env::args_os()
        .skip(1)
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json");
    if json { Form::Json } else { Form::Human }
}

/// Which colours the arguments ask for, even if they cannot be understood otherwise.
fn asked_color() -> ColorChoice {
    let arguments: Vec<_> = std::env::args_os().skip(1).take_while(|argument| argument != "--").collect();
    let asks = |choice: &str| {
        arguments.windows(2).any(|pair| pair[0] == "--color" && pair[1] == choice)
            || arguments.iter().any(|argument| *argument == *format!("--color={choice}"))
    };
    match () {
        () if asks("always") => ColorChoice::Always,
        () if asks("never") => ColorChoice::Never,
        () => ColorChoice::Auto,
    }
}

fn help_color() -> clap::ColorChoice {
    match asked_color() {
        ColorChoice::Auto => clap::ColorChoice::Auto,
        ColorChoice::Always => clap::ColorChoice::Always,
        ColorChoice::Never => clap::ColorChoice::Never,
    }
}
