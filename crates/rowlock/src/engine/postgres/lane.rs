//! Bounds: where the next claim of a lane begins. They are hints; a claim without them finds the rest.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use super::row::{Leased, Summary};
use crate::claim::{Claim, ClaimedJob};
use crate::job::{JobId, Name};

/// A row that is this young may still be overtaken by one whose commit was a little slower.
const YOUNG: Duration = Duration::from_millis(50);

/// The lanes this process has claimed from.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    bounds: HashMap<(Name, Name, i16), (Timestamp, JobId)>,
    /// How many jobs had come back to places that claims had passed, at the last claim that left nothing.
    pub(super) unsorted: i64,
    /// Up to when jobs that were set aside have been brought back.
    aside_after: Option<Timestamp>,
    /// How many claims have brought jobs back and may have left some of them.
    pub(super) left: u64,
}

fn lane(job: &ClaimedJob) -> (Name, Name, i16) {
    (job.queue.clone(), job.kind.clone(), job.priority)
}

fn is_same_lane(one: &ClaimedJob, other: &ClaimedJob) -> bool {
    (&one.queue, &one.kind, one.priority) == (&other.queue, &other.kind, other.priority)
}

/// Bounds in the form that a claim takes.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) queues: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) priorities: Vec<i16>,
    pub(super) times: Vec<Timestamp>,
    pub(super) ids: Vec<i64>,
}

impl Lanes {
    /// Jobs were brought back to places from here on.
    pub(super) fn lower(&mut self, lowest: Timestamp) {
        let before = lowest.saturating_sub(Duration::from_micros(1));
        let before = (before.unwrap_or(Timestamp::MIN), JobId(0));
        self.bounds
            .values_mut()
            .for_each(|bound| *bound = (*bound).min(before));
    }

    /// A claim went without bounds: what it has taken tells where its lanes begin now. If it left
    /// nothing, the other lanes that it has looked at begin at its time; lanes it hasn't looked at stay as
    /// they are.
    pub(super) fn swept(
        &mut self,
        wanted: &Claim,
        taken: &[Leased],
        left_nothing: bool,
        summary: &Summary,
        unsorted: i64,
    ) {
        for run in taken.chunk_by(|one, next| is_same_lane(&one.job, &next.job)) {
            self.bounds.remove(&lane(&run[0].job));
        }
        if !left_nothing {
            return;
        }
        let young = summary.now.saturating_sub(YOUNG).unwrap_or(Timestamp::MIN);
        let looked_at = |queue: &Name, kind: &Name| {
            let every_kind = wanted.kinds.is_empty() && wanted.route.is_some();
            (every_kind || wanted.kinds.contains(kind))
                && (wanted.queues.is_empty() || wanted.queues.contains(queue))
                && !wanted.caps.contains_key(queue)
                && !summary.stopped.contains(queue)
                && !summary.stopped.contains(kind)
        };
        for ((queue, kind, _), bound) in &mut self.bounds {
            if looked_at(queue, kind) {
                *bound = (young, JobId(0));
            }
        }
        // With a cap something may have been left after all.
        if wanted.caps.is_empty() {
            self.unsorted = unsorted;
        }
    }

    /// Everything before the newest job that was claimed is claimed too, or in somebody's hands. That is not so if `left` has
    /// grown since the claim was asked for: it has not seen what another one brought back.
    pub(super) fn claimed(&mut self, leased: &[Leased], now: Timestamp, left: u64) {
        if left != self.left {
            return;
        }
        let young = now.saturating_sub(YOUNG).unwrap_or(Timestamp::MIN);
        let same = |one: &Leased, next: &Leased| is_same_lane(&one.job, &next.job);
        for run in leased.chunk_by(same) {
            let newest = run.iter().filter(|one| !one.job.suspect);
            let newest = newest.map(|one| match one.ready_at < young {
                true => (one.ready_at, one.job.id),
                false => (young, JobId(0)),
            });
            let (Some(bound), Some(first)) = (newest.max(), run.first()) else {
                continue;
            };
            let held = self.bounds.entry(lane(&first.job)).or_insert(bound);
            *held = (*held).max(bound);
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let mut all = Bounds::default();
        for ((queue, kind, priority), (time, id)) in &self.bounds {
            all.queues.push(queue.as_str().to_owned());
            all.kinds.push(kind.as_str().to_owned());
            all.priorities.push(*priority);
            all.times.push(*time);
            all.ids.push(id.0);
        }
        all
    }

    /// Jobs due before a time were brought back, all of them; one whose commit was slower is found by a claim without
    /// bounds.
    pub(super) fn brought_back(&mut self, until: Timestamp, now: Timestamp) {
        let earlier = now.saturating_sub(Duration::from_secs(1));
        let until = earlier.map(|earlier| until.min(earlier));
        self.aside_after = self.aside_after.max(until.ok());
    }

    /// Where the look at what was set aside begins.
    pub(super) fn aside_after(&self) -> Timestamp {
        self.aside_after.unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(id: i64, second: i64) -> Leased {
        Leased {
            job: ClaimedJob::sample(id, 7),
            place: None,
            ready_at: Timestamp::from_second(second).unwrap(),
        }
    }

    #[test]
    fn a_claim_passes_nothing_that_another_brought_back_and_left_meanwhile() {
        let mut lanes = Lanes::default();
        let now = Timestamp::from_second(1_000).unwrap();
        // Two are asked for. The first brings back more than it takes; the second has taken what came later.
        let asked = lanes.left;
        lanes.lower(Timestamp::from_second(10).unwrap());
        lanes.claimed(&[leased(1, 10)], now, asked);
        lanes.left += 1;
        lanes.claimed(&[leased(9, 90)], now, asked);
        let bound = |lanes: &Lanes| lanes.bounds().times[0].as_second();
        assert_eq!(bound(&lanes), 10, "what was left lies behind it");
        // The next ones see all of it.
        lanes.claimed(&[leased(9, 90)], now, lanes.left);
        assert_eq!(bound(&lanes), 90);
    }
}
