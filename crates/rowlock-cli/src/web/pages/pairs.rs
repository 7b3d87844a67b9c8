//! Pairs, which find rows that need work, and crons, which need none.

use maud::{Markup, html};
use serde_json::Value;

use super::form::{encode, query};
use super::words::{cell, empty, exact, items, list, number, state, text, time};
use super::{Cx, Page};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let (pairs, crons) = (cx.get("/pairs").await?, cx.get("/crons").await?);
    let (pairs, crons) = (items(&pairs), items(&crons));
    let main = html! {
        h1 { "Pairs & crons" }
        div #pairs data-live="4" {
            section.panel {
                h2 { "Pairs" }
                @if pairs.is_empty() {
                    (empty("A pair finds rows that need work, also those whose enqueue was lost. In rowlock.toml:",
                        "[[pair]]\nkind = \"create_database\"\nevery = \"1m\"\nkey = [\"id\"]\n\
                         query = \"SELECT id FROM databases WHERE state = 'pending'\""))
                } @else { (pair_table(cx, pairs)) }
            }
            section.panel {
                h2 { "Crons" }
                @if crons.is_empty() {
                    (empty("A cron adds a job at its times. In rowlock.toml:",
                        "[[cron]]\nname = \"nightly\"\nkind = \"report\"\ncron = \"0 3 * * *\""))
                } @else { (cron_table(cx, crons)) }
            }
        }
    };
    Ok(Page::new("Pairs & crons", "/pairs", main))
}

fn health(pair: &Value) -> Markup {
    html! {
        @if pair["paused"] == true { (state("paused")) }
        @else if pair["error"].is_string() { (state("error")) }
        @else if pair["last_success"].is_null() { (state("new")) }
        @else if number(pair, "held_back") > 0 { (state("held back")) }
        @else { (state("ok")) }
    }
}

fn pair_table(cx: &Cx, pairs: &[Value]) -> Markup {
    let now = cx.now();
    html! {
        div.wide { table {
            thead { tr {
                @for head in ["Pair", "State", "Every", "Last tick"] { th scope="col" { (head) } }
                @for (head, about) in [
                    ("Found", "Rows of the last tick"),
                    ("Added", "Jobs of the last tick"),
                    ("Lost enqueues", "Rows that only ticks have found, in all"),
                    ("Ineffective", "Jobs done without an effect, in all"),
                    ("Held back", "Keys that ticks leave alone now"),
                ] { th.n scope="col" title=(about) { (head) } }
            } }
            tbody { @for pair in pairs {
                @let name = text(pair, "name");
                tr data-row {
                    th scope="row" { a.id href={ "/pairs/" (encode(name)) } { (name) } }
                    td { (health(pair)) }
                    td { (text(pair, "every")) }
                    td { (time(now, pair, "last_success")) }
                    @for field in ["found", "enqueued", "lost_enqueues", "ineffective", "held_back"] {
                        (cell(&exact(number(pair, field))))
                    }
                }
            } }
        } }
    }
}

fn cron_table(cx: &Cx, crons: &[Value]) -> Markup {
    let now = cx.now();
    html! {
        div.wide tabindex="0" role="region" aria-label="Crons" { table {
            thead { tr {
                @for head in ["Cron", "Kind", "Times", "Next", "Last"] { th scope="col" { (head) } }
                @if cx.may_change() { th.acts scope="col" { span.hidden { "Run, pause or resume" } } }
            } }
            tbody { @for cron in crons {
                @let name = text(cron, "name");
                @let paused = cron["paused"] == true;
                @let to = |verb: &str| format!("/crons/{}/{verb}", encode(name));
                tr {
                    th scope="row" { (name) @if paused { " " (state("paused")) } }
                    td.kind { (text(cron, "kind")) }
                    td { code { (text(cron, "cron")) } " " span.hint { (text(cron, "tz")) } div.reason { (missed(text(cron, "missed"))) } }
                    td { @if paused { span.none { "–" } } @else { (time(now, cron, "next_at")) } }
                    td {
                        (time(now, cron, "last_tick"))
                        @if let Some(job) = cron["last_job"].as_i64() { " " a href={ "/jobs/" (job) } { "job " (job) } }
                    }
                    @if cx.may_change() { td.acts {
                        (cx.button(&to("run"), "Run now", ""))
                        @if paused { (cx.button(&to("resume"), "Resume", "primary")) }
                        @else { (cx.button(&to("pause"), "Pause", "")) }
                    } }
                }
            } }
        } }
    }
}

