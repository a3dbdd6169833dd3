use std::ops::Bound;

use pleach_contract::{ContractId, StoreKind};
use pleach_engine::{EngineError, InvalidName, Key, KeyFilter, KeyRange};
use sha2::{Digest as _, Sha256};

use super::ordered;
use super::{Principal, StateError};

/// The longest id that stands in keys as it is; of a longer one its digest does. So a key of the longest parts still
/// fits into the 1024 bytes of an engine's key, which a test proves.
const PLAIN_OWNER_BYTES_MAX: usize = 96;

/// Begins the token of an owner whose id is digested; no encoded id can hold it.
const DIGESTED: char = '=';

/// The keys of one store of one principal under one contract: `u.OWNER.CONTRACT.STORE`, and `.KEY` in a map.
/// `docs/formats/state.md` describes them.
///
/// Each part is a token of its own, encoded so that it can hold no dot and no wildcard: whatever characters the parts
/// have, two different namespaces share no key, and a filter on one matches nothing of another.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    prefix: String,
}

impl Namespace {
    pub(super) fn new(principal: &Principal, contract: &ContractId, store: &str) -> Self {
        Self { prefix: format!("{}.{}.{store}", owner_prefix(principal), contract_token(contract)) }
    }

    /// The key of an entry: none is that of a value store.
    pub(super) fn key(&self, raw: Option<&str>) -> Result<Key, StateError> {
        let parsed = match raw {
            None => Key::parse(&self.prefix),
            Some(raw) => Key::parse(format!("{}.{}", self.prefix, ordered::encode(raw.as_bytes()))),
        };
        parsed.map_err(no_key)
    }

    /// What an entry of the map is called; none if nobody wrote such a key through State.
    pub(super) fn raw(&self, key: &Key) -> Option<String> {
        raw_of(key.as_str().strip_prefix(&self.prefix)?.strip_prefix('.')?)
    }

    /// The keys of the map that begin with `start` and go on; all for an empty one.
    pub(super) fn range(&self, start: &str) -> KeyRange {
        let raw = KeyRange::prefix(start);
        let stored = |bytes: &[u8]| format!("{}.{}", self.prefix, ordered::encode(bytes)).into_bytes();
        let all = KeyRange::prefix(format!("{}.", self.prefix));
        let end = match &raw.end {
            Bound::Excluded(end) if !start.is_empty() => Bound::Excluded(stored(end)),
            _ => all.end,
        };
        KeyRange { start: Bound::Excluded(stored(start.as_bytes())), end }
    }

    /// Matches the keys of a store of this kind, and no others.
    pub(super) fn filter(&self, kind: StoreKind) -> Result<KeyFilter, StateError> {
        let text = match kind {
            StoreKind::Value => self.prefix.clone(),
            StoreKind::Map => format!("{}.*", self.prefix),
        };
        KeyFilter::parse(text).map_err(no_key)
    }
}

/// What all keys of a principal begin with, before a dot.
pub(super) fn owner_prefix(principal: &Principal) -> String {
    let kind = match principal {
        Principal::User(_) => 'u',
        Principal::Device(_) => 'd',
    };
    let id = principal.id().as_bytes();
    if id.len() <= PLAIN_OWNER_BYTES_MAX {
        return format!("{kind}.{}", ordered::encode(id));
    }
    format!("{kind}.{DIGESTED}{}", ordered::encode(&Sha256::digest(id)))
}

/// Matches every key of a principal.
pub(super) fn owner_filter(principal: &Principal) -> Result<KeyFilter, StateError> {
    KeyFilter::parse(format!("{}.>", owner_prefix(principal))).map_err(no_key)
}

/// What a stored key says about its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) contract: ContractId,
    pub(super) store: String,
    /// The key in a map; none in a value store.
    pub(super) key: Option<String>,
}

/// Reads a stored key of a principal; none if State would not have made it.
pub(super) fn place_of(key: &Key) -> Option<Place> {
    let mut tokens = key.tokens().skip(2);
    let contract = contract_of(tokens.next()?)?;
    let store = tokens.next()?.to_owned();
    let key = match tokens.next() {
        None => None,
        Some(token) => Some(raw_of(token)?),
    };
    tokens.next().is_none().then_some(Place { contract, store, key })
}

fn raw_of(token: &str) -> Option<String> {
    String::from_utf8(ordered::decode(token)?).ok()
}

/// An id has neither `/` nor `=`, so no two become one.
fn contract_token(contract: &ContractId) -> String {
    contract.as_str().replace('.', "/").replace('@', "=")
}

fn contract_of(token: &str) -> Option<ContractId> {
    ContractId::parse(&token.replace('/', ".").replace('=', "@"))
}

/// The parts are checked before, so this takes a bug.
fn no_key(error: InvalidName) -> StateError {
    EngineError::Bug { what: format!("a place in a state store has no key: {error}") }.into()
}

/// Whose a stored entry is, in which store, and what its owner calls it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatePlace {
    /// `user` or `device`, and the id; of a long id, its digest.
    pub owner: String,
    /// The store.
    pub store: String,
    /// The key in a map; none in a value store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl StatePlace {
    /// Reads a stored key; none if State would not have made it.
    pub(crate) fn of(key: &Key) -> Option<Self> {
        let mut tokens = key.tokens();
        let kind = match tokens.next()? {
            "u" => "user",
            "d" => "device",
            _ => return None,
        };
        let id = tokens.next()?;
        let id = if id.starts_with(DIGESTED) { id.to_owned() } else { raw_of(id)? };
        let Place { store, key, .. } = place_of(key)?;
        Some(Self { owner: format!("{kind} {id}"), store, key })
    }
}

/// For messages, such as `drafts/first of user ann`.
impl std::fmt::Display for StatePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { owner, store, key } = self;
        match key {
            Some(key) => write!(f, "{store}/{} of {owner}", super::error::excerpt(key)),
            None => write!(f, "{store} of {owner}"),
        }
    }
}

#[cfg(test)]
mod tests;
