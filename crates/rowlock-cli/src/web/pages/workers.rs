//! Workers: who is there, how long their leases last, and what they have in hand.

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::words::{ago, counted, empty, items, number, seconds, state, text, time};
use super::{Cx, Page};
use crate::web::problem::Problem;

/// How many running jobs are shown.
const SHOWN: usize = 100;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let workers = cx.get("/workers").await?;
    let running = cx.get(&format!("/jobs/running?limit={SHOWN}")).await?;
    let main = html! {
        h1 { "Workers" }
        div #workers data-live="4" {
            @if items(&workers).is_empty() {
                (empty("No worker is there: what is added waits. Start one:", &cx.command("work")))
            } @else { (table(cx, items(&workers))) }
            (in_hand(cx, items(&running)))
        }
    };
    Ok(Page::new("Workers", "/workers", main))
}

fn table(cx: &Cx, workers: &[Value]) -> Markup {
    let now = cx.now();
    html! {
        section.panel { div.wide tabindex="0" role="region" aria-label="Workers" { table {
            thead { tr {
                th scope="col" { "Worker" }
                th scope="col" { "State" }
                th.n scope="col" { "In hand" }
                @for head in ["Heard", "Joined", "Lease"] { th scope="col" { (head) } }
            } }
            tbody { @for worker in workers {
                tr {
                    th scope="row" { code { (text(worker, "id")) } }
                    td { @if is_live(worker, now) { (state("ok")) } @else { (state("lost")) } }
                    td.n { (counted(number(worker, "holds"), worker["capped"] == true)) }
                    td { (time(now, worker, "seen_at")) }
                    td { (time(now, worker, "joined_at")) }
                    td {
                        (seconds(worker, "lease_seconds"))
                        @if let Some(end) = ends(worker) { ", ends " (ago(now, end)) }
                    }
                }
            } }
        } } }
    }
}

/// When its lease ends unless it is heard again.
fn ends(worker: &Value) -> Option<Timestamp> {
    let seen: Timestamp = text(worker, "seen_at").parse().ok()?;
    let lease = std::time::Duration::try_from_secs_f64(worker["lease_seconds"].as_f64()?).ok()?;
    Some(rowlock::clock::add(seen, lease))
}

fn is_live(worker: &Value, now: Timestamp) -> bool {
    ends(worker).is_some_and(|end| end > now)
}

fn in_hand(cx: &Cx, running: &[Value]) -> Markup {
    let now = cx.now();
    html! {
        section.panel {
            h2 { "Running now" }
            @if running.is_empty() { p.hint { "Nothing is in anybody's hands." } }
            @else { div.wide { table {
                thead { tr {
                    @for head in ["Job", "Kind", "Queue", "Started", "Worker"] { th scope="col" { (head) } }
                    th.n scope="col" { "Attempt" }
                } }
                tbody { @for job in running {
                    @let id = number(job, "id");
                    tr data-row {
                        td { a.id href={ "/jobs/" (id) } { (id) } }
                        td.kind { (text(job, "kind")) }
                        td { (text(job, "queue")) }
                        td { (time(now, job, "started_at")) }
                        td { code { (text(job, "locked_by")) } }
                        td.n { (number(job, "attempt")) " / " (number(job, "max_attempts")) }
                    }
                } }
            } } }
            @if running.len() == SHOWN { p.hint { "These began first; there may be more." } }
        }
    }
}
