//! Drains: which jobs go on to Redis or Sidekiq, how far behind that is, and what came back from the
//! jobs that were lost there.

use maud::{Markup, html};
use serde_json::Value;

use super::words::{cell, count, empty, exact, list, number, seconds, state, text};
use super::{Cx, Page};
use crate::command::drain::{Shown, fill};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let routes = &routes(cx).await?;
    let main = html! {
        h1.led { "Drains" }
        p.lead { "Jobs that go on to Redis or Sidekiq once they are committed here." }
        div #drains data-live {
            @if routes.is_empty() {
                (empty("A drain hands jobs on to Redis or Sidekiq after they are committed here. In rowlock.toml:",
                    "[[drain]]\nkinds = [\"send_email\"]\nto = \"redis://127.0.0.1:6379/0\""))
            } @else { (table(routes)) }
        }
    };
    Ok(Page::new("Drains", "/drains", main))
}

/// What waits here, and how full the sinks are that this configuration knows.
async fn routes(cx: &Cx) -> Result<Vec<Value>, Problem> {
    let declared = cx.web.setup.routes()?;
    let clock = cx.web.rowlock.clock();
    let mut shown = Vec::new();
    let _turn = cx.turn().await?;
    for row in &cx.web.live.routes(&cx.web).await? {
        let route = declared.iter().find(|route| route.name == row.route);
        let filled = match route {
            Some(route) => Some(fill(route, clock).await),
            None => None,
        };
        let told = serde_json::to_value(Shown::of(row, route, filled));
        shown.push(told.map_err(anyhow::Error::new)?);
    }
    Ok(shown)
}

fn names(route: &Value) -> String {
    let of = |field: &str, word: &str| {
        let names = list(route, field).iter().filter_map(Value::as_str);
        names
            .map(|name| format!("{word} {name}"))
            .collect::<Vec<_>>()
    };
    [of("kinds", "kind"), of("queues", "queue")]
        .concat()
        .join(", ")
}

fn table(routes: &[Value]) -> Markup {
    html! {
        section.panel {
        div.wide tabindex="0" role="region" aria-label="Routes" { table {
            thead { tr {
                @for head in ["Route", "State"] { th scope="col" { (head) } }
                @for (head, about) in [
                    ("Waiting", "Due and not handed on"),
                    ("Lag", "How long the first of them has been waiting"),
                    ("Sent", "Handed on and not settled yet"),
                    ("Ready", "In the sink, taken by nobody"),
                    ("Taken", "In the sink, taken by a worker"),
                    ("Pushed", "Sent to the sink since it has its memory, each time counted"),
                    ("Re-sent", "Lost by the sink and sent again, since it has its memory"),
                ] { th.n scope="col" title=(about) { (head) } }
                @for head in ["To", "Of"] { th scope="col" { (head) } }
            } }
            tbody { @for route in routes {
                tr {
                    th scope="row" { (text(route, "route")) }
                    td {
                        @if route["drained"] == true { (state("ok")) } @else { (state("nobody drains")) }
                        @if let Some(error) = route["error"].as_str() { div.reason { (error) } }
                    }
                    (cell(&count(number(route, "unsent"))))
                    td.n { @if number(route, "unsent") == 0 { span.none { "–" } } @else { (seconds(route, "lag_seconds")) } }
                    (cell(&count(number(route, "sent"))))
                    @for field in ["ready", "taken", "pushed", "resent"] {
                        (cell(&route[field].as_u64().map_or("–".to_owned(), exact)))
                    }
                    td { @match route["to"].as_str() { Some(to) => code { (to) }, None => "not in this configuration" } }
                    td { (names(route)) }
                }
            } }
        } }
        p.hint {
            "Waiting jobs are due and not handed on yet, sent ones are handed on and not settled. The rest is what the sink says: "
            "it counts anew when it loses its memory, and what it had lost is sent again."
        }
        }
    }
}
