//! Bar charts of the ratios, as SVG that reads well on light and on dark pages.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::peers::{EngineName, Layout};
use crate::report::Report;
use crate::row::Row;
use crate::table::{layout_title, length};

const WIDTH: f64 = 860.0;
const LABELS: f64 = 250.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 46.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;

/// Ratios beyond this many times better or worse are drawn as this.
const RATIO_MAX: f64 = 64.0;

const STYLE: &str = "
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 17px; font-weight: 600 } .small { font-size: 11px; fill: #57606a }
    .label { text-anchor: end } .middle { text-anchor: middle }
    .grid { stroke: #d0d7de } .one { stroke: #24292f; stroke-width: 1.5 }
    .rocksdb { fill: #0969da } .fjall { fill: #1a7f37 } .redb { fill: #bc4c00 } .sqlite { fill: #8250df }
    .nats { fill: #0969da }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #e6edf3 }
      .rocksdb { fill: #4493f8 } .fjall { fill: #3fb950 } .redb { fill: #db6d28 } .sqlite { fill: #ab7df8 }
      .nats { fill: #4493f8 }
    }";

/// Draws a chart for every table and length of values; returns the names of the files.
pub(crate) fn draw_all(report: &Report, directory: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut names = Vec::new();
    for (layout, name) in [(Layout::Same, "same"), (Layout::Raw, "raw")] {
        for value_bytes in report.value_lengths() {
            let Some(chart) = draw(report, layout, value_bytes) else { continue };
            let name = format!("{name}-{value_bytes}.svg");
            let path = directory.join(&name);
            fs::write(&path, chart).with_context(|| format!("cannot write {}", path.display()))?;
            names.push(name);
        }
    }
    Ok(names)
}

/// A bar: how many times better Pleach is.
pub(crate) struct Bar {
    /// Which peer, as the style names it.
    pub(crate) class: &'static str,
    pub(crate) better: f64,
}

/// What a chart shows.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// The peers, as the style names them and as people do.
    pub(crate) peers: Vec<(&'static str, &'static str)>,
    /// Rows and their bars.
    pub(crate) groups: Vec<(&'static str, Vec<Bar>)>,
}

fn draw(report: &Report, layout: Layout, value_bytes: usize) -> Option<String> {
    let groups = Row::ALL.into_iter().map(|row| (row.title(), bars(report, layout, value_bytes, row)));
    let peers = report.engines(layout).into_iter().filter(|engine| *engine != EngineName::Pleach);
    let chart = Chart {
        title: format!("{}, values of {}", layout_title(layout), length(value_bytes)),
        peers: peers.map(|engine| (class(engine), engine.title())).collect(),
        groups: groups.filter(|(_, bars)| !bars.is_empty()).collect(),
    };
    chart.draw()
}

impl Chart {
    /// The picture; none if there is nothing to show.
    pub(crate) fn draw(&self) -> Option<String> {
        let groups = &self.groups;
        let most =
            groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.better.log2().abs()).fold(1.0, f64::max);
        let scale = Scale { doublings: most.ceil() };
        let bar_count: f64 = groups.iter().map(|(_, bars)| drawn(bars.len())).sum();
        let height = TOP + bar_count * BAR + drawn(groups.len()) * GAP + BOTTOM;
        if groups.is_empty() {
            return None;
        }
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <style>{STYLE}\n</style>\n"
        );
        let title = escaped(&self.title);
        let _ = writeln!(text, "<title>{title}</title>");
        let _ = writeln!(text, "<text class=\"title\" x=\"16\" y=\"28\">{title}</text>");
        let about = "how many times better Pleach is, on a logarithmic scale: right of the line Pleach, left of it the peer";
        let _ = writeln!(text, "<text class=\"small\" x=\"16\" y=\"47\">{about}</text>");
        text += &legend(&self.peers);
        text += &grid(&scale, height);
        let mut y = TOP;
        for (label, bars) in groups {
            let middle = y + drawn(bars.len()) * BAR / 2.0 + 4.5;
            let label = escaped(label);
            let _ = writeln!(
                text,
                "<text class=\"label\" x=\"{}\" y=\"{middle:.1}\">{label}</text>",
                LABELS - 12.0
            );
            for bar in bars {
                text += &scale.bar(bar, y);
                y += BAR;
            }
            y += GAP;
        }
        Some(text + "</svg>\n")
    }
}

fn bars(report: &Report, layout: Layout, value_bytes: usize, row: Row) -> Vec<Bar> {
    let engines = report.engines(layout).into_iter().filter(|engine| *engine != EngineName::Pleach);
    let bar = |engine| {
        let ratio = report.ratio(engine, layout, value_bytes, row).filter(|ratio| *ratio > 0.0)?;
        let better = if row.less_is_better() { 1.0 / ratio } else { ratio };
        Some(Bar { class: class(engine), better })
    };
    engines.filter_map(bar).collect()
}

/// Where a ratio is, from left to right.
struct Scale {
    /// How many doublings there is room for, each way.
    doublings: f64,
}

impl Scale {
    fn x(&self, better: f64) -> f64 {
        let doublings = self.doublings.min(RATIO_MAX.log2());
        let share = (better.log2() / doublings).clamp(-1.0, 1.0);
        let half = (WIDTH - LABELS - RIGHT) / 2.0;
        LABELS + half + share * (half - 36.0)
    }

    fn bar(&self, bar: &Bar, y: f64) -> String {
        let (one, end) = (self.x(1.0), self.x(bar.better));
        let (left, width) = (one.min(end), (one - end).abs().max(0.5));
        let class = bar.class;
        let number =
            if bar.better >= 9.95 { format!("{:.0}×", bar.better) } else { format!("{:.2}×", bar.better) };
        let (anchor, x) = if end < one { ("end", end - 4.0) } else { ("start", end + 4.0) };
        format!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{}\" rx=\"1.5\"/>\n\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{number}</text>\n",
            y + 1.0,
            BAR - 2.0,
            y + BAR - 2.5
        )
    }
}

fn legend(peers: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut x = 16.0;
    for (class, title) in peers {
        let _ = writeln!(
            text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"60\" width=\"12\" height=\"12\" rx=\"2\"/>\n\
             <text x=\"{}\" y=\"70.5\">{title}</text>",
            x + 17.0,
        );
        x += 95.0;
    }
    text
}

fn grid(scale: &Scale, height: f64) -> String {
    let mut text = String::new();
    let mut doublings = 0.0;
    while doublings <= scale.doublings.min(RATIO_MAX.log2()) {
        let times = doublings.exp2();
        for better in [times, 1.0 / times] {
            let (x, class) = (scale.x(better), if doublings == 0.0 { "one" } else { "grid" });
            let (end, below) = (height - BOTTOM, height - BOTTOM + 16.0);
            let label = if better < 1.0 { format!("1/{times}") } else { format!("{times}×") };
            let _ = writeln!(
                text,
                "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{end:.1}\"/>\n\
                 <text class=\"small middle\" x=\"{x:.1}\" y=\"{below:.1}\">{label}</text>",
                TOP - 8.0
            );
            if doublings == 0.0 {
                break;
            }
        }
        doublings += 1.0;
    }
    text
}

const fn class(engine: EngineName) -> &'static str {
    match engine {
        EngineName::Pleach => "pleach",
        EngineName::RocksDb => "rocksdb",
        EngineName::Fjall => "fjall",
        EngineName::Redb => "redb",
        EngineName::Sqlite => "sqlite",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A small count, to draw with.
fn drawn(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    /// Whether every element is closed, in order, and nothing is left unescaped.
    fn is_well_formed(text: &str) -> bool {
        let mut open = Vec::new();
        for part in text.split('<').skip(1) {
            let Some((tag, content)) = part.split_once('>') else { return false };
            if content.contains('>') || tag.matches('"').count() % 2 == 1 {
                return false;
            }
            let name = tag.split_whitespace().next().unwrap_or("").trim_end_matches('/');
            if let Some(closed) = name.strip_prefix('/') {
                if open.pop() != Some(closed) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        open.is_empty()
    }

    #[test]
    fn a_chart_is_well_formed_and_has_a_bar_for_every_ratio() {
        let chart = draw(&sample(), Layout::Same, 100).unwrap();
        assert!(is_well_formed(&chart), "{chart}");
        assert_eq!(chart.matches("<rect class=\"rocksdb\"").count(), 1 + 2, "{chart}");
        assert!(
            chart.contains("1.50×") && chart.contains("2.00×"),
            "less is better is turned round: {chart}"
        );
        assert!(!is_well_formed("<a><b></a></b>") && !is_well_formed("<a b=\"></a>"));
    }

    #[test]
    fn a_chart_is_drawn_for_every_table_that_has_a_peer() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(draw_all(&sample(), directory.path()).unwrap(), ["same-100.svg", "raw-100.svg"]);
        assert!(directory.path().join("raw-100.svg").exists());
    }
}
