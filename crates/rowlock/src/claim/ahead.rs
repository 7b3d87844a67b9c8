//! How much to claim: enough that no slot waits, not so much that others starve.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Elapsed;

/// Measures how fast jobs finish, and allows as many ahead as run in 200 ms.
#[derive(Debug)]
pub struct Ahead {
    concurrency: usize,
    most: usize,
    finished: VecDeque<(Elapsed, usize)>,
    /// When there was something to do after a time without.
    began: Elapsed,
}

const WINDOW: Duration = Duration::from_secs(1);
/// Jobs that finish so close together are one entry: the window stays short at any rate.
const STEP: Duration = Duration::from_millis(20);
/// What runs within this time may lie ready.
const AHEAD: Duration = Duration::from_millis(200);
/// What has finished within less than this says nothing about the time after.
const SHORTEST: Duration = Duration::from_millis(100);

impl Ahead {
    /// For a worker with so many slots.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            most: 8_000,
            finished: VecDeque::new(),
            began: Elapsed::ZERO,
        }
    }

    /// Notes that a worker without jobs has got some.
    pub fn began(&mut self, now: Elapsed) {
        self.forget(now);
        if self.finished.is_empty() {
            self.began = now;
        }
    }

    /// How many it may hold in any case, with those whose verdicts are on their way.
    #[must_use]
    pub fn most(&self) -> usize {
        self.concurrency + self.most
    }

    /// Notes that jobs have finished.
    pub fn finished(&mut self, now: Elapsed, jobs: usize) {
        match self.finished.back_mut() {
            Some((since, sum)) if now.saturating_sub(*since) < STEP => *sum += jobs,
            _ => self.finished.push_back((now, jobs)),
        }
        self.forget(now);
    }

    /// How many jobs the worker may hold, running or ready.
    pub fn allowed(&mut self, now: Elapsed) -> usize {
        self.forget(now);
        let jobs: usize = self.finished.iter().map(|(_, jobs)| jobs).sum();
        // A worker that has just begun is as fast as it has been since then.
        let span = now
            .saturating_sub(self.began)
            .clamp(SHORTEST, WINDOW)
            .as_millis();
        let ahead = jobs as u128 * AHEAD.as_millis() / span;
        let ahead = usize::try_from(ahead).unwrap_or(self.most);
        self.concurrency + ahead.min(self.most)
    }

    /// Whether nothing has finished lately.
    pub fn stands_still(&mut self, now: Elapsed) -> bool {
        self.forget(now);
        self.finished.is_empty()
    }

    fn forget(&mut self, now: Elapsed) {
        while let Some((at, _)) = self.finished.front()
            && now.saturating_sub(*at) > WINDOW
        {
            self.finished.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_takes_no_more_than_it_can_start() {
        assert_eq!(Ahead::new(8).allowed(Duration::from_secs(100)), 8);
    }

    #[test]
    fn a_busy_worker_takes_a_fifth_of_a_second_ahead_and_forgets_it_again() {
        let mut ahead = Ahead::new(8);
        let at = |ms| Duration::from_secs(100) + Duration::from_millis(ms);
        ahead.finished(at(0), 500);
        ahead.finished(at(500), 500);
        assert_eq!(ahead.allowed(at(1000)), 208);
        ahead.finished(at(1000), 1_000_000);
        assert_eq!(ahead.allowed(at(1000)), 8_008);
        assert_eq!(ahead.allowed(at(2001)), 8);
    }

    #[test]
    fn a_worker_that_has_just_begun_is_as_fast_as_it_has_been_since() {
        let mut ahead = Ahead::new(8);
        let at = |ms| Duration::from_secs(100) + Duration::from_millis(ms);
        ahead.began(at(0));
        ahead.finished(at(0), 100);
        assert_eq!(
            ahead.allowed(at(0)),
            208,
            "a tenth of a second counts at least"
        );
        assert_eq!(ahead.allowed(at(400)), 58);
    }

    #[test]
    fn long_jobs_that_end_together_are_no_speed() {
        let mut ahead = Ahead::new(64);
        let at = Duration::from_secs;
        ahead.began(at(100));
        ahead.finished(at(130), 64);
        assert_eq!(ahead.allowed(at(130)), 64 + 12);
        // It was never without a job.
        ahead.began(at(130));
        assert_eq!(ahead.allowed(at(130)), 64 + 12);
    }
}
