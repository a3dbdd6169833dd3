use std::fmt::Write as _;

use super::Costs;
use crate::table::{grouped, rendered};

/// Costs at several sizes, and how they grow.
#[derive(Debug)]
pub(super) struct Growth {
    of: &'static str,
    sizes: Vec<(u64, Costs)>,
}

impl Growth {
    pub(super) fn new(of: &'static str) -> Self {
        Self { of, sizes: Vec::new() }
    }

    pub(super) fn add(&mut self, size: u64, costs: Costs) {
        self.sizes.push((size, costs));
    }

    /// A table with a column for each size, and the last divided by the first that has the figure.
    pub(super) fn shown(&self) -> String {
        let mut header = vec![String::new()];
        header.extend(self.sizes.iter().map(|(size, _)| format!("{} {}", grouped(*size), self.of)));
        header.push("growth".into());
        let mut lines = vec![header];
        let names: std::collections::BTreeSet<_> =
            self.sizes.iter().flat_map(|(_, costs)| costs.keys().copied()).collect();
        for name in names {
            let figures: Vec<Option<f64>> =
                self.sizes.iter().map(|(_, costs)| costs.get(name).copied()).collect();
            let mut line = vec![name.to_owned()];
            line.extend(figures.iter().map(|figure| figure.map_or_else(|| "–".to_owned(), number)));
            let known: Vec<f64> = figures.into_iter().flatten().filter(|figure| *figure > 0.0).collect();
            let growth = match (known.first(), known.last()) {
                (Some(first), Some(last)) if known.len() > 1 => format!("{:.2}×", last / first),
                _ => "–".to_owned(),
            };
            line.push(growth);
            lines.push(line);
        }
        let mut text = String::from("\n");
        let _ = write!(text, "{}", rendered(&lines));
        text
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a figure that is shown, rounded")]
fn number(figure: f64) -> String {
    match figure {
        small if small < 100.0 => format!("{small:.2}"),
        large => grouped(large.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_last_divided_by_the_first() {
        let mut growth = Growth::new("keys");
        growth.add(1000, Costs::from([("get, µs", 2.0), ("open, ms", 0.0)]));
        growth.add(10_000, Costs::from([("get, µs", 3.0), ("memory, MiB", 1234.0)]));
        let text = growth.shown();
        for line in [
            "|             | 1,000 keys | 10,000 keys | growth |",
            "| get, µs     |       2.00 |        3.00 |  1.50× |",
            "| memory, MiB |          – |       1,234 |      – |",
            "| open, ms    |       0.00 |           – |      – |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
    }
}
