use clap::{Args, CommandFactory as _};

use crate::app::App;
use crate::args::Cli;
use crate::exit;
use crate::failure::Problem;

/// Explains a command, or a topic such as exit-codes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach help kv put\n  pleach help exit-codes")]
pub(crate) struct HelpArgs {
    /// The command, or the topic `exit-codes`
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

impl HelpArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        if self.path == ["exit-codes"] {
            return app.output.bytes(exit::help().as_bytes());
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
                problem
                    .help("see all commands with `pleach help` and `pleach help kv`; the topic is exit-codes")
            })?;
        }
        let help = found.render_help();
        app.output.bytes(help.to_string().as_bytes())
    }
}
