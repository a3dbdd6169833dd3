use pleach_contract::{ContractId, NAME_CHARS_MAX};
use pleach_engine::{
    At, Batch, CommitError, Engine as _, Entry, Expectation, Key, KeyRange, Operation, PAGE_ENTRIES_MAX,
    ScanQuery, Selection, Timestamp,
};
use serde_json::{Value, json};

use super::super::address::{Namespace, place_of};
use super::super::contract::Stored;
use super::super::entry::DeleteOutcome;
use super::super::reply::{moment, with};
use super::super::{KEY_BYTES_MAX, LIST_LIMIT_MAX, ListOptions, Principal, StateError, StateRevision};
use super::{Act, StateAdmin};

/// A store of a principal under a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whose.
    pub principal: Principal,
    /// Under which contract; of all its versions.
    pub contract: ContractId,
    /// The name of the store, whether or not the contract still declares it.
    pub store: String,
}

/// An entry as it is stored, whatever any contract thinks of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// The contract it is under; none if its key is damaged.
    pub contract: Option<ContractId>,
    /// The store it is in; none if its key is damaged.
    pub store: Option<String>,
    /// Its key; none in a value store, or if it is damaged.
    pub key: Option<String>,
    /// Its value, or its bytes as text if it is not JSON.
    pub value: Result<Value, String>,
    /// The version it was written with; none if it does not say.
    pub state_version: Option<String>,
    /// The digest of the contract that wrote it; none if it does not say.
    pub writer_contract_digest: Option<String>,
    /// Which write it is of.
    pub revision: StateRevision,
    /// When it was written.
    pub updated_at: Timestamp,
    /// When it is gone, if it ever is.
    pub expires_at: Option<Timestamp>,
    /// What is wrong with it, if it is damaged.
    pub damage: Option<String>,
}

/// Some entries as they are stored, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedPage {
    /// The entries in the byte order of their keys.
    pub entries: Vec<Inspected>,
    /// How many there are.
    pub count: u64,
}

impl StateAdmin {
    /// Looks at an entry.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn get(&self, target: &Target, key: Option<&str>) -> Result<Option<Inspected>, StateError> {
        let stored = stored_key(target, key)?;
        let begun = self.begin(&Act::Get { target: target.clone(), key: key.map(str::to_owned) }).await?;
        let shared = &self.state.shared;
        let found = shared.engine.read(&shared.bucket, &stored, At::Latest).await?;
        self.end(begun, u64::from(found.is_some())).await?;
        Ok(found.as_ref().map(Inspected::of))
    }

    /// Looks at a page of a map.
    ///
    /// # Errors
    /// [`StateError::LimitTooLarge`], or what the engine could not do.
    pub async fn list(&self, target: &Target, options: ListOptions) -> Result<InspectedPage, StateError> {
        let ListOptions { offset, limit } = options;
        if limit > LIST_LIMIT_MAX {
            return Err(StateError::LimitTooLarge { limit, max: LIST_LIMIT_MAX });
        }
        let range = target.namespace()?.range("");
        let begun = self.begin(&Act::List { target: target.clone() }).await?;
        let page = self.page(range, offset, limit).await?;
        self.end(begun, page.entries.len() as u64).await?;
        Ok(page)
    }

    /// Deletes an entry, damaged or not.
    ///
    /// # Errors
    /// What the engine could not do.
    pub async fn delete(&self, target: &Target, key: Option<&str>) -> Result<DeleteOutcome, StateError> {
        let stored = stored_key(target, key)?;
        let begun = self.begin(&Act::Delete { target: target.clone(), key: key.map(str::to_owned) }).await?;
        let outcome = self.remove(&stored).await?;
        self.end(begun, u64::from(outcome == DeleteOutcome::Deleted)).await?;
        Ok(outcome)
    }

    async fn remove(&self, key: &Key) -> Result<DeleteOutcome, StateError> {
        const ATTEMPTS_MAX: usize = 1000;
        let shared = &self.state.shared;
        for _ in 0..ATTEMPTS_MAX {
            let Some(found) = shared.engine.read(&shared.bucket, key, At::Latest).await? else {
                return Ok(DeleteOutcome::NotDeleted);
            };
            let delete = Operation::delete(key.clone()).expecting(Expectation::Revision(found.revision));
            match shared.engine.commit(&shared.bucket, Batch::from(delete)).await {
                Ok(_) => return Ok(DeleteOutcome::Deleted),
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Engine(error)) => return Err(error.into()),
            }
        }
        Err(StateError::Contended { place: key.to_string(), attempts: ATTEMPTS_MAX })
    }

    /// A page without the care that sessions take: an administrator looks at something that may change meanwhile.
    async fn page(&self, range: KeyRange, offset: u64, limit: usize) -> Result<InspectedPage, StateError> {
        let shared = &self.state.shared;
        let count = shared.engine.count(&shared.bucket, Selection::range(range.clone())).await?;
        let mut rest = range;
        let mut left = offset;
        while left > 0 && limit > 0 {
            let many = usize::try_from(left).unwrap_or(PAGE_ENTRIES_MAX).min(PAGE_ENTRIES_MAX);
            let selection = Selection::range(rest.clone());
            let query = ScanQuery { selection, limit: many, keys_only: true, ..ScanQuery::default() };
            let page = shared.engine.scan(&shared.bucket, query).await?;
            let Some(last) = page.entries.last() else { break };
            rest.start = std::ops::Bound::Excluded(last.key.as_bytes().to_vec());
            left = left.saturating_sub(page.entries.len() as u64);
        }
        if limit == 0 || left > 0 {
            return Ok(InspectedPage { entries: Vec::new(), count });
        }
        let query = ScanQuery { selection: Selection::range(rest), limit, ..ScanQuery::default() };
        let page = shared.engine.scan(&shared.bucket, query).await?;
        Ok(InspectedPage { entries: page.entries.iter().map(Inspected::of).collect(), count })
    }
}

