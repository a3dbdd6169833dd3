use std::ops::Bound;

use pleach_contract::StoreKind;
use pleach_engine::{
    Engine as _, EngineError, Entry, Key, KeyRange, PAGE_ENTRIES_MAX, Page, Revision, ScanQuery, Selection,
};
use serde_json::Value;

use super::contract::Judged;
use super::entry::{BadCell, Cell, StatePage};
use super::store::{DynamicStore, KEY_BYTES_MAX};
use super::{StateError, StateRevision};

/// The most entries of one page.
pub const LIST_LIMIT_MAX: usize = 100;

/// How often a page is read again because its entries changed between two looks at them.
const ATTEMPTS_MAX: usize = 16;

/// Which page of a map to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// How many entries to pass over.
    pub offset: u64,
    /// How many entries to return: at most [`LIST_LIMIT_MAX`]; none only counts.
    pub limit: usize,
}

impl ListOptions {
    /// The first `limit` entries.
    pub const fn first(limit: usize) -> Self {
        Self { offset: 0, limit }
    }

    /// The same number of entries from `offset` on.
    #[must_use]
    pub const fn from(self, offset: u64) -> Self {
        Self { offset, ..self }
    }
}

impl DynamicStore {
    /// Reads a page of a map: the entries whose keys begin with `start` and go on, in byte order.
    ///
    /// The page is live: what is written between two pages moves what comes after it. It reads the keys before the
    /// page, the values in it, and counts the keys that there are; no value outside the page is looked at.
    ///
    /// # Errors
    /// A value store, or a start or a limit against the rules. A bad entry is no error but a cell; past the end the page is
    /// empty.
    pub async fn list(&self, start: &str, options: ListOptions) -> Result<StatePage<Value>, StateError> {
        self.require(StoreKind::Map)?;
        prefix_fits(start)?;
        let ListOptions { offset, limit } = options;
        if limit > LIST_LIMIT_MAX {
            return Err(StateError::LimitTooLarge { limit, max: LIST_LIMIT_MAX });
        }
        let range = self.namespace.range(start);
        let found = self.window(&range, offset, limit).await?;
        let next = offset.saturating_add(found.entries.len() as u64);
        let entries = found.entries.iter().map(|entry| self.cell(entry)).collect();
        let next_offset = (limit > 0 && next < found.count).then_some(next);
        Ok(StatePage { entries, count: found.count, offset, limit, next_offset })
    }

    /// How many entries a map has whose keys begin with `start` and go on.
    ///
    /// # Errors
    /// Those of [`DynamicStore::list`].
    pub async fn count(&self, start: &str) -> Result<u64, StateError> {
        Ok(self.list(start, ListOptions::first(0)).await?.count)
    }

    /// An entry as it is shown in a page or a watch.
    pub(super) fn cell(&self, entry: &Entry) -> Cell<Value> {
        let revision = StateRevision(entry.revision);
        let key = match self.kind() {
            StoreKind::Value => None,
            StoreKind::Map => match self.namespace.raw(&entry.key) {
                Some(key) => Some(key),
                None => {
                    let what = format!("its key {} is none that State makes", entry.key);
                    let error = self.compiled.corrupt(entry, None, what);
                    return Cell::Bad(BadCell { key: None, revision, error });
                }
            },
        };
        match self.compiled.judge(entry, key.clone()) {
            Ok(Judged::Current(entry)) => Cell::Entry(entry),
            Ok(Judged::Old(migration)) => Cell::MigrationRequired(migration),
            Err(error) => Cell::Bad(BadCell { key, revision, error }),
        }
    }

    /// The entries of a page, and how many there are in `range`.
    async fn window(&self, range: &KeyRange, offset: u64, limit: usize) -> Result<Window, StateError> {
        let mut latest = Window { entries: Vec::new(), count: 0 };
        if limit == 0 {
            latest.count = self.count_keys(range).await?;
            return Ok(latest);
        }
        for attempt in 1..=ATTEMPTS_MAX {
            // The last attempt takes what it gets: a map that changes all the time has pages too.
            let patient = attempt < ATTEMPTS_MAX;
            let Some(found) = self.settled(range, offset, limit, patient).await? else { continue };
            let Entries { before, entries, more } = found;
            let seen = before + entries.len() as u64;
            if !more {
                return Ok(Window { entries, count: seen });
            }
            let count = self.count_keys(range).await?;
            latest = Window { entries, count: count.max(seen) };
            // Entries were seen after those of the page: a count that leaves none is of another moment.
            if count > seen {
                break;
            }
        }
        Ok(latest)
    }

