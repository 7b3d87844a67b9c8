//! How things go, at a glance. Nothing is read for it: what was seen last is shown.

use maud::{Markup, html};

use super::chart::Chart;
use super::live::{Sample, Seen, WINDOW, due};
use super::verdict::{LATE, Level, Verdict};
use super::words::{cell, count, counted, empty, exact, failures, span, state};
use super::{Cx, Page};
use crate::show;

pub async fn show(cx: &Cx) -> Page {
    let seen = cx.web.live.seen(&cx.web).await;
    let verdict = Verdict::of(&seen, &cx.command("work"), cx.now());
    Page::new(
        "Overview",
        "/",
        html! {
            div #live data-live {
                (sentence(&verdict, &seen))
                (numbers(&seen))
                div.charts { @for chart in charts(&seen) { (chart.draw()) } }
                (queues(cx, &seen))
            }
        },
    )
}

fn sentence(verdict: &Verdict, seen: &Seen) -> Markup {
    let (word, more) = (verdict.level.as_str(), verdict.reasons.len());
    html! {
        section class={ "verdict " (word) } aria-label="Verdict" {
            h1 {
                span.dot aria-hidden="true" {}
                @match verdict.reasons.first() {
                    None if seen.total.pending + seen.total.processing == 0 => { "Flowing: nothing waits" }
                    None => { "Flowing" }
                    Some(first) => {
                        @if verdict.level == Level::Stalled { "Stalled" } @else { "Degraded" }
                        " because " (first.words)
                    }
                }
            }
            @if more > 0 {
                ul {
                    @for (n, reason) in verdict.reasons.iter().enumerate().take(6) {
                        li {
                            @if n > 0 { (reason.words) ": " }
                            span.remedy { (reason.remedy) } " "
                            a href=(reason.page) { (place(&reason.page)) }
                        }
                    }
                    @if more > 6 { li { "and " (more - 6) " more" } }
                }
            }
        }
    }
}

/// Where a link leads, for whoever hears it without the sentence before.
fn place(page: &str) -> &'static str {
    match page.split(['/', '?']).nth(1) {
        Some("jobs") => "Show these jobs",
        Some("queues") => "Go to queues",
        Some("pairs") => "Go to the pair",
        Some("switches") => "Go to switches",
        _ => "Go to health",
    }
}

fn numbers(seen: &Seen) -> Markup {
    let all = seen.all();
    let total = &all.counts;
    let live = |n: u64| counted(n, all.capped);
    let live = [
        ("Due", live(due(total)), "/jobs?state=pending"),
        ("Scheduled", live(total.scheduled), "/jobs?state=pending"),
        ("Retrying", live(total.retrying), "/jobs?state=pending"),
        ("Held", live(total.held), "/switches"),
        ("Running", live(total.processing), "/workers"),
        ("Completed", exact(total.completed), "/jobs?state=completed"),
        ("Failed", exact(total.failed), "/jobs?state=failed"),
        ("Cancelled", exact(total.cancelled), "/jobs?state=cancelled"),
    ];
    html! {
        ul.numbers aria-label="Jobs by state" {
            @for (label, n, page) in live {
                li { a.bad[label == "Failed" && n != "0"] href=(page) {
                    span.label { (label) } strong.value { (n) }
                } }
            }
        }
    }
}

fn charts(seen: &Seen) -> [Chart<'static>; 5] {
    let points = |value: fn(&Sample) -> f64| line(seen, |sample| Some(value(sample)));
    let wait = points(|sample| sample.oldest);
    let is_late = wait.last().is_some_and(|(_, last)| *last > LATE);
    [
        Chart {
            title: "Throughput",
            class: "good",
            points: points(|sample| sample.completed),
            above: None,
            write: rate,
            about: "Jobs completed in a second",
        },
        Chart {
            title: "Run time",
            class: "busy",
            points: line(seen, |sample| sample.run.map(|run| run.median)),
            above: Some(("95 %:", line(seen, |sample| sample.run.map(|run| run.p95)))),
            write: span,
            about: "How long half of the jobs that ended lately ran at most; above it nineteen of twenty. Read from \
                    the newest jobs that have ended",
        },
        Chart {
            title: "Failures",
            class: "bad",
            points: points(|sample| sample.failed),
            above: None,
            write: rate,
            about: "Jobs given up in a second",
        },
        Chart {
            title: "Wait",
            class: if is_late { "warn" } else { "busy" },
            points: wait,
            above: None,
            write: span,
            about: "How long the job that is due longest has been waiting, where nobody has stopped it",
        },
        Chart {
            title: "Waiting",
            class: "busy",
            points: points(|sample| sample.waiting as f64),
            above: None,
            write: |n| count(n.round() as u64),
            about: "Jobs that wait, whatever for",
        },
    ]
}

/// A step of the charts: what a look or two say by chance is evened out.
const STEP: f64 = 8.0;

fn line(seen: &Seen, value: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64, f64)> = Vec::new();
    // The first look has nothing to compare itself with.
    for sample in seen.samples.iter().skip(1) {
        let Some(value) = value(sample) else {
            continue;
        };
        let place = (sample.at.as_secs_f64() / STEP).floor();
        match steps.last_mut() {
            Some((at, sum, n)) if *at == place => (*sum, *n) = (*sum + value, *n + 1.0),
            _ => steps.push((place, value, 1.0)),
        }
    }
    let now = seen.at.as_secs_f64();
    // One look of a step that has just begun would say anything.
    if steps.len() > 1 && steps.last().is_some_and(|(at, ..)| (at + 1.0) * STEP > now) {
        steps.pop();
    }
    let place = |(at, sum, n): &(f64, f64, f64)| {
        let age = (now - (at + 1.0) * STEP).max(0.0);
        (1.0 - age / WINDOW.as_secs_f64(), sum / n)
    };
    steps.iter().map(place).collect()
}

fn rate(n: f64) -> String {
    match n {
        none if none < 0.05 => "0 /s".to_owned(),
        few if few < 9.95 => format!("{few:.1} /s"),
        many => format!("{} /s", show::count(many.round() as u64)),
    }
}

fn queues(cx: &Cx, seen: &Seen) -> Markup {
    if seen.queues.is_empty() {
        let command = cx.command("enqueue echo '{\"hello\":\"world\"}'");
        return empty("No job has come yet. Add one:", &command);
    }
    html! {
        section.panel {
            h2 { "Queues" }
            div.wide { table {
                thead { tr {
                    th scope="col" { "Queue" }
                    @for head in ["Due", "Held", "Running", "Completed", "Failed", "Oldest due"] { th.n scope="col" { (head) } }
                } }
                tbody { @for (name, queue) in &seen.queues {
                    @let counts = &queue.counts;
                    tr {
                        th scope="row" {
                            a href={ "/jobs?queue=" (name) } { (name) }
                            @if seen.is_stopped(name) { " " (state("paused")) }
                        }
                        @for n in [due(counts), counts.held, counts.processing] { (cell(&counted(n, queue.capped))) }
                        (cell(&exact(counts.completed)))
                        (failures(counts.failed))
                        td.n { (seen.late(name, counts).map_or("–".to_owned(), span)) }
                    }
                } }
            } }
        }
    }
}
