//! What the operating system knows of this process, and the clocks. Linux only where a figure needs it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The clock that measures.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time of day in nanoseconds, which peers keep with each entry as Pleach does.
#[allow(clippy::disallowed_methods, reason = "entries carry the real time")]
pub(crate) fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The processor time that all threads of this process have used, from `/proc/self/stat`.
pub(crate) fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may have spaces; the fields after it are counted from the third.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // Linux shows these in hundredths of a second on every platform.
    Some(Duration::from_millis(ticks * 10))
}

/// The bytes this process has caused to be written to a disk, from `/proc/self/io`.
pub(crate) fn written_bytes() -> Option<u64> {
    field("/proc/self/io", "write_bytes:")
}

/// The memory this process has now and had at most, in bytes, from `/proc/self/status`.
pub(crate) fn memory_bytes() -> Option<(u64, u64)> {
    let now = field("/proc/self/status", "VmRSS:")? * 1024;
    let most = field("/proc/self/status", "VmHWM:")? * 1024;
    Some((now, most))
}

/// The space that the files under `directory` take.
pub(crate) fn disk_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => allocated(&metadata),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Waits until the process neither writes nor works for `quiet`, at most `limit`. True if it came to rest.
pub(crate) fn wait_until_idle(quiet: Duration, limit: Duration) -> bool {
    /// Wandering that is no work: a log line, a clock that ticks.
    const WRITTEN_BYTES_MAX: u64 = 64 * 1024;
    const BUSY_PERCENT_MAX: u128 = 10;
    let deadline = now() + limit;
    while now() < deadline {
        let (written, worked) = (written_bytes(), processor_time());
        std::thread::sleep(quiet);
        let (Some(worked), Some(worked_now)) = (worked, processor_time()) else { return false };
        let wrote = written_bytes().unwrap_or(0).saturating_sub(written.unwrap_or(0));
        let busy = (worked_now - worked).as_micros() * 100 / quiet.as_micros().max(1);
        if wrote <= WRITTEN_BYTES_MAX && busy <= BUSY_PERCENT_MAX {
            return true;
        }
    }
    false
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    // Files made longer in advance count for what they hold.
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
