use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// A terminal that a test holds the other end of.
pub(crate) struct Terminal {
    ours: File,
    theirs: File,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let path = OsStr::from_bytes(path.to_bytes());
        let theirs = OpenOptions::new().read(true).write(true).open(path).unwrap();
        // Answers are typed before they are asked for: shown, they would stand in the middle of questions.
        let mut modes = tcgetattr(&theirs).unwrap();
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
        Self { ours: ours.into(), theirs }
    }

    /// Runs a command whose stdout is the terminal, and returns what it printed there.
    pub(crate) fn shows(mut self, mut command: Command) -> String {
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(self.theirs).spawn().unwrap();
        drop(command);
        let mut shown = Vec::new();
        let _ = self.ours.read_to_end(&mut shown);
        child.wait().unwrap();
        String::from_utf8(shown).unwrap()
    }

    /// Runs a command whose stdin and stderr are the terminal, types these answers, and returns what was shown there
    /// and the exit code.
    pub(crate) fn run(mut self, mut command: Command, answers: &str) -> (String, i32) {
        command.stdin(self.theirs.try_clone().unwrap()).stderr(self.theirs).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Its ends of the terminal are the child's alone from here on, so that the last reading ends.
        drop(command);
        self.ours.write_all(answers.as_bytes()).unwrap();
        let mut shown = Vec::new();
        // When the other end is gone, some systems say so by an error instead of the end.
        let _ = self.ours.read_to_end(&mut shown);
        let code = child.wait().unwrap().code().unwrap_or(-1);
        (String::from_utf8(shown).unwrap(), code)
    }
}
