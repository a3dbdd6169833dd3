use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use futures_util::StreamExt as _;
use pleach_contract::{Contract, ContractId};
use pleach_engine::{
    At, BucketName, EngineError, Entry, ErrorKind, Expectation, Key, KeyFilter, Revision, ScanQuery,
    Timestamp, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use serde::{Deserialize, Serialize};

use crate::contracts::Contracts;
use crate::envelope::Envelope;
use crate::error::AuthorityError;
use crate::judge::{Judge, Ruling, StoredRecord};
use crate::naming::lineage_token;
use crate::record::{GlassAct, OwnerState, moment};
use crate::state::STATE_BUCKET;
use crate::stored_state::state_name;
use crate::survey::{TURN_ENTRIES, take_turns};
use crate::system::parsed;
use crate::{OnProgress, ScanProgress};

/// How many breaches the record of a verification names.
pub const BREACH_SAMPLES_MAX: usize = 5;

/// How many entries are read at a time where their records cannot be watched.
const PAGE_ENTRIES: usize = 250;

/// A stored value that breaks the contract in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breach {
    /// The alias of its resource, or `state.STORE`.
    pub place: String,
    /// Its bucket.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Its revision.
    pub revision: Revision,
    /// Whether it is the value that a read returns; else it is kept history.
    pub live: bool,
    /// When it was written.
    #[serde(with = "moment")]
    pub written: Timestamp,
    /// The version that it carries; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is wrong with it.
    pub why: String,
}

/// What the last verification of a lineage found: `verified.LINEAGE` in the system bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verified {
    /// The digest of the contract that was in force.
    pub digest: String,
    /// When it was begun: what was written later was perhaps not read.
    #[serde(with = "moment")]
    pub time: Timestamp,
    /// How many records were read, of live values and of kept history.
    pub records: u64,
    /// How many of them break the contract.
    pub breaches: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Breach>,
}

/// A verification under way: reads everything that is stored under the contract in force, a bucket after the other.
///
/// It holds one record in memory at a time. When [`Verification::next`] has returned the last breach, what was found is
/// kept in the store, for [`LineageStatus`](crate::LineageStatus).
pub struct Verification {
    contracts: Contracts,
    lineage: ContractId,
    progress: Option<OnProgress>,
    places: VecDeque<Place>,
    /// The place that is being read, and its records.
    current: Option<(Place, Records)>,
    found: Verified,
}

/// Something whose entries are read: the bucket of an alias, or all state of a lineage.
struct Place {
    bucket: BucketName,
    filters: Vec<KeyFilter>,
    kind: PlaceKind,
    records: u64,
}

enum PlaceKind {
    Kv {
        alias: String,
        judge: Judge,
    },
    /// The judges of its stores, as far as they were needed.
    State {
        contract: Box<Contract>,
        judges: BTreeMap<String, Judge>,
    },
}

/// Where records come from.
enum Records {
    /// Every kept record of every key, as a watch begins with them.
    All(WatchStream),
    /// Live values and the history of their keys, where an engine has no room for the rest.
    Live { query: ScanQuery, ready: VecDeque<Entry>, is_done: bool },
}

