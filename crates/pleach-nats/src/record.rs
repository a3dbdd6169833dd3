use std::time::Duration;

use async_nats::HeaderMap;
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
    /// The name of a message that the server need not recognise, since it comes with one that it does.
    pub(crate) const NAME: &str = "Pleach-Name";
    pub(crate) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
    /// The subject that [`EXPECTED`] is about, if not the message's own.
    pub(crate) const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
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
    /// When its value is gone, in microseconds since 1970.
    pub(crate) const EXPIRES: &str = "Pleach-Expires";
    /// What it did, where the operation that NATS clients know is another.
    pub(crate) const DID: &str = "Pleach-Operation";
    /// Before the name of a header that NATS would take for its own or cut: its value is a JSON string.
    pub(crate) const QUOTED: &str = "Pleach-Quoted-";
}

/// What [`header::TTL`] says of a message that outlives the stream's `max_age`.
pub(crate) const NEVER: &str = "never";

/// What [`header::DID`] says of a delete.
const DID_DELETE: &str = "delete";

/// What the names of our messages begin with, so that nobody takes another client's for one.
const NAME_PREFIX: &str = "pleach.";

/// The name of a message, by which the server recognises it when it comes again. Each further header costs both sides more than a longer name
/// does, so it also tells when its commit was made, in microseconds since 1970, and its place in its batch: `pleach.COMMIT.TIME.3/10`.
pub(crate) fn name(commit: &str, time: Timestamp, part: BatchPart) -> String {
    let BatchPart { index, size } = part;
    format!("{NAME_PREFIX}{commit}.{}.{index}/{size}", time.as_micros())
}

/// The name of a message that only carries a check: it has no place among the records of its batch.
pub(crate) fn carrier_name(commit: &str, time: Timestamp, index: usize) -> String {
    format!("{NAME_PREFIX}{commit}.{}.check{index}", time.as_micros())
}

/// The headers of a message that only carries a check. To other clients it is the marker of a purged key. The first of a
/// batch replaces those of earlier batches; the server takes a rollup only there.
pub(crate) fn carrier(marker_ttl: Option<Duration>, is_first: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::OPERATION, "PURGE");
    if is_first {
        headers.insert(header::ROLLUP, "sub");
        marker_ttl.into_iter().for_each(|ttl| set_ttl(&mut headers, ttl));
    }
    headers
}

/// What a name says of its commit; none if another client has given it.
fn named(name: &str) -> Option<(Timestamp, BatchPart)> {
    let (_, rest) = name.strip_prefix(NAME_PREFIX)?.split_once('.')?;
    let (time, part) = rest.split_once('.')?;
    Some((Timestamp::from_micros(time.parse().ok()?), self::part(part)?))
}

/// A message as it is stored in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) subject: String,
    pub(crate) sequence: u64,
    time: Timestamp,
    said: Said,
    payload: Bytes,
}

/// What the headers of a message say.
#[derive(Clone, Debug, Default)]
struct Said {
    /// Where it is stored, of a message that the server repeats or hands out.
    stream: Option<String>,
    subject: Option<String>,
    sequence: Option<u64>,
    time: Option<Timestamp>,
    name: Option<String>,
    /// What it did, as NATS clients know it, and as the server says of its own markers.
    operation: Option<Op>,
    marker: Option<Op>,
    /// It is a delete, whatever NATS clients know.
    is_delete: bool,
    committed: Option<Timestamp>,
    expires: Option<Timestamp>,
    ttl: Option<Duration>,
    part: Option<BatchPart>,
    /// What travels with the record by its writer's wish.
    own: Headers,
}

impl Said {
    /// One pass, since many records are read at once.
    fn by<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut said = Self::default();
        for (name, value) in headers {
            said.take(name, value);
        }
        said
    }

    fn of(message: &async_nats::Message) -> Self {
        let headers = message.headers.iter().flat_map(HeaderMap::iter);
        Self::by(
            headers.filter_map(|(name, values)| Some((AsRef::<str>::as_ref(name), values.last()?.as_str()))),
        )
    }

    fn take(&mut self, name: &str, value: &str) {
        let moment_of = |micros: &str| micros.parse().ok().map(Timestamp::from_micros);
        match name {
            header::STREAM => self.stream = Some(value.to_owned()),
            header::SUBJECT => self.subject = Some(value.to_owned()),
            header::SEQUENCE => self.sequence = value.parse().ok(),
            header::TIME => self.time = moment(value).ok(),
            header::MESSAGE_ID | header::NAME => {
                (self.committed, self.part) = named(value).unzip();
                self.name = Some(value.to_owned());
            }
            header::OPERATION => self.operation = operation(value),
            header::MARKER => self.marker = Some(marker(value)),
            header::DID => self.is_delete = value == DID_DELETE,
            header::EXPIRES => self.expires = moment_of(value),
            header::TTL => self.ttl = value.trim_end_matches('s').parse().ok().map(Duration::from_secs),
            // What another client wrote and our rules forbid is left out.
            _ => match name.strip_prefix(header::QUOTED) {
                Some(name) => {
                    let value = serde_json::from_str::<String>(value).ok();
                    let _ = value.map(|value| self.own.set(name, &value));
                }
                None if is_taken(name) => {}
                None => {
                    let _ = self.own.set(name, value);
                }
            },
        }
    }

    fn op(&self) -> Op {
        match (self.marker, self.operation) {
            (Some(marker), _) => marker,
            (None, Some(Op::Purge)) if self.is_delete => Op::Delete,
            (None, operation) => operation.unwrap_or(Op::Put),
        }
    }
}

