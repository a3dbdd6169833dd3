//! Figures as people read them.

use std::time::Duration;

/// A size with its unit, to a tenth.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A length of time with its unit.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 if time < Duration::from_millis(1) => format!("{} us", time.as_micros()),
        0 => format!("{} ms", time.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A share of the whole.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The first few of many names.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 3;
    let all: Vec<_> = names.into_iter().collect();
    match all.len().saturating_sub(NAMED_MAX) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..NAMED_MAX].join(", ")),
    }
}
