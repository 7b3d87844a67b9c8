//! One sentence on how things go, with the reason and what to do about it.

use std::time::Duration;

use rowlock::reconcile;
use rowlock::switch::{Mode, Target};

use super::live::{Seen, due};
use super::words::{count, span};
use crate::show;

/// A job may be due for so long before somebody asks why.
pub const LATE: f64 = 60.0;
/// A worker that wasn't heard for so many leases is gone.
const LEASES: u32 = 3;
/// How far back failures count, and from which share and number on.
const LATELY: Duration = Duration::from_secs(300);
const SHARE: f64 = 0.1;
const SOME: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Flowing,
    Degraded,
    Stalled,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flowing => "flowing",
            Self::Degraded => "degraded",
            Self::Stalled => "stalled",
        }
    }
}

/// Why it isn't flowing.
#[derive(Debug)]
pub struct Reason {
    level: Level,
    /// How many jobs it is about, as far as anybody knows: what is about most is told first.
    jobs: u64,
    pub words: String,
    pub remedy: String,
    /// Where to look.
    pub page: String,
}

#[derive(Debug)]
pub struct Verdict {
    pub level: Level,
    pub reasons: Vec<Reason>,
}

impl Verdict {
    /// `work` is what to type to start a worker.
    pub fn of(seen: &Seen, work: &str, now: jiff::Timestamp) -> Self {
        let mut reasons = Vec::new();
        if let Some(why) = &seen.problem {
            reasons.push(Reason {
                level: Level::Stalled,
                jobs: u64::MAX,
                words: format!("the store can't be read: {why}"),
                remedy: "see that the database runs and that this process may reach it".into(),
                page: "/health".into(),
            });
        }
        waiting(seen, work, now, &mut reasons);
        held(seen, &mut reasons);
        pairs(seen, &mut reasons);
        given_up(seen, &mut reasons);
        reasons.sort_by_key(|reason| std::cmp::Reverse((reason.level, reason.jobs)));
        let level = reasons.first().map_or(Level::Flowing, |first| first.level);
        Self { level, reasons }
    }
}

/// Queues that are stopped or late.
fn waiting(seen: &Seen, work: &str, now: jiff::Timestamp, reasons: &mut Vec<Reason>) {
    let alive = seen
        .workers
        .iter()
        .filter(|worker| show::between(worker.seen_at, now) < worker.lease * LEASES)
        .count();
    for (name, queue) in &seen.queues {
        let counts = &queue.counts;
        let oldest = seen.late(name, counts).unwrap_or_default();
        let page = format!("/jobs?state=pending&queue={name}");
        if seen.is_stopped(name) && counts.pending > 0 {
            let words = match counts.pending {
                1 => format!("queue {name} is stopped, and a job waits"),
                many => format!("queue {name} is stopped, and {} jobs wait", count(many)),
            };
            reasons.push(Reason {
                level: Level::Degraded,
                jobs: counts.pending,
                words,
                remedy: "resume it when it may go on".into(),
                page: "/queues".into(),
            });
        } else if oldest > LATE && alive == 0 {
            let words = format!(
                "jobs in {name} have been due for {} and no worker is there",
                span(oldest)
            );
            reasons.push(Reason {
                level: Level::Stalled,
                jobs: due(counts),
                words,
                remedy: work.to_owned(),
                page,
            });
        } else if oldest > LATE {
            reasons.push(Reason {
                level: Level::Degraded,
                jobs: due(counts),
                words: format!("jobs in {name} start {} late", span(oldest)),
                remedy: "add workers, or see that one of them knows the kind".into(),
                page,
            });
        }
    }
}

/// Kinds of which somebody has stopped the jobs that wait.
fn held(seen: &Seen, reasons: &mut Vec<Reason>) {
    if seen.total.held == 0 {
        return;
    }
    for switch in seen.switches.iter().filter(|on| on.target == Target::Kind) {
        let how = match switch.mode {
            Mode::Hold => "on hold",
            Mode::Pause => "paused",
            Mode::Reject => continue,
        };
        reasons.push(Reason {
            level: Level::Degraded,
            jobs: seen.total.held,
            words: format!("kind {} is {how}", switch.name),
            remedy: "clear its switch when it may go on".into(),
            page: "/switches".into(),
        });
    }
}

/// Pairs that don't tick, or of which ticks leave keys alone.
fn pairs(seen: &Seen, reasons: &mut Vec<Reason>) {
    for row in &seen.pairs {
        let name = &row.pair.name;
        let (jobs, words, remedy) = if row.switch.is_some() {
            (
                row.found,
                format!("pair {name} is stopped: rows that need work may wait unseen"),
                "let it go on when it may",
            )
        } else if let Some(late) = reconcile::stale(row) {
            (
                row.found,
                format!("pair {name} is overdue by {}", show::span(late)),
                "see its last error, and that a worker with it runs",
            )
        } else if row.held_back > 0 {
            let keys = if row.held_back == 1 { "key" } else { "keys" };
            (
                row.held_back,
                format!("pair {name} holds {} {keys} back", count(row.held_back)),
                "see why their jobs failed or changed nothing, then lift them",
            )
        } else {
            continue;
        };
        reasons.push(Reason {
            level: Level::Degraded,
            jobs,
            words,
            remedy: remedy.into(),
            page: format!("/pairs/{name}"),
        });
    }
}

