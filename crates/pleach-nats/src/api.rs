use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, HeaderMap, Message, Request, Subject};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use pleach_engine::Timestamp;

use crate::connection::Denials;
use crate::error::ApiError;
use crate::options::NatsOptions;
use crate::record::{Record, StoredMessage};

/// What subjects of the JetStream API begin with where nothing else is said.
const API_PREFIX: &str = "$JS.API";

/// How often streams are listed when others make and delete some meanwhile.
const LIST_ATTEMPTS: usize = 20;

/// The JetStream API of a server, as far as an engine needs it.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) client: Client,
    denials: Denials,
    prefix: String,
    timeout: Duration,
}

/// A stream as the server describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    /// All of it, also what this program does not know, so that an update can leave that as it is.
    pub(crate) config: Map<String, Value>,
    pub(crate) created: String,
    pub(crate) state: StreamState,
    /// When the server said so.
    pub(crate) ts: Option<String>,
}

/// What is in a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamState {
    pub(crate) last_seq: u64,
    pub(crate) messages: u64,
    /// The subjects that were asked for, and how many messages each has.
    pub(crate) subjects: Option<HashMap<String, u64>>,
}

/// The answer to a message that was published.
#[derive(Debug, Deserialize)]
struct Stored {
    error: Option<ErrorBody>,
    seq: Option<u64>,
}

#[derive(Deserialize)]
struct Listed {
    total: usize,
    #[serde(default)]
    streams: Option<Vec<StreamInfo>>,
}

#[derive(Deserialize)]
struct Done {}

#[derive(Deserialize)]
struct Got {
    message: StoredMessage,
}

