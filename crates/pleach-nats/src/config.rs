use std::num::NonZeroU8;
use std::time::Duration;

use serde_json::{Map, Value, json};

use pleach_engine::{BucketConfig, Compression, Durability, EngineError, HISTORY_MAX, TTL_MAX, Timestamp};

use crate::api::{StreamInfo, moment};
use crate::names::Names;
use crate::options::{NatsOptions, Storage};
use crate::record::whole_seconds;

/// How long the server recognises a message that is published twice.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// What a message takes besides its value, at most: our headers and the entry's own.
pub(crate) const MESSAGE_OVERHEAD: u32 = 16 * 1024;

/// The metadata of a stream in which the bucket's configuration is.
const METADATA_CONFIG: &str = "pleach.config";

/// A bucket's stream, as far as it matters to us.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) config: BucketConfig,
    pub(crate) created: Timestamp,
    /// The first revision it could give to a record.
    pub(crate) first_revision: u64,
    pub(crate) replicas: u64,
    /// How long its server recognises a message that is published twice.
    pub(crate) duplicate_window: Duration,
    /// Its servers answer reads without asking their leader.
    pub(crate) is_direct: bool,
    /// It repeats its changes under subjects of ours.
    pub(crate) is_repeated: bool,
    /// It takes batches.
    pub(crate) is_atomic: bool,
    /// It takes messages that expire.
    pub(crate) takes_ttl: bool,
    /// It is about to be deleted.
    pub(crate) is_sealed: bool,
    /// It is a copy of another stream, a little behind it, which takes no writes itself.
    pub(crate) is_mirror: bool,
    /// Its metadata says what it is; another client may have lost that.
    pub(crate) is_described: bool,
}

impl Settings {
    /// What a stream says of the bucket that lies in it.
    pub(crate) fn of(info: &StreamInfo, names: &Names, value_bytes_max: u32) -> Result<Self, EngineError> {
        let not_a_bucket =
            |reason: &str| EngineError::NotABucket { name: names.stream.clone(), reason: reason.to_owned() };
        let stream = &info.config;
        let number = |field: &str| stream.get(field).and_then(Value::as_i64).unwrap_or(0);
        let is_set = |field: &str| stream.get(field).and_then(Value::as_bool).unwrap_or(false);
        let history = u8::try_from(number("max_msgs_per_subject")).ok().and_then(NonZeroU8::new);
        let Some(history) = history.filter(|history| history.get() <= HISTORY_MAX) else {
            return Err(not_a_bucket("it does not keep 1 to 64 messages of a subject"));
        };
        let listens = |subject: &Value| subject.as_str() == Some(&names.all_subjects());
        let subjects = stream.get("subjects").and_then(Value::as_array);
        let is_mirror = stream.get("mirror").is_some_and(|mirror| !mirror.is_null());
        if !is_mirror && !subjects.is_some_and(|subjects| subjects.iter().any(listens)) {
            return Err(not_a_bucket("it does not store the subjects of its keys"));
        }
        if is_mirror && !names.is_placed {
            return Err(not_a_bucket("it is a replica of one, and is read in that one's place"));
        }
        let described = described(stream);
        let is_described = described.is_some();
        let repeated = stream.get("republish").and_then(|republish| republish.get("dest")?.as_str());
        let unreadable = || not_a_bucket("its time of creation cannot be read");
        Ok(Self {
            config: merged(described, stream, value_bytes_max, history),
            created: moment(&info.created).map_err(|_| unreadable())?,
            first_revision: u64::try_from(number("first_seq")).unwrap_or(0).max(1),
            duplicate_window: duration(stream, "duplicate_window")
                .unwrap_or_else(|| default_window(duration(stream, "max_age"))),
            replicas: u64::try_from(number("num_replicas")).unwrap_or(1).max(1),
            is_direct: is_set("allow_direct"),
            is_repeated: repeated == Some(&names.all_repeated()),
            // What is written goes to the stream behind a mirror, which says itself what it does not take.
            is_atomic: is_set("allow_atomic") || is_mirror,
            takes_ttl: is_set("allow_msg_ttl") || is_mirror,
            is_sealed: is_set("sealed"),
            is_mirror,
            is_described,
        })
    }

    /// Tells the bucket from its namesakes.
    pub(crate) fn identity(&self) -> u64 {
        self.created.as_micros()
    }

    /// The same, of a bucket whose configuration is known from elsewhere, as far as the stream does not say otherwise.
    pub(crate) fn described_by(mut self, config: BucketConfig) -> Self {
        let (history, ttl) = (self.config.history, self.config.ttl);
        self.config = BucketConfig { history, ttl, ..config };
        self
    }

    /// How long the feed knows of a key that it is gone: none for ever.
    pub(crate) fn markers_kept(&self) -> Option<Duration> {
        match (self.config.marker_ttl, self.config.ttl) {
            (Some(markers), Some(all)) => Some(markers.min(all)),
            (kept, None) | (None, kept) => kept,
        }
    }
}

