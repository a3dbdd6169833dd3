// Made of the contract acme.cases@v1 by `pleach contract codegen`: do not edit.

use pleach_stores as stores;

/// Cases, their events and the parties to them
#[derive(Clone, Debug)]
pub struct Cases {
    /// Cases and everything that happens to them
    pub cases: CasesStore,
    /// Who is signed in
    pub sessions: SessionsStore,
}

impl Cases {
    /// The id of the contract.
    pub const ID: &'static str = "acme.cases@v1";
    /// The digest of the contract that this code was made of.
    pub const DIGEST: &'static str = "ytlARR2o1cFa2A9Uipxj_osftcNS7cMQukdWKImBJcs";

    /// Binds the code to the resources of a service.
    ///
    /// # Errors
    /// If the service is of another contract.
    pub fn bind(service: &stores::Service) -> Result<Self, stores::KvError> {
        Ok(Self {
            cases: CasesStore::bind(service.kv("cases")?)?,
            sessions: SessionsStore::bind(service.kv("sessions")?)?,
        })
    }
}

/// Cases and everything that happens to them
#[derive(Clone, Debug)]
pub struct CasesStore {
    store: stores::KvStore,
    current: stores::Keyspace<Case>,
    event: stores::Keyspace<Event>,
    party: stores::Keyspace<Party>,
}

impl CasesStore {
    fn bind(store: stores::KvStore) -> Result<Self, stores::KvError> {
        let store = store.of_contract(Cases::DIGEST)?;
        Ok(Self { current: store.keyspace("current")?, event: store.keyspace("event")?, party: store.keyspace("party")?, store })
    }

    /// The resource itself, for batches and for retention.
    pub fn store(&self) -> &stores::KvStore {
        &self.store
    }

    /// The keyspace `current`.
    pub fn current(&self) -> &stores::Keyspace<Case> {
        &self.current
    }

    /// The keyspace `event`.
    pub fn event(&self) -> &stores::Keyspace<Event> {
        &self.event
    }

    /// A page of the access path `timeline`, in the order of `at`: at most 200 entries.
    ///
    /// # Errors
    /// What is wrong with a value or an option, or what the engine could not do.
    pub async fn event_timeline(&self, tenant: &str, case: u128, options: stores::QueryOptions<'_>)
        -> Result<stores::QueryPage<Event>, stores::KvError> {
        self.event.query_with("timeline", &[stores::key::Value::Text(std::borrow::Cow::Borrowed(tenant)), stores::key::Value::Ulid(case)], options).await
    }

    /// The keyspace `party`.
    pub fn party(&self) -> &stores::Keyspace<Party> {
        &self.party
    }
}

/// A key of `current`: `t.{tenant}.case.{case:ulid}.current`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasesCurrentKey<'k> {
    /// `{tenant}`: 1 to 64 letters, digits or `_`.
    pub tenant: std::borrow::Cow<'k, str>,
    /// `{case:ulid}`: a ULID: 26 digits and capital letters but I, L, O and U, the first at most 7.
    pub case: u128,
}

impl<'k> CasesCurrentKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Text(tenant), stores::key::Value::Ulid(case)] => Some(Self { tenant: tenant.clone(), case: *case }),
            _ => None,
        }
    }
}

impl stores::KeyOf for CasesCurrentKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 2] = [stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.tenant)), stores::key::Value::Ulid(self.case)];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `event`: `t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasesEventKey<'k> {
    /// `{tenant}`: 1 to 64 letters, digits or `_`.
    pub tenant: std::borrow::Cow<'k, str>,
    /// `{case:ulid}`: a ULID: 26 digits and capital letters but I, L, O and U, the first at most 7.
    pub case: u128,
    /// `{at:time}`: a time in UTC, such as 20260705T101530_000000000Z.
    pub at: stores::key::Time,
    /// `{id:ulid}`: a ULID: 26 digits and capital letters but I, L, O and U, the first at most 7.
    pub id: u128,
}

impl<'k> CasesEventKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Text(tenant), stores::key::Value::Ulid(case), stores::key::Value::Time(at), stores::key::Value::Ulid(id)] => Some(Self { tenant: tenant.clone(), case: *case, at: *at, id: *id }),
            _ => None,
        }
    }
}

impl stores::KeyOf for CasesEventKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 4] = [stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.tenant)), stores::key::Value::Ulid(self.case), stores::key::Value::Time(self.at), stores::key::Value::Ulid(self.id)];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `party`: `t.{tenant}.party.{party:ulid}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasesPartyKey<'k> {
    /// `{tenant}`: 1 to 64 letters, digits or `_`.
    pub tenant: std::borrow::Cow<'k, str>,
    /// `{party:ulid}`: a ULID: 26 digits and capital letters but I, L, O and U, the first at most 7.
    pub party: u128,
}

impl<'k> CasesPartyKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Text(tenant), stores::key::Value::Ulid(party)] => Some(Self { tenant: tenant.clone(), party: *party }),
            _ => None,
        }
    }
}