#[derive(Deserialize)]
struct Failed {
    error: Option<ErrorBody>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Api {
    pub(crate) fn new(client: Client, denials: Denials, options: &NatsOptions) -> Self {
        let prefix = match (&options.api_prefix, &options.domain) {
            (Some(prefix), _) => prefix.trim_end_matches('.').to_owned(),
            (None, Some(domain)) => format!("$JS.{domain}.API"),
            (None, None) => API_PREFIX.to_owned(),
        };
        Self { client, denials, prefix, timeout: options.request_timeout }
    }

    pub(crate) fn subject(&self, rest: &str) -> String {
        format!("{}.{rest}", self.prefix)
    }

    /// Where a server is asked for the newest message of a subject, whoever leads.
    pub(crate) fn direct_subject(&self, stream: &str, subject: &str) -> Subject {
        [self.prefix.as_str(), ".DIRECT.GET.", stream, ".", subject].concat().into()
    }

    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Whether JetStream is there for this account.
    pub(crate) async fn account(&self) -> Result<(), ApiError> {
        self.call::<Done>("INFO", &json!({})).await.map(drop)
    }

    pub(crate) async fn info(&self, stream: &str) -> Result<StreamInfo, ApiError> {
        self.call(&format!("STREAM.INFO.{stream}"), &json!({})).await
    }

    /// One page of the subjects of a stream that pass `filter`.
    pub(crate) async fn subjects(
        &self,
        stream: &str,
        filter: &str,
        offset: usize,
    ) -> Result<StreamInfo, ApiError> {
        let asked = json!({ "subjects_filter": filter, "offset": offset });
        self.call(&format!("STREAM.INFO.{stream}"), &asked).await
    }

    pub(crate) async fn create(
        &self,
        stream: &str,
        config: &Map<String, Value>,
    ) -> Result<StreamInfo, ApiError> {
        self.call(&format!("STREAM.CREATE.{stream}"), config).await
    }

    pub(crate) async fn update(
        &self,
        stream: &str,
        config: &Map<String, Value>,
    ) -> Result<StreamInfo, ApiError> {
        self.call(&format!("STREAM.UPDATE.{stream}"), config).await
    }

    pub(crate) async fn delete(&self, stream: &str) -> Result<(), ApiError> {
        self.call::<Done>(&format!("STREAM.DELETE.{stream}"), &json!({})).await.map(drop)
    }

    /// Removes all but the newest `keep` messages of a subject.
    pub(crate) async fn purge(&self, stream: &str, subject: &str, keep: u64) -> Result<(), ApiError> {
        let asked = json!({ "filter": subject, "keep": keep });
        self.call::<Done>(&format!("STREAM.PURGE.{stream}"), &asked).await.map(drop)
    }

    /// Every stream of the account. Pages are counted, so that streams that come or go between two of them could be
    /// listed twice or not at all: then they are listed again.
    pub(crate) async fn streams(&self) -> Result<Vec<StreamInfo>, ApiError> {
        let mut listed = None;
        for _ in 0..LIST_ATTEMPTS {
            let (streams, is_steady) = self.list_streams().await?;
            listed = Some(streams);
            if is_steady {
                break;
            }
        }
        Ok(listed.unwrap_or_default().into_values().collect())
    }

    async fn list_streams(&self) -> Result<(BTreeMap<String, StreamInfo>, bool), ApiError> {
        let (mut all, mut offset, mut first_total) = (BTreeMap::new(), 0, None);
        loop {
            let page: Listed = self.call("STREAM.LIST", &json!({ "offset": offset })).await?;
            let total = *first_total.get_or_insert(page.total);
            let streams = page.streams.unwrap_or_default();
            offset += streams.len();
            let is_last = streams.is_empty() || offset >= page.total;
            for stream in streams {
                let name = stream.config.get("name").and_then(Value::as_str).unwrap_or_default();
                all.insert(name.to_owned(), stream);
            }
            if is_last || total != page.total {
                let is_steady = total == page.total && all.len() == total;
                return Ok((all, is_steady));
            }
        }
    }

    /// A message, as the leader of a stream has it.
    pub(crate) async fn message(&self, stream: &str, which: &Value) -> Result<Option<Record>, ApiError> {
        let got: Result<Got, ApiError> = self.call(&format!("STREAM.MSG.GET.{stream}"), which).await;
        match got {
            Ok(got) => got.message.into_record().map(Some),
            Err(error) if error.is(crate::error::number::NO_MESSAGE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Publishes a message, and returns its sequence number.
    pub(crate) async fn publish(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<u64, ApiError> {
        let request = Request::new().headers(headers).payload(payload).timeout(Some(self.timeout));
        let answer = self.send(subject.into(), request).await?;
        let stored: Stored = serde_json::from_slice(&answer.payload).map_err(malformed)?;
        match (stored.error, stored.seq) {
            (Some(error), _) => Err(error.into()),
            (None, Some(sequence)) => Ok(sequence),
            (None, None) => Err(ApiError::Malformed("it does not say what was stored".to_owned())),
        }
    }

    /// Asks under a whole subject.
    pub(crate) async fn ask(&self, subject: Subject, payload: Bytes) -> Result<Message, ApiError> {
        self.send(subject, Request::new().payload(payload).timeout(Some(self.timeout))).await
    }

    async fn send(&self, subject: Subject, request: Request) -> Result<Message, ApiError> {
        // Boxed, since every call would be moved about with room for it.
        let answer =
            Box::pin(self.client.send_request(subject.clone(), request)).await.map_err(ApiError::from);
        match answer {
            // It did not come because the question was never passed on.
            Err(ApiError::Lost(_)) if self.denials.take(&subject) => {
                Err(ApiError::Denied(subject.to_string()))
            }
            answer => answer,
        }
    }

    /// Asks something whose answer is JSON.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        rest: &str,
        asked: &impl Serialize,
    ) -> Result<T, ApiError> {
        let asked = serde_json::to_vec(asked).map_err(|error| ApiError::Unsendable(error.to_string()))?;
        let subject = self.subject(rest);
        let answer = tokio::select! {
            answer = self.ask(subject.as_str().into(), asked.into()) => answer?,
            () = self.denials.wait(&subject) => return Err(ApiError::Denied(subject)),
        };
        understood(&answer.payload)
    }
}

/// What an answer says, unless it says that something went wrong.
fn understood<T: DeserializeOwned>(payload: &[u8]) -> Result<T, ApiError> {
    match serde_json::from_slice::<Failed>(payload).map_err(malformed)?.error {
        Some(error) => Err(error.into()),
        None => serde_json::from_slice(payload).map_err(malformed),
    }
}

impl From<ErrorBody> for ApiError {
    fn from(error: ErrorBody) -> Self {
        let ErrorBody { code, err_code: number, description } = error;
        Self::Server { code, number, description }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::Malformed(error.to_string())
}

/// A moment in the text of the server.
pub(crate) fn moment(text: &str) -> Result<Timestamp, ApiError> {
    text.parse().map_err(|_| ApiError::Malformed(format!("{text:?} is no time")))
}
