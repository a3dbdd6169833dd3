use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::Status;
use super::reporter::REPORT_INTERVAL;
use crate::core::Core;
use crate::lock;

/// The file in a store's directory in which the process that has it open says how it is doing. A hint for people,
/// never synced and never relied upon: whatever is wrong with it is the same as if it were not there.
pub const STATUS_FILE_NAME: &str = "status.json";

const TEMPORARY_NAME: &str = "status.json.tmp";
const VERSION: u32 = 1;

/// More than any status has.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Serialize)]
struct Written<'a> {
    v: u32,
    status: &'a Status,
}

#[derive(Deserialize)]
struct Read {
    v: u32,
    status: Status,
}

/// What the process that has the store in `directory` open, or had it open last, has left about it. A process that had it
/// open for less than a second leaves nothing. None if there is nothing to be read, for whatever reason.
pub fn last_status(directory: impl AsRef<Path>) -> Option<Status> {
    let file = fs::File::open(directory.as_ref().join(STATUS_FILE_NAME)).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let Read { v, status } = serde_json::from_slice(&bytes).ok()?;
    (v == VERSION).then_some(status)
}

/// Who has the store in `directory` open, such as `process 4711 (shop)`; none if nobody has. For an instant this looks to
/// others as if someone had.
pub fn holder(directory: impl AsRef<Path>) -> Option<String> {
    lock::holder_of(directory.as_ref())
}

impl Status {
    /// Whether it comes from the process that `holder` describes, as [`holder`] does.
    pub fn is_from(&self, holder: &str) -> bool {
        holder.strip_prefix(&lock::process_text(self.process.id)).is_some_and(|rest| rest.starts_with(' '))
    }
}

/// Writes the status of a store for others to read, so that they find the old one or the new one whole.
pub(super) fn write(core: &Core, status: &Status) {
    let write = || {
        let bytes = serde_json::to_vec(&Written { v: VERSION, status }).map_err(io::Error::other)?;
        let temporary = core.directory.join(TEMPORARY_NAME);
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, core.directory.join(STATUS_FILE_NAME))
    };
    if write().is_err() {
        core.meters.unwritten_reports.fetch_add(1, Ordering::Relaxed);
    }
}

/// Leaves the last status of a store that is being closed, unless it was open for a moment only: what a program that ran
/// for days has left is worth more than that.
pub(crate) fn leave(core: &Core) {
    if core.meters.uptime() >= REPORT_INTERVAL {
        write(core, &Status { closed: true, ..Status::of(core) });
    }
}
