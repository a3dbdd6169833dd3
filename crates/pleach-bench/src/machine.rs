use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// What the figures were measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
}

impl Machine {
    /// This machine, as far as it can be told.
    pub(crate) fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let memory = line_of("/proc/meminfo", "MemTotal:");
        let memory_kib: u64 =
            memory.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: line_of("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            memory_mib: memory_kib / 1024,
            kernel: kernel.map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        }
    }
}

/// The commit that was measured, if git can tell.
pub(crate) fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn line_of(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}
