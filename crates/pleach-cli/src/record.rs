use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pleach::{BatchPart, BucketConfig, BucketInfo, BucketName, ConsumerName, Entry, Op, Revision, Timestamp};
use serde::Serialize;

/// The version of the JSON that commands print and `import` reads.
pub(crate) const JSON_VERSION: u64 = 1;

/// The event that ends an export.
pub(crate) const EXPORTED: &str = "exported";

/// A record as JSON: the same shape wherever one is printed, and what `import` takes back.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    v: u64,
    bucket: &'a str,
    key: &'a str,
    revision: Revision,
    op: Op,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Batch>,
}

/// The place of a record in a batch of several.
#[derive(Debug, Serialize)]
struct Batch {
    index: u16,
    size: u16,
}

impl<'a> Record<'a> {
    /// The record `entry` of `bucket`.
    pub(crate) fn new(bucket: &'a BucketName, entry: &'a Entry) -> Self {
        let text = std::str::from_utf8(&entry.value).ok();
        let is_put = entry.op.is_put();
        Self {
            v: JSON_VERSION,
            bucket: bucket.as_str(),
            key: entry.key.as_str(),
            revision: entry.revision,
            op: entry.op,
            time: entry.time.to_string(),
            expires: entry.expires.map(|expires| expires.to_string()),
            value: text.filter(|_| is_put),
            value_base64: (is_put && text.is_none()).then(|| STANDARD.encode(&entry.value)),
            headers: entry.headers.iter().collect(),
            batch: None,
        }
    }

    /// The same, without its value: for lists of keys.
    pub(crate) fn without_value(self) -> Self {
        Self { value: None, value_base64: None, ..self }
    }

    /// The same, with its place in its batch, if that has more than one record.
    pub(crate) fn in_batch(self, part: BatchPart) -> Self {
        let BatchPart { index, size } = part;
        Self { batch: (size > 1).then_some(Batch { index, size }), ..self }
    }
}

/// A bucket as JSON. `import` takes it back, and looks at its configuration only.
#[derive(Debug, Serialize)]
pub(crate) struct BucketObject<'a> {
    v: u64,
    bucket: &'a str,
    config: &'a BucketConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_revision: Option<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feed_floor: Option<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
}

impl<'a> BucketObject<'a> {
    /// Its name and configuration, which is what an export needs.
    pub(crate) fn config(info: &'a BucketInfo) -> Self {
        Self {
            v: JSON_VERSION,
            bucket: info.name.as_str(),
            config: &info.config,
            created: None,
            last_revision: None,
            feed_floor: None,
            entries: None,
        }
    }

    /// All that is known of it.
    pub(crate) fn full(info: &'a BucketInfo) -> Self {
        Self {
            created: Some(info.created.to_string()),
            last_revision: Some(info.last_revision),
            feed_floor: Some(info.feed_floor),
            ..Self::config(info)
        }
    }

    /// The same, with how many entries are in it.
    pub(crate) fn entries(self, entries: u64) -> Self {
        Self { entries: Some(entries), ..self }
    }
}

/// Something that happened and is no record. `import` passes over it.
#[derive(Debug, Serialize)]
pub(crate) struct Event<'a> {
    v: u64,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    #[serde(flatten)]
    counts: BTreeMap<&'static str, u64>,
}

impl<'a> Event<'a> {
    /// An event of this name.
    pub(crate) fn new(event: &'a str) -> Self {
        let (bucket, consumer, key, revision) = (None, None, None, None);
        Self { v: JSON_VERSION, event, bucket, consumer, key, revision, counts: BTreeMap::new() }
    }

    /// In this bucket.
    pub(crate) fn bucket(self, bucket: &'a BucketName) -> Self {
        Self { bucket: Some(bucket.as_str()), ..self }
    }

    /// Of this consumer.
    pub(crate) fn consumer(self, consumer: &'a ConsumerName) -> Self {
        Self { consumer: Some(consumer.as_str()), ..self }
    }

    /// At this key.
    pub(crate) fn key(self, key: &'a pleach::Key) -> Self {
        Self { key: Some(key.as_str()), ..self }
    }

    /// As of this revision.
    pub(crate) fn revision(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// With this number.
    pub(crate) fn count(mut self, name: &'static str, count: u64) -> Self {
        self.counts.insert(name, count);
        self
    }
}

/// A moment for people: RFC 3339, to the second.
pub(crate) fn moment(time: Timestamp) -> String {
    let text = time.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use pleach::{Bytes, Headers, Key};

    use super::*;

    fn entry(op: Op, value: &'static [u8]) -> Entry {
        let mut headers = Headers::new();
        headers.set("Trace-Id", "7").unwrap();
        Entry {
            key: Key::parse("user.42").unwrap(),
            value: Bytes::from_static(value),
            revision: Revision::new(3),
            time: Timestamp::from_micros(1_730_000_000_000_250),
            expires: op.is_put().then_some(Timestamp::from_micros(1_730_000_030_000_250)),
            op,
            headers,
        }
    }

    fn json(entry: &Entry) -> String {
        serde_json::to_string(&Record::new(&BucketName::parse("carts").unwrap(), entry)).unwrap()
    }

    #[test]
    fn text_is_a_value_and_other_bytes_are_base64() {
        assert_eq!(
            json(&entry(Op::Put, b"3 apples")),
            "{\"v\":1,\"bucket\":\"carts\",\"key\":\"user.42\",\"revision\":3,\"op\":\"put\",\
             \"time\":\"2024-10-27T03:33:20.000250Z\",\"expires\":\"2024-10-27T03:33:50.000250Z\",\
             \"value\":\"3 apples\",\"headers\":{\"Trace-Id\":\"7\"}}"
        );
        assert!(json(&entry(Op::Put, &[0xff])).contains("\"value_base64\":\"/w==\""));
        assert!(json(&entry(Op::Put, b"")).contains("\"value\":\"\""));
    }

    #[test]
    fn a_marker_has_no_value() {
        let json = json(&entry(Op::Delete, b""));
        assert!(json.contains("\"op\":\"delete\"") && !json.contains("value"), "{json}");
    }

    #[test]
    fn moments_are_shown_to_the_second() {
        assert_eq!(moment(Timestamp::from_micros(1_730_000_000_000_250)), "2024-10-27T03:33:20Z");
    }
}
