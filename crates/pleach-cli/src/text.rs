//! How values are shown to people.

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

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            other if other.is_control() => shown.extend(other.escape_unicode()),
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
    fn long_values_are_cut() {
        assert_eq!(excerpt(&[b'x'; 48]).chars().count(), 48);
        assert_eq!(excerpt(&[b'x'; 49]).chars().count(), 49);
        assert!(excerpt(&[b'x'; 49]).ends_with('…'));
    }
}