impl Contracts {
    /// Reads everything that is stored under the contract in force, live values and kept history, of buckets and of
    /// state, and yields what breaks it. None if nothing of the lineage is in force.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn verify(
        &self,
        lineage: &ContractId,
        progress: Option<OnProgress>,
    ) -> Result<Option<Verification>, AuthorityError> {
        let Some(contract) = self.in_force(lineage).await? else { return Ok(None) };
        let shared = &self.shared;
        let mut places = VecDeque::new();
        for (bucket, kept) in shared.system.owners(lineage.as_str()).await? {
            let owner = kept.value;
            let (Some(digest), OwnerState::Owned | OwnerState::Restored) = (&owner.digest, owner.state)
            else {
                continue;
            };
            if let Some(resource) = shared.in_force(lineage.as_str(), digest, &owner.alias).await? {
                places.push_back(Place {
                    bucket: BucketName::parse(bucket)?,
                    filters: Vec::new(),
                    kind: PlaceKind::Kv { alias: owner.alias, judge: Judge::kv(resource, owner.unstamped) },
                    records: 0,
                });
            }
        }
        let digest = contract.digest().to_string();
        places.push_back(Place {
            bucket: BucketName::parse(STATE_BUCKET)?,
            // An owner is two tokens, and a store one: what follows is a key in it, or nothing.
            filters: vec![KeyFilter::parse(format!("*.*.{}.>", lineage_token(lineage.as_str())))?],
            kind: PlaceKind::State { contract: Box::new(contract), judges: BTreeMap::new() },
            records: 0,
        });
        let found =
            Verified { digest, time: shared.clock.now(), records: 0, breaches: 0, samples: Vec::new() };
        let (contracts, lineage) = (self.clone(), lineage.clone());
        Ok(Some(Verification { contracts, lineage, progress, places, current: None, found }))
    }

    /// What was done past the guards to the buckets of a lineage that it has now, and to its state; the oldest first.
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn overrides(&self, lineage: &ContractId) -> Result<Vec<GlassAct>, AuthorityError> {
        let owners = self.shared.system.owners(lineage.as_str()).await?;
        let token = lineage_token(lineage.as_str());
        let is_its_state = |key: &String| key.split('.').nth(2) == Some(&token);
        let concerns = |act: &GlassAct| {
            owners.iter().any(|(bucket, _)| *bucket == act.bucket)
                || act.bucket == STATE_BUCKET && act.keys.iter().any(is_its_state)
        };
        Ok(self.broken_glass().await?.into_iter().filter(concerns).collect())
    }

    /// What the last verification found, and how often the guards were passed since.
    pub(crate) async fn verified(&self, lineage: &str) -> Result<(Option<Verified>, u64), AuthorityError> {
        let system = &self.shared.system;
        let verified: Option<Verified> = system.read(&verified_key(lineage)?).await?.map(|kept| kept.value);
        let Some(id) = ContractId::parse(lineage) else { return Ok((verified, 0)) };
        let since = verified.as_ref().map_or(Timestamp::from_micros(0), |verified| verified.time);
        let acts = self.overrides(&id).await?;
        let count = acts.iter().filter(|act| act.time >= since).count();
        Ok((verified, count as u64))
    }
}

