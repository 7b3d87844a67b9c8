//! A worker's pulse: whether its heartbeat is answered and nothing of it is missing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Elapsed};

/// Keep a clone of a worker's and ask it.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: Last,
    /// Tasks that keep panicking, and how many of each name are down now.
    lacking: BTreeMap<&'static str, usize>,
}

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
        let pulse = Self::default();
        pulse.note(Last::Nobody);
        pulse
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
        let mut state = self.state();
        if !matches!(state.last, Last::Failed(_)) {
            state.last = Last::Left;
        }
    }

    /// A task keeps panicking and is down for now.
    pub(crate) fn lacks(&self, task: &'static str) {
        *self.state().lacking.entry(task).or_default() += 1;
    }

    /// Such a task was started again.
    pub(crate) fn has(&self, task: &'static str) {
        let mut state = self.state();
        let left = state.lacking.get(task).map_or(0, |down| down - 1);
        match left {
            0 => state.lacking.remove(task),
            down => state.lacking.insert(task, down),
        };
    }

    fn note(&self, last: Last) {
        self.state().last = last;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the last heartbeat was answered, not longer ago than a lease, and no task of the worker is down.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn check(&self, clock: &Clock) -> Result<(), String> {
        let state = self.state();
        let lacking = state.lacking.first_key_value();
        #[cfg(feature = "test-hooks")]
        let lacking = lacking.filter(|_| !crate::hooks::switched_off("ready.lacking"));
        if let Some((task, down)) = lacking {
            return Err(format!(
                "a task keeps panicking and is not replaced: {task} ({down} down)"
            ));
        }
        match &state.last {
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

    #[test]
    fn a_pulse_is_bad_while_a_task_is_down() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let pulse = Pulse::of_nobody();
        pulse.lacks("slot");
        pulse.lacks("slot");
        assert!(pulse.check(&clock).unwrap_err().contains("slot (2 down)"));
        pulse.has("slot");
        assert!(pulse.check(&clock).unwrap_err().contains("slot (1 down)"));
        pulse.has("slot");
        assert_eq!(pulse.check(&clock), Ok(()));
    }
}
