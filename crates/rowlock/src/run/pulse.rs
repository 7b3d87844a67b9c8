//! A worker's pulse: whether its heartbeat is answered, for whoever asks from outside.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Elapsed};

/// Keep a clone of a worker's and ask it.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Mutex<Last>>);

#[derive(Debug, Default)]
enum Last {
    #[default]
    Never,
    /// There is no worker.
    Nobody,
    Answered(Elapsed, Duration),
    Failed(String),
    Left,
}

impl Pulse {
    /// The pulse of a process without a worker: it lacks nothing.
    #[must_use]
    pub fn of_nobody() -> Self {
        Self(Arc::new(Mutex::new(Last::Nobody)))
    }

    /// A join or a heartbeat was answered; it is good for `lease`.
    pub(crate) fn answered(&self, now: Elapsed, lease: Duration) {
        self.note(Last::Answered(now, lease));
    }

    /// A heartbeat was not answered.
    pub(crate) fn failed(&self, why: &str) {
        self.note(Last::Failed(why.to_owned()));
    }

    /// The worker beats no more. If a failure was the reason, that is the better answer.
    pub(crate) fn left(&self) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*last, Last::Failed(_)) {
            *last = Last::Left;
        }
    }

    fn note(&self, last: Last) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// Whether the last heartbeat was answered, and not longer ago than a lease.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn check(&self, clock: &Clock) -> Result<(), String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Last::Nobody => Ok(()),
            Last::Never => Err("the worker has not joined yet".to_owned()),
            Last::Left => Err("the worker has left".to_owned()),
            Last::Failed(why) => Err(format!("the last heartbeat failed: {why}")),
            Last::Answered(at, lease) => {
                let silent = clock.elapsed().saturating_sub(*at);
                if silent <= *lease {
                    return Ok(());
                }
                let (silent, lease) = (silent.as_secs(), lease.as_secs());
                Err(format!(
                    "no heartbeat was answered for {silent} s, the lease is {lease} s"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_is_good_from_the_join_until_a_beat_fails_or_a_lease_has_passed() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let (pulse, lease) = (Pulse::default(), Duration::from_secs(30));
        assert!(pulse.check(&clock).unwrap_err().contains("not joined"));
        pulse.answered(clock.elapsed(), lease);
        clock.advance(lease).unwrap();
        assert_eq!(pulse.check(&clock), Ok(()));
        clock.advance(Duration::from_secs(1)).unwrap();
        assert!(pulse.check(&clock).unwrap_err().contains("for 31 s"));
        pulse.answered(clock.elapsed(), lease);
        pulse.failed("gone");
        assert!(pulse.check(&clock).unwrap_err().ends_with("gone"));
        pulse.left();
        assert!(pulse.check(&clock).unwrap_err().ends_with("gone"));
        pulse.answered(clock.elapsed(), lease);
        assert_eq!(pulse.check(&clock), Ok(()));
    }
}