/// What becomes of times at which nobody was there.
fn missed(policy: &str) -> &'static str {
    match policy {
        "skip" => "missed times: no job",
        "all" => "missed times: a job for each",
        _ => "missed times: one job for all",
    }
}

pub async fn one(cx: &Cx, name: &str) -> Result<Page, Problem> {
    let path = format!("/pairs/{}", encode(name));
    let pair = cx.get(&path).await?;
    let after = cx.query.get("after").map(|after| ("after", after));
    let keys = cx.get(&format!("{path}/keys{}", query(after))).await?;
    let stopped = match pair["paused"] == true {
        true => stopped(&cx.get("/switches").await?, name),
        false => None,
    };
    let now = cx.now();
    let main = html! {
        div #pair data-live {
            div.top {
                h1 { "Pair " (name) " " (health(&pair)) }
                @if cx.may_change() { (acts(cx, &path, &pair)) }
            }
            p.lead { "Adds " code { (text(&pair, "kind")) } " for each row it finds, every " (text(&pair, "every")) }
            @if let Some(words) = stopped { p.note.bad { (words) } }
            @if let Some(error) = pair["error"].as_str() { p.note.bad { "The last tick failed: " (error) } }
            @for state in list(&pair, "uncovered") {
                p.note.bad { (exact(number(state, "rows"))) " rows are in state " (text(state, "state")) ", which nobody claims" }
            }
            ul.numbers {
                li { div { span.label { "Last tick" } strong.value { (time(now, &pair, "last_success")) } } }
                @for (label, field) in [
                    ("Found", "found"), ("Added", "enqueued"), ("Lost enqueues", "lost_enqueues"),
                    ("Ineffective", "ineffective"), ("Held back", "held_back"),
                ] { li { div { span.label { (label) } strong.value { (exact(number(&pair, field))) } } } }
            }
        }
        section.panel { h2 { "Query" } pre { code { (text(&pair, "query")) } }
            p.hint { "Led by " @match pair["leader"].as_str() { Some(leader) => code { (leader) }, None => "nobody" } }
        }
        section.panel { h2 { "Keys held back" } (held(cx, &path, &keys)) }
    };
    Ok(Page::new(format!("Pair {name}"), "/pairs", main))
}

/// Who stopped it, and why.
fn stopped(switches: &Value, name: &str) -> Option<String> {
    let mut all = items(switches).iter();
    let on = all.find(|on| (text(on, "target"), text(on, "name")) == ("pair", name))?;
    let by = on["by"]
        .as_str()
        .map_or(String::new(), |by| format!(" by {by}"));
    Some(format!("Stopped{by}: {}", text(on, "reason")))
}

fn acts(cx: &Cx, path: &str, pair: &Value) -> Markup {
    let to = |verb: &str| format!("{path}/{verb}");
    html! {
        div.acts {
            (cx.button(&to("dry"), "Dry run", ""))
            @if pair["paused"] == true { (cx.button(&to("resume"), "Let it go on", "primary")) }
            @else {
                (cx.button(&to("run"), "Run now", "primary"))
                details.sure {
                    summary.button { "Pause" }
                    (cx.form(&to("pause"), &html! {
                        label { span.hidden { "Why" } input name="reason" required placeholder="why, for whoever looks next" autocomplete="off"; }
                        button { "Pause it" }
                    }))
                }
            }
        }
    }
}

fn held(cx: &Cx, path: &str, keys: &Value) -> Markup {
    let now = cx.now();
    let all = items(keys);
    let lift = format!("{path}/lift");
    html! {
        @if all.is_empty() { p.hint { "None: a tick may have every row it finds." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Keys held back" { table {
                thead { tr {
                    @for head in ["Key", "Why", "Until"] { th scope="col" { (head) } }
                    th.acts scope="col" { span.hidden { "Lift" } }
                } }
                tbody { @for key in all {
                    tr {
                        th scope="row" { code { (text(key, "key")) } }
                        td { (text(key, "reason")) ", " (number(key, "n")) " in a row" }
                        td { @if key["until"].is_null() { "lifted by hand" } @else { (time(now, key, "until")) } }
                        td.acts { @if cx.may_change() { (cx.form(&lift, &html! {
                            input type="hidden" name="key" value=(text(key, "key"));
                            button { "Lift" }
                        })) } }
                    }
                } }
            } }
            @if cx.may_change() { (cx.sure(&lift, "Lift all …", "Yes, lift every key of the pair")) }
            @if let Some(next) = keys["next"].as_str() { a.button href={ (path) (query([("after", next)])) } { "More" } }
        }
    }
}
