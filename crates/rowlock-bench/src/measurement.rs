//! One measurement: its figures, and what is expected of them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Which way a figure is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
}

/// What is expected of one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// The figure: `of_limit`, `of_canonical`, `ours` or one of the further ones.
    pub figure: &'static str,
    /// How far it may go.
    #[serde(flatten)]
    pub bound: Bound,
    /// Whether it is reached.
    pub ok: bool,
}

/// The medians of one load.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// Which benchmark.
    pub bench: &'static str,
    /// Which load.
    pub step: &'static str,
    /// Of `ours`, `limit` and `canonical`.
    pub unit: &'static str,
    /// How many jobs each run of ours handled; counted afterwards in the store.
    pub jobs: usize,
    /// Rowlock.
    pub ours: f64,
    /// A bare loop of the same statements.
    pub limit: Option<f64>,
    /// The queue that textbooks teach.
    pub canonical: Option<f64>,
    /// `ours / limit`
    pub of_limit: Option<f64>,
    /// `ours / canonical`
    pub of_canonical: Option<f64>,
    /// What else belongs to it.
    #[serde(flatten)]
    pub further: BTreeMap<&'static str, f64>,
    /// What is expected.
    pub goals: Vec<Goal>,
    /// Whether a state compared with itself differed more than the goal allows: proves nothing.
    pub noisy: bool,
    /// Every single run.
    pub runs: BTreeMap<&'static str, Vec<f64>>,
}

impl Measurement {
    pub(crate) fn new(step: &'static str, unit: &'static str, jobs: usize) -> Self {
        Self {
            bench: "sqlite",
            step,
            unit,
            jobs,
            ours: 0.0,
            limit: None,
            canonical: None,
            of_limit: None,
            of_canonical: None,
            further: BTreeMap::new(),
            goals: Vec::new(),
            noisy: false,
            runs: BTreeMap::new(),
        }
    }

    /// Ours, run by run.
    pub(crate) fn ours(mut self, runs: &[f64]) -> Self {
        self.ours = median(runs);
        self.runs.insert("ours", runs.to_vec());
        self
    }

    /// The limit, run by run.
    pub(crate) fn limit(mut self, runs: &[f64]) -> Self {
        let limit = median(runs);
        self.limit = Some(limit);
        self.of_limit = Some(self.ours / limit);
        self.runs.insert("limit", runs.to_vec());
        self
    }

    /// The canonical queue, run by run.
    pub(crate) fn canonical(mut self, runs: &[f64]) -> Self {
        let canonical = median(runs);
        self.canonical = Some(canonical);
        self.of_canonical = Some(self.ours / canonical);
        self.runs.insert("canonical", runs.to_vec());
        self
    }

    /// A further figure.
    pub(crate) fn with(mut self, figure: &'static str, value: f64) -> Self {
        self.further.insert(figure, value);
        self
    }

    /// Ours in a better state, and in the same once more: a machine on which these two differ by more
    /// than the goal allows proves nothing.
    pub(crate) fn without(mut self, runs: &[f64], again: &[f64], least: f64) -> Self {
        let (without, second) = (median(runs), median(again));
        let (a_a, of_without) = (
            (without / second).min(second / without),
            self.ours / without,
        );
        self.runs.insert("without", runs.to_vec());
        self.runs.insert("without_again", again.to_vec());
        self.noisy = a_a < least;
        self.with("without", without)
            .with("of_without", of_without)
            .with("a_a", a_a)
            .goal("of_without", Bound::AtLeast(least))
    }

    /// What is expected of a figure.
    pub(crate) fn goal(mut self, figure: &'static str, bound: Bound) -> Self {
        let ok = self.figure(figure).is_some_and(|is| match bound {
            Bound::AtLeast(least) => is >= least,
            Bound::AtMost(most) => is <= most,
        });
        self.goals.push(Goal { figure, bound, ok });
        self
    }

    /// A figure by its name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "ours" => Some(self.ours),
            "of_limit" => self.of_limit,
            "of_canonical" => self.of_canonical,
            other => self.further.get(other).copied(),
        }
    }

    /// Whether every goal is reached, in a run that proves something.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.noisy && self.goals.iter().all(|goal| goal.ok)
    }
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value that so many parts of all don't exceed.
pub(crate) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a short list"
    )]
    let at = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_the_medians() {
        let made = Measurement::new("drain", "jobs/s", 1)
            .ours(&[50.0, 60.0, 1.0])
            .limit(&[100.0, 90.0, 110.0])
            .goal("of_limit", Bound::AtLeast(0.5))
            .goal("ours", Bound::AtMost(49.0));
        assert_eq!(made.of_limit, Some(0.5));
        assert_eq!(
            made.goals.iter().map(|goal| goal.ok).collect::<Vec<_>>(),
            [true, false]
        );
        assert!(!made.ok());
    }

    #[test]
    fn a_state_that_differs_from_itself_proves_nothing() {
        let made = |again: f64| {
            Measurement::new("drain", "jobs/s", 1)
                .ours(&[90.0])
                .without(&[100.0], &[again], 0.8)
        };
        assert!(made(110.0).ok());
        assert!(made(130.0).noisy && !made(130.0).ok());
        assert!(made(70.0).noisy);
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), 50.0);
        assert_eq!(percentile(&values, 0.99), 99.0);
        assert_eq!(percentile(&[7.0], 0.95), 7.0);
    }
}
