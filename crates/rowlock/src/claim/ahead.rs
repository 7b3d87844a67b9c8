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
}

const WINDOW: Duration = Duration::from_secs(1);
/// Jobs that finish so close together are one entry: the window stays short at any rate.
const STEP: Duration = Duration::from_millis(20);
/// `WINDOW` over the 200 ms that may lie ready.
const SHARE: usize = 5;

impl Ahead {
    /// For a worker with so many slots.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            most: 4_000,
            finished: VecDeque::new(),
        }
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
        let rate: usize = self.finished.iter().map(|(_, jobs)| jobs).sum();
        self.concurrency + (rate / SHARE).min(self.most)
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
        let now = Duration::from_secs(100);
        ahead.finished(now, 1000);
        assert_eq!(ahead.allowed(now), 208);
        ahead.finished(now, 1_000_000);
        assert_eq!(ahead.allowed(now), 4_008);
        assert_eq!(ahead.allowed(now + Duration::from_millis(1001)), 8);
    }
}
