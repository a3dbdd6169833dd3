use std::collections::BTreeMap;

use pleach_contract::KvResource;
use serde::{Deserialize, Serialize};

/// The bucket of an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// Its bucket.
    pub bucket: String,
    /// The versions of values without one, which were there when the bucket was adopted; none if it was not.
    #[serde(default, alias = "unstampedVersion", skip_serializing_if = "Option::is_none")]
    pub unstamped: Option<Unstamped>,
}

/// The versions of values that carry none: those that their keyspaces had when the bucket was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Recorded")]
pub struct Unstamped {
    /// The version of the resource, and of all its keyspaces that are not named below.
    pub version: String,
    /// The versions of keyspaces that had one of their own, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keyspaces: BTreeMap<String, String>,
}

/// How records have it, and how they once had it: one version for all keyspaces, in a field `unstampedVersion`.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Recorded {
    Once(String),
    Now {
        version: String,
        #[serde(default)]
        keyspaces: BTreeMap<String, String>,
    },
}

impl From<Recorded> for Unstamped {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Once(version) => Self::all(version),
            Recorded::Now { version, keyspaces } => Self { version, keyspaces },
        }
    }
}

impl Unstamped {
    /// One version, whatever the keyspace.
    pub fn all(version: impl Into<String>) -> Self {
        Self { version: version.into(), keyspaces: BTreeMap::new() }
    }

    /// The versions that a resource has now.
    pub(crate) fn by(resource: &KvResource) -> Self {
        let keyspaces = resource.keyspaces.iter();
        let own = keyspaces.filter(|(_, keyspace)| keyspace.version != resource.version);
        let keyspaces = own.map(|(name, keyspace)| (name.clone(), keyspace.version.clone())).collect();
        Self { version: resource.version.clone(), keyspaces }
    }

    /// The version of values in a keyspace; without a name, of those in a resource that declares none.
    pub fn of(&self, keyspace: Option<&str>) -> &str {
        keyspace.and_then(|name| self.keyspaces.get(name)).unwrap_or(&self.version)
    }
}
