use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pleach::{Revision, Timestamp};
use serde::{Deserialize, Serialize};

use super::lines::Place;
use crate::destination;

/// The version of the state file.
const STATE_VERSION: u64 = 1;

/// How far an import has come, as its state file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    v: u64,
    /// The store it goes into.
    pub(super) store: String,
    /// Everything before has been committed.
    pub(super) done: Place,
    /// What is being committed, if anything.
    pub(super) window: Option<OpenWindow>,
    /// What has been committed, for the summary.
    pub(super) tally: Tally,
    /// Whether the end of the export was read.
    #[serde(default)]
    pub(super) is_complete: bool,
}

/// A window that is being committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenWindow {
    /// Where it ends.
    pub(super) end: Place,
    /// See [`OpenWindow::now`]; in microseconds since 1970.
    pub(super) now_micros: u64,
    /// The round that was about to be committed.
    pub(super) round: usize,
    /// The bucket's newest revision just before.
    pub(super) after: Revision,
}

impl OpenWindow {
    /// The moment by which its entries count as expired or not.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_micros)
    }
}

/// What an import has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) records: u64,
    pub(super) expired: u64,
    /// Records of the exported store itself, which were skipped.
    #[serde(default)]
    pub(super) reserved: u64,
}

impl State {
    /// Nothing is done.
    pub(super) fn new(store: String) -> Self {
        let tally = Tally::default();
        Self { v: STATE_VERSION, store, done: Place::START, window: None, tally, is_complete: false }
    }
}

/// Where a state is kept.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// The file at `path`, which need not be there yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it, if it is there.
    pub(super) fn load(&self) -> anyhow::Result<Option<State>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let state: State = serde_json::from_slice(&text).context("it is no state of an import")?;
        anyhow::ensure!(state.v == STATE_VERSION, "its version {} is not known", state.v);
        Ok(Some(state))
    }

    /// Replaces it, so that it is always whole, and on disk before the next commit.
    pub(super) fn save(&self, state: &State) -> anyhow::Result<()> {
        destination::write(&self.path, &serde_json::to_vec(state)?)
    }

    /// Removes it: there is nothing to go on with.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::new(directory.path().join("state"));
        assert_eq!(file.load().unwrap(), None);
        let window = OpenWindow { end: Place::START, now_micros: 7, round: 1, after: Revision::new(9) };
        let state = State { window: Some(window), ..State::new("somewhere".into()) };
        file.save(&state).unwrap();
        assert_eq!(file.load().unwrap(), Some(state));
        file.remove().unwrap();
        assert_eq!(file.load().unwrap(), None);
        file.remove().unwrap();
    }

    #[test]
    fn a_foreign_file_is_no_state() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        fs::write(&path, "my diary").unwrap();
        assert!(StateFile::new(path).load().is_err());
    }
}
