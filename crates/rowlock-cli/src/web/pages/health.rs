//! Health: what `doctor` finds with its remedies; on PostgreSQL what pins the horizon and who, what is dead,
//! the ring and the log.

use maud::{Markup, html};
use serde_json::Value;

use super::words::{empty, exact, items, list, number, seconds, state, text, time};
use super::{Cx, Page, vitals};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let checkup = cx.get("/doctor").await?;
    let all = list(&checkup, "findings").iter();
    let (well, mut ill): (Vec<&Value>, Vec<&Value>) = all.partition(|it| text(it, "level") == "ok");
    ill.sort_by_key(|finding| match text(finding, "level") {
        "error" => 0,
        "warn" => 1,
        _ => 2,
    });
    let now = cx.now();
    let store = vitals::show(cx).await?;
    let main = html! {
        h1 { "Health" }
        div #health data-live="15" {
            p.lead { "Looked " (time(now, &checkup, "looked_at")) ", in " (seconds(&checkup, "took_seconds")) ". The same as " code { (cx.command("doctor")) } }
            ul.findings { @for finding in ill { (one(finding)) } }
            (store.numbers)
            @if cx.is_postgres() {
                (pins(&cx.get("/pins").await?))
                (store.tables)
                (budgets(cx, &cx.get("/budgets").await?))
            }
            section.panel {
                h2 { "What is well" }
                ul.well { @for finding in well {
                    li { span.hint { (text(finding, "code")) } " " (text(finding, "what")) }
                } }
            }
        }
    };
    Ok(Page::new("Health", "/health", main))
}

fn one(finding: &Value) -> Markup {
    html! {
        li.panel {
            div { (state(text(finding, "level"))) " " span.hint { (text(finding, "code")) } }
            p { (text(finding, "what")) }
            @if let Some(remedy) = finding["remedy"].as_str() { pre { code { (remedy) } } }
        }
    }
}

fn pins(found: &Value) -> Markup {
    let pins = items(found);
    html! {
        section.panel {
            h2 { "What pins the horizon" }
            @if pins.is_empty() { p.hint { "Nothing: the server can remove old rows." } }
            @else { div.wide tabindex="0" role="region" aria-label="What pins the horizon" { table {
                thead { tr {
                    @for head in ["What", "By", "Query"] { th scope="col" { (head) } }
                    @for head in ["Age", "Transactions behind"] { th.n scope="col" { (head) } }
                    th scope="col" { "Remedy" }
                } }
                tbody { @for pin in pins {
                    tr {
                        th scope="row" { (text(pin, "what")) @if let Some(pid) = pin["pid"].as_i64() { " " code { (pid) } } }
                        td {
                            (text(pin, "application")) " " (text(pin, "name"))
                            @if let Some(role) = pin["role"].as_str() { span.hint { " " (role) } }
                            @if let Some(class) = pin["class"].as_str() { span.hint { ", class " (class) } }
                        }
                        td.error { (text(pin, "query")) }
                        td.n { (seconds(pin, "age_seconds")) }
                        td.n { (exact(number(pin, "transactions"))) }
                        td { @match pin["remedy"].as_str() { Some(remedy) => code { (remedy) }, None => span.none { "–" } } }
                    }
                } }
            } } }
        }
    }
}

fn budgets(cx: &Cx, found: &Value) -> Markup {
    let classes = items(found);
    html! {
        section.panel {
            h2 { "Budgets" }
            @if classes.is_empty() {
                (empty("How many transactions of a workload class may run at once:", &cx.command("budget set analytics --max 1")))
            } @else { ul.plain { @for class in classes {
                li { strong { (text(class, "class")) } ", at most " (exact(number(class, "max"))) " at once" }
            } } }
        }
    }
}
