//! Who is dead, decided without comparing anybody's wall clock.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use super::WorkerId;
use crate::clock::Elapsed;
use crate::error::Error;

/// Watches heartbeats, of workers or of whatever else has one: a counter, or any value that changes.
/// Who is watched is dead when every sample of a whole lease saw the same one. A gap between samples
/// proves nothing about others, only that we were away ourselves.
#[derive(Debug)]
pub struct Observer<K = WorkerId, B = i64> {
    seen: HashMap<K, Seen<B>>,
}

#[derive(Debug)]
struct Seen<B> {
    beat: B,
    since: Elapsed,
    latest: Elapsed,
}

impl<K, B> Default for Observer<K, B> {
    fn default() -> Self {
        let seen = HashMap::new();
        Self { seen }
    }
}

impl Observer {
    /// How often to sample, as a share of the lease.
    pub const SAMPLES_PER_LEASE: u32 = 6;
}

impl<K: Clone + Eq + Hash, B: Copy + PartialEq> Observer<K, B> {
    /// Takes a sample and names the dead. The store was read at some moment between `asked` and
    /// `answered`: silence begins at the later one at the earliest, and lasts until the earlier one.
    pub fn sample(
        &mut self,
        (asked, answered): (Elapsed, Elapsed),
        watched: &[(K, B, Duration)],
    ) -> Vec<K> {
        let mut dead = Vec::new();
        for (who, beat, lease) in watched {
            let seen = self.seen.entry(who.clone()).or_insert(Seen {
                beat: *beat,
                since: answered,
                latest: answered,
            });
            // Whatever kept us from looking may have kept the worker from beating.
            let was_away = answered.saturating_sub(seen.latest) > *lease / 3;
            #[cfg(feature = "test-hooks")]
            let was_away = was_away && !crate::hooks::switched_off("expire.gap_starts_again");
            if was_away || seen.beat != *beat {
                seen.beat = *beat;
                seen.since = answered;
            }
            seen.latest = answered;
            if asked.saturating_sub(seen.since) >= *lease {
                dead.push(who.clone());
            }
        }
        self.seen
            .retain(|who, _| watched.iter().any(|(known, _, _)| known == who));
        dead
    }

    /// What was found dead couldn't be given up. A store that takes no writes has perhaps taken no heartbeats either: then
    /// silence begins anew.
    pub fn refused(&mut self, why: &Error) {
        if matches!(why, Error::NoSpace(_) | Error::Unreachable(_)) {
            self.seen.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn at(seconds: u64, beat: i64, observer: &mut Observer) -> bool {
        let worker = WorkerId::stored("w".to_owned());
        let now = Duration::from_secs(seconds);
        let dead = observer.sample((now, now), &[(worker, beat, LEASE)]);
        !dead.is_empty()
    }

    #[test]
    fn silence_for_a_whole_lease_in_every_sample_is_death() {
        let mut observer = Observer::default();
        for seconds in (0..30).step_by(5) {
            assert!(!at(seconds, 7, &mut observer), "at {seconds}");
        }
        assert!(at(30, 7, &mut observer));
    }

    #[test]
    fn a_store_that_takes_no_writes_proves_no_silence() {
        for (why, is_dead) in [
            (Error::NoSpace("full".to_owned()), false),
            (Error::Unreachable("read-only".to_owned()), false),
            (Error::Bug("a trigger".to_owned()), true),
        ] {
            let mut observer = Observer::default();
            for seconds in (0..30).step_by(5) {
                at(seconds, 7, &mut observer);
            }
            assert!(at(30, 7, &mut observer));
            observer.refused(&why);
            assert_eq!(at(31, 7, &mut observer), is_dead, "{why}");
        }
    }

    #[test]
    fn one_beat_starts_the_lease_again() {
        let mut observer = Observer::default();
        for seconds in (0..30).step_by(5) {
            at(seconds, 7, &mut observer);
        }
        assert!(!at(30, 8, &mut observer));
        assert!(!at(35, 8, &mut observer));
    }

    #[test]
    fn a_slow_answer_makes_no_silence_longer() {
        let mut observer = Observer::default();
        let worker = || WorkerId::stored("w".to_owned());
        let mut sample = |asked, answered| {
            let times = (Duration::from_secs(asked), Duration::from_secs(answered));
            !observer.sample(times, &[(worker(), 7, LEASE)]).is_empty()
        };
        // Read at 5 perhaps, and again at 34 perhaps.
        assert!(!sample(0, 5));
        for seconds in [10, 15, 20, 25] {
            assert!(!sample(seconds, seconds));
        }
        assert!(!sample(34, 35));
        assert!(sample(35, 40));
    }

    #[test]
    fn an_observer_that_was_away_starts_again() {
        let mut observer = Observer::default();
        for seconds in (0..30).step_by(5) {
            at(seconds, 7, &mut observer);
        }
        assert!(!at(90, 7, &mut observer), "a gap of 65 s proves nothing");
        assert!(!at(95, 7, &mut observer));
    }
}
