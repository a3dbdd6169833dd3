//! How times are written to JSON: as numbers of seconds, as other programs that watch over stores want them.

use std::time::Duration;

use pleach_engine::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What someone else wrote may be no time at all.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

pub(super) mod seconds {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        f64::deserialize(from).map(duration)
    }
}

pub(super) mod seconds_or_none {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs_f64()).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.map(duration))
    }
}

pub(super) mod seconds_each {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(times: &[Duration], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(times.iter().map(Duration::as_secs_f64))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Duration>, D::Error> {
        Ok(Vec::<f64>::deserialize(from)?.into_iter().map(duration).collect())
    }
}

pub(super) mod moment {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
