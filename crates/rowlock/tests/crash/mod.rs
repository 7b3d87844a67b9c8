//! A process dies at each step of the journey; the checker judges what is left.

mod drain;
mod harness;
mod lead;

use libtest_mimic::Trial;

use self::harness::Harness;

/// Who gets to a crash point, and so dies there.
#[derive(Debug, Clone, Copy)]
pub enum Who {
    /// Whoever brings the schema up to date.
    Migrator,
    Producer,
    /// A worker beside jobs of one that was killed before.
    Worker,
    /// A worker that was asked to stop.
    Leaver,
    /// Whoever removes what is over.
    Pruner,
    /// Whoever turns rows and calendars into jobs.
    Leader,
    /// Whoever sends jobs on and collects what becomes of them.
    Drain,
}

/// Steps inside a transaction of ours: a server's own are one call, which happens or doesn't.
const IN_A_FILE_ONLY: &[&str] = &[
    "stage.written",
    "write.committed",
    "claim.written",
    "heartbeat.beaten",
    "settle.written",
    "expire.given_back",
    "leave.released",
    "prune.written",
];

/// Every crash point of the library has its line here.
pub const POINTS: &[(&str, Who)] = &[
    ("migrate.applied", Who::Migrator),
    ("migrate.written", Who::Migrator),
    ("migrate.committed", Who::Migrator),
    ("stage.written", Who::Producer),
    ("stage.committed", Who::Producer),
    ("write.committed", Who::Producer),
    ("join.committed", Who::Worker),
    ("claim.written", Who::Worker),
    ("claim.committed", Who::Worker),
    ("run.began", Who::Worker),
    ("run.ended", Who::Worker),
    ("suspect.committed", Who::Worker),
    ("heartbeat.beaten", Who::Worker),
    ("heartbeat.committed", Who::Worker),
    ("settle.written", Who::Worker),
    ("settle.committed", Who::Worker),
    ("expire.found", Who::Worker),
    ("expire.given_back", Who::Worker),
    ("expire.committed", Who::Worker),
    ("leave.released", Who::Leaver),
    ("leave.committed", Who::Leaver),
    ("prune.written", Who::Pruner),
    ("prune.committed", Who::Pruner),
    ("lead.committed", Who::Leader),
    ("lead.taken", Who::Leader),
    ("tick.staged", Who::Leader),
    ("tick.between", Who::Leader),
    ("tick.recorded", Who::Leader),
    ("cron.committed", Who::Leader),
    ("drain.beaten", Who::Drain),
    ("drain.claimed", Who::Drain),
    ("drain.sending", Who::Drain),
    ("drain.sent", Who::Drain),
    ("drain.reported", Who::Drain),
    ("drain.settled", Who::Drain),
    ("drain.forgotten", Who::Drain),
    ("drain.adopted", Who::Drain),
    ("drain.buried", Who::Drain),
];

fn case(point: &str) -> String {
    format!("crash::dying_at_{}_loses_nothing", point.replace('.', "_"))
}

/// The names of the cases, without an engine.
pub fn names() -> impl Iterator<Item = String> {
    POINTS.iter().map(|(point, _)| case(point))
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (engine, home) in crate::conformance::engines() {
        for (point, who) in POINTS {
            if engine != "sqlite" && IN_A_FILE_ONLY.contains(point) {
                continue;
            }
            let name = format!("{engine}::{}", case(point));
            trials.push(Trial::test(name, move || {
                match who {
                    Who::Leader => lead::dies_leading(&*home(), point),
                    Who::Drain => drain::dies_draining(home(), point),
                    _ => Harness::new(home(), point).run(*who),
                }
                Ok(())
            }));
        }
    }
    trials
}