impl Inspected {
    pub(super) fn of(entry: &Entry) -> Self {
        let place = place_of(&entry.key);
        let envelope = crate::Envelope::read(&entry.headers);
        let writer =
            envelope.as_ref().map(|envelope| envelope.writer.clone()).filter(|writer| !writer.is_empty());
        let foreign = || format!("its key {} is none that State makes", entry.key);
        let damage = if place.is_none() { Some(foreign()) } else { Stored::read(entry).err() };
        let text = || String::from_utf8_lossy(&entry.value).into_owned();
        let (contract, store, key) = match place {
            Some(place) => (Some(place.contract), Some(place.store), place.key),
            None => (None, None, None),
        };
        Self {
            contract,
            store,
            key,
            value: pleach_contract::parse_json_strict(&entry.value).map_err(|_| text()),
            state_version: envelope.map(|envelope| envelope.version),
            writer_contract_digest: writer,
            revision: StateRevision(entry.revision),
            updated_at: entry.time,
            expires_at: entry.expires,
            damage,
        }
    }

    /// One line of an export: all that is known, with `valueText` instead of `value` if that is not JSON.
    pub fn to_json(&self) -> Value {
        let value = match &self.value {
            Ok(value) => json!({"value": value}),
            Err(text) => json!({"valueText": text}),
        };
        let facts = json!({
            "contract": self.contract.as_ref().map(ContractId::as_str),
            "store": self.store,
            "key": self.key,
            "stateVersion": self.state_version,
            "writerContractDigest": self.writer_contract_digest,
            "revision": self.revision.to_string(),
            "updatedAt": moment(self.updated_at),
            "expiresAt": self.expires_at.map(moment),
            "damage": self.damage,
        });
        let Value::Object(facts) = with(facts, value) else { return Value::Null };
        // What is not known is left out.
        Value::Object(facts.into_iter().filter(|(name, fact)| name == "value" || !fact.is_null()).collect())
    }
}

/// The stored key of an entry of a target.
fn stored_key(target: &Target, key: Option<&str>) -> Result<Key, StateError> {
    match key {
        Some("") => return Err(StateError::KeyMissing { store: target.store.clone() }),
        Some(key) if key.len() > KEY_BYTES_MAX => {
            return Err(StateError::KeyTooLong { bytes: key.len(), limit: KEY_BYTES_MAX });
        }
        _ => {}
    }
    target.namespace()?.key(key)
}

impl Target {
    /// The keys of the store. Its name must be one that a contract can declare, since a dot in it would lead into another.
    fn namespace(&self) -> Result<Namespace, StateError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if self.store.is_empty() || self.store.len() > NAME_CHARS_MAX || !self.store.chars().all(fits) {
            return Err(StateError::InvalidTarget { store: super::super::error::excerpt(&self.store) });
        }
        Ok(Namespace::new(&self.principal, &self.contract, &self.store))
    }
}