impl stores::KeyOf for CasesPartyKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 2] = [stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.tenant)), stores::key::Value::Ulid(self.party)];
        stores::KeyOf::key(&values, grammar)
    }
}

/// Who is signed in
#[derive(Clone, Debug)]
pub struct SessionsStore {
    store: stores::KvStore,
    entries: stores::Keyspace<Party>,
}

impl SessionsStore {
    fn bind(store: stores::KvStore) -> Result<Self, stores::KvError> {
        let store = store.of_contract(Cases::DIGEST)?;
        Ok(Self { entries: store.entries()?, store })
    }

    /// The resource itself, for batches and for retention.
    pub fn store(&self) -> &stores::KvStore {
        &self.store
    }

    /// All its entries.
    pub fn entries(&self) -> &stores::Keyspace<Party> {
        &self.entries
    }
}

stores::state_facade! {
    /// What `acme.cases@v1` keeps for each of its users and devices.
    pub struct CasesState {
        /// The value store `preferences`.
        value preferences("preferences", "v2"): Preferences, or OldPreferences {
            V1(PreferencesV1) = "v1",
        };
    }
}

/// `CaseStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum CaseStatus {
    /// `OPEN`.
    #[serde(rename = "OPEN")]
    Open,
    /// `UNDER_REVIEW`.
    #[serde(rename = "UNDER_REVIEW")]
    UnderReview,
    /// `CLOSED`.
    #[serde(rename = "CLOSED")]
    Closed,
}

/// `Case`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Case {
    /// `dueAt`.
    #[serde(rename = "dueAt", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub due_at: Option<String>,
    /// `status`.
    pub status: CaseStatus,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Case {
    /// With what must be there, and nothing else.
    pub fn new(status: CaseStatus) -> Self {
        Self { status, due_at: None, other: std::collections::BTreeMap::new() }
    }
}

/// `Event`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Event {
    /// `what`.
    pub what: String,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Event {
    /// With what must be there, and nothing else.
    pub fn new(what: String) -> Self {
        Self { what, other: std::collections::BTreeMap::new() }
    }
}

/// `Party`.
pub type Party = serde_json::Map<String, serde_json::Value>;

/// `Preferences`.
pub type Preferences = serde_json::Map<String, serde_json::Value>;

/// `PreferencesV1`.
pub type PreferencesV1 = serde_json::Map<String, serde_json::Value>;

/// Tells a field that is null from one that is missing.
fn present<'de, T: serde::Deserialize<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The contract, as JSON.
pub const CONTRACT: &str = r#"{"description":"Cases, their events and the parties to them","displayName":"Cases","format":"pleach.contract.v1","id":"acme.cases@v1","kind":"service","resources":{"kv":{"cases":{"atomic":{"transition":{"members":["current","event","due","open"]}},"counters":{"open":{"key":"t.{tenant}.count.open","of":"current","shards":16,"when":{"equals":"OPEN","pointer":"/status"}}},"history":5,"indexes":{"due":{"key":"t.{tenant}.idx.due.{due:time}.{case:ulid}","maxLagMs":0,"of":"current","unique":false,"values":{"due":"/dueAt"}}},"keyspaces":{"current":{"from":["event"],"key":"t.{tenant}.case.{case:ulid}.current","role":"derived","schema":{"schema":"Case"},"ttlMs":0,"version":"v1"},"event":{"access":{"timeline":{"given":["tenant","case"],"limit":200,"range":"at"}},"key":"t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}","retention":{"bucket":"month","keep":84,"segment":"at"},"role":"source","schema":{"schema":"Event"},"ttlMs":0,"version":"v1"},"party":{"key":"t.{tenant}.party.{party:ulid}","role":"source","schema":{"schema":"Party"},"ttlMs":0,"version":"v1"}},"maxValueBytes":65536,"purpose":"Cases and everything that happens to them","relationships":{"parties":{"forward":"t.{tenant}.case_party.{case:ulid}.{party:ulid}","from":"current","onDelete":"restrict","reverse":"t.{tenant}.party_case.{party:ulid}.{case:ulid}","to":"party"}},"required":true,"schema":{"schema":"Case"},"ttlMs":0,"version":"v1"},"sessions":{"history":1,"purpose":"Who is signed in","required":true,"schema":{"schema":"Party"},"tier":"presence","ttlMs":43200000,"version":"v1"}}},"schemas":{"Case":{"properties":{"dueAt":{"format":"date-time","type":"string"},"status":{"enum":["OPEN","UNDER_REVIEW","CLOSED"]}},"required":["status"],"type":"object"},"Event":{"properties":{"what":{"type":"string"}},"required":["what"],"type":"object"},"Party":{"type":"object"},"Preferences":{"type":"object"},"PreferencesV1":{"type":"object"}},"state":{"preferences":{"acceptedVersions":{"v1":{"schema":"PreferencesV1"}},"kind":"value","schema":{"schema":"Preferences"},"stateVersion":"v2"}}}"#;
