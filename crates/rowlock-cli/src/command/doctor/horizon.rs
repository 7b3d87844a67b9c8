//! Who pins the horizon, since when, and what it costs.

use std::time::Duration;

use anyhow::Result;
use rowlock::guard::{Class, Cost, Due, Judged, Pin, Policy, Spared, What, judge};
use rowlock::{Error, Rowlock};

use super::server::psql;
use super::{Finding, Level, finding};
use crate::command::guard::an_hour;
use crate::open::Setup;
use crate::show;

/// Of slots and standbys the server doesn't know how old what they hold is: so many transactions are too many.
const BEHIND: u64 = 10_000;

pub async fn look(setup: &Setup, rowlock: &Rowlock) -> Result<Vec<Finding>> {
    let watch = rowlock.watch();
    let policy = Policy {
        max_age: setup.config.guard().unwrap_or_default().max_age,
        ..Policy::default()
    };
    let classes: Vec<Class> = match watch.classes().await {
        Ok(classes) => classes,
        // Rights and missing tables are told by themselves.
        Err(Error::Unreachable(_) | Error::Schema(_)) => Vec::new(),
        Err(why) => return Err(why.into()),
    };
    let judged = judge(watch.pins().await?, &classes, &policy);
    let hidden = hidden(&judged);
    let long: Vec<&Judged> = judged.iter().filter(|each| is_long(each)).collect();
    if long.is_empty() {
        return Ok(hidden.into_iter().collect());
    }
    let (cost, kept) = (watch.cost().await?, watch.kept_log().await?);
    let pinned_for = long.iter().filter_map(|each| each.pin.age).max();
    let costs = costs(&cost, pinned_for);
    let tell = |each: &&Judged| {
        let name = each.pin.name.as_deref();
        let slot = (each.pin.what == What::Slot).then_some(name).flatten();
        let of_it = kept
            .iter()
            .find(|(slot_name, _)| Some(slot_name.as_str()) == slot);
        told(each, &costs, of_it.map(|(_, bytes)| *bytes))
    };
    Ok(long.iter().map(tell).chain(hidden).collect())
}

/// Sessions whose transactions this role may not see the beginning of.
fn hidden(judged: &[Judged]) -> Option<Finding> {
    let hidden = judged.iter().filter(|each| {
        each.spared == Some(Spared::Hidden)
            && each.pin.what == What::Session
            && each.pin.transactions >= BEHIND
    });
    let pids: Vec<String> = hidden
        .filter_map(|each| each.pin.pid)
        .map(|pid| pid.to_string())
        .collect();
    if pids.is_empty() {
        return None;
    }
    let what = format!(
        "sessions of other roles pin the horizon over {BEHIND} transactions ago, and this role may not see who they are \
         or for how long: {}",
        pids.join(", ")
    );
    let remedy = "psql -c \"GRANT pg_monitor TO ROLE\"  # the role that rowlock runs as, by a superuser; then ask again".to_owned();
    Some(finding("R030", Level::Warn, what, remedy))
}

/// What keeps the database in order ends by itself, and is wanted.
fn is_long(each: &Judged) -> bool {
    match (each.spared, each.pin.what) {
        (Some(Spared::Maintenance | Spared::Server), _) => false,
        (_, What::Slot | What::Standby) => each.pin.transactions >= BEHIND,
        _ => each.due == Some(Due::Age),
    }
}

fn costs(cost: &Cost, pinned_for: Option<Duration>) -> String {
    let growth = pinned_for.and_then(|time| cost.growth_over(time));
    let more = growth.map(|growth| format!(", and at most {} more", an_hour(&growth)));
    format!(
        "this database has {} dead rows ({}){}",
        show::count(cost.dead_rows),
        show::bytes(cost.dead_bytes),
        more.unwrap_or_default()
    )
}

fn told(each: &Judged, costs: &str, kept: Option<u64>) -> Finding {
    let pin = &each.pin;
    let since = match pin.age {
        Some(age) => format!("for {}", show::span(age)),
        None => format!("for {} transactions", show::count(pin.transactions)),
    };
    let log = kept.map(|kept| {
        format!(
            "; it keeps {} of the server's log on disk",
            show::bytes(kept)
        )
    });
    let rows = match pin.catalog_only {
        true => "rows of the catalogue",
        false => "dead rows",
    };
    let what = format!(
        "{} has pinned the horizon {since}, so that {rows} can't be removed: {costs}{}",
        who(each),
        log.unwrap_or_default()
    );
    finding("R030", Level::Warn, what, remedy(pin))
}

fn who(each: &Judged) -> String {
    let pin = &each.pin;
    let text = |text: &Option<String>| show::text(text.as_deref().unwrap_or_default());
    let name = text(&pin.name);
    match pin.what {
        What::Session => {
            let class = each.class.as_ref().map(|class| format!(", class {class}"));
            format!(
                "session {} (application {:?}, role {}{}, {})",
                pin.pid.unwrap_or_default(),
                pin.application.as_deref().unwrap_or_default(),
                text(&pin.role),
                class.unwrap_or_default(),
                text(&pin.state)
            )
        }
        What::Prepared => format!("the prepared transaction {name:?} of {}", text(&pin.role)),
        What::Slot => format!("the replication slot {name:?} ({})", text(&pin.state)),
        What::Standby => format!("the standby {name:?}, by hot_standby_feedback,"),
    }
}

/// What nobody here may end: its jobs can go where no horizon is.
const DRAINED: &str = "  # or, if that must be, let the jobs go by a [[drain]]: docs/draining.md";

fn remedy(pin: &Pin) -> String {
    let name = pin.name.as_deref().unwrap_or_default().replace('\'', "''");
    let abandoned = pin
        .state
        .as_deref()
        .is_some_and(|state| state.ends_with("abandoned"));
    match pin.what {
        What::Session => {
            let pid = pin.pid.unwrap_or_default();
            psql(&format!("SELECT pg_terminate_backend({pid})"))
        }
        What::Prepared => format!(
            "{}  # or COMMIT PREPARED, if it was promised",
            psql(&format!("ROLLBACK PREPARED '{name}'"))
        ),
        What::Slot if abandoned => psql(&format!("SELECT pg_drop_replication_slot('{name}')")),
        What::Slot => {
            let see = "SELECT pid, application_name, state, replay_lag FROM pg_stat_replication";
            psql(see) + DRAINED
        }
        What::Standby => format!(
            "psql -h STANDBY -c \"ALTER SYSTEM SET hot_standby_feedback = off\" -c \"SELECT \
             pg_reload_conf()\"{DRAINED}"
        ),
    }
}
