use std::pin::Pin;

use futures_core::Stream;

use crate::{Change, EngineError, Key, KeyFilter, Revision};

/// The most filters of one watch.
pub const WATCH_FILTERS_MAX: usize = 64;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchStart {
    /// With the next change.
    #[default]
    Now,
    /// With the latest live value of every key, each once and in no promised order; then
    /// [`WatchEvent::InitialDone`], also if there was none; then every later change.
    Latest,
    /// With every kept record of every key, markers too, those of one key in order; then
    /// [`WatchEvent::InitialDone`]; then every later change. Initial records, like latest values, come as
    /// if each had been committed alone, since the rest of its batch may not be there.
    History,
    /// With the change at this revision, or the first after it.
    Revision(Revision),
}

/// Which changes to deliver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// A change is delivered if its key passes any of these; none means every key.
    pub filters: Vec<KeyFilter>,
    /// Where to begin.
    pub start: WatchStart,
}

impl WatchQuery {
    /// Checks how many filters there are.
    ///
    /// # Errors
    /// `TooManyFilters`.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.filters.len() > WATCH_FILTERS_MAX {
            return Err(EngineError::TooManyFilters { count: self.filters.len(), limit: WATCH_FILTERS_MAX });
        }
        Ok(())
    }

    /// Whether changes of `key` are to be delivered.
    pub fn matches(&self, key: &Key) -> bool {
        self.matches_text(key.as_str())
    }

    /// Whether changes of the key with this text are to be delivered.
    pub fn matches_text(&self, key: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.matches_text(key))
    }
}

/// What a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// A record.
    Change(Change),
    /// What was there when the watch began has been delivered, as of this revision. What follows is new.
    InitialDone {
        /// The snapshot the initial values were read from.
        revision: Revision,
    },
}

/// The events of a watch. It ends after the first error; dropping it frees everything it holds.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, EngineError>> + Send>>;
