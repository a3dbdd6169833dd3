//! Outcomes as JSON, for doors: what `docs/state.md` calls replies.

use pleach_engine::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::entry::{Cell, DeleteOutcome, GetOutcome, Migration, PutOutcome, StateEntry, StatePage};
use super::watch::StateEvent;

impl<T: Serialize> StateEntry<T> {
    /// `{key?, value, revision, updatedAt, expiresAt?}`.
    pub fn to_json(&self) -> Value {
        let mut entry = Map::new();
        if let Some(key) = &self.key {
            entry.insert("key".into(), key.clone().into());
        }
        entry.insert("value".into(), json!(self.value));
        entry.insert("revision".into(), self.revision.to_string().into());
        entry.insert("updatedAt".into(), moment(self.updated_at));
        if let Some(expires) = self.expires_at {
            entry.insert("expiresAt".into(), moment(expires));
        }
        Value::Object(entry)
    }
}

impl Migration {
    /// `{migrationRequired: true, entry, stateVersion, currentStateVersion, writerContractDigest}`.
    pub fn to_json(&self) -> Value {
        json!({
            "migrationRequired": true,
            "entry": self.entry.to_json(),
            "stateVersion": self.state_version,
            "currentStateVersion": self.current_state_version,
            "writerContractDigest": self.writer_contract_digest,
        })
    }
}

impl<T: Serialize> GetOutcome<T> {
    /// `{found: false}`, `{found: true, entry}`, or a migration.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Absent => json!({"found": false}),
            Self::Found(entry) => json!({"found": true, "entry": entry.to_json()}),
            Self::MigrationRequired(migration) => migration.to_json(),
        }
    }
}

impl<T: Serialize> PutOutcome<T> {
    /// `{applied: true, entry}`, `{applied: false, found, entry?}`, or `{applied: false, found: true}` and a migration.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Applied(entry) => json!({"applied": true, "entry": entry.to_json()}),
            Self::Absent => json!({"applied": false, "found": false}),
            Self::Present(entry) => json!({"applied": false, "found": true, "entry": entry.to_json()}),
            Self::MigrationRequired(migration) => {
                with(json!({"applied": false, "found": true}), migration.to_json())
            }
        }
    }
}

impl DeleteOutcome {
    /// `{deleted}`.
    pub fn to_json(self) -> Value {
        json!({"deleted": self == Self::Deleted})
    }
}

impl<T: Serialize> Cell<T> {
    /// An entry, a migration, or `{key?, revision, error: {kind, message}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Entry(entry) => entry.to_json(),
            Self::MigrationRequired(migration) => migration.to_json(),
            Self::Bad(bad) => {
                let error = json!({"kind": bad.error.kind().as_str(), "message": bad.error.to_string()});
                let cell = json!({"revision": bad.revision.to_string(), "error": error});
                bad.key.as_ref().map_or_else(|| cell.clone(), |key| with(json!({"key": key}), cell.clone()))
            }
        }
    }
}

impl<T: Serialize> StatePage<T> {
    /// `{entries, count, offset, limit, nextOffset?}`.
    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self.entries.iter().map(Cell::to_json).collect();
        let page =
            json!({"entries": entries, "count": self.count, "offset": self.offset, "limit": self.limit});
        match self.next_offset {
            Some(next) => with(page, json!({"nextOffset": next})),
            None => page,
        }
    }
}

impl<T: Serialize> StateEvent<T> {
    /// `{event, …}`, where the event is `put`, `deleted`, `expired` or `ready`.
    pub fn to_json(&self) -> Value {
        let gone = |event: &str, key: &Option<String>, revision: String| {
            let what = json!({"event": event, "revision": revision});
            key.as_ref().map_or_else(|| what.clone(), |key| with(what.clone(), json!({"key": key})))
        };
        match self {
            Self::Put(cell) => with(json!({"event": "put"}), cell.to_json()),
            Self::Deleted { key, revision } => gone("deleted", key, revision.to_string()),
            Self::Expired { key, revision } => gone("expired", key, revision.to_string()),
            Self::Ready => json!({"event": "ready"}),
        }
    }
}

/// A moment as text, in RFC 3339.
pub(super) fn moment(time: Timestamp) -> Value {
    time.to_string().into()
}

/// Both objects in one.
pub(super) fn with(mut one: Value, other: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (one.as_object_mut(), other) {
        fields.extend(more);
    }
    one
}
