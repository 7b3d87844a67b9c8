//! The table on the screen.

use super::short;
use crate::{Bound, Measurement};

const HEAD: [&str; 10] = [
    "step",
    "unit",
    "ours",
    "limit",
    "canonical",
    "of limit",
    "of canonical",
    "goal",
    "ok",
    "besides",
];

/// One line a measurement, columns in line.
#[must_use]
pub fn table(all: &[Measurement]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(all.iter().map(row));
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
            let numeric = (2..=6).contains(&n);
            line.push_str(&match numeric {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(each: &Measurement) -> [String; HEAD.len()] {
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    let goals: Vec<String> = each
        .goals
        .iter()
        .map(|goal| match goal.bound {
            Bound::AtLeast(least) => format!("{} >= {}", goal.figure, short(least)),
            Bound::AtMost(most) => format!("{} <= {}", goal.figure, short(most)),
        })
        .collect();
    let besides: Vec<String> = each
        .further
        .iter()
        .map(|(name, value)| format!("{name} {}", short(*value)))
        .collect();
    let ok = match (each.noisy, each.goals.is_empty(), each.ok()) {
        (true, _, _) => "noisy",
        (_, true, _) => "-",
        (_, _, true) => "yes",
        (_, _, false) => "NO",
    };
    [
        each.step.to_owned(),
        each.unit.to_owned(),
        short(each.ours),
        figure(each.limit),
        figure(each.canonical),
        figure(each.of_limit),
        figure(each.of_canonical),
        goals.join(", "),
        ok.to_owned(),
        besides.join(", "),
    ]
}
