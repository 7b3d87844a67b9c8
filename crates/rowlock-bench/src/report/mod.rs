//! Turns measurements into a table, JSON and a chart.

mod chart;
mod lines;
mod number;
mod pinned;
mod table;

pub use chart::chart;
pub use lines::horizon_chart;
pub use number::short;
pub use pinned::pinned_chart;
pub use table::table;

use serde::Serialize;

use crate::{Bound, Machine, Measurement};

/// What is kept of a run.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// What it was measured on.
    #[serde(flatten)]
    pub machine: &'a Machine,
    /// When, in UTC.
    pub measured_at: jiff::Timestamp,
    /// What was measured.
    pub measurements: &'a [Measurement],
}

/// The goals that were missed, and runs that prove nothing, in words.
#[must_use]
pub fn missed(all: &[Measurement]) -> Vec<String> {
    let mut words = Vec::new();
    for each in all {
        if each.noisy {
            let a_a = each.figure("a_a").unwrap_or(f64::NAN);
            words.push(format!(
                "{}: noisy, one run of the same state was {a_a:.2} of the other; this proves nothing",
                each.step
            ));
        }
        for goal in each.goals.iter().filter(|goal| !goal.ok) {
            let is = each.figure(goal.figure).unwrap_or(f64::NAN);
            let wanted = match goal.bound {
                Bound::AtLeast(least) => format!("at least {}", short(least)),
                Bound::AtMost(most) => format!("at most {}", short(most)),
            };
            words.push(format!(
                "{}: {} is {}, wanted {wanted}",
                each.step,
                goal.figure,
                short(is)
            ));
        }
    }
    words
}
