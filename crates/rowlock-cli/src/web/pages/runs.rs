//! How long jobs ran lately: a sample of those that ended since the look before.

use jiff::Timestamp;
use rowlock::engine::browse::Run;

/// How many of the newest ended jobs a look reads. Nothing is counted, so this bounds what it costs.
pub const READ: usize = 200;

/// Run times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// Nineteen of twenty took no longer.
    pub p95: f64,
}

/// Which of them are new.
#[derive(Debug, Default)]
pub struct Runs {
    /// When the last of those ended that were seen, by the store's clock. Nothing before the first look,
    /// which would tell of last week otherwise.
    newest: Option<Timestamp>,
}

impl Runs {
    /// Takes what a look has read; nothing if no job has ended since the one before.
    pub fn take(&mut self, read: &[Run]) -> Option<Spread> {
        let before = self.newest;
        let last = read.iter().map(|run| run.finished_at).max();
        self.newest = before.max(last).or(Some(Timestamp::MIN));
        let is_fresh = |run: &&Run| before.is_some_and(|before| run.finished_at > before);
        let fresh = read.iter().filter(is_fresh);
        let mut seconds: Vec<f64> = fresh.map(|run| run.took.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let at = |of: usize| seconds.get(seconds.len().saturating_sub(1) * of / 100);
        Some(Spread {
            median: *at(50)?,
            p95: *at(95)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn runs(ended: impl IntoIterator<Item = (i64, u64)>) -> Vec<Run> {
        let run = |(at, ms)| Run {
            finished_at: Timestamp::from_second(at).unwrap(),
            took: Duration::from_millis(ms),
        };
        ended.into_iter().map(run).collect()
    }

    #[test]
    fn only_what_ended_since_the_look_before_counts() {
        let mut seen = Runs::default();
        assert_eq!(seen.take(&runs([(10, 9_000)])), None, "that was long ago");
        assert_eq!(seen.take(&runs([(10, 9_000)])), None);
        let fresh = (1..=100).map(|n| (20, 10 * n));
        let told = seen.take(&runs(fresh.chain([(10, 9_000)]))).unwrap();
        assert_eq!((told.median, told.p95), (0.5, 0.95));
        assert_eq!(seen.take(&[]), None, "all of them were pruned");
        assert!(seen.take(&runs([(21, 1)])).is_some());
    }

    #[test]
    fn the_first_job_of_a_store_counts() {
        let mut seen = Runs::default();
        assert_eq!(seen.take(&[]), None);
        let told = seen.take(&runs([(5, 250)])).unwrap();
        assert_eq!((told.median, told.p95), (0.25, 0.25));
    }
}
