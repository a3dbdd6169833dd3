//! How values and figures are shown to people.

use std::time::Duration;

/// A value in a line of its own: text with its control characters escaped, or how many bytes there are.
pub(crate) fn shown(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => escaped(text),
        Err(_) => format!("({}, not text)", counted(value.len() as u64, "byte", "bytes")),
    }
}

/// The same, cut to what fits into a table.
pub(crate) fn excerpt(value: &[u8]) -> String {
    const EXCERPT_CHARS_MAX: usize = 48;
    let text = shown(value);
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// A share of the whole.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A number in few letters: `950`, `12.3k`, `4.5M`.
pub(crate) fn short(number: u64) -> String {
    const UNITS: [(&str, u64, u64); 3] =
        [("G", 1_000_000_000, 1_000_000_000), ("M", 1_000_000, 1_000_000), ("k", 1_000, 10_000)];
    match UNITS.iter().find(|(_, _, from)| number >= *from) {
        Some((name, unit, _)) => format!("{:.1}{name}", number as f64 / *unit as f64),
        None => number.to_string(),
    }
}

/// A length of time in few letters: `310ns`, `1.2ms`, `45s`, `3h12m`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let tenths = |unit: f64, name: &str| {
        let number = time.as_nanos() as f64 / unit;
        if number < 10.0 { format!("{number:.1}{name}") } else { format!("{number:.0}{name}") }
    };
    match time.as_nanos() {
        0..1_000 => format!("{}ns", time.as_nanos()),
        1_000..1_000_000 => tenths(1e3, "us"),
        1_000_000..1_000_000_000 => tenths(1e6, "ms"),
        _ if seconds < 10 => tenths(1e9, "s"),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if seconds < 7_200 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ if seconds < 172_800 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Text for a terminal: its lines and tabs as they are, and every other control character escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            other if other.is_control() || is_invisible_direction(other) => {
                shown.extend(other.escape_unicode())
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Characters that change the direction of the text around them, so that it reads as something else.
fn is_invisible_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            other if other.is_control() || is_invisible_direction(other) => {
                shown.extend(other.escape_unicode())
            }
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_one_line_that_cannot_move_the_cursor() {
        assert_eq!(shown(b"two\nlines\x1b[2J"), "two\\nlines\\u{1b}[2J");
        assert_eq!(shown(&[0xff, 0xfe]), "(2 bytes, not text)");
        assert_eq!(shown("grün".as_bytes()), "grün");
    }

    #[test]
    fn text_for_a_terminal_keeps_its_lines_and_controls_nothing() {
        assert_eq!(printable("two\n\tlines\r\x1b[2J\u{9b}31m"), "two\n\tlines\\u{d}\\u{1b}[2J\\u{9b}31m");
        assert_eq!(printable("\u{202e}txt.exe grün"), "\\u{202e}txt.exe grün");
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(excerpt(&[b'x'; 48]).chars().count(), 48);
        assert_eq!(excerpt(&[b'x'; 49]).chars().count(), 49);
        assert!(excerpt(&[b'x'; 49]).ends_with('…'));
    }

    #[test]
    fn figures_are_short() {
        let numbers = [950, 9_999, 12_345, 4_500_000, 2_000_000_000].map(short);
        assert_eq!(numbers, ["950", "9999", "12.3k", "4.5M", "2.0G"]);
        let nanos = [0, 310, 1_250, 42_000, 3_100_000, 1_500_000_000, 45_000_000_000];
        let times = nanos.map(|nanos| time(Duration::from_nanos(nanos)));
        assert_eq!(times, ["0ns", "310ns", "1.2us", "42us", "3.1ms", "1.5s", "45s"]);
        let times = [185, 11_550, 700_000].map(|seconds| time(Duration::from_secs(seconds)));
        assert_eq!(times, ["3m05s", "3h12m", "8d02h"]);
        assert_eq!(percent(0.314), "31 %");
    }
}
