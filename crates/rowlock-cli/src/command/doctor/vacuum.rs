//! Tables of ours that nobody cleans up.

use rowlock::engine::postgres::Address;
use rowlock::engine::{Health, Uncleaned};

use super::server::psql;
use super::{Finding, Level, finding};
use crate::show;

/// While the horizon is pinned nobody could clean up anything: that is told with whoever pins it.
pub fn look(address: &Address, health: &Health, pinned: bool) -> Vec<Finding> {
    let schema = address.schema.as_str();
    let mut found: Vec<Finding> = health
        .no_autovacuum
        .iter()
        .map(|each| server(each))
        .collect();
    for each in &health.uncleaned {
        if each.off {
            found.push(off(schema, each));
        } else if !pinned && health.no_autovacuum.is_empty() {
            found.push(starved(schema, each));
        }
    }
    found
}

fn server(setting: &str) -> Finding {
    let what = format!(
        "{setting} is off on this server: dead rows stay in every table, and one day it stops to \
         protect itself from transaction numbers that come round again"
    );
    let remedy = format!(
        "{} -c \"SELECT pg_reload_conf()\"",
        psql(&format!("ALTER SYSTEM SET {setting} = on"))
    );
    finding("R032", Level::Error, what, remedy)
}

fn off(schema: &str, each: &Uncleaned) -> Finding {
    let table = &each.table;
    let what = format!(
        "autovacuum is off for {schema}.{table}, which has {} dead rows",
        show::count(each.dead_rows)
    );
    let remedy = psql(&format!(
        "ALTER TABLE {schema}.{table} RESET (autovacuum_enabled)"
    ));
    finding("R032", Level::Warn, what, remedy)
}

fn starved(schema: &str, each: &Uncleaned) -> Finding {
    let last = match each.cleaned {
        Some(time) => format!("was cleaned up {} ago last", show::span(time)),
        None => "was never cleaned up".to_owned(),
    };
    let table = &each.table;
    let what = format!(
        "{schema}.{table} has {} dead rows and {last}, though nothing pins the horizon: autovacuum has too \
         few workers or rests too long (autovacuum_max_workers, autovacuum_vacuum_cost_limit)",
        show::count(each.dead_rows)
    );
    finding(
        "R031",
        Level::Warn,
        what,
        psql(&format!("VACUUM {schema}.{table}")),
    )
}