/// The configuration that our metadata holds.
fn described(stream: &Map<String, Value>) -> Option<BucketConfig> {
    serde_json::from_str(stream.get("metadata")?.get(METADATA_CONFIG)?.as_str()?).ok()
}

/// The configuration of a bucket: what the server acts by is true, whatever the metadata says.
fn merged(
    described: Option<BucketConfig>,
    stream: &Map<String, Value>,
    value_bytes_max: u32,
    history: NonZeroU8,
) -> BucketConfig {
    let number = |field: &str| stream.get(field).and_then(Value::as_u64);
    let is_compressed = stream.get("compression").and_then(Value::as_str) == Some("s2");
    let mut config = described.unwrap_or_else(|| BucketConfig {
        durability: Durability::Buffered,
        value_bytes_max: number("max_msg_size")
            .and_then(|size| u32::try_from(size).ok())
            .map_or(value_bytes_max, |size| size.clamp(1, value_bytes_max)),
        compression: if is_compressed { Compression::Lz4 } else { Compression::None },
        marker_ttl: duration(stream, "subject_delete_marker_ttl"),
        ..BucketConfig::default()
    });
    config.history = history;
    config.ttl = duration(stream, "max_age");
    config
}

fn duration(stream: &Map<String, Value>, field: &str) -> Option<Duration> {
    stream.get(field).and_then(Value::as_u64).filter(|nanos| *nanos > 0).map(Duration::from_nanos)
}

/// How long a server recognises messages of a stream that does not say. It knows none that it has forgotten.
fn default_window(ttl: Option<Duration>) -> Duration {
    ttl.map_or(DUPLICATE_WINDOW, |ttl| ttl.min(DUPLICATE_WINDOW))
}

/// The configuration of a new stream for a bucket.
pub(crate) fn new_stream(
    names: &Names,
    config: &BucketConfig,
    options: &NatsOptions,
    first_revision: u64,
) -> Map<String, Value> {
    let mut stream = Map::new();
    let storage = match options.storage {
        Storage::File => "file",
        Storage::Memory => "memory",
    };
    let fixed = json!({
        "name": names.stream,
        "subjects": [names.all_subjects()],
        "retention": "limits",
        "discard": "new",
        "storage": storage,
        "num_replicas": options.replicas.get(),
        "max_msgs": -1,
        "max_bytes": -1,
        "max_consumers": -1,
        "first_seq": first_revision,
        "allow_direct": true,
        "allow_rollup_hdrs": true,
        "deny_delete": true,
        "deny_purge": false,
        "allow_msg_ttl": true,
        "allow_atomic": true,
    });
    if let Value::Object(fixed) = fixed {
        stream.extend(fixed);
    }
    describe(&mut stream, config);
    stream
}

/// Writes into the configuration of a stream what a bucket's configuration says.
pub(crate) fn describe(stream: &mut Map<String, Value>, config: &BucketConfig) {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let markers = Duration::from_secs(whole_seconds(config.marker_ttl.unwrap_or(TTL_MAX)));
    let compression = if config.compression == Compression::None { "none" } else { "s2" };
    let mut set = |field: &str, value: Value| stream.insert(field.to_owned(), value);
    set("max_msgs_per_subject", config.history.get().into());
    set("max_age", config.ttl.map_or(0, nanos).into());
    set("max_msg_size", config.value_bytes_max.saturating_add(MESSAGE_OVERHEAD).min(i32::MAX as u32).into());
    set("compression", compression.into());
    set("duplicate_window", nanos(default_window(config.ttl)).into());
    set("subject_delete_marker_ttl", nanos(markers).into());
    // A bucket that another client made may lack it, and conditional writes with checks need it.
    if stream.get("mirror").is_none_or(Value::is_null) {
        stream.insert("allow_atomic".to_owned(), true.into());
    }
    let text = serde_json::to_string(config).unwrap_or_default();
    let metadata = stream.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert(METADATA_CONFIG.to_owned(), text.into());
    }
}

/// Has a stream repeat what it stores. That costs it more than all the rest, so it is done for buckets that are followed.
pub(crate) fn repeat(stream: &mut Map<String, Value>, names: &Names) {
    let republish = json!({ "src": names.all_subjects(), "dest": names.all_repeated() });
    stream.insert("republish".to_owned(), republish);
}

/// The configuration of a stream that is a copy of the bucket's stream `origin`.
pub(crate) fn mirror_stream(
    stream: &str,
    origin: &Names,
    config: &BucketConfig,
    options: &NatsOptions,
) -> Map<String, Value> {
    let mut mirror = new_stream(origin, config, options, 0);
    // What only the origin does.
    for field in ["subjects", "first_seq", "subject_delete_marker_ttl", "allow_atomic", "duplicate_window"] {
        mirror.remove(field);
    }
    mirror.insert("name".to_owned(), stream.into());
    mirror.insert("mirror".to_owned(), json!({ "name": origin.stream }));
    // Reads of the bucket are not answered by its replica unless they ask for it.
    mirror.insert("mirror_direct".to_owned(), false.into());
    mirror
}
