use serde::{Deserialize, Serialize};

/// A figure that is measured: a row of the table. All are rates. Those before the first list are measured without an ordered
/// copy, which follows every change once it is there.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NatsRow {
    Put1,
    Put64,
    Get1,
    Get64,
    Missing64,
    Update1,
    Update64,
    Batch100,
    Batch1000,
    Atomic100,
    List,
    Page,
    FollowedPut64,
    CopiedPut64,
    FanOut,
}

impl NatsRow {
    pub(crate) const ALL: [Self; 15] = [
        Self::Put1,
        Self::Put64,
        Self::Get1,
        Self::Get64,
        Self::Missing64,
        Self::Update1,
        Self::Update64,
        Self::Batch100,
        Self::Batch1000,
        Self::Atomic100,
        Self::List,
        Self::Page,
        Self::FollowedPut64,
        Self::CopiedPut64,
        Self::FanOut,
    ];

    /// What it is called in tables and charts.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Put1 => "put, 1 caller",
            Self::Put64 => "put, 64 callers",
            Self::Get1 => "get, 1 caller",
            Self::Get64 => "get, 64 callers",
            Self::Missing64 => "get of a missing key, 64 callers",
            Self::Update1 => "compare-and-set, 1 caller",
            Self::Update64 => "compare-and-set, 64 callers",
            Self::Batch100 => "entries in batches of 100",
            Self::Batch1000 => "entries in batches of 1,000",
            Self::Atomic100 => "the same in batches of 100, atomic there too",
            Self::List => "list a prefix of 1,000 keys",
            Self::Page => "ordered page of 100",
            Self::FollowedPut64 => "put, 64 callers, into an ordered copy",
            Self::CopiedPut64 => "the same, with a copy there too",
            Self::FanOut => "changes to 100 watchers",
        }
    }

    /// Whether Pleach keeps an ordered copy for it.
    pub(crate) const fn needs_copy(self) -> bool {
        matches!(self, Self::List | Self::Page | Self::FollowedPut64 | Self::CopiedPut64)
    }

    /// How many times faster than the plain client it shall be at least.
    pub(crate) const fn aim(self) -> f64 {
        match self {
            Self::List | Self::Page => 20.0,
            _ => 0.9,
        }
    }
}