impl Verification {
    /// The next value that breaks the contract; none once everything was read.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn next(&mut self) -> Result<Option<Breach>, AuthorityError> {
        loop {
            let (mut place, mut records) = match self.current.take() {
                Some(current) => current,
                None => match self.places.pop_front() {
                    Some(place) => {
                        let records = self.open(&place).await?;
                        (place, records)
                    }
                    None => {
                        self.keep().await?;
                        return Ok(None);
                    }
                },
            };
            let Some(entry) = self.read(&place, &mut records).await? else {
                self.tell(&place, true);
                continue;
            };
            if place.records % TURN_ENTRIES as u64 == 0 {
                take_turns().await;
                self.tell(&place, false);
            }
            place.records += 1;
            let breach = self.judge(&mut place, &entry).await?;
            self.current = Some((place, records));
            if let Some(breach) = breach {
                self.found.breaches += 1;
                if self.found.samples.len() < BREACH_SAMPLES_MAX {
                    self.found.samples.push(breach.clone());
                }
                return Ok(Some(breach));
            }
        }
    }

    /// What was found so far.
    pub fn found(&self) -> &Verified {
        &self.found
    }

    async fn open(&self, place: &Place) -> Result<Records, AuthorityError> {
        let engine = self.contracts.shared.system.engine();
        let query = WatchQuery { filters: place.filters.clone(), start: WatchStart::History };
        match engine.watch(&place.bucket, query).await {
            Ok(records) => Ok(Records::All(records)),
            Err(EngineError::BucketNotFound { .. }) => Ok(Records::none()),
            // An engine may have no room for so many records at once.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Records::live(place)),
            Err(error) => Err(error.into()),
        }
    }

    /// The next value of a place; none at its end. Markers and records of the store itself are no values.
    async fn read(&self, place: &Place, records: &mut Records) -> Result<Option<Entry>, AuthorityError> {
        let engine = self.contracts.shared.system.engine();
        let now = self.contracts.shared.clock.now();
        loop {
            let entry = match records {
                Records::All(stream) => match stream.next().await.transpose() {
                    Ok(Some(WatchEvent::Change(change))) => change.entry,
                    Ok(Some(WatchEvent::InitialDone { .. }) | None) => return Ok(None),
                    Err(error) if place.records == 0 && error.kind() == ErrorKind::Unsupported => {
                        *records = Records::live(place);
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
                Records::Live { query, ready, is_done } => match ready.pop_front() {
                    Some(entry) => entry,
                    None if *is_done => return Ok(None),
                    None => {
                        let page = match engine.scan(&place.bucket, query.clone()).await {
                            Err(EngineError::BucketNotFound { .. }) => return Ok(None),
                            scanned => scanned?,
                        };
                        for entry in page.entries {
                            ready.extend(engine.history(&place.bucket, &entry.key).await?);
                        }
                        *is_done = page.next.is_none();
                        query.page = page.next;
                        continue;
                    }
                },
            };
            let is_over = entry.expires.is_some_and(|expires| expires <= now);
            let is_ours = place.filters.iter().all(|filter| filter.matches(&entry.key));
            if entry.op.is_put() && !entry.key.is_reserved() && is_ours && !is_over {
                return Ok(Some(entry));
            }
        }
    }

    async fn judge(&mut self, place: &mut Place, entry: &Entry) -> Result<Option<Breach>, AuthorityError> {
        self.found.records += 1;
        let shared = &self.contracts.shared;
        let (name, judge) = match &mut place.kind {
            PlaceKind::Kv { alias, judge } => (alias.clone(), &*judge),
            PlaceKind::State { contract, judges } => {
                let store = entry.key.tokens().nth(3).unwrap_or_default();
                if !judges.contains_key(store) {
                    judges.insert(store.to_owned(), self.contracts.judge_of_store(contract, store)?);
                }
                (state_name(store), &judges[store])
            }
        };
        let why = match judge.judge(&StoredRecord::new(entry)) {
            // What the store keeps itself, for an index for example, is no value of a keyspace.
            Ruling::Readable | Ruling::Reserved(_) => return Ok(None),
            Ruling::Outside(misfit) | Ruling::Refused(misfit) => misfit.to_string(),
        };
        let newest = shared.system.engine().read(&place.bucket, &entry.key, At::Latest).await?;
        Ok(Some(Breach {
            place: name,
            bucket: place.bucket.to_string(),
            key: entry.key.to_string(),
            revision: entry.revision,
            live: newest.is_some_and(|newest| newest.revision == entry.revision),
            written: entry.time,
            version: entry.headers.get(Envelope::VERSION).map(str::to_owned),
            why,
        }))
    }

    fn tell(&self, place: &Place, is_done: bool) {
        if let Some(progress) = &self.progress {
            let alias = match &place.kind {
                PlaceKind::Kv { alias, .. } => alias.clone(),
                PlaceKind::State { .. } => "state".to_owned(),
            };
            progress(&ScanProgress { alias, entries: place.records, is_done });
        }
    }

    /// Keeps what was found, for whoever asks how the lineage is doing.
    async fn keep(&self) -> Result<(), AuthorityError> {
        let system = &self.contracts.shared.system;
        let put = system.put(verified_key(self.lineage.as_str())?, &self.found, Expectation::Any);
        system
            .commit(put.into())
            .await
            .map_err(|error| AuthorityError::of_commit(error, self.lineage.as_str()))
    }
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification")
            .field("lineage", &self.lineage)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

impl Records {
    fn none() -> Self {
        Self::Live { query: ScanQuery::default(), ready: VecDeque::new(), is_done: true }
    }

    fn live(place: &Place) -> Self {
        let filter = place.filters.first().cloned();
        let selection = pleach_engine::Selection { filter, ..pleach_engine::Selection::all() };
        let query = ScanQuery { selection, limit: PAGE_ENTRIES, ..ScanQuery::default() };
        Self::Live { query, ready: VecDeque::new(), is_done: false }
    }
}

/// The record of the last verification of a lineage.
fn verified_key(lineage: &str) -> Result<Key, AuthorityError> {
    Ok(crate::naming::system_key(&["verified", &lineage_token(lineage)])?)
}

/// Whether a record of the system bucket is one of a verification that can be read.
pub(crate) fn check_record(entry: &Entry) -> Result<(), crate::Damage> {
    parsed::<Verified>(entry).map(drop)
}
