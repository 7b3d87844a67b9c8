//! What only a PostgreSQL server can have.

use anyhow::Result;
use rowlock::Error;
use rowlock::engine::postgres::{Address, notifications_arrive, schema_version};
use rowlock::engine::{Blocker, Health, Holder};

use super::{Finding, Level, finding};
use crate::open::Setup;
use crate::show;

/// How many missing rights are named.
const RIGHTS: usize = 3;

pub async fn schema(setup: &Setup, address: &Address) -> Result<Option<Finding>> {
    let error = |what: String, remedy| finding("R002", Level::Error, what, remedy);
    Ok(match schema_version(address).await {
        Ok(version) if version.stored == 0 => None,
        Ok(version) if version.stored < version.latest => Some(error(
            format!(
                "the database has schema {}, this rowlock needs {}",
                version.stored, version.latest
            ),
            setup.line("migrate up"),
        )),
        Ok(_) => None,
        Err(Error::Schema(why)) => Some(error(why, setup.line("migrate status"))),
        Err(why) => return Err(why.into()),
    })
}

pub async fn look(setup: &Setup, address: &Address, health: &Health) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    if let Some(ahead) = health.clock_ahead {
        let what = format!(
            "the server's clock is {} {} this machine's",
            show::span(ahead.unsigned_abs()),
            if ahead.is_positive() {
                "ahead of"
            } else {
                "behind"
            },
        );
        let remedy = "timedatectl set-ntp true".to_owned();
        found.push(finding("R010", Level::Warn, what, remedy));
    }
    found.extend(rights(setup, &health.missing_rights));
    let schema = address.schema.as_str();
    found.extend(health.blockers.iter().map(blocked));
    for (name, highest, latest) in &health.sequences_behind {
        let what = format!(
            "the sequence {schema}.{name} is at {latest}, and {highest} is stored already, as after a \
             copy without sequences"
        );
        let remedy = psql(&format!("SELECT setval('{schema}.{name}', {highest})"));
        found.push(finding("R013", Level::Error, what, remedy));
    }
    if let Some(isolation) = &health.isolation {
        let what = format!(
            "transactions are {} by default: the ring can't be turned in one, and enqueues fail more often",
            isolation.to_uppercase()
        );
        let remedy =
            psql("ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'read committed'");
        found.push(finding("R014", Level::Warn, what, remedy));
    }
    found.extend(health.published.iter().map(|(name, remedy)| {
        let what = format!(
            "publication {name:?} has the ring: each step of each job is decoded and sent to its subscribers, and a \
             slot keeps the log until they have it"
        );
        finding("R035", Level::Info, what, psql(remedy))
    }));
    if !notifications_arrive(address).await? {
        let what = "notifications don't arrive, as behind a pooler that hands out a connection per \
                    transaction: idle workers look for work every [worker] poll";
        let remedy =
            "a URL that leads past the pooler, for workers that must start at once".to_owned();
        found.push(finding("R015", Level::Info, what, remedy));
    }
    Ok(found)
}

fn rights(setup: &Setup, missing: &[String]) -> Option<Finding> {
    if missing.is_empty() {
        return None;
    }
    let named = missing.iter().take(RIGHTS).cloned().collect::<Vec<_>>();
    let more = match missing.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!(
        "this role can't do what a worker does, it lacks {}{more}",
        named.join(", ")
    );
    let remedy = format!("{} --run", setup.line("migrate roles"));
    Some(finding("R011", Level::Warn, what, remedy))
}

fn blocked(blocker: &Blocker) -> Finding {
    let age = match blocker.age {
        Some(age) => format!("for {}", show::span(age)),
        None => "for a while".to_owned(),
    };
    let (who, remedy) = match &blocker.holder {
        Holder::Session { pid, application } => (
            format!("session {pid} (application {application:?})"),
            psql(&format!("SELECT pg_terminate_backend({pid})")),
        ),
        Holder::Prepared(name) => (
            format!("the prepared transaction {name:?}"),
            psql(&format!("ROLLBACK PREPARED '{}'", name.replace('\'', "''"))),
        ),
    };
    let what = format!(
        "{who} has held a lock on job_{} {age}: its {} can't be emptied, and the ring grows",
        blocker.segment,
        show::bytes(blocker.bytes),
    );
    finding("R012", Level::Warn, what, remedy)
}

/// A statement for whoever may run it; where, they know best. Names in it may come from anybody: a shell must
/// not read them.
pub fn psql(statement: &str) -> String {
    let mut text = String::with_capacity(statement.len());
    for c in statement.chars() {
        if matches!(c, '\\' | '"' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    format!("psql -c \"{text}\"")
}
