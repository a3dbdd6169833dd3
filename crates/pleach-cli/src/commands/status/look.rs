use std::path::Path;
use std::time::Duration;

use pleach::status::{Status, holder, last_status};
use pleach::{Clock as _, EngineError, Error, ErrorKind, SystemClock};

use crate::app::App;
use crate::failure::Problem;

/// A status, and where it comes from.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Who has the store open; none if nobody has.
    pub(crate) holder: Option<String>,
    /// How old the figures are of how it was used; none if there are none.
    pub(crate) age: Option<Duration>,
    pub(crate) status: Status,
}

/// What to do where there is no directory with figures.
pub(super) const ON_SERVERS: &str = "see what is in it with `pleach kv bucket ls`, and ask the servers how they are, at their monitoring port";

/// Looks at a store: from outside if someone has it open, else from inside.
pub(crate) async fn look(app: &mut App) -> anyhow::Result<Seen> {
    let directory = app.directory(ON_SERVERS)?;
    if holder(&directory).is_some() {
        return Ok(from_outside(&directory)?);
    }
    let store = match app.store().await {
        Ok(store) => store,
        Err(error) if is_locked(&error) => return Ok(from_outside(&directory)?),
        Err(error) => return Err(error),
    };
    let found = store.status().await?;
    let (age, status) = match last_status(&directory) {
        Some(last) => (Some(age_of(&last)), found.after(last)),
        None => (None, found),
    };
    Ok(Seen { holder: None, age, status })
}

/// Takes what the process that has a store open, or had it open last, has left about it.
pub(super) fn from_outside(directory: &Path) -> Result<Seen, Problem> {
    let (holder, last) = (holder(directory), last_status(directory));
    let last = last.filter(|last| holder.as_ref().is_none_or(|holder| last.is_from(holder)));
    match (holder, last) {
        (holder, Some(status)) => Ok(Seen { holder, age: Some(age_of(&status)), status }),
        (Some(holder), None) => {
            let message = format!("the store is in use by {holder}, which has not said yet how it is doing");
            let help = "try again in a second; a program of an older version never says";
            Err(Problem::new(ErrorKind::Unavailable, message).help(help))
        }
        (None, None) => {
            let message = "nobody has the store open, and nobody has left figures about it";
            Err(Problem::not_found(message).help("without --watch it is opened to see how large it is"))
        }
    }
}

fn age_of(status: &Status) -> Duration {
    SystemClock::new().now().since(status.time)
}

fn is_locked(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Engine(EngineError::Locked { .. })))
}
