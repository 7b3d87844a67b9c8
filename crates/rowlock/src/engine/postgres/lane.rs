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
    unsorted: i64,
    /// Up to when jobs that were set aside have been brought back.
    aside_after: Option<Timestamp>,
    /// How many claims have brought jobs back, of which they may have left some.
    brought: u64,
}

/// What a claim is asked with: whatever comes back after that it has not seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) unsorted: i64,
    brought: u64,
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
    pub(super) fn seen(&self) -> Seen {
        Seen {
            unsorted: self.unsorted,
            brought: self.brought,
        }
    }

    /// A claim was answered: what it has taken, and whether that is all it was asked for.
    pub(super) fn answered(
        &mut self,
        wanted: &Claim,
        (taken, is_full): (&[Leased], bool),
        summary: &Summary,
        seen: Seen,
    ) {
        if let Some(lowest) = summary.lowest {
            self.lower(lowest);
        }
        if let Some(furthest) = summary.furthest {
            self.brought_back(furthest, summary.now);
        }
        // What another one has brought back meanwhile lies behind this one's back: no bound may pass it.
        let saw_all = seen.brought == self.brought;
        if summary.swept {
            self.swept(wanted, taken, saw_all && !is_full, summary);
        }
        if saw_all {
            self.claimed(taken, summary.now);
        }
        if summary.lowest.is_some() {
            self.brought += 1;
        }
    }

    /// Jobs were brought back to places from here on.
    fn lower(&mut self, lowest: Timestamp) {
        let before = lowest.saturating_sub(Duration::from_micros(1));
        let before = (before.unwrap_or(Timestamp::MIN), JobId(0));
        self.bounds
            .values_mut()
            .for_each(|bound| *bound = (*bound).min(before));
    }

    /// A claim went without bounds: what it has taken tells where its lanes begin now. If it left
    /// nothing, the other lanes that it has looked at begin at its time; lanes it hasn't looked at stay as
    /// they are.
    fn swept(&mut self, wanted: &Claim, taken: &[Leased], left_nothing: bool, summary: &Summary) {
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
            self.unsorted = summary.unsorted.unwrap_or(self.unsorted);
        }
    }

    /// Everything before the newest job that was claimed is claimed too, or in somebody's hands.
    fn claimed(&mut self, leased: &[Leased], now: Timestamp) {
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
    use crate::claim::{QueueOrder, WorkerId};
    use crate::job::Token;

    fn leased(id: i64, second: i64) -> Leased {
        Leased {
            job: ClaimedJob::sample(id, 7),
            place: None,
            ready_at: at(second),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wanted() -> Claim {
        Claim {
            worker: WorkerId::random("me").unwrap(),
            token: Token::stored(7),
            kinds: vec![leased(1, 1).job.kind],
            queues: Vec::new(),
            order: QueueOrder::default(),
            limit: 1,
            caps: Default::default(),
            suspect: false,
            thorough: false,
            route: None,
        }
    }

    fn summary() -> Summary {
        Summary {
            next_due: None,
            now: at(1_000),
            look_aside: false,
            suspects: false,
            swept: false,
            unsorted: None,
            stopped: Vec::new(),
            store: None,
            lowest: None,
            furthest: None,
        }
    }

    fn bound(lanes: &Lanes) -> i64 {
        lanes.bounds().times[0].as_second()
    }

    /// Two are asked for. The first brings back more than it takes; the second has not seen that.
    fn meanwhile(second: (&[Leased], bool), answer: &Summary) -> Lanes {
        let mut lanes = Lanes::default();
        let asked = lanes.seen();
        let brought = Summary {
            lowest: Some(at(10)),
            ..summary()
        };
        lanes.answered(&wanted(), (&[leased(1, 10)], true), &brought, asked);
        lanes.answered(&wanted(), second, answer, asked);
        lanes
    }

    #[test]
    fn a_claim_passes_nothing_that_another_brought_back_and_left_meanwhile() {
        let mut lanes = meanwhile((&[leased(9, 90)], true), &summary());
        assert_eq!(bound(&lanes), 10, "what was left lies behind it");
        // The next ones see all of it.
        let asked = lanes.seen();
        lanes.answered(&wanted(), (&[leased(9, 90)], true), &summary(), asked);
        assert_eq!(bound(&lanes), 90);
    }

    #[test]
    fn a_claim_without_bounds_that_left_nothing_passes_nothing_of_another_either() {
        let swept = Summary {
            swept: true,
            ..summary()
        };
        let mut lanes = meanwhile((&[], false), &swept);
        assert_eq!(bound(&lanes), 10);
        let asked = lanes.seen();
        lanes.answered(&wanted(), (&[], false), &swept, asked);
        assert_eq!(bound(&lanes), 999);
    }
}
