//! Who is dead, from everything the observer has ever seen.

use std::collections::BTreeMap;
use std::time::Duration;

use rowlock::claim::WorkerId;

/// One look at all counters.
#[derive(Debug)]
struct Sample {
    at: Duration,
    beats: BTreeMap<WorkerId, u64>,
}

#[derive(Debug, Default)]
pub struct Silence {
    beats: BTreeMap<WorkerId, u64>,
    samples: Vec<Sample>,
}

impl Silence {
    pub fn beat(&mut self, worker: &WorkerId) {
        *self.beats.entry(worker.clone()).or_default() += 1;
    }

    /// Takes a sample of the living and names the dead.
    pub fn sample<'a>(
        &mut self,
        at: Duration,
        living: impl Iterator<Item = &'a WorkerId>,
        lease: Duration,
    ) -> Vec<WorkerId> {
        let count = |worker: &WorkerId| self.beats.get(worker).copied().unwrap_or_default();
        let beats: BTreeMap<_, _> = living.map(|who| (who.clone(), count(who))).collect();
        self.samples.push(Sample { at, beats });
        let latest = &self.samples[self.samples.len() - 1].beats;
        let dead = |who: &&WorkerId| self.silent_for(who) >= lease;
        latest.keys().filter(dead).cloned().collect()
    }

    /// How far back the samples go that all saw the same counter, none of them long after the one
    /// before.
    fn silent_for(&self, worker: &WorkerId) -> Duration {
        let longest_gap = crate::conformance::world::LEASE / 3;
        let mut later = self.samples.iter().rev();
        let Some(latest) = later.next() else {
            return Duration::ZERO;
        };
        let mut since = latest.at;
        for sample in later {
            let same = sample.beats.get(worker) == latest.beats.get(worker);
            if !same || since - sample.at > longest_gap {
                break;
            }
            since = sample.at;
        }
        latest.at - since
    }
}
