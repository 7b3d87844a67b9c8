//! The chart of `bench postgres --pinned`: jobs a second beside how many have gone through while a transaction stayed
//! open, on a scale where every step up is ten times as many.

use std::fmt::Write;

use super::short;
use crate::{Machine, Measurement};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 56.0;
const HEIGHT: f64 = 240.0;
/// The lowest and the highest power of ten.
const SCALE: (f64, f64) = (2.0, 5.0);

/// Colours that are told apart on white and on black, and by those who see no red or green.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#57606a}.name{font-size:13px;font-weight:600}.note{font-size:11px}\
.axis{stroke:#d0d7de;fill:none}polyline{fill:none;stroke-width:2}.textbook{stroke:#d97706}.ours{stroke:#0f766e}\
.keys{stroke:#0f766e;stroke-dasharray:5 4}\
@media(prefers-color-scheme:dark){text{fill:#b6c2cf}.axis{stroke:#3d444d}.textbook{stroke:#f59e0b}.ours{stroke:#2dd4bf}\
.keys{stroke:#2dd4bf}}";

/// How many jobs have gone through, and the figures of both sides then.
const AT: [(f64, &str, &str); 5] = [
    (0.0, "at_0", "textbook_at_0"),
    (0.25, "at_250k", "textbook_at_250k"),
    (0.5, "at_500k", "textbook_at_500k"),
    (1.0, "at_1m", "textbook_at_1m"),
    (2.0, "at_2m", "textbook_at_2m"),
];

/// The SVG: ours, ours with a unique key each, and the textbook's queue, under an old snapshot.
#[must_use]
pub fn pinned_chart(all: &[Measurement], machine: &Machine) -> String {
    let of = |step: &str| all.iter().find(|each| each.step == step);
    let (plain, keys) = (of("under_a_snapshot"), of("under_a_snapshot_with_keys"));
    let bottom = TOP + HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         aria-label=\"jobs a second under a transaction that stays open\">\n<style>{STYLE}</style>\n\
         <text class=\"name\" x=\"16\" y=\"26\">PostgreSQL: jobs a second while a transaction stays open</text>\n\
         <path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{}\"/>\n",
        bottom + 64.0,
        WIDTH - RIGHT
    );
    for power in [2_i32, 3, 4, 5] {
        let value = 10_f64.powi(power);
        let _ = writeln!(
            svg,
            "<text x=\"16\" y=\"{:.0}\">{}</text>",
            y(value) + 4.0,
            short(value)
        );
    }
    for (millions, label) in [
        (0.0, "0"),
        (0.5, "500,000"),
        (1.0, "1 million"),
        (2.0, "2 million jobs"),
    ] {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            x(millions),
            bottom + 18.0
        );
    }
    let lines = [
        ("ours", "rowlock", plain, 1),
        ("keys", "with unique keys", keys, 1),
        ("textbook", "textbook queue", plain, 2),
    ];
    for (class, name, made, side) in lines {
        let figure = |at: &(f64, &'static str, &'static str)| {
            made?.figure(if side == 1 { at.1 } else { at.2 })
        };
        let points: Vec<(f64, f64)> = AT
            .iter()
            .filter_map(|at| Some((x(at.0), y(figure(at)?))))
            .collect();
        let drawn: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let Some(last) = points.last() else { continue };
        let _ = writeln!(
            svg,
            "<polyline class=\"{class}\" points=\"{}\"/><text x=\"{:.0}\" y=\"{:.0}\">{name}</text>",
            drawn.join(" "),
            last.0 + 8.0,
            last.1 + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"note\" x=\"16\" y=\"{:.0}\">rowlock {}, {} cpus, load {} before; every line up is ten times as many; one run</text>\n</svg>",
        bottom + 52.0,
        machine.version,
        machine.cpus,
        machine.load.map_or_else(|| "unknown".to_owned(), short),
    );
    svg
}

fn x(millions: f64) -> f64 {
    LEFT + millions / 2.0 * (WIDTH - LEFT - RIGHT)
}

fn y(rate: f64) -> f64 {
    let (low, high) = SCALE;
    let part = (rate.max(1.0).log10() - low) / (high - low);
    TOP + HEIGHT - part.clamp(0.0, 1.0) * HEIGHT
}
