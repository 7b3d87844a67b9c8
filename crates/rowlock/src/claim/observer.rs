//! Who is dead, decided without comparing anybody's wall clock.

use std::collections::HashMap;
use std::time::Duration;

use super::WorkerId;
use crate::clock::Elapsed;

/// Watches heartbeat counters. A worker is dead when every sample of a whole lease saw the same
/// counter. A gap between samples proves nothing about others, only that we were away ourselves.
#[derive(Debug, Default)]
pub struct Observer {
    seen: HashMap<WorkerId, Seen>,
}

#[derive(Debug)]
struct Seen {
    beat: i64,
    since: Elapsed,
    latest: Elapsed,
}

impl Observer {
    /// How often to sample, as a share of the lease.
    pub const SAMPLES_PER_LEASE: u32 = 6;

    /// Takes a sample, read under the write lock, and names the dead.
    pub fn sample(&mut self, now: Elapsed, workers: &[(WorkerId, i64, Duration)]) -> Vec<WorkerId> {
        let mut dead = Vec::new();
        for (worker, beat, lease) in workers {
            let seen = self.seen.entry(worker.clone()).or_insert(Seen {
                beat: *beat,
                since: now,
                latest: now,
            });
            // Whoever kept us from looking may have kept the worker from beating.
            let was_away = now.saturating_sub(seen.latest) > *lease / 3;
            #[cfg(feature = "test-hooks")]
            let was_away = was_away && !crate::hooks::switched_off("expire.gap_starts_again");
            if was_away || seen.beat != *beat {
                seen.beat = *beat;
                seen.since = now;
            }
            seen.latest = now;
            if now.saturating_sub(seen.since) >= *lease {
                dead.push(worker.clone());
            }
        }
        self.seen
            .retain(|worker, _| workers.iter().any(|(known, _, _)| known == worker));
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn at(seconds: u64, beat: i64, observer: &mut Observer) -> bool {
        let worker = WorkerId::stored("w".to_owned());
        let dead = observer.sample(Duration::from_secs(seconds), &[(worker, beat, LEASE)]);
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
    fn one_beat_starts_the_lease_again() {
        let mut observer = Observer::default();
        for seconds in (0..30).step_by(5) {
            at(seconds, 7, &mut observer);
        }
        assert!(!at(30, 8, &mut observer));
        assert!(!at(35, 8, &mut observer));
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
