use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::server::until;

/// Starts its arguments, says which process that is, and ends it when its own input ends: so no server outlives
/// the tests, however they end.
const KEEPER: &str = "\"$@\" & echo $!; read -r _; kill -9 $! 2>/dev/null; wait";

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    keeper: Child,
    server: Pid,
}

impl Process {
    pub(crate) fn start(program: &Path, configuration: &Path, log: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(program).arg("-c").arg(configuration).arg("-l").arg(log);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = command.spawn().expect("a shell can be started");
        let mut line = String::new();
        let output = keeper.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("the shell says which process it started");
        let server = line.trim().parse().ok().and_then(Pid::from_raw).expect("that is a number");
        Self { keeper, server }
    }

    /// As a crash does.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }

    /// Stops it, and waits until it does nothing any more.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        until(|| self.state().is_none_or(|state| state == 'T'), || "the server does not stop".to_owned());
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(self.server, signal);
    }

    /// What the system says it is doing, where it says so.
    fn state(&self) -> Option<char> {
        let status = fs::read_to_string(format!("/proc/{}/stat", self.server.as_raw_nonzero())).ok()?;
        status.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is stopped must go on, or it could not be ended.
        self.kill();
    }
}