/// What a NATS client says it did; everything else is a put.
fn operation(text: &str) -> Option<Op> {
    match text {
        "DEL" => Some(Op::Delete),
        "PURGE" => Some(Op::Purge),
        _ => None,
    }
}

/// Why the server has put a marker in the place of a value.
fn marker(reason: &str) -> Op {
    match reason {
        "MaxAge" => Op::Expire,
        "Remove" => Op::Delete,
        _ => Op::Purge,
    }
}

fn part(text: &str) -> Option<BatchPart> {
    let (index, size) = text.split_once('/')?;
    let part = BatchPart { index: index.parse().ok()?, size: size.parse().ok()? };
    (part.index < part.size).then_some(part)
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
        let headers = decoded(&self.hdrs)?;
        let headers = String::from_utf8_lossy(&headers);
        Ok(Record {
            subject: self.subject,
            sequence: self.seq,
            time: moment(&self.time)?,
            said: Said::by(headers.split("\r\n").skip(1).filter_map(header_line)),
            payload: decoded(&self.data)?.into(),
        })
    }
}

fn header_line(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim(), value.trim()))
}

impl Record {
    /// The stored message that the server repeats or hands out, with where it is stored in its headers.
    pub(crate) fn from_message(message: async_nats::Message) -> Result<Self, ApiError> {
        let mut said = Said::of(&message);
        let missing = |name: &str| ApiError::Malformed(format!("a message has no {name}"));
        Ok(Self {
            subject: said.subject.take().ok_or_else(|| missing(header::SUBJECT))?,
            sequence: said.sequence.ok_or_else(|| missing(header::SEQUENCE))?,
            time: said.time.ok_or_else(|| missing(header::TIME))?,
            said,
            payload: message.payload,
        })
    }

    /// The stored message that a consumer has sent, which has told where it is stored.
    pub(crate) fn delivered(message: async_nats::Message, sequence: u64, time: Timestamp) -> Self {
        let said = Said::of(&message);
        Self { subject: message.subject.to_string(), sequence, time, said, payload: message.payload }
    }

    /// The stream that it was read from, if that was said.
    pub(crate) fn stream(&self) -> Option<&str> {
        self.said.stream.as_deref()
    }

    /// The name that its writer gave to it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.said.name.as_deref()
    }

    /// [`Record::into_change`], of a key that scans, counts and watches show.
    pub(crate) fn into_listed(self, names: &Names) -> Option<Change> {
        self.into_change(names).filter(|change| !change.entry.key.is_fence())
    }

    /// What it means, with the expiry that is its own; none if its subject is that of no key.
    pub(crate) fn into_change(self, names: &Names) -> Option<Change> {
        let key = names.key(&self.subject)?;
        let op = self.said.op();
        // Another client only says how long its value lives, and the server counts from when it came.
        let native = || self.said.ttl.map(|ttl| self.time.saturating_add(ttl));
        let expires = self.said.expires.or_else(native);
        let entry = Entry {
            key,
            revision: Revision::new(self.sequence),
            time: self.said.committed.unwrap_or(self.time),
            expires: expires.filter(|_| op.is_put()),
            op,
            headers: self.said.own,
            value: if op.is_put() { self.payload } else { Bytes::new() },
        };
        Some(Change { entry, batch: self.said.part.unwrap_or(BatchPart::SINGLE) })
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
    let payload = match &operation.action {
        Action::Put { value, expiry } => {
            if let Some(moment) = expiry.moment(now) {
                headers.insert(header::EXPIRES, moment.as_micros().to_string());
                set_ttl(&mut headers, moment.since(now));
            }
            value.clone()
        }
        Action::Delete => {
            // When its time has come, the server leaves a marker in the place of a deleted value as if that expired, and none in
            // the place of a purged one. What is before it stays all the same: only a rollup removes that.
            let is_purge = config.ttl.is_some();
            headers.insert(header::OPERATION, if is_purge { "PURGE" } else { "DEL" });
            if is_purge {
                headers.insert(header::DID, DID_DELETE);
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
fn set_ttl(headers: &mut HeaderMap, ttl: Duration) {
    if ttl <= TTL_MAX {
        headers.insert(header::TTL, whole_seconds(ttl).to_string());
    }
}

/// How many whole seconds hold `duration`: at least one.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
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
