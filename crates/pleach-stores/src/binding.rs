use serde::{Deserialize, Serialize};

/// The bucket of an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// Its bucket.
    pub bucket: String,
    /// The version that values without one have: those that were there when the bucket was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstamped_version: Option<String>,
}
