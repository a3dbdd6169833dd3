use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;

/// Prints a completion script for a shell
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach completions bash > ~/.local/share/bash-completion/completions/pleach\n  \
                  pleach completions fish > ~/.config/fish/completions/pleach.fish\n  \
                  source <(pleach completions zsh)"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "pleach", &mut script);
        app.output.bytes(&script)
    }
}
