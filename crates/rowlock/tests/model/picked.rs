//! Whether a claim took what it should: order is promised only in part, so this is a judge and not
//! a prediction.

use std::collections::BTreeSet;

use rowlock::claim::Claimed;
use rowlock::{JobId, JobState};

use super::life::same;
use super::machine::{Job, Machine};
use super::operation::KINDS;

/// What a worker asks for.
pub struct Wish {
    pub kinds: Vec<&'static str>,
    pub queue: Option<&'static str>,
    pub limit: usize,
    pub suspect: bool,
}

impl Wish {
    /// Suspects are claimed alone.
    pub fn suspect() -> Self {
        Self {
            kinds: KINDS.to_vec(),
            queue: None,
            limit: 1,
            suspect: true,
        }
    }

    /// Whether it would be taken once it is due.
    fn wants(&self, job: &Job, machine: &Machine) -> bool {
        job.state == JobState::Pending
            && job.suspect == self.suspect
            && self.kinds.contains(&job.kind)
            && self.queue.is_none_or(|queue| queue == job.queue)
            && !machine.paused.contains(job.queue)
    }
}

pub fn picked_well(machine: &Machine, wish: &Wish, claimed: &Claimed) -> Result<(), String> {
    let wanted = machine
        .jobs
        .iter()
        .filter(|(_, job)| wish.wants(job, machine));
    let (due, later): (Vec<_>, Vec<_>) = wanted.partition(|(_, job)| job.due <= machine.now);
    let taken: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
    let set: BTreeSet<JobId> = taken.iter().copied().collect();
    let due_ids: BTreeSet<JobId> = due.iter().map(|(id, _)| **id).collect();
    if set.len() != taken.len() || !set.is_subset(&due_ids) {
        return Err(format!(
            "a claim\n  took {taken:?}\n  of the due {due_ids:?}"
        ));
    }
    same("jobs claimed", taken.len(), due.len().min(wish.limit))?;
    for job in &claimed.jobs {
        same("the suspect's mark", job.suspect, wish.suspect)?;
    }
    for id in &taken {
        let job = &machine.jobs[id];
        for (left, other) in due.iter().filter(|(id, _)| !set.contains(id)) {
            if goes_first((**left, other), (*id, job)) {
                return Err(format!("job {left} was left and {id} was taken: {job:?}"));
            }
        }
    }
    for (n, id) in taken.iter().enumerate() {
        for later in &taken[n..] {
            let (one, other) = (&machine.jobs[id], &machine.jobs[later]);
            if goes_first((*later, other), (*id, one)) {
                return Err(format!("job {id} came before {later}: {taken:?}"));
            }
        }
    }
    if taken.len() < wish.limit {
        let next = later.iter().map(|(_, job)| job.due).min();
        same("when the next job is due", claimed.next_due, next)?;
    }
    Ok(())
}

/// Priority is strict within a queue; a lane is taken by due time, then id.
fn goes_first((id, job): (JobId, &Job), (other_id, other): (JobId, &Job)) -> bool {
    if job.queue != other.queue {
        return false;
    }
    let same_lane = job.kind == other.kind && job.priority == other.priority;
    job.priority > other.priority || (same_lane && (job.due, id) < (other.due, other_id))
}
