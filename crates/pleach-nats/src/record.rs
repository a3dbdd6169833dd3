use async_nats::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use pleach_engine::{
    Action, BatchPart, BucketConfig, Change, Entry, Headers, Key, Op, Operation, Revision, TTL_MAX, Timestamp,
};

use crate::api::moment;
use crate::error::ApiError;
use crate::names::Names;

/// Headers of messages. Those of NATS and its key-value clients are theirs, the others ours.
pub(crate) mod header {
    pub(crate) const OPERATION: &str = "KV-Operation";
    pub(crate) const ROLLUP: &str = "Nats-Rollup";
    pub(crate) const TTL: &str = "Nats-TTL";
    pub(crate) const MESSAGE_ID: &str = "Nats-Msg-Id";
    pub(crate) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
    pub(crate) const BATCH_ID: &str = "Nats-Batch-Id";
    pub(crate) const BATCH_SEQUENCE: &str = "Nats-Batch-Sequence";
    pub(crate) const BATCH_COMMIT: &str = "Nats-Batch-Commit";
    pub(crate) const STREAM: &str = "Nats-Stream";
    pub(crate) const SUBJECT: &str = "Nats-Subject";
    pub(crate) const SEQUENCE: &str = "Nats-Sequence";
    pub(crate) const TIME: &str = "Nats-Time-Stamp";
    pub(crate) const MARKER: &str = "Nats-Marker-Reason";
    pub(crate) const PENDING: &str = "Nats-Num-Pending";
    pub(crate) const UP_TO: &str = "Nats-UpTo-Sequence";
    /// When its writer says it was committed, in microseconds since 1970.
    pub(crate) const COMMITTED: &str = "Pleach-Time";
    /// When its value is gone, in microseconds since 1970.
    pub(crate) const EXPIRES: &str = "Pleach-Expires";
    /// What it did, where the operation that NATS clients know is another.
    pub(crate) const DID: &str = "Pleach-Operation";
    /// Its place in its batch, as `3/10`.
    pub(crate) const PART: &str = "Pleach-Part";
    /// Before the name of a header that NATS would take for its own or cut: its value is a JSON string.
    pub(crate) const QUOTED: &str = "Pleach-Quoted-";
}

/// A message as it is stored in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) subject: String,
    pub(crate) sequence: u64,
    time: Timestamp,
    headers: Vec<(String, String)>,
    payload: Bytes,
}

/// A message in the JSON of the server.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredMessage {
    subject: String,
    seq: u64,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
    time: String,
}

impl StoredMessage {
    pub(crate) fn into_record(self) -> Result<Record, ApiError> {
        let decoded = |text: &str| {
            STANDARD.decode(text).map_err(|_| ApiError::Malformed("a message is not base64".to_owned()))
        };
        let headers = String::from_utf8_lossy(&decoded(&self.hdrs)?).into_owned();
        let pair = |line: &str| {
            line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(Record {
            subject: self.subject,
            sequence: self.seq,
            time: moment(&self.time)?,
            headers: headers.split("\r\n").skip(1).filter_map(pair).collect(),
            payload: decoded(&self.data)?.into(),
        })
    }
}

impl Record {
    /// The stored message that the server repeats or hands out, with where it is stored in its headers.
    pub(crate) fn from_message(message: async_nats::Message) -> Result<Self, ApiError> {
        let (mut subject, mut sequence, mut time) = (None, None, None);
        let mut headers = Vec::new();
        // One pass: looking a header up makes a name of it each time.
        for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
            let (name, Some(value)) = (AsRef::<str>::as_ref(name), values.last()) else { continue };
            let value = value.as_str();
            match name {
                header::SUBJECT => subject = Some(value.to_owned()),
                header::SEQUENCE => sequence = value.parse().ok(),
                header::TIME => time = Some(moment(value)?),
                _ => headers.push((name.to_owned(), value.to_owned())),
            }
        }
        let missing = |name: &str| ApiError::Malformed(format!("a message has no {name}"));
        Ok(Self {
            subject: subject.ok_or_else(|| missing(header::SUBJECT))?,
            sequence: sequence.ok_or_else(|| missing(header::SEQUENCE))?,
            time: time.ok_or_else(|| missing(header::TIME))?,
            headers,
            payload: message.payload,
        })
    }

