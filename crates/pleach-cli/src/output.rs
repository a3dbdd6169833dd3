use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use clap::ValueEnum;
use serde::Serialize;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    fn paint(self, terminal: bool) -> Paint {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint(match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && !set("NO_COLOR") && !dumb,
        })
    }

    /// The colours of stderr.
    pub(crate) fn paint_stderr(self) -> Paint {
        self.paint(io::stderr().is_terminal())
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Text that stands out.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Text that steps back.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Bad news.
    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// Advice.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("1;36", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What the commands print for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// People.
    Human,
    /// Programs: one JSON object a line.
    Json,
}

/// Where the commands print to. Nothing else writes to stdout.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    form: Form,
    quiet: bool,
    paint: Paint,
    terminal: bool,
}

impl Output {
    /// Output to stdout.
    pub(crate) fn new(form: Form, color: ColorChoice) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let paint = color.paint(terminal);
        Self { stdout: BufWriter::new(stdout.lock()), form, quiet: false, paint, terminal }
    }

    /// The same without confirmations and progress.
    pub(crate) fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Whether to print JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Whether nobody wants to hear what went well.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a person looks at stdout.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The colours of stdout.
    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        self.wrote(|stdout| writeln!(stdout, "{line}"))
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.wrote(|stdout| stdout.write_all(bytes))
    }

    /// Prints a JSON object in a line of its own.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_string(object)?;
        self.line(line)
    }

    /// Prints what was done: `object` in JSON mode, else `line`; nothing if quiet.
    pub(crate) fn confirm(&mut self, object: &impl Serialize, line: impl fmt::Display) -> anyhow::Result<()> {
        match self.form {
            _ if self.quiet => Ok(()),
            Form::Json => self.object(object),
            Form::Human => self.line(line),
        }
    }

    /// Tells a person something on stderr, where it is in nobody's way.
    pub(crate) fn note(&self, note: impl fmt::Display) {
        if !self.quiet && !self.is_json() {
            // If stderr is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "note: {note}");
        }
    }

    /// Tells of something that went wrong and does not make the command fail, on stderr.
    pub(crate) fn warn(&self, warning: impl fmt::Display) {
        // If stderr is gone, there is nobody to tell.
        let _ = match self.form {
            Form::Json => {
                let warning = serde_json::json!({"v": 1, "warning": warning.to_string()});
                writeln!(io::stderr(), "{warning}")
            }
            Form::Human => writeln!(io::stderr(), "warning: {warning}"),
        };
    }

    /// Hands everything printed so far to its reader.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.wrote(Write::flush)
    }

    fn wrote(
        &mut self,
        write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        write(&mut self.stdout).map_err(|error| OutputLost(error).into())
    }
}

/// Stdout takes no more.
#[derive(Debug)]
pub(crate) struct OutputLost(io::Error);

impl OutputLost {
    /// Whether its reader left, as `head` does when it has seen enough. That is no error.
    pub(crate) fn reader_left(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for OutputLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write to stdout")
    }
}

impl std::error::Error for OutputLost {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
