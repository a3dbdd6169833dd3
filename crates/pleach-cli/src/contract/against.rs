use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::Context as _;
use pleach_contract::DOCUMENT_BYTES_MAX;

use super::source::Source;
use crate::failure::Problem;

/// Where an older contract is.
#[derive(Clone, Debug)]
pub(super) enum Against {
    /// In a file, or on stdin for `-`.
    File(PathBuf),
    /// In a commit: under the name of the new one, or another.
    Git { reference: String, path: Option<PathBuf> },
}

impl FromStr for Against {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("git:") else { return Ok(Self::File(text.into())) };
        let (reference, path) = match rest.split_once(':') {
            Some((reference, path)) => (reference, Some(path.into())),
            None => (rest, None),
        };
        // What begins with a dash would be an option of git.
        if reference.is_empty() || reference.starts_with('-') {
            return Err(format!("{reference:?} names no commit; write git:REF, such as git:main"));
        }
        Ok(Self::Git { reference: reference.into(), path })
    }
}

impl Against {
    /// Reads it; `file` is the new contract.
    pub(super) fn read(&self, file: &Path) -> anyhow::Result<Source> {
        match self {
            Self::File(path) => Source::read(path),
            Self::Git { reference, path } => from_git(reference, path.as_deref().unwrap_or(file)),
        }
    }
}

fn from_git(reference: &str, path: &Path) -> anyhow::Result<Source> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        let problem = Problem::invalid(format!("{} is no file that a commit could hold", path.display()));
        return Err(problem.help("name it with --against git:REF:PATH").into());
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = format!("{reference}:{}", path.display());
    let mut git = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["show", "--end-of-options", &format!("{reference}:./{name}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(Problem::invalid("git cannot be started").help("install it, or compare with a file"))?;
    let mut bytes = Vec::new();
    if let Some(stdout) = git.stdout.take() {
        // One byte more than a contract may have, so that a larger one is told apart.
        stdout.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).context("cannot read from git")?;
    }
    let mut complaint = String::new();
    if let Some(stderr) = git.stderr.take() {
        // A complaint that is not text is not worth an error of its own.
        let _ = stderr.take(4096).read_to_string(&mut complaint);
    }
    let status = git.wait().context("cannot wait for git")?;
    if !status.success() && bytes.len() <= DOCUMENT_BYTES_MAX {
        let line = complaint.lines().next().unwrap_or("it says nothing").trim_start_matches("fatal: ");
        let problem = Problem::not_found(format!("git has no {shown}: {line}"));
        return Err(problem
            .help("name a commit that has the file: --against git:REF or git:REF:PATH")
            .into());
    }
    Ok(Source::of(shown, path, bytes))
}
