use serde::{Deserialize, Serialize};

/// A figure that is measured: a row of the table. All are rates.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NatsRow {
    Put1,
    Put64,
    Get1,
    Get64,
    Update1,
    Update64,
    Batch,
    List,
    Page,
    FanOut,
}

impl NatsRow {
    pub(crate) const ALL: [Self; 10] = [
        Self::Put1,
        Self::Put64,
        Self::Get1,
        Self::Get64,
        Self::Update1,
        Self::Update64,
        Self::Batch,
        Self::List,
        Self::Page,
        Self::FanOut,
    ];

    /// What it is called in tables and charts.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Put1 => "put, 1 caller",
            Self::Put64 => "put, 64 callers",
            Self::Get1 => "get, 1 caller",
            Self::Get64 => "get, 64 callers",
            Self::Update1 => "compare-and-set, 1 caller",
            Self::Update64 => "compare-and-set, 64 callers",
            Self::Batch => "entries in batches of 100",
            Self::List => "list a prefix of 1,000 keys",
            Self::Page => "ordered page of 100",
            Self::FanOut => "changes to 100 watchers",
        }
    }

    /// How many times faster than the plain client it shall be at least.
    pub(crate) const fn aim(self) -> f64 {
        match self {
            Self::List | Self::Page => 20.0,
            _ => 0.9,
        }
    }
}
