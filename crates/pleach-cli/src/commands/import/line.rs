use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pleach::{BucketConfig, BucketName, Expiry, Headers, Key, Op, Operation, Timestamp};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::record::{EXPORTED, JSON_VERSION};

/// What a line of the input asks for.
#[derive(Debug)]
pub(super) enum Line {
    /// A record of a key.
    Record { bucket: BucketName, record: ImportedRecord },
    /// A bucket and its configuration.
    Bucket { bucket: BucketName, config: BucketConfig },
    /// The end of an export: everything before it is there.
    End,
    /// Nothing: it is blank, or tells of something that happened.
    Nothing,
}

/// A record to be committed again.
#[derive(Clone, Debug)]
pub(super) struct ImportedRecord {
    pub(super) key: Key,
    op: Op,
    value: Bytes,
    expires: Option<Timestamp>,
    headers: Headers,
}

/// Everything that commands print, so that a field nobody knows is not silently dropped.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    v: u64,
    bucket: Option<String>,
    key: Option<String>,
    op: Option<Op>,
    expires: Option<String>,
    value: Option<String>,
    value_base64: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    config: Option<BucketConfig>,
    // What the new record or bucket will have anew.
    #[serde(rename = "revision")]
    _revision: Option<IgnoredAny>,
    #[serde(rename = "time")]
    _time: Option<IgnoredAny>,
    #[serde(rename = "batch")]
    _batch: Option<IgnoredAny>,
    #[serde(rename = "created")]
    _created: Option<IgnoredAny>,
    #[serde(rename = "last_revision")]
    _last_revision: Option<IgnoredAny>,
    #[serde(rename = "feed_floor")]
    _feed_floor: Option<IgnoredAny>,
    #[serde(rename = "entries")]
    _entries: Option<IgnoredAny>,
}

/// What tells an event, of whatever shape, from the rest.
#[derive(Debug, Deserialize)]
struct MaybeEvent {
    event: Option<serde_json::Value>,
    system: Option<IgnoredAny>,
}

impl Line {
    /// Reads a line.
    pub(super) fn parse(text: &[u8]) -> anyhow::Result<Self> {
        if text.trim_ascii().is_empty() {
            return Ok(Self::Nothing);
        }
        // To serde an array is as good as an object, field by field; here it is not.
        ensure!(text.trim_ascii_start().starts_with(b"{"), "this is no JSON object");
        let MaybeEvent { event, system } =
            serde_json::from_slice(text).map_err(json_error).context("this is no JSON object")?;
        if let Some(event) = event {
            return Ok(if event == EXPORTED { Self::End } else { Self::Nothing });
        }
        ensure!(system.is_none(), "records about contracts stand at the beginning of an export");
        let object: Object =
            serde_json::from_slice(text).map_err(json_error).context("this is no record or bucket")?;
        ensure!(
            object.v == JSON_VERSION,
            "version {} is not known; this program reads {JSON_VERSION}",
            object.v
        );
        let bucket = object.bucket.as_deref().context("there is no `bucket`")?;
        let bucket = BucketName::parse(bucket).context("`bucket` is no bucket name")?;
        match (object.key.is_some(), &object.config) {
            (false, Some(config)) => Ok(Self::Bucket { bucket, config: config.clone() }),
            _ => Ok(Self::Record { bucket, record: object.into_record()? }),
        }
    }
}

/// Without the number of the line, which is always 1 where lines are read one by one.
#[allow(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn json_error(error: serde_json::Error) -> anyhow::Error {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    anyhow::anyhow!("{what} at column {}", error.column())
}

impl Object {
    fn into_record(self) -> anyhow::Result<ImportedRecord> {
        let key = self.key.context("there is no `key`")?;
        // Records of the exported store itself are read, and skipped later with a note.
        let key = Key::parse_reserved(key).context("`key` is no key")?;
        let op = self.op.unwrap_or(Op::Put);
        let value = match (self.value, self.value_base64) {
            (Some(_), Some(_)) => bail!("there are both `value` and `value_base64`"),
            (Some(text), None) => Some(Bytes::from(text)),
            (None, Some(base64)) => {
                Some(STANDARD.decode(base64).context("`value_base64` is no base64")?.into())
            }
            (None, None) => None,
        };
        ensure!(
            op.is_put() == value.is_some(),
            if op.is_put() { "a put needs a value" } else { "a marker has no value" }
        );
        let expires =
            self.expires.map(|text| text.parse().context("`expires` is no RFC 3339 time")).transpose()?;
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            headers.set(name, value)?;
        }
        Ok(ImportedRecord { key, op, value: value.unwrap_or_default(), expires, headers })
    }
}

