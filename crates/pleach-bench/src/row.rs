use serde::{Deserialize, Serialize};

/// A figure that is measured: a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    Load,
    SlowestPut,
    #[serde(rename = "durable-64")]
    Durable64,
    CpuPerCommit,
    #[serde(rename = "durable-256")]
    Durable256,
    #[serde(rename = "durable-256-p999")]
    Durable256Tail,
    #[serde(rename = "hot-get-1")]
    HotGet1,
    #[serde(rename = "hot-get-2")]
    HotGet2,
    RandomGet,
    Missing,
    #[serde(rename = "scan-100")]
    Scan100,
    Mixed,
    Written,
    Space,
    Feed,
    Reopen,
}

impl Row {
    pub(crate) const ALL: [Self; 16] = [
        Self::Load,
        Self::SlowestPut,
        Self::Durable64,
        Self::CpuPerCommit,
        Self::Durable256,
        Self::Durable256Tail,
        Self::HotGet1,
        Self::HotGet2,
        Self::RandomGet,
        Self::Missing,
        Self::Scan100,
        Self::Mixed,
        Self::Written,
        Self::Space,
        Self::Feed,
        Self::Reopen,
    ];

    /// What it is called in tables and charts.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Load => "random load, 1 thread",
            Self::SlowestPut => "slowest call of the load",
            Self::Durable64 => "durable put, 64 writers",
            Self::CpuPerCommit => "CPU per commit, 64 writers",
            Self::Durable256 => "durable put, 256 writers",
            Self::Durable256Tail => "durable put p99.9, 256 writers",
            Self::HotGet1 => "hot get, 1 thread",
            Self::HotGet2 => "hot get, 2 threads",
            Self::RandomGet => "random get, 1 thread",
            Self::Missing => "missing key, 1 thread",
            Self::Scan100 => "ordered scan of 100",
            Self::Mixed => "mixed get / put, 16 callers",
            Self::Written => "bytes written per user byte",
            Self::Space => "space per live byte",
            Self::Feed => "feed replay",
            Self::Reopen => "reopen after a kill",
        }
    }

    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::SlowestPut | Self::Durable256Tail => "ms",
            Self::CpuPerCommit => "µs",
            Self::Written | Self::Space => "×",
            Self::Reopen => "s",
            _ => "/s",
        }
    }

    pub(crate) const fn less_is_better(self) -> bool {
        matches!(
            self,
            Self::SlowestPut
                | Self::CpuPerCommit
                | Self::Durable256Tail
                | Self::Written
                | Self::Space
                | Self::Reopen
        )
    }
}
