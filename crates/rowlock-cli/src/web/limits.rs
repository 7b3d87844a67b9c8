//! What one caller may ask for at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use rowlock::Clock;
use rowlock::clock::Elapsed;

use super::auth::Caller;
use super::problem::Problem;
use super::taken_out;

/// The largest body: room for a batch, and for the largest payload however generously it is written.
pub const BODY: usize = 8 * 1024 * 1024;
/// How long a request may take, its body included.
pub const REQUEST: Duration = Duration::from_secs(30);
/// How many requests are worked on at once, at most: the rest wait.
const AT_ONCE: usize = 8;

/// How many of them for a store with so many connections. The other half is for the worker beside, whose jobs must not
/// wait for somebody who looks.
pub fn at_once(connections: Option<usize>) -> usize {
    let half = connections.map_or(AT_ONCE, |connections| connections / 2);
    half.clamp(1, AT_ONCE)
}

/// How many changes each caller has left. It fills up again with time.
#[derive(Debug)]
pub struct Rate {
    clock: Clock,
    each_second: f64,
    left: Mutex<Vec<(Elapsed, f64)>>,
}

impl Rate {
    /// A rate for so many callers. Two seconds' worth may come at once.
    pub fn new(clock: Clock, each_second: u32, callers: usize) -> Self {
        let full = f64::from(each_second) * 2.0;
        let left = vec![(clock.elapsed(), full); callers];
        Self {
            clock,
            each_second: f64::from(each_second),
            left: Mutex::new(left),
        }
    }

    /// Takes one change of the caller's.
    pub fn take(&self, caller: Caller) -> Result<(), Problem> {
        let now = self.clock.elapsed();
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, left)) = all.get_mut(caller.number) else {
            return Ok(());
        };
        let passed = now.saturating_sub(*at).as_secs_f64();
        *left = (*left + passed * self.each_second).min(self.each_second * 2.0);
        *at = now;
        if *left < 1.0 && !taken_out("web.rate") {
            return Err(Problem {
                retry_after: Some(1),
                ..Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too_many",
                    "too many changes at once",
                    "wait as long as Retry-After says; POST /api/v1/jobs/batch adds many jobs in one",
                )
            });
        }
        *left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::auth::Role;

    #[test]
    fn a_caller_who_asks_for_too_much_waits_and_keeps_nobody_else_waiting() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let rate = Rate::new(clock.clone(), 5, 2);
        let caller = |number| Caller {
            role: Role::Operator,
            number,
        };
        for _ in 0..10 {
            rate.take(caller(0)).unwrap();
        }
        let refused = rate.take(caller(0)).unwrap_err();
        assert_eq!(
            (refused.status.as_u16(), refused.retry_after),
            (429, Some(1))
        );
        rate.take(caller(1)).unwrap();
        clock.advance(Duration::from_secs(1)).unwrap();
        for _ in 0..5 {
            rate.take(caller(0)).unwrap();
        }
        assert!(rate.take(caller(0)).is_err());
    }
}