    pub(crate) fn said(&self, name: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What it means, with the expiry that is its own; none if its subject is that of no key.
    pub(crate) fn into_change(self, names: &Names) -> Option<Change> {
        let key = names.key(&self.subject)?;
        let op = self.op();
        let number = |name: &str| self.said(name)?.parse().ok();
        let time = number(header::COMMITTED).map_or(self.time, Timestamp::from_micros);
        let expires = number(header::EXPIRES).map(Timestamp::from_micros).or_else(|| self.native_expiry());
        let entry = Entry {
            key,
            revision: Revision::new(self.sequence),
            time,
            expires: expires.filter(|_| op.is_put()),
            op,
            headers: self.own_headers(),
            value: if op.is_put() { self.payload.clone() } else { Bytes::new() },
        };
        Some(Change { entry, batch: self.part() })
    }

    fn op(&self) -> Op {
        match (self.said(header::MARKER), self.said(header::OPERATION)) {
            (Some("MaxAge"), _) => Op::Expire,
            (Some("Remove"), _) | (None, Some("DEL")) => Op::Delete,
            (None, Some("PURGE")) if self.said(header::DID) == Some("delete") => Op::Delete,
            (Some(_), _) | (None, Some("PURGE")) => Op::Purge,
            (None, _) => Op::Put,
        }
    }

    /// When the server forgets the value of another client, which only says how long it lives.
    fn native_expiry(&self) -> Option<Timestamp> {
        let seconds: u64 = self.said(header::TTL)?.trim_end_matches('s').parse().ok()?;
        Some(self.time.saturating_add(std::time::Duration::from_secs(seconds)))
    }

    fn part(&self) -> BatchPart {
        let part = || {
            let (index, size) = self.said(header::PART)?.split_once('/')?;
            Some(BatchPart { index: index.parse().ok()?, size: size.parse().ok()? })
        };
        part().filter(|part| part.index < part.size).unwrap_or(BatchPart::SINGLE)
    }

    /// What travels with the record by its writer's wish. What another client wrote and our rules forbid is left out.
    fn own_headers(&self) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            if let Some(name) = name.strip_prefix(header::QUOTED) {
                if let Ok(value) = serde_json::from_str::<String>(value) {
                    let _ = headers.set(name, &value);
                }
            } else if !is_taken(name) {
                let _ = headers.set(name, value);
            }
        }
        headers
    }
}

/// Whether a header of this name is not its writer's own.
fn is_taken(name: &str) -> bool {
    let begins = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    begins("Nats-") || begins("Pleach-") || name.eq_ignore_ascii_case(header::OPERATION)
}

/// The message that carries out `operation`, without what makes it conditional or part of a batch.
pub(crate) fn message(operation: &Operation, config: &BucketConfig, now: Timestamp) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    for (name, value) in operation.headers.iter() {
        if is_taken(name) || value.trim() != value || value.is_empty() {
            let quoted = serde_json::Value::from(value).to_string();
            headers.insert(format!("{}{name}", header::QUOTED), quoted);
        } else {
            headers.insert(name, value);
        }
    }
    headers.insert(HeaderName::from_static(header::COMMITTED), now.as_micros().to_string());
    let payload = match &operation.action {
        Action::Put { value, expiry } => {
            if let Some(moment) = expiry.moment(now) {
                headers.insert(header::EXPIRES, moment.as_micros().to_string());
                set_ttl(&mut headers, moment.since(now));
            }
            value.clone()
        }
        Action::Delete => {
            // Without history the two are the same to NATS, but when its time has come, the server leaves a marker in the place
            // of a deleted value as if that expired, and none in the place of a purged one.
            let is_purge = config.history.get() == 1 && config.ttl.is_some();
            headers.insert(header::OPERATION, if is_purge { "PURGE" } else { "DEL" });
            if is_purge {
                headers.insert(header::DID, "delete");
            }
            // A marker that the server forgets must not bring back what was before it: so it may have a TTL only if
            // nothing is.
            if config.history.get() == 1 {
                headers.insert(header::ROLLUP, "sub");
                config.marker_ttl.into_iter().for_each(|ttl| set_ttl(&mut headers, ttl));
            }
            Bytes::new()
        }
        Action::Purge => {
            headers.insert(header::OPERATION, "PURGE");
            headers.insert(header::ROLLUP, "sub");
            config.marker_ttl.into_iter().for_each(|ttl| set_ttl(&mut headers, ttl));
            Bytes::new()
        }
    };
    (headers, payload)
}

/// Has the server forget a message after `ttl`, in whole seconds and never too early. One of more than a hundred years
/// is left to those who read it.
fn set_ttl(headers: &mut HeaderMap, ttl: std::time::Duration) {
    if ttl <= TTL_MAX {
        headers.insert(header::TTL, whole_seconds(ttl).to_string());
    }
}

/// How many whole seconds hold `duration`: at least one.
pub(crate) fn whole_seconds(duration: std::time::Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

/// A record as callers see it: with the expiry that holds for it now.
pub(crate) fn shown(mut entry: Entry, config: &BucketConfig) -> Entry {
    if entry.op.is_put() {
        entry.expires = config.expiry(entry.time, entry.expires);
    }
    entry
}

/// What keys, values and headers of a change take.
pub(crate) fn bytes(entry: &Entry) -> usize {
    Key::as_bytes(&entry.key).len() + entry.value.len() + entry.headers.bytes()
}

#[cfg(test)]
mod tests;
