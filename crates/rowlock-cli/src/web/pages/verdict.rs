//! One sentence on how things go, with the reason and what to do about it.

use std::time::Duration;

use rowlock::reconcile;

use super::live::Seen;
use super::words::{count, span};
use crate::open::Setup;
use crate::show;

/// A job may be due for so long before somebody asks why.
const LATE: f64 = 60.0;
/// A worker that wasn't heard for so many leases is gone.
const LEASES: u32 = 3;
/// How far back failures count, and from which share and number on.
const LATELY: Duration = Duration::from_secs(300);
const SHARE: f64 = 0.1;
const SOME: f64 = 3.0;

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
    pub fn of(seen: &Seen, setup: &Setup, now: jiff::Timestamp) -> Self {
        let mut reasons = Vec::new();
        let mut add = |level, words: String, remedy: String, page: String| {
            reasons.push(Reason {
                level,
                words,
                remedy,
                page,
            });
        };
        if let Some(why) = &seen.problem {
            let remedy = "see that the database runs and that this process may reach it";
            let words = format!("the store can't be read: {why}");
            add(Level::Stalled, words, remedy.to_owned(), "/health".into());
        }
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
                let remedy = "resume it when it may go on".to_owned();
                add(Level::Degraded, words, remedy, "/queues".into());
            } else if oldest > LATE && alive == 0 {
                let words = format!(
                    "jobs in {name} have been due for {} and no worker is there",
                    span(oldest)
                );
                add(Level::Stalled, words, setup.line("work"), page);
            } else if oldest > LATE {
                let words = format!("jobs in {name} start {} late", span(oldest));
                let remedy = "add workers, or see that one of them knows the kind".to_owned();
                add(Level::Degraded, words, remedy, page);
            }
        }
        for row in &seen.pairs {
            let (name, page) = (&row.pair.name, format!("/pairs/{}", row.pair.name));
            if row.switch.is_some() {
                let words = format!("pair {name} is stopped: rows that need work may wait unseen");
                add(
                    Level::Degraded,
                    words,
                    "let it go on when it may".into(),
                    page,
                );
            } else if let Some(late) = reconcile::stale(row) {
                let words = format!("pair {name} is overdue by {}", show::span(late));
                let remedy = "see its last error, and that a worker with it runs".to_owned();
                add(Level::Degraded, words, remedy, page);
            }
        }
        let (completed, failed) = seen.ended(LATELY);
        if failed >= SOME && failed > (completed + failed) * SHARE {
            let words = format!(
                "{} of the last {} jobs were given up",
                show::count(failed.round() as u64),
                show::count((completed + failed).round() as u64)
            );
            let remedy = "read their errors, mend what they name, then retry them".to_owned();
            add(Level::Degraded, words, remedy, "/jobs?state=failed".into());
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let level = reasons.first().map_or(Level::Flowing, |first| first.level);
        Self { level, reasons }
    }
}
