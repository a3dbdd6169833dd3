//! Programs that the tests start, besides what a Rust toolchain brings.

mod clients;
mod nats;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Programs, how each is asked whether it is there, and the packages of the system that they are in.
const TOOLS: [(&str, &[&str], &str); 4] = [
    ("strace", &["--version"], "strace"),
    ("python3", &["-m", "pip", "--version"], "python3-pip"),
    ("node", &["--version"], "nodejs"),
    ("npm", &["--version"], "npm"),
];

/// The command that does by hand what [`install`] does.
pub(crate) fn shown() -> String {
    let packages = TOOLS.map(|(.., package)| package).join(" ");
    format!("apt-get install -y {packages} && {} && {}", nats::shown(), clients::shown())
}

/// Installs what is missing.
///
/// # Errors
/// If something is missing afterwards: says which package to install.
pub(crate) fn install(root: &Path) -> Result<()> {
    install_packages()?;
    nats::install()?;
    clients::install(root)
}

/// `tools` below the target directory, in which this program was built.
fn directory() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let target = program.parent().and_then(Path::parent).context("this program is in no target directory")?;
    Ok(target.join("tools"))
}

fn install_packages() -> Result<()> {
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    // The lists of a new machine may be empty or old; if that cannot be helped, the next command says so.
    let _ = apt_get(&["update", "-q"]);
    let arguments: Vec<_> = ["install", "-q", "-y"].iter().chain(&packages).copied().collect();
    let installed = apt_get(&arguments);
    let packages = missing();
    if !packages.is_empty() {
        let why = installed.err().map(|error| format!(" ({error})")).unwrap_or_default();
        bail!("the tests need {}, which could not be installed here{why}", packages.join(" and "));
    }
    Ok(())
}

/// The packages of the programs that cannot be started.
fn missing() -> Vec<&'static str> {
    let starts = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let absent = TOOLS.iter().filter(|(program, arguments, _)| !starts(program, arguments));
    absent.map(|(.., package)| *package).collect()
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    let status =
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("apt-get ended with {status}"),
        Err(error) => bail!("apt-get cannot be started: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_names_the_command_that_installs_every_package() {
        for (.., package) in TOOLS {
            assert!(shown().contains(package));
        }
    }
}