/// Queues in which many of the last jobs were given up; if it is none of them alone, all together.
fn given_up(seen: &Seen, reasons: &mut Vec<Reason>) {
    let is_many = |completed: u64, failed: u64| {
        failed >= SOME && failed as f64 > (completed + failed) as f64 * SHARE
    };
    let mut add = |completed: u64, failed: u64, of: String, page: String| {
        reasons.push(Reason {
            level: Level::Degraded,
            jobs: failed,
            words: format!(
                "{} of the last {} jobs{of} were given up",
                show::count(failed),
                show::count(completed + failed)
            ),
            remedy: "read their errors, mend what they name, then retry them".into(),
            page,
        });
    };
    let mut told = false;
    for name in seen.queues.keys() {
        let (completed, failed) = seen.ended_in(name, LATELY);
        if is_many(completed, failed) {
            let page = format!("/jobs?state=failed&queue={name}");
            add(completed, failed, format!(" in {name}"), page);
            told = true;
        }
    }
    let (completed, failed) = seen.ended(LATELY);
    let (completed, failed) = (completed.round() as u64, failed.round() as u64);
    if !told && is_many(completed, failed) {
        let page = "/jobs?state=failed".to_owned();
        add(completed, failed, String::new(), page);
    }
}

#[cfg(test)]
mod tests {
    use rowlock::Name;
    use rowlock::engine::browse::{Capped, Glance};
    use rowlock::switch::Switch;

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Queues with their completed and failed jobs, and how many are held.
    fn glance(queues: &[(&str, u64, u64, u64)]) -> Glance {
        let queue = |(queue, completed, failed, held): &(&str, u64, u64, u64)| {
            let mut capped = Capped::default();
            (capped.counts.completed, capped.counts.failed) = (*completed, *failed);
            (capped.counts.pending, capped.counts.held) = (*held, *held);
            (name(queue), capped)
        };
        queues.iter().map(queue).collect()
    }

    fn switch(target: Target, of: &str, mode: Mode) -> Switch {
        Switch {
            target,
            name: name(of),
            mode,
            reason: None,
            by: None,
            until: None,
            rejected: 0,
        }
    }

    fn told(seen: &Seen) -> Vec<String> {
        let verdict = Verdict::of(seen, "rowlock work", jiff::Timestamp::UNIX_EPOCH);
        verdict.reasons.into_iter().map(|why| why.words).collect()
    }

    #[test]
    fn what_concerns_most_jobs_is_told_first() {
        let mut seen = Seen::default();
        let at = Duration::from_secs;
        seen.take(
            at(10),
            glance(&[("imports", 0, 0, 1), ("mail", 0, 0, 40)]),
            None,
        );
        assert_eq!(told(&seen), [""; 0], "nobody has stopped anything");
        seen.switches = vec![
            switch(Target::Queue, "imports", Mode::Pause),
            switch(Target::Kind, "newsletter", Mode::Hold),
            switch(Target::Kind, "report", Mode::Reject),
        ];
        let words = [
            "kind newsletter is on hold",
            "queue imports is stopped, and a job waits",
        ];
        assert_eq!(told(&seen), words);
    }

    #[test]
    fn a_queue_that_fails_is_not_hidden_by_the_others() {
        let mut seen = Seen::default();
        let at = Duration::from_secs;
        seen.take(
            at(10),
            glance(&[("billing", 5, 1, 0), ("mail", 100, 0, 0)]),
            None,
        );
        seen.take(
            at(13),
            glance(&[("billing", 9, 5, 0), ("mail", 900, 0, 0)]),
            None,
        );
        assert_eq!(
            told(&seen),
            ["4 of the last 8 jobs in billing were given up"]
        );
        seen.take(
            at(400),
            glance(&[("billing", 9, 5, 0), ("mail", 900, 0, 0)]),
            None,
        );
        assert_eq!(told(&seen), [""; 0], "that is over");
    }

    #[test]
    fn a_few_failures_in_each_queue_are_many_together() {
        let mut seen = Seen::default();
        let at = Duration::from_secs;
        seen.take(
            at(10),
            glance(&[("billing", 5, 1, 0), ("mail", 9, 0, 0)]),
            None,
        );
        seen.take(
            at(13),
            glance(&[("billing", 6, 3, 0), ("mail", 10, 2, 0)]),
            None,
        );
        assert_eq!(told(&seen), ["4 of the last 6 jobs were given up"]);
    }
}
