use clap::{Args, CommandFactory as _};

use crate::app::App;
use crate::args::Cli;
use crate::exit;
use crate::failure::Problem;
use crate::stores;

/// Explains a command, or a topic: stores, exit-codes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach help kv put\n  pleach help stores\n  pleach help exit-codes")]
pub(crate) struct HelpArgs {
    /// The command, or one of the topics `stores` and `exit-codes`
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

impl HelpArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        if self.path == ["exit-codes"] {
            return app.output.bytes(exit::help().as_bytes());
        }
        if self.path == ["stores"] {
            return app.output.bytes(stores::help().as_bytes());
        }
        let mut command = Cli::command();
        // Names the commands by their whole path and hands global options down.
        command.build();
        let mut found = &mut command;
        for name in &self.path {
            let known = found.find_subcommand_mut(name);
            found = known.ok_or_else(|| {
                let problem =
                    Problem::invalid(format!("there is no command or topic `{}`", self.path.join(" ")));
                let help =
                    "see all commands with `pleach help` and `pleach help kv`; topics are stores and exit-codes";
                problem.help(help)
            })?;
        }
        let help = found.render_help();
        app.output.bytes(help.to_string().as_bytes())
    }
}
