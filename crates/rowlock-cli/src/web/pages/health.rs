//! Health: what `doctor` finds with its remedies; on PostgreSQL what pins the horizon and who, what is dead,
//! the ring and the log.

use maud::{Markup, html};
use serde_json::Value;

use super::words::{empty, exact, items, list, number, seconds, state, text, time};
use super::{Cx, Page, vitals};
use crate::web::problem::Problem;

/// What isn't well by its level, the worst first, and what one and many of it are called.
const LEVELS: [(&str, &str, &str); 3] = [
    ("error", "error", "errors"),
    ("warn", "warning", "warnings"),
    ("info", "remark", "remarks"),
];

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let checkup = cx.get("/doctor").await?;
    let all = list(&checkup, "findings").iter();
    let (well, mut ill): (Vec<&Value>, Vec<&Value>) = all.partition(|it| text(it, "level") == "ok");
    ill.sort_by_key(|finding| {
        let level = LEVELS
            .iter()
            .position(|(own, ..)| *own == text(finding, "level"));
        // What somebody has stopped on purpose comes after what nobody wanted.
        (level, text(finding, "code") == "R008")
    });
    let now = cx.now();
    let store = vitals::show(cx).await?;
    let main = html! {
        h1 { "Health" }
        div #health data-live="15" {
            p.lead { (conclusion(&ill)) " Looked " (time(now, &checkup, "looked_at")) ", in " (seconds(&checkup, "took_seconds")) ". The same as " code { (cx.command("doctor")) } @if !cx.is_postgres() { ", which also reads the whole file" } }
            ul.findings { @for finding in &ill { (one(finding)) } }
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

/// `4 warnings, 1 remark.`
fn conclusion(ill: &[&Value]) -> String {
    let told = LEVELS.iter().filter_map(|(level, one, many)| {
        let of_level = ill.iter().filter(|it| text(it, "level") == *level);
        match of_level.count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        }
    });
    match told.collect::<Vec<_>>() {
        none if none.is_empty() => "All is well.".to_owned(),
        some => format!("{}.", some.join(", ")),
    }
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
    // A column of dashes would say that nothing helps.
    let remedies = pins.iter().any(|pin| pin["remedy"].is_string());
    html! {
        section.panel {
            h2 { "What pins the horizon" }
            @if pins.is_empty() { p.hint { "Nothing: the server can remove old rows." } }
            @else { div.wide tabindex="0" role="region" aria-label="What pins the horizon" { table {
                thead { tr {
                    @for head in ["What", "By", "Query"] { th scope="col" { (head) } }
                    @for head in ["Age", "Transactions behind"] { th.n scope="col" { (head) } }
                    @if remedies { th scope="col" { "Remedy" } }
                } }
                tbody { @for pin in pins {
                    tr {
                        th scope="row" { (text(pin, "what")) @if let Some(pid) = pin["pid"].as_i64() { " " code { (pid) } } }
                        td {
                            (text(pin, "application")) " " (text(pin, "name"))
                            @if let Some(role) = pin["role"].as_str() { span.hint { " " (role) } }
                            @if let Some(class) = pin["class"].as_str() { span.hint { ", class " (class) } }
                        }
                        @let query = text(pin, "query");
                        td.error title=(query) { span { (query) } }
                        td.n { (seconds(pin, "age_seconds")) }
                        td.n { (exact(number(pin, "transactions"))) }
                        @if remedies {
                            td { @match pin["remedy"].as_str() { Some(remedy) => code { (remedy) }, None => span.none { "–" } } }
                        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_are_summed_up_the_worst_first() {
        let found = ["info", "warn", "error", "warn"].map(|level| json!({ "level": level }));
        let all: Vec<&Value> = found.iter().collect();
        assert_eq!(conclusion(&all), "1 error, 2 warnings, 1 remark.");
        assert_eq!(conclusion(&[]), "All is well.");
    }
}
