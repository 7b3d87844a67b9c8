//! Which lanes are longer than anybody counts, remembered from one look to the next.

use std::sync::Mutex;
use std::time::Duration;

use super::lock;
use crate::clock::Elapsed;

/// After this a lane is counted anew: jobs in its middle may have been called off by another process.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// Jobs that had as many behind them as are counted. Claims take a lane's jobs in turn, so while such a job waits
/// there is nothing to count.
#[derive(Debug, Default)]
pub(super) struct Deep(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    jobs: Vec<i64>,
    counted: Elapsed,
    /// How often all was forgotten.
    turn: u64,
}

/// What one look begins with.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) jobs: Vec<i64>,
    counted: Elapsed,
    turn: u64,
}

impl Deep {
    /// What is known still.
    pub(super) fn begin(&self, now: Elapsed) -> Begun {
        let known = lock(&self.0);
        let old = known.jobs.is_empty() || now.saturating_sub(known.counted) >= GOOD_FOR;
        let (jobs, counted) = match old {
            true => (Vec::new(), now),
            false => (known.jobs.clone(), known.counted),
        };
        let turn = known.turn;
        Begun {
            jobs,
            counted,
            turn,
        }
    }

    /// What the look found, unless it began before something was forgotten.
    pub(super) fn found(&self, begun: &Begun, jobs: Vec<i64>) {
        let mut known = lock(&self.0);
        if known.turn == begun.turn {
            (known.jobs, known.counted) = (jobs, begun.counted);
        }
    }

    /// This process has taken jobs out of lanes: whoever asked for that wants to see it.
    pub(super) fn forget(&self) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("glance.forget") {
            return;
        }
        let mut known = lock(&self.0);
        known.jobs.clear();
        known.turn += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_look_from_before_a_change_is_not_remembered_after_it() {
        let (deep, clock) = (Deep::default(), Clock::manual(jiff::Timestamp::UNIX_EPOCH));
        let begun = deep.begin(clock.elapsed());
        deep.found(&begun, vec![7]);
        assert_eq!(deep.begin(clock.elapsed()).jobs, [7]);
        let begun = deep.begin(clock.elapsed());
        deep.forget();
        deep.found(&begun, vec![7]);
        assert!(deep.begin(clock.elapsed()).jobs.is_empty());
    }

    #[test]
    fn what_was_counted_long_ago_is_counted_anew_however_often_it_was_seen_since() {
        let (deep, clock) = (Deep::default(), Clock::manual(jiff::Timestamp::UNIX_EPOCH));
        for passed in 0..10 {
            let begun = deep.begin(clock.elapsed());
            assert_eq!(begun.jobs.is_empty(), passed == 0, "{passed} s");
            deep.found(&begun, vec![7]);
            clock.advance(Duration::from_secs(1)).unwrap();
        }
        assert!(deep.begin(clock.elapsed()).jobs.is_empty());
    }
}