impl ImportedRecord {
    /// Whether it is a value whose time had come by `now`.
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.op.is_put() && self.expires.is_some_and(|expires| expires <= now)
    }

    /// What commits it again. A value that has expired by `now` becomes a deletion, like one whose expiry
    /// is in the input: left out, it would let an older value of its key show again.
    pub(super) fn operation(self, now: Timestamp) -> Operation {
        let expired = self.has_expired(now);
        let operation = match self.op {
            Op::Put if !expired => {
                let expiry = self.expires.map_or(Expiry::Bucket, Expiry::At);
                Operation::put(self.key, self.value).expiring(expiry)
            }
            Op::Put | Op::Delete | Op::Expire => Operation::delete(self.key),
            Op::Purge => Operation::purge(self.key),
        };
        operation.with_headers(self.headers)
    }

    /// About how much memory and log it takes.
    pub(super) fn bytes(&self) -> usize {
        self.key.as_bytes().len() + self.value.len() + self.headers.bytes()
    }
}

#[cfg(test)]
mod tests {
    use pleach::Action;

    use super::*;

    fn operation(line: &str, now: u64) -> Operation {
        match Line::parse(line.as_bytes()).unwrap() {
            Line::Record { record, .. } => record.operation(Timestamp::from_micros(now)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_record_keeps_its_value_headers_and_expiry() {
        let line = r#"{"v":1,"bucket":"b","key":"k","revision":3,"op":"put","time":"x",
            "expires":"1970-01-01T00:00:10Z","value_base64":"/w==","headers":{"A":"1"}}"#;
        let operation = operation(line, 0);
        let expiry = Expiry::At(Timestamp::from_micros(10_000_000));
        assert_eq!(operation.action, Action::Put { value: Bytes::from_static(&[0xff]), expiry });
        assert_eq!(operation.headers.get("A"), Some("1"));
    }

    #[test]
    fn what_has_expired_is_deleted_and_a_purge_stays_one() {
        let expired = r#"{"v":1,"bucket":"b","key":"k","value":"x","expires":"1970-01-01T00:00:10Z"}"#;
        assert_eq!(operation(expired, 10_000_000).action, Action::Delete);
        assert!(matches!(operation(expired, 9_999_999).action, Action::Put { .. }));
        assert_eq!(operation(r#"{"v":1,"bucket":"b","key":"k","op":"expire"}"#, 0).action, Action::Delete);
        assert_eq!(operation(r#"{"v":1,"bucket":"b","key":"k","op":"purge"}"#, 0).action, Action::Purge);
    }

    #[test]
    fn events_and_blank_lines_ask_for_nothing() {
        for line in [
            "",
            "  ",
            r#"{"v":1,"event":"initial_done","bucket":"b","revision":7}"#,
            r#"{"event":"new","x":1}"#,
        ] {
            assert!(matches!(Line::parse(line.as_bytes()), Ok(Line::Nothing)), "{line}");
        }
    }

    #[test]
    fn a_bucket_is_known_by_its_configuration() {
        let line =
            r#"{"v":1,"bucket":"b","config":{"history":5},"created":"x","last_revision":2,"entries":0}"#;
        let Line::Bucket { bucket, config } = Line::parse(line.as_bytes()).unwrap() else {
            panic!("no bucket")
        };
        assert_eq!((bucket.as_str(), config.history.get()), ("b", 5));
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (line, expected) in [
            ("{", "this is no JSON object"),
            ("[1]", "this is no JSON object"),
            (r#"{"bucket":"b"}"#, "missing field `v`"),
            (r#"{"v":2,"bucket":"b","key":"k","value":""}"#, "version 2 is not known"),
            (r#"{"v":1,"key":"k","value":""}"#, "no `bucket`"),
            (r#"{"v":1,"bucket":"b b","key":"k","value":""}"#, "no bucket name"),
            (r#"{"v":1,"bucket":"b","value":""}"#, "no `key`"),
            (r#"{"v":1,"bucket":"b","key":"k..k","value":""}"#, "no key"),
            (r#"{"v":1,"bucket":"b","key":"k"}"#, "a put needs a value"),
            (r#"{"v":1,"bucket":"b","key":"k","op":"delete","value":"x"}"#, "a marker has no value"),
            (r#"{"v":1,"bucket":"b","key":"k","value":"x","value_base64":"eA=="}"#, "both"),
            (r#"{"v":1,"bucket":"b","key":"k","value_base64":"?"}"#, "no base64"),
            (r#"{"v":1,"bucket":"b","key":"k","value":"x","expires":"soon"}"#, "no RFC 3339 time"),
            (r#"{"v":1,"bucket":"b","key":"k","op":"burn"}"#, "unknown variant"),
            (r#"{"v":1,"bucket":"b","key":"k","valu":"x"}"#, "unknown field `valu`"),
        ] {
            let error = format!("{:#}", Line::parse(line.as_bytes()).unwrap_err());
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
