use std::path::Path;

use pleach_engine::{EngineError, Revision};

use super::Closed;
use super::report::{Damage, IndexReport, Progress, RevisionRange, Step, VerifyReport};
use super::scan::{Scanned, scan};
use super::tally::Tally;
use super::view::{Opening, View};
use crate::log::Frame;

/// Reads every byte of the log of the store in `directory`, and compares the index with it. Nothing is changed,
/// not even a torn tail is cut.
///
/// The index is opened under another name beside it, which is gone afterwards, and looked up once for each
/// record of the log. Of a key's older records it is checked that those the index points to are there, not that
/// it points to all of them.
///
/// # Errors
/// `Locked` if the store is in use, `NotAStore`, or what the disk says. Damage is no error: it is in the report.
pub fn verify(
    directory: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport, EngineError> {
    let directory = directory.as_ref();
    let closed = Closed::lock(directory)?;
    let (scanned, opening) = read(directory, &closed, progress, &mut |_| {})?;
    let (log, index_at) = (scanned.report, scanned.index_at);
    let index = match opening {
        Opening::Absent => IndexReport::Absent,
        Opening::Unreadable(what) => IndexReport::Unreadable { what },
        Opening::Opened(_) if !log.is_sound() => IndexReport::NotChecked,
        Opening::Opened(view) if view.meta.applied < index_at => IndexReport::Unreadable {
            what: format!(
                "it ends at revision {}, and the log was cleaned for a later one",
                view.meta.applied
            ),
        },
        Opening::Opened(view) => match view.check(directory, progress) {
            Ok(check) => IndexReport::Checked(check),
            Err(EngineError::CorruptIndex { what }) => IndexReport::Unreadable { what },
            Err(EngineError::Io { source, .. }) => IndexReport::Unreadable { what: source.to_string() },
            Err(error) => return Err(error),
        },
    };
    Ok(VerifyReport { log, index })
}

/// Reads the log, of which `see` gets every sound frame, and asks the index whether it knows of anything that the
/// log does not have.
pub(super) fn read(
    directory: &Path,
    closed: &Closed,
    progress: &mut dyn FnMut(Progress),
    see: &mut dyn FnMut(&Frame),
) -> Result<(Scanned, Opening), EngineError> {
    let mut tally = Tally::default();
    let store = closed.store.as_ref().ok().copied();
    let mut scanned = scan(directory, store, Step::ReadLog, progress, &mut |_, frame| {
        tally.see(&frame);
        see(&frame);
        Ok(())
    })?;
    tally.finish(&mut scanned.report);
    if let Err(damage) = &closed.store {
        scanned.add(damage.clone());
    }
    let opening = View::open(directory, store)?;
    if let Opening::Opened(view) = &opening {
        witness(&mut scanned, view.meta.applied);
    }
    Ok((scanned, opening))
}

/// The index is written only after the log was synced as far: what it knows and the log has not is lost.
fn witness(scanned: &mut Scanned, applied: Revision) {
    if applied <= scanned.last() {
        return;
    }
    let (path, offset) = scanned.end.clone();
    let lost = Some(RevisionRange { first: scanned.expected, last: applied });
    let torn = scanned.report.torn_tail.take();
    let what = format!("the log ends here, and the index knows revision {applied}");
    let length = torn.map(|torn| torn.bytes);
    scanned.add(Damage { path, offset, length, what, lost, commits: None, bucket: None, keys: Vec::new() });
    scanned.expected = Revision::new(applied.get().saturating_add(1));
}
