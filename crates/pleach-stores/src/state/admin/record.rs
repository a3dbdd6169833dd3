use std::str::FromStr;

use pleach_engine::{
    At, Batch, BucketName, CommitError, Direction, Engine as _, EngineError, Entry, Expectation, Key,
    Operation, Revision, ScanQuery,
};
use serde_json::{Value, json};

use super::super::{Principal, State, StateError};
use super::{StateAdmin, Target};

/// The bucket with a record of every act of an administrator, oldest first.
pub const STATE_LOG_BUCKET: &str = "pleach_state_log";

/// The most records that are read at once.
pub const RECORDS_MAX: usize = 1000;

/// The most acts of one microsecond.
const ACTS_AT_ONCE_MAX: usize = 1000;

/// What an administrator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Looks at an entry.
    Get {
        /// Where.
        target: Target,
        /// Which entry; none in a value store.
        key: Option<String>,
    },
    /// Looks at a page of a map.
    List {
        /// Where.
        target: Target,
    },
    /// Deletes an entry.
    Delete {
        /// Where.
        target: Target,
        /// Which entry; none in a value store.
        key: Option<String>,
    },
    /// Finds out where a principal has state.
    Find {
        /// Whose.
        principal: Principal,
    },
    /// Copies a principal's state.
    Export {
        /// Whose.
        principal: Principal,
    },
    /// Erases a principal's state.
    Erase {
        /// Whose.
        principal: Principal,
    },
}

/// An act of an administrator as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminRecord {
    /// The key of the record, which begins with when it was.
    pub key: Key,
    /// Who acted.
    pub who: String,
    /// Why.
    pub why: String,
    /// When it began, in RFC 3339.
    pub at: String,
    /// What was done, in a word.
    pub act: String,
    /// Whose state it was.
    pub principal: Principal,
    /// All that is recorded, as JSON: with contract, store and key where the act names them.
    pub what: Value,
    /// How many entries it was about in the end; none if it failed or was cut off.
    pub entries: Option<u64>,
}

impl State {
    /// What administrators did, newest first, at most [`RECORDS_MAX`].
    ///
    /// # Errors
    /// A damaged record, or what the engine could not do.
    pub async fn admin_records(&self) -> Result<Vec<AdminRecord>, StateError> {
        let query = ScanQuery { direction: Direction::Backward, limit: RECORDS_MAX, ..ScanQuery::default() };
        let bucket = super::super::open::name(STATE_LOG_BUCKET)?;
        let page = match self.shared.engine.scan(&bucket, query).await {
            // It is made for the first act.
            Err(EngineError::BucketNotFound { .. }) => return Ok(Vec::new()),
            page => page?,
        };
        page.entries.iter().map(AdminRecord::read).collect()
    }
}

impl StateAdmin {
    /// Records an act that is about to begin.
    pub(super) async fn begin(&self, act: &Act) -> Result<Begun, StateError> {
        self.log.begin(&self.state, act).await
    }

    /// Records what came of it.
    pub(super) async fn end(&self, begun: Begun, entries: u64) -> Result<(), StateError> {
        self.log.end(&self.state, begun, entries).await
    }
}

/// Writes records in the name of one administrator.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) bucket: BucketName,
    pub(super) who: String,
    pub(super) why: String,
}

/// An act under way.
#[derive(Debug)]
pub(super) struct Begun {
    key: Key,
    revision: Revision,
    record: Value,
}

impl Log {
    async fn begin(&self, state: &State, act: &Act) -> Result<Begun, StateError> {
        let at = state.shared.clock.now();
        let record = act.to_json();
        let record = super::super::reply::with(
            json!({"who": self.who, "why": self.why, "at": at.to_string()}),
            record,
        );
        for number in 0..ACTS_AT_ONCE_MAX {
            let text = format!("act.{:018}.{number:03}", at.as_micros());
            let key = Key::parse(text).map_err(|error| EngineError::Bug { what: error.to_string() })?;
            let put = Operation::put(key.clone(), record.to_string()).expecting(Expectation::Absent);
            match state.shared.engine.commit(&self.bucket, Batch::from(put)).await {
                Ok(committed) => return Ok(Begun { key, revision: committed.last, record }),
                // Another act of the same microsecond.
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Engine(error)) => return Err(error.into()),
            }
        }
        Err(StateError::Contended { place: STATE_LOG_BUCKET.into(), attempts: ACTS_AT_ONCE_MAX })
    }

    async fn end(&self, state: &State, begun: Begun, entries: u64) -> Result<(), StateError> {
        let Begun { key, revision, record } = begun;
        let record = super::super::reply::with(record, json!({"entries": entries}));
        let put = Operation::put(key.clone(), record.to_string()).expecting(Expectation::Revision(revision));
        match state.shared.engine.commit(&self.bucket, Batch::from(put)).await {
            Ok(_) => Ok(()),
            Err(CommitError::Engine(error)) => Err(error.into()),
            Err(CommitError::Conflict(_)) => {
                let found = state.shared.engine.read(&self.bucket, &key, At::Latest).await?;
                let what = if found.is_some() { "someone wrote over it" } else { "someone deleted it" };
                Err(StateError::CorruptRecord { key: key.to_string(), what: what.into() })
            }
        }
    }
}

impl Act {
    fn to_json(&self) -> Value {
        let place = |act: &str, target: &Target, key: &Option<String>| {
            json!({
                "act": act,
                "principal": target.principal.to_string(),
                "contract": target.contract.as_str(),
                "store": target.store,
                "key": key,
            })
        };
        let whole =
            |act: &str, principal: &Principal| json!({"act": act, "principal": principal.to_string()});
        match self {
            Self::Get { target, key } => place("get", target, key),
            Self::List { target } => place("list", target, &None),
            Self::Delete { target, key } => place("delete", target, key),
            Self::Find { principal } => whole("find", principal),
            Self::Export { principal } => whole("export", principal),
            Self::Erase { principal } => whole("erase", principal),
        }
    }
}

impl AdminRecord {
    fn read(entry: &Entry) -> Result<Self, StateError> {
        let damaged =
            |what: &str| StateError::CorruptRecord { key: entry.key.to_string(), what: what.to_owned() };
        let what: Value = serde_json::from_slice(&entry.value).map_err(|_| damaged("it is not JSON"))?;
        let text = |field: &str| {
            let found = what.get(field).and_then(Value::as_str);
            found.map(str::to_owned).ok_or_else(|| damaged(&format!("`{field}` is missing")))
        };
        let principal =
            Principal::from_str(&text("principal")?).map_err(|_| damaged("its principal is none"))?;
        Ok(Self {
            key: entry.key.clone(),
            who: text("who")?,
            why: text("why")?,
            at: text("at")?,
            act: text("act")?,
            principal,
            entries: what.get("entries").and_then(Value::as_u64),
            what: what.clone(),
        })
    }
}
