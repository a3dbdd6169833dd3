use pleach_engine::{Key, Revision};
use pleach_stores::Keeper;
use serde::Deserialize;

/// Keys of positions start so, and end with the name of the projection.
pub(crate) const POSITION_PREFIX: &str = Keeper::PROJECTION_PREFIX;

/// How far a projection has come, as it is stored in its target.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// The name of its source.
    pub(crate) source: String,
    /// The first revision that is not applied; none while it is being rebuilt.
    pub(crate) next: Option<Revision>,
}

impl Position {
    pub(crate) fn encode(&self) -> String {
        serde_json::json!({ "source": self.source, "next": self.next }).to_string()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// The name of the projection whose position is under `key`.
pub(crate) fn projection_of(key: &Key) -> &str {
    key.as_str().strip_prefix(POSITION_PREFIX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_bytes() {
        for next in [None, Some(Revision::new(1)), Some(Revision::new(u64::MAX))] {
            let position = Position { source: "orders".into(), next };
            assert_eq!(Position::decode(position.encode().as_bytes()).unwrap(), position);
        }
        assert!(Position::decode(br#"{"source":"orders","next":1,"more":2}"#).is_err());
    }
}
