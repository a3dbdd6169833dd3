// Made of the contract acme.notes@v1 by `pleach contract codegen`: do not edit.

use pleach_stores as stores;

/// Notes that follow their author.
#[derive(Clone, Debug)]
pub struct Notes;

impl Notes {
    /// The id of the contract.
    pub const ID: &'static str = "acme.notes@v1";
    /// The digest of the contract that this code was made of.
    pub const DIGEST: &'static str = "_LNRYinRA3RKaHraKZ1gsAaTNhPo0YA_dUEXmOnO1i0";
}

stores::state_facade! {
    /// What `acme.notes@v1` keeps for each of its users and devices.
    pub struct NotesState {
        /// The map store `drafts`.
        map drafts("drafts", "v1"): Draft;
        /// How it looks.
        value preferences("preferences", "preferences.v2"): Preferences, or OldPreferences {
            PreferencesV1(PreferencesV1) = "preferences.v1",
            V0(PreferencesV0) = "v0",
        };
        /// The map store `read-marks`.
        map read_marks("read-marks", "v3"): Draft, or OldReadMarks {
            V2(Draft) = "v2",
        };
    }
}

/// `Draft`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Draft {
    /// `title`.
    pub title: String,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Draft {
    /// With what must be there, and nothing else.
    pub fn new(title: String) -> Self {
        Self { title, other: std::collections::BTreeMap::new() }
    }
}

/// `Preferences`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Preferences {
    /// `compact`.
    pub compact: bool,
    /// `theme`.
    pub theme: String,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Preferences {
    /// With what must be there, and nothing else.
    pub fn new(compact: bool, theme: String) -> Self {
        Self { compact, theme, other: std::collections::BTreeMap::new() }
    }
}

/// `PreferencesV0`.
pub type PreferencesV0 = String;

/// `PreferencesV1`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PreferencesV1 {
    /// `theme`.
    pub theme: String,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl PreferencesV1 {
    /// With what must be there, and nothing else.
    pub fn new(theme: String) -> Self {
        Self { theme, other: std::collections::BTreeMap::new() }
    }
}

/// The contract, as JSON.
pub const CONTRACT: &str = r#"{"description":"Notes that follow their author.","displayName":"Notes","format":"pleach.contract.v1","id":"acme.notes@v1","kind":"app","schemas":{"Draft":{"properties":{"title":{"type":"string"}},"required":["title"],"type":"object"},"Preferences":{"properties":{"compact":{"type":"boolean"},"theme":{"type":"string"}},"required":["theme","compact"],"type":"object"},"PreferencesV0":{"type":"string"},"PreferencesV1":{"properties":{"theme":{"type":"string"}},"required":["theme"],"type":"object"}},"state":{"drafts":{"kind":"map","schema":{"schema":"Draft"},"stateVersion":"v1"},"preferences":{"acceptedVersions":{"preferences.v1":{"schema":"PreferencesV1"},"v0":{"schema":"PreferencesV0"}},"description":"How it looks.","kind":"value","schema":{"schema":"Preferences"},"stateVersion":"preferences.v2"},"read-marks":{"acceptedVersions":{"v2":{"schema":"Draft"}},"kind":"map","schema":{"schema":"Draft"},"stateVersion":"v3"}}}"#;
