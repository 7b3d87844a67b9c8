//! A chart of what changes with time: one panel for each figure, a line for each run.

use std::fmt::Write;

use super::short;
use crate::{Machine, Measurement};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const PANEL: f64 = 150.0;
const STEP: f64 = PANEL + 56.0;

/// Colours that are told apart on white and on black, and by those who see no red or green.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.name{font-size:13px;font-weight:600}.note{font-size:11px}\
.axis{stroke:#d0d7de;fill:none}polyline{fill:none;stroke-width:2}.a{stroke:#d97706}.b{stroke:#0f766e}\
.ka{fill:#d97706}.kb{fill:#0f766e}.mark{stroke:#57606a;stroke-dasharray:4 3}\
@media(prefers-color-scheme:dark){text{fill:#b6c2cf}.axis{stroke:#3d444d}.a{stroke:#f59e0b}.b{stroke:#2dd4bf}\
.ka{fill:#f59e0b}.kb{fill:#2dd4bf}.mark{stroke:#b6c2cf}}";

/// One figure over time.
struct Panel<'a> {
    title: &'static str,
    figure: &'static str,
    lines: Vec<(&'static str, &'a Measurement)>,
}

/// The SVG of `bench horizon`.
#[must_use]
pub fn horizon_chart(all: &[Measurement], machine: &Machine) -> String {
    let of = |step: &str| all.iter().find(|each| each.step == step);
    let mut panels = Vec::new();
    let both: Vec<_> = [
        ("three reports at once", of("three_reports_at_once")),
        ("a budget of one", of("one_report_at_a_time")),
    ]
    .into_iter()
    .filter_map(|(name, made)| Some((name, made?)))
    .collect();
    for (title, figure) in [
        ("Age of the horizon, seconds", "horizon_age"),
        (
            "Dead rows of the application's table that a VACUUM can't remove",
            "dead_orders",
        ),
        ("Dead rows of rowlock's own tables", "dead_ours"),
        ("Jobs that wait", "backlog"),
        ("Claims, p99 in ms", "claim_p99_ms"),
    ] {
        let lines = both.clone();
        panels.push(Panel {
            title,
            figure,
            lines,
        });
    }
    for (title, step) in [
        (
            "A prepared transaction, and its remedy: dead rows that can't be removed",
            "prepared_transaction",
        ),
        (
            "An abandoned logical slot, and its remedy: dead rows of the catalogue",
            "abandoned_slot",
        ),
    ] {
        let lines = of(step).map(|made| ("until the remedy, and after", made));
        panels.push(Panel {
            title,
            figure: "kept_dead_rows",
            lines: lines.into_iter().collect(),
        });
    }
    let height = 20.0 + STEP * panels.iter().fold(0.0, |n, _| n + 1.0) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"the horizon under long reports, with and without a budget\">\n<style>{STYLE}</style>\n"
    );
    let mut top = 20.0;
    for panel in &panels {
        panel.draw(&mut svg, top);
        top += STEP;
    }
    let _ = writeln!(
        svg,
        "<text class=\"note\" x=\"16\" y=\"{:.0}\">rowlock {}, {} cpus, load {} before; one run</text>\n</svg>",
        height - 8.0,
        machine.version,
        machine.cpus,
        machine.load.map_or_else(|| "unknown".to_owned(), short),
    );
    svg
}

impl Panel<'_> {
    fn draw(&self, svg: &mut String, top: f64) {
        let values =
            |made: &Measurement, name: &str| made.runs.get(name).cloned().unwrap_or_default();
        let highest = |name: &str| {
            let all = self.lines.iter().flat_map(|(_, made)| values(made, name));
            all.filter(|value| value.is_finite())
                .fold(0.0, f64::max)
                .max(1e-9)
        };
        let (longest, most) = (highest("seconds"), highest(self.figure));
        let bottom = top + 24.0 + PANEL;
        let x = |at: f64| LEFT + at / longest * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| bottom - value / most * (PANEL - 12.0);
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"16\" y=\"{:.0}\">{}</text>\
             <path class=\"axis\" d=\"M{LEFT} {:.0}V{bottom:.0}H{:.0}\"/>\
             <text x=\"16\" y=\"{:.0}\">{}</text><text x=\"16\" y=\"{bottom:.0}\">0</text>\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{} s</text>",
            top + 12.0,
            self.title,
            top + 24.0,
            WIDTH - RIGHT,
            y(most) + 4.0,
            short(most),
            WIDTH - RIGHT,
            bottom + 16.0,
            short(longest)
        );
        let mut key = LEFT;
        for ((name, made), class) in self.lines.iter().zip(["a", "b"]) {
            let points: Vec<String> = values(made, "seconds")
                .iter()
                .zip(values(made, self.figure))
                .filter(|(_, value)| value.is_finite())
                .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(value)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline class=\"{class}\" points=\"{}\"/>",
                points.join(" ")
            );
            if let Some(at) = made.figure("remedy_at") {
                let _ = writeln!(
                    svg,
                    "<path class=\"mark\" d=\"M{0:.1} {1:.0}V{bottom:.0}\"/>",
                    x(at),
                    top + 24.0
                );
            }
            let _ = writeln!(
                svg,
                "<rect class=\"k{class}\" x=\"{key:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" rx=\"2\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\">{name}</text>",
                bottom + 7.0,
                key + 15.0,
                bottom + 16.0
            );
            key += 180.0;
        }
    }
}
