use std::collections::BTreeMap;

use pleach_engine::{Engine as _, KeyRange, PAGE_ENTRIES_MAX, PageToken, ScanQuery, Selection};
use serde_json::json;

use super::super::address::{owner_prefix, place_of};
use super::super::reply::with;
use super::super::{Principal, StateError};
use super::{Act, Inspected, StateAdmin};

/// The most entries of one page of an export.
pub const EXPORT_ENTRIES_MAX: usize = 1000;

/// Where a principal has state, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The contract, or nothing if keys are damaged.
    pub contract: Option<String>,
    /// The store.
    pub store: Option<String>,
    /// How many entries are in it.
    pub entries: u64,
}

/// Some of a principal's state.
#[derive(Clone, Debug)]
pub struct ExportPage {
    /// One JSON object an entry, without line ends.
    pub lines: Vec<String>,
    /// What to ask with for the rest, as of the same moment; none if this was all.
    pub next: Option<PageToken>,
}

impl StateAdmin {
    /// Finds out where a principal has state: under every contract, in every store, declared or not. Reads their keys.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn find(&self, principal: &Principal) -> Result<Vec<Holding>, StateError> {
        let begun = self.begin(&Act::Find { principal: principal.clone() }).await?;
        let mut found: BTreeMap<(Option<String>, Option<String>), u64> = BTreeMap::new();
        let mut query = ScanQuery {
            selection: everything(principal),
            limit: PAGE_ENTRIES_MAX,
            keys_only: true,
            ..ScanQuery::default()
        };
        let shared = &self.state.shared;
        loop {
            let page = shared.engine.scan(&shared.bucket, query.clone()).await?;
            for entry in page.entries {
                let place = place_of(&entry.key).map(|place| (place.contract.to_string(), place.store));
                let (contract, store) = place.unzip();
                *found.entry((contract, store)).or_default() += 1;
            }
            if page.next.is_none() {
                break;
            }
            query.page = page.next;
        }
        self.end(begun, found.values().sum()).await?;
        let holding = |((contract, store), entries)| Holding { contract, store, entries };
        Ok(found.into_iter().map(holding).collect())
    }

    /// Copies a principal's whole state, damaged entries too, [`EXPORT_ENTRIES_MAX`] at a time: one JSON object a line.
    ///
    /// # Errors
    /// `Compacted` if the page before was read too long ago, or what the engine could not do.
    pub async fn export(
        &self,
        principal: &Principal,
        page: Option<PageToken>,
    ) -> Result<ExportPage, StateError> {
        let begun = self.begin(&Act::Export { principal: principal.clone() }).await?;
        let selection = everything(principal);
        let query = ScanQuery { selection, limit: EXPORT_ENTRIES_MAX, page, ..ScanQuery::default() };
        let shared = &self.state.shared;
        let page = shared.engine.scan(&shared.bucket, query).await?;
        let line = |entry| {
            with(json!({"principal": principal.to_string()}), Inspected::of(entry).to_json()).to_string()
        };
        let lines: Vec<String> = page.entries.iter().map(line).collect();
        self.end(begun, lines.len() as u64).await?;
        Ok(ExportPage { lines, next: page.next })
    }
}

fn everything(principal: &Principal) -> Selection {
    KeyRange::prefix(format!("{}.", owner_prefix(principal))).into()
}
