//! Other key-value clients of NATS, with which the tests share buckets: nats.py and @nats-io/kv.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::directory;

/// The Python package and its version. It needs no other.
const PYTHON_PACKAGE: &str = "nats-py==2.16.0";

/// Where the packages for Node.js are listed, with their versions and digests.
const LISTS: &str = "crates/pleach-nats/tests/interop";

/// What lists them.
const LIST_FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The file that says what was installed, written last.
const INSTALLED: &str = "installed";

/// The commands that do by hand what [`install`] does.
pub(super) fn shown() -> String {
    format!("python3 -m pip install --no-deps {PYTHON_PACKAGE} && npm ci --prefix {LISTS}")
}

/// Puts the clients where the tests look for them: into `tools` below the target directory.
pub(super) fn install(root: &Path) -> Result<()> {
    let tools = directory()?;
    install_python(&tools.join("nats-py")).with_context(|| format!("the tests need {PYTHON_PACKAGE}"))?;
    install_node(&tools.join("nats-js"), &root.join(LISTS))
        .with_context(|| format!("the tests need the packages in {LISTS}/package.json"))
}

fn install_python(place: &Path) -> Result<()> {
    if is_installed(place, PYTHON_PACKAGE) {
        return Ok(());
    }
    clear(place)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "-q", "--no-deps", "--root-user-action", "ignore"]);
    run(pip.args([PYTHON_PACKAGE, "--target"]).arg(place))?;
    finish(place, PYTHON_PACKAGE)
}

fn install_node(place: &Path, lists: &Path) -> Result<()> {
    let read = |name| {
        let path = lists.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let texts = [read(LIST_FILES[0])?, read(LIST_FILES[1])?];
    let wanted = texts.concat();
    if is_installed(place, &wanted) {
        return Ok(());
    }
    clear(place)?;
    for (name, text) in LIST_FILES.iter().zip(texts) {
        fs::write(place.join(name), text).with_context(|| format!("cannot write to {}", place.display()))?;
    }
    let quiet = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"];
    run(Command::new("npm").args(quiet).current_dir(place))?;
    finish(place, &wanted)
}

fn is_installed(place: &Path, wanted: &str) -> bool {
    fs::read_to_string(place.join(INSTALLED)).is_ok_and(|installed| installed == wanted)
}

fn clear(place: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))
}

fn finish(place: &Path, wanted: &str) -> Result<()> {
    fs::write(place.join(INSTALLED), wanted).with_context(|| format!("cannot write to {}", place.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_owned();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{} ended with {status}", program.display()),
        Err(error) => bail!("{} cannot be started: {error}", program.display()),
    }
}
