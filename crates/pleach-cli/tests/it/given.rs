use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory of its own, with a store in it once a command makes one.
pub(crate) struct Given {
    directory: TempDir,
    /// Where the store is, if it is not in the directory.
    store: Option<String>,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// An empty directory.
pub(crate) fn given_nothing() -> Given {
    Given { directory: tempfile::tempdir().unwrap(), store: None }
}

/// The same, with the store elsewhere.
pub(crate) fn given_store(url: impl Into<String>) -> Given {
    Given { store: Some(url.into()), ..given_nothing() }
}

/// A store with a bucket `b` that keeps five records a key, after these commands on it, such as `put a 1`.
pub(crate) fn given(commands: &str) -> Given {
    let given = given_nothing();
    given.ok(&["kv", "bucket", "add", "b", "--history", "5"]);
    for command in commands.split(';').map(str::trim).filter(|command| !command.is_empty()) {
        let mut words = command.split(' ');
        let verb = words.next().unwrap();
        let arguments: Vec<&str> = ["kv", verb, "b"].into_iter().chain(words).collect();
        given.ok(&arguments);
    }
    given
}

impl Given {
    /// The command, not started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        for variable in ["PLEACH_STORE", "NO_COLOR", "COLUMNS", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        for variable in ["CREDS", "NKEY", "TOKEN", "USER", "PASSWORD"] {
            command.env_remove(format!("PLEACH_NATS_{variable}"));
        }
        command.envs(self.store.iter().map(|url| ("PLEACH_STORE", url)));
        command
    }

    /// Runs a command.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs a command with something on stdin.
    pub(crate) fn run_with<S: AsRef<OsStr>>(&self, stdin: &[u8], arguments: &[S]) -> Run {
        let mut child = self.start(arguments);
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Starts a command and leaves it running.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command that must succeed, and returns what it prints.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        self.run(arguments).ok()
    }

    /// Runs a command that must succeed, and returns the JSON it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        json_lines(&self.ok(&[&["--json"], arguments].concat()))
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file into the directory.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Whether there is such a file in the directory.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }
}

impl Run {
    /// What it printed; it must have succeeded.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.text()
    }

    /// What it printed, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Checks that it failed with this code, printed nothing, and said this on stderr.
    pub(crate) fn fails(&self, code: i32, says: &str) {
        assert_eq!((self.code, self.text().as_str()), (code, ""), "{}", self.stderr);
        assert!(self.stderr.contains(says), "{:?} is not in {}", says, self.stderr);
    }
}

impl From<Output> for Run {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        Self { code: status.code().unwrap_or(-1), stdout, stderr: String::from_utf8(stderr).unwrap() }
    }
}

/// Reads one JSON value a line.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Records without what is new in every store, sorted by key and in order for each.
pub(crate) fn content(lines: &[Value]) -> Vec<Value> {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        let object = line.as_object_mut().unwrap();
        for field in ["revision", "time", "batch"] {
            object.remove(field);
        }
    }
    lines.sort_by_key(|line| (line["bucket"].to_string(), line["key"].to_string()));
    lines
}
