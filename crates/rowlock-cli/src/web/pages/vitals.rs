//! The store's own numbers: how far back the horizon is, what is dead, the ring, the log. Read from the
//! catalogue and statistics, never from jobs.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use maud::{Markup, html};
use rowlock::clock::Elapsed;
use rowlock::engine::{ServerVitals, Vitals};

use super::Cx;
use super::words::{cell, exact};
use crate::show;
use crate::web::problem::Problem;

/// How long the numbers may take: the page is there without them.
const PATIENCE: Duration = Duration::from_secs(3);
/// Two readings of the log that are closer make a rate of chance.
const APART: Duration = Duration::from_secs(1);

/// What the log was at the reading before, and how fast it grew since the one before that.
#[derive(Debug, Default)]
pub struct Log(Mutex<Option<(Elapsed, u64, Option<f64>)>>);

impl Log {
    /// Bytes in a second; nothing at the first reading.
    fn pace(&self, at: Elapsed, bytes: u64) -> Option<f64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = match *kept {
            None => None,
            Some((then, _, pace)) if at.saturating_sub(then) < APART => return pace,
            Some((then, before, _)) => {
                let seconds = at.saturating_sub(then).as_secs_f64();
                Some(bytes.saturating_sub(before) as f64 / seconds)
            }
        };
        *kept = Some((at, bytes, pace));
        pace
    }
}

/// The most important ones in a row, and the rest in tables.
pub struct Shown {
    pub numbers: Markup,
    pub tables: Markup,
}

pub async fn show(cx: &Cx) -> Result<Shown, Problem> {
    let _turn = cx.turn().await?;
    let (clock, watch) = (cx.web.rowlock.clock(), cx.web.rowlock.watch());
    let vitals = match clock.timeout(PATIENCE, watch.vitals()).await {
        Some(Ok(vitals)) => vitals,
        Some(Err(why)) => return Ok(unread(&why.to_string())),
        None => return Ok(unread("the server didn't answer in time")),
    };
    let kept = match vitals.server {
        Some(_) => clock.timeout(PATIENCE, watch.kept_log()).await,
        None => None,
    };
    let kept: u64 = match kept {
        Some(Ok(slots)) => slots.iter().map(|(_, bytes)| bytes).sum(),
        _ => 0,
    };
    Ok(match &vitals.server {
        Some(server) => {
            let pace = cx.web.live.log.pace(clock.elapsed(), server.wal_bytes);
            of_server(server, pace, kept)
        }
        None => of_file(&vitals),
    })
}

fn unread(why: &str) -> Shown {
    let numbers = html! { p.note.bad { "The numbers of the server can't be read: " (why) ". Ask with a role that may see its statistics." } };
    let tables = html! {};
    Shown { numbers, tables }
}

fn of_file(vitals: &Vitals) -> Shown {
    let log = vitals.log_bytes.unwrap_or_default();
    let numbers = html! {
        ul.numbers aria-label="The file" {
            (number("Write-ahead log", &show::bytes(log), "What was committed and isn't in the file itself yet"))
        }
    };
    let tables = html! {};
    Shown { numbers, tables }
}

fn number(label: &str, value: &str, about: &str) -> Markup {
    html! { li { div title=(about) { span.label { (label) } strong.value { (value) } } } }
}

fn of_server(server: &ServerVitals, pace: Option<f64>, kept: u64) -> Shown {
    let written = match pace {
        Some(pace) => format!("{}/s", show::bytes(pace.round() as u64)),
        None => "measuring …".to_owned(),
    };
    let held = match server.horizon_age {
        Duration::ZERO => "by nobody".to_owned(),
        age => show::span(age),
    };
    let numbers = html! {
        ul.numbers aria-label="The server" {
            (number("Horizon held", &held, "How long the oldest transaction has been open that keeps dead rows"))
            (number("Transactions behind", &exact(server.horizon_transactions), "Begun since the oldest one that somebody may still look at"))
            (number("Dead rows", &exact(server.database_dead_rows), "In all tables of the database, as the server counts them"))
            (number("WAL written", &written, "What the whole server writes to its log in a second, since the look before"))
            (number("WAL kept by slots", &show::bytes(kept), "What replication slots keep the server from removing"))
        }
    };
    let tables = html! { div.two { (ring(server)) (dead(server)) } };
    Shown { numbers, tables }
}

/// How wide a full bar is.
const WIDE: f64 = 100.0;

fn ring(server: &ServerVitals) -> Markup {
    let all = server.segments.iter().sum::<u64>().max(1) as f64;
    html! {
        section.panel {
            h2 { "The ring" }
            div.wide tabindex="0" role="region" aria-label="The ring" { table {
                thead { tr { th scope="col" { "Segment" } th.n scope="col" { "Bytes" } th scope="col" { "Share" } } }
                tbody { @for (n, bytes) in server.segments.iter().enumerate() {
                    tr {
                        th scope="row" { (n) }
                        td.n.none[*bytes == 0] { @if *bytes == 0 { "empty" } @else { (show::bytes(*bytes)) } }
                        td.gauge { svg viewBox={ "0 0 " (WIDE) " 6" } preserveAspectRatio="none" aria-hidden="true" {
                            rect.bed width=(WIDE) height="6" {}
                            rect.fill width=(format!("{:.1}", *bytes as f64 / all * WIDE)) height="6" {}
                        } }
                    }
                } }
            } }
            p.hint { "Turned " (exact(server.rotations)) @if server.rotations == 1 { " time" } @else { " times" } ". A segment that has run dry is emptied as a whole, whatever pins the horizon." }
        }
    }
}

/// How many tables are named.
const NAMED: usize = 5;

fn dead(server: &ServerVitals) -> Markup {
    let mut some: Vec<_> = server
        .dead_rows
        .iter()
        .filter(|(_, rows)| *rows > 0)
        .collect();
    some.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    let rest: u64 = some.iter().skip(NAMED).map(|(_, rows)| rows).sum();
    html! {
        section.panel {
            h2 { "Dead rows of our own tables" }
            @if some.is_empty() { p.hint { "None that the server knows of." } }
            @else {
                div.wide tabindex="0" role="region" aria-label="Dead rows" { table {
                    thead { tr { th scope="col" { "Table" } th.n scope="col" { "Dead rows" } } }
                    tbody { @for (table, rows) in some.iter().take(NAMED) {
                        tr { th scope="row" { code { (table) } } (cell(&exact(*rows))) }
                    } }
                } }
                p.hint { (exact(rest)) " in all others. The segments of the ring count as one table, and the days of the history." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_the_log_is_of_two_readings_that_are_apart() {
        let log = Log::default();
        let at = Duration::from_millis;
        assert_eq!(log.pace(at(1_000), 500), None);
        assert_eq!(log.pace(at(1_200), 900), None);
        assert_eq!(log.pace(at(3_000), 2_500), Some(1_000.0));
        assert_eq!(log.pace(at(3_100), 9_000), Some(1_000.0));
    }
}
