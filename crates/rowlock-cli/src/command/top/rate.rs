//! How many jobs end in a second, from the differences between two looks.

use std::collections::BTreeMap;

use rowlock::Name;
use rowlock::clock::Elapsed;
use rowlock::engine::QueueRow;

/// What ended in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rate {
    pub completed: f64,
    pub failed: f64,
}

/// How many were completed and failed by now, by queue.
type Ended = BTreeMap<Name, (u64, u64)>;

/// The counts of the look before, and what came of them.
#[derive(Debug, Default)]
pub struct Rates {
    before: Option<(Elapsed, Ended)>,
    by_queue: BTreeMap<Name, Rate>,
}

impl Rates {
    /// Takes the counts of a look at `at`.
    pub fn add(&mut self, at: Elapsed, rows: &[QueueRow]) {
        let now: Ended = rows
            .iter()
            .map(|row| (row.queue.clone(), (row.counts.completed, row.counts.failed)))
            .collect();
        if let Some((then, counts)) = &self.before {
            let seconds = at.saturating_sub(*then).as_secs_f64();
            // Two looks at almost the same moment would make a rate of nothing.
            if seconds < 0.2 {
                return;
            }
            // What was pruned or retried in between makes a count smaller: that is no rate.
            let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            let rate = |(queue, (completed, failed)): (&Name, &(u64, u64))| {
                let then = counts.get(queue).copied().unwrap_or_default();
                let rate = Rate {
                    completed: per_second(*completed, then.0),
                    failed: per_second(*failed, then.1),
                };
                (queue.clone(), rate)
            };
            self.by_queue = now.iter().map(rate).collect();
        }
        self.before = Some((at, now));
    }

    /// Of one queue; nothing before the second look.
    pub fn of(&self, queue: &Name) -> Option<Rate> {
        self.by_queue.get(queue).copied()
    }

    /// Of all queues.
    pub fn total(&self) -> Option<Rate> {
        let sum = |sum: Rate, rate: &Rate| Rate {
            completed: sum.completed + rate.completed,
            failed: sum.failed + rate.failed,
        };
        let some = !self.by_queue.is_empty();
        some.then(|| self.by_queue.values().fold(Rate::default(), sum))
    }
}

/// `0`, `0.5`, `12`, `1,234`.
pub fn shown(rate: f64) -> String {
    match rate {
        none if none < 0.05 => "0".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        many => crate::show::count(many.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rowlock::engine::Counts;

    use super::*;

    fn rows(completed: u64, failed: u64) -> Vec<QueueRow> {
        let counts = Counts {
            completed,
            failed,
            ..Counts::default()
        };
        let queue = Name::new("mail").unwrap();
        vec![QueueRow {
            queue,
            paused: false,
            reason: None,
            counts,
        }]
    }

    #[test]
    fn rates_are_differences_and_never_negative() {
        let mail = Name::new("mail").unwrap();
        let mut rates = Rates::default();
        rates.add(Duration::from_secs(10), &rows(100, 5));
        assert_eq!(rates.of(&mail), None);
        assert_eq!(rates.total(), None);
        rates.add(Duration::from_secs(12), &rows(124, 4));
        let rate = rates.of(&mail).unwrap();
        assert_eq!((rate.completed, rate.failed), (12.0, 0.0));
        rates.add(Duration::from_millis(12_001), &rows(9_999, 4));
        assert_eq!(rates.of(&mail), Some(rate));
        assert_eq!(
            [0.01, 0.5, 12.4, 1234.0].map(shown),
            ["0", "0.5", "12", "1,234"]
        );
    }
}
