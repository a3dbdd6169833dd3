use std::fmt::Write as _;

use crate::peers::{EngineName, Layout};
use crate::report::Report;
use crate::row::Row;

/// All tables of a report, as Markdown that also reads well as it is.
pub(crate) fn tables(report: &Report) -> String {
    let mut text = String::new();
    for layout in [Layout::Same, Layout::Raw] {
        let engines = report.engines(layout);
        if engines.len() < 2 && layout == Layout::Raw {
            continue; // Pleach alone is in the first table.
        }
        for value_bytes in report.value_lengths() {
            let keys = report.settings.keys.get(&value_bytes).copied().unwrap_or(0);
            let _ = writeln!(
                text,
                "\n{}: values of {}, {} keys, median of {}\n",
                layout_title(layout),
                length(value_bytes),
                grouped(keys),
                report.settings.repeat
            );
            text += &rendered(&figures(report, layout, &engines, value_bytes));
        }
        if engines.len() > 1 {
            let _ = writeln!(text, "\n{}: Pleach ÷ peer\n", layout_title(layout));
            text += &rendered(&ratios(report, layout, &engines));
        }
    }
    text + "\n↓ marks rows in which less is better. Ratios are Pleach ÷ peer.\n"
}

pub(crate) const fn layout_title(layout: Layout) -> &'static str {
    match layout {
        Layout::Same => "Same promises",
        Layout::Raw => "Raw: peers as plain maps",
    }
}

/// `100 B`, `1 KiB`.
pub(crate) fn length(bytes: usize) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        return format!("{} KiB", bytes / 1024);
    }
    format!("{bytes} B")
}

fn figures(report: &Report, layout: Layout, engines: &[EngineName], value_bytes: usize) -> Vec<Vec<String>> {
    let mut header = vec!["work".to_owned()];
    for engine in engines {
        header.push(engine.title().to_owned());
        if *engine != EngineName::Pleach {
            header.push("ratio".to_owned());
        }
    }
    let mut lines = vec![header];
    for row in Row::ALL {
        let figure = |engine| report.figure(engine, layout, value_bytes, row);
        if engines.iter().all(|engine| figure(*engine).is_none()) {
            continue;
        }
        let mut line = vec![marked(row)];
        for engine in engines {
            line.push(figure(*engine).map_or_else(|| "–".to_owned(), |figure| shown(figure, row)));
            if *engine != EngineName::Pleach {
                let ratio = report.ratio(*engine, layout, value_bytes, row);
                line.push(ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")));
            }
        }
        lines.push(line);
    }
    lines
}

/// All ratios of a table at one glance.
fn ratios(report: &Report, layout: Layout, engines: &[EngineName]) -> Vec<Vec<String>> {
    let peers = engines.iter().filter(|engine| **engine != EngineName::Pleach);
    let columns: Vec<(EngineName, usize)> =
        peers.flat_map(|peer| report.value_lengths().into_iter().map(|bytes| (*peer, bytes))).collect();
    let mut header = vec!["work".to_owned()];
    header.extend(columns.iter().map(|(peer, bytes)| format!("{}, {}", peer.title(), length(*bytes))));
    let mut lines = vec![header];
    for row in Row::ALL {
        let ratio = |(peer, bytes): &(EngineName, usize)| report.ratio(*peer, layout, *bytes, row);
        if columns.iter().all(|column| ratio(column).is_none()) {
            continue;
        }
        let mut line = vec![marked(row)];
        let shown = |column| ratio(column).map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        line.extend(columns.iter().map(shown));
        lines.push(line);
    }
    lines
}

fn marked(row: Row) -> String {
    format!("{}{}", row.title(), if row.less_is_better() { " ↓" } else { "" })
}

fn shown(figure: f64, row: Row) -> String {
    let digits = if figure >= 100.0 { 0 } else { 2 };
    let text = if figure >= 10_000.0 { rounded(figure) } else { format!("{figure:.digits$}") };
    match row.unit() {
        unit @ ("×" | "/s") => format!("{text}{unit}"),
        unit => format!("{text} {unit}"),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a rate, rounded")]
fn rounded(figure: f64) -> String {
    grouped(figure.round() as u64)
}

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table: the first column to the left, the others to the right.
pub(crate) fn rendered(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "| {cell:<width$} |"),
                _ => write!(text, " {cell:>width$} |"),
            };
        }
        text.push('\n');
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(*width + 1);
                text += &if column == 0 { format!("|{dashes}-|") } else { format!("{dashes}:|") };
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn a_table_has_figures_ratios_and_marks() {
        let text = tables(&sample());
        for line in [
            "Same promises: values of 100 B, 1,000 keys, median of 3",
            "| work                       |  Pleach | RocksDB | ratio |",
            "| random load, 1 thread      |   300/s |   200/s |  1.50 |",
            "| slowest call of the load ↓ | 2.00 ms | 4.00 ms |  0.50 |",
            "| random load, 1 thread      |   300/s | 30.00/s | 10.00 |",
            "| work                       | RocksDB, 100 B |",
            "| slowest call of the load ↓ |           0.50 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn numbers_and_lengths_are_readable() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(
            (length(100), length(1024), length(1500)),
            ("100 B".into(), "1 KiB".into(), "1500 B".into())
        );
    }
}
