//! The chart: a bar for each side of each throughput, drawn by hand.

use std::fmt::Write;

use super::short;
use crate::{Machine, Measurement};

const WIDTH: usize = 760;
const LEFT: usize = 190;
const BAR: usize = 14;
const LONGEST: f64 = 430.0;

/// Colours that are told apart on white and on black, and by those who see no red or green.
const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#57606a}.name{font-weight:600}.note{font-size:11px}\
.ours{fill:#0f766e}.limit{fill:#94a3b8}.canonical{fill:#d97706}\
@media(prefers-color-scheme:dark){text{fill:#b6c2cf}.ours{fill:#2dd4bf}.limit{fill:#64748b}\
.canonical{fill:#f59e0b}}";

/// An SVG with every measurement that has a limit. Bars of one load share a scale; loads don't.
#[must_use]
pub fn chart(all: &[Measurement], machine: &Machine) -> String {
    let shown: Vec<_> = all.iter().filter(|each| each.limit.is_some()).collect();
    let step = 3 * BAR + 26;
    let height = 74 + shown.len() * step + 24;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"jobs per second\">\n<style>{STYLE}</style>\n\
         <text class=\"name\" x=\"16\" y=\"26\">SQLite, synchronous=FULL: jobs a second</text>\n"
    );
    let legend = [
        ("ours", "rowlock"),
        ("limit", "bare loop of the same SQL"),
        ("canonical", "textbook queue"),
    ];
    let mut x = 16;
    for (class, name) in legend {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"40\" width=\"12\" height=\"12\" rx=\"2\"/>\
             <text x=\"{}\" y=\"51\">{name}</text>",
            x + 18
        );
        x += 40 + name.len() * 7;
    }
    for (n, each) in shown.iter().enumerate() {
        let top = 74 + n * step;
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"16\" y=\"{}\">{}</text>",
            top + BAR + 12,
            each.step.replace('_', " ")
        );
        let sides = [
            ("ours", Some(each.ours)),
            ("limit", each.limit),
            ("canonical", each.canonical),
        ];
        let most = sides
            .iter()
            .filter_map(|(_, value)| *value)
            .fold(0.0, f64::max);
        for (m, (class, value)) in sides.into_iter().enumerate() {
            let Some(value) = value else { continue };
            // The textbook's queue has no index; with one it is another queue.
            let indexed = each.figure("canonical_with_index");
            let besides = match (class, indexed) {
                ("canonical", Some(rate)) => format!(" ({} with the index it lacks)", short(rate)),
                _ => String::new(),
            };
            let (y, width) = (top + m * (BAR + 2), (value / most * LONGEST).max(1.0));
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{}{besides}</text>",
                f64::from(u32::try_from(LEFT).unwrap_or_default()) + width + 8.0,
                y + BAR - 3,
                short(value)
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text class=\"note\" x=\"16\" y=\"{}\">rowlock {}, SQLite {}, {} cpus, {}, load {} before; medians of one run</text>\n</svg>",
        height - 12,
        machine.version,
        machine.sqlite,
        machine.cpus,
        machine.file_system,
        machine.load.map_or_else(|| "unknown".to_owned(), short),
    );
    svg
}
