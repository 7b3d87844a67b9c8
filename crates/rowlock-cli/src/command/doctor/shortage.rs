//! What a server has only so much of, where it is used up, and who has it.

use rowlock::engine::{Scarce, Shortage, Taker};

use super::server::psql;
use super::{Finding, Level, finding};
use crate::show;

/// How many of those who have it are named.
const NAMED: usize = 3;

pub fn told(shortage: &Shortage) -> Finding {
    let takers = &shortage.takers;
    let most = show::count(shortage.most);
    let (what, remedy) = match &shortage.of {
        Scarce::Places(class) => (
            format!(
                "every place of class {} is taken ({most}), and its next transaction waits: {}",
                show::text(class),
                named(shortage)
            ),
            end(takers),
        ),
        Scarce::Notifications => (
            format!(
                "the queue of notifications is {most}% full, and once it is full no enqueue that notifies commits: a \
                 session that listens has a transaction open, and the oldest are {}",
                named(shortage)
            ),
            // Which of them listens isn't to be seen: the oldest comes first.
            end(takers.get(..1).unwrap_or_default()),
        ),
        Scarce::Connections => (
            format!(
                "every connection that isn't reserved is taken ({most}), and new ones are refused: {}",
                named(shortage)
            ),
            end_idle(takers),
        ),
    };
    let hidden = takers.iter().any(|each| each.age.is_none());
    let level = match shortage.of {
        // It may have been a moment.
        Scarce::Places(_) if hidden => Level::Info,
        _ => Level::Warn,
    };
    finding("R039", level, what, remedy)
}

fn named(shortage: &Shortage) -> String {
    let takers = &shortage.takers;
    let first = takers.iter().take(NAMED);
    let mut named: Vec<String> = first.map(|each| who(shortage, each)).collect();
    if takers.len() > NAMED {
        named.push(format!("{} more", takers.len() - NAMED));
    }
    named.join(", ")
}

fn who(shortage: &Shortage, taker: &Taker) -> String {
    let (role, name) = (show::text(&taker.role), show::text(&taker.name));
    let since = match taker.age {
        Some(age) => format!(" for {}", show::span(age)),
        None => ", since when this role may not see".to_owned(),
    };
    match (taker.pid, &shortage.of) {
        (Some(pid), _) => format!("session {pid} (application {name:?}, role {role}){since}"),
        (None, Scarce::Connections) => {
            format!("{} by role {role} (application {name:?}){since}", taker.n)
        }
        (None, _) => format!("the prepared transaction {name:?} of {role}{since}"),
    }
}

fn end(takers: &[Taker]) -> String {
    let pids = takers.iter().filter_map(|each| each.pid);
    let ends: Vec<String> = pids
        .map(|pid| format!("pg_terminate_backend({pid})"))
        .collect();
    if !ends.is_empty() {
        return psql(&format!("SELECT {}", ends.join(", ")));
    }
    match takers.first() {
        Some(prepared) => psql(&format!(
            "ROLLBACK PREPARED '{}'",
            prepared.name.replace('\'', "''")
        )),
        None => psql("SELECT pid, usename, xact_start FROM pg_stat_activity ORDER BY xact_start"),
    }
}

fn end_idle(takers: &[Taker]) -> String {
    let role = takers.first().map_or("", |each| &each.role);
    psql(&format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{}' AND state = 'idle'",
        role.replace('\'', "''")
    ))
}
