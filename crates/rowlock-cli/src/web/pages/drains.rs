//! Drains: which jobs go on to Redis or Sidekiq, how far behind that is, and what came back from the
//! jobs that were lost there.

use maud::{Markup, html};
use serde_json::Value;

use super::words::{cell, count, empty, exact, items, list, number, seconds, state, text};
use super::{Cx, Page};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let found = cx.get("/routes").await?;
    let routes = items(&found);
    let main = html! {
        h1 { "Drains" }
        div #drains data-live {
            @if routes.is_empty() {
                (empty("A drain hands jobs on to Redis or Sidekiq after they are committed here. In rowlock.toml:",
                    "[[drain]]\nkinds = [\"send_email\"]\nto = \"redis://127.0.0.1:6379/0\""))
            } @else { (table(routes)) }
        }
        @if !routes.is_empty() {
            p.hint { "What the sinks hold themselves: " code { (cx.command("drain status")) } }
        }
    };
    Ok(Page::new("Drains", "/drains", main))
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
        section.panel { div.wide { table {
            thead { tr {
                @for head in ["Route", "", "To", "Of"] { th scope="col" { (head) } }
                @for (head, about) in [
                    ("Waiting", "Due and not handed on"),
                    ("Lag", "How long the first of them has been waiting"),
                    ("Sent", "Handed on and not settled yet"),
                ] { th.n scope="col" title=(about) { (head) } }
            } }
            tbody { @for route in routes {
                tr {
                    th scope="row" { (text(route, "route")) }
                    td {
                        @if route["drained"] == true { (state("ok")) } @else { (state("nobody drains")) }
                        @if let Some(error) = route["error"].as_str() { div.reason { (error) } }
                    }
                    td { @match route["to"].as_str() { Some(to) => code { (to) }, None => "not in this configuration" } }
                    td { (names(route)) }
                    (cell(&count(number(route, "unsent"))))
                    td.n { (seconds(route, "lag_seconds")) }
                    (cell(&exact(number(route, "sent"))))
                }
            } }
        } } }
    }
}