    /// The entries of a page as of one moment; none for someone `patient` if they changed between finding out which
    /// they are and reading them.
    async fn settled(
        &self,
        range: &KeyRange,
        offset: u64,
        limit: usize,
        patient: bool,
    ) -> Result<Option<Entries>, StateError> {
        if offset == 0 {
            let (entries, more) = self.values(range.clone(), limit).await?;
            return Ok(Some(Entries { before: 0, entries, more }));
        }
        let keys = match self.keys(range, offset, limit).await {
            // The snapshot was let go of under too many others: the next attempt takes a new one.
            Err(StateError::Engine(EngineError::Compacted { .. })) if patient => return Ok(None),
            keys => keys?,
        };
        let (Some((first, _)), Some((last, _))) = (keys.window.first(), keys.window.last()) else {
            return Ok(Some(Entries { before: keys.before, entries: Vec::new(), more: false }));
        };
        let bounds = KeyRange {
            start: Bound::Included(first.as_bytes().to_vec()),
            end: Bound::Included(last.as_bytes().to_vec()),
        };
        let (entries, _) = self.values(bounds, limit).await?;
        let read = entries.iter().map(|entry| (&entry.key, entry.revision));
        let is_settled = read.eq(keys.window.iter().map(|(key, revision)| (key, *revision)));
        let found = Entries { before: keys.before, entries, more: keys.more };
        Ok((is_settled || !patient).then_some(found))
    }

    /// Passes over `offset` keys and notes the next `limit`, all of one snapshot, without values.
    async fn keys(&self, range: &KeyRange, offset: u64, limit: usize) -> Result<Keys, StateError> {
        let mut keys = Keys { before: 0, window: Vec::new(), more: false };
        let mut query =
            ScanQuery { selection: Selection::range(range.clone()), keys_only: true, ..ScanQuery::default() };
        loop {
            let wanted =
                offset.saturating_sub(keys.before).saturating_add((limit - keys.window.len()) as u64);
            query.limit = usize::try_from(wanted).unwrap_or(PAGE_ENTRIES_MAX).min(PAGE_ENTRIES_MAX);
            let page = self.scan(query.clone()).await?;
            let passed = usize::try_from(offset - keys.before).unwrap_or(usize::MAX).min(page.entries.len());
            keys.before += passed as u64;
            let rest = page.entries.into_iter().skip(passed);
            keys.window.extend(rest.map(|entry| (entry.key, entry.revision)));
            keys.more = page.next.is_some();
            if page.next.is_none() || keys.window.len() == limit {
                return Ok(keys);
            }
            query.page = page.next;
        }
    }

    /// The first `limit` entries of `range` with their values, and whether there are more.
    async fn values(&self, range: KeyRange, limit: usize) -> Result<(Vec<Entry>, bool), StateError> {
        let mut query = ScanQuery { selection: Selection::range(range), limit, ..ScanQuery::default() };
        let mut entries = Vec::new();
        loop {
            let page = self.scan(query.clone()).await?;
            entries.extend(page.entries);
            if page.next.is_none() || entries.len() == limit {
                return Ok((entries, page.next.is_some()));
            }
            // Values that are too large for one page of the engine.
            query.limit = limit - entries.len();
            query.page = page.next;
        }
    }

    async fn count_keys(&self, range: &KeyRange) -> Result<u64, StateError> {
        let shared = &self.state.shared;
        Ok(shared.engine.count(&shared.bucket, Selection::range(range.clone())).await?)
    }

    async fn scan(&self, query: ScanQuery) -> Result<Page, StateError> {
        let shared = &self.state.shared;
        Ok(shared.engine.scan(&shared.bucket, query).await?)
    }
}

/// That a start is not too long; the `/` that ends the path of a view does not count.
pub(super) fn prefix_fits(start: &str) -> Result<(), StateError> {
    let bytes = start.strip_suffix('/').unwrap_or(start).len();
    if bytes > KEY_BYTES_MAX {
        return Err(StateError::PrefixTooLong { bytes, limit: KEY_BYTES_MAX });
    }
    Ok(())
}

/// A page, and how many entries there are.
struct Window {
    entries: Vec<Entry>,
    count: u64,
}

/// A page, how many entries come before it, fewer than were to be passed over if it is past the end, and whether any
/// come after it.
struct Entries {
    before: u64,
    entries: Vec<Entry>,
    more: bool,
}

/// The keys of a page, with the revisions that their values must have.
struct Keys {
    before: u64,
    window: Vec<(Key, Revision)>,
    more: bool,
}
