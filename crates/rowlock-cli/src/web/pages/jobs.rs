//! Jobs by filter, page by page, and what is to be done with them.

use maud::{Markup, html};
use rowlock::engine::browse::Capped;
use serde_json::Value;

use super::filter::Filter;
use super::form::query;
use super::words::{count, counted, empty, exact, items, list, number, state, text, time};
use super::{Cx, Page};
use crate::web::problem::Problem;
use crate::web::shape::STATES;

/// How many a page has, unless too few were found on the way.
const PAGE: usize = 50;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let filter = Filter::of(&cx.query)?;
    let cursor = cx.query.get("cursor");
    let mut asked: Vec<(&str, &str)> = filter.pairs().collect();
    asked.push(("order", "newest"));
    asked.extend(cursor.map(|cursor| ("cursor", cursor)));
    let found = cx.get(&format!("/jobs{}", query(asked))).await?;
    let jobs = items(&found);
    let next = found["next"].as_str();
    let main = html! {
        div.top {
            h1 { "Jobs" }
            @if cx.may_change() { a.button.primary href="/jobs/new" { "New job" } }
        }
        div #tabs data-live { (tabs(cx, &filter).await) }
        (fields(&filter))
        div #list data-live {
            @if jobs.is_empty() { (none(cx, &filter, next.is_some(), cursor.is_some())) }
            @else { (table(cx, &filter, jobs)) }
        }
        (pager(&filter, cursor, next, jobs.len()))
    };
    Ok(Page::new("Jobs", "/jobs", main))
}

/// The states, with how many there are where that is known without counting.
async fn tabs(cx: &Cx, filter: &Filter) -> Markup {
    let seen = cx.web.live.seen(&cx.web).await;
    let queue = filter.get("queue");
    let of_queue =
        queue.and_then(|queue| seen.queues.iter().find(|(name, _)| name.as_str() == queue));
    let counts = match (queue, of_queue) {
        (_, Some((_, queue))) => queue.clone(),
        (Some(_), None) => Default::default(),
        (None, None) => seen.all(),
    };
    let Capped { counts, capped } = counts;
    let known = |state: &str| {
        (!filter.is_narrow()).then(|| match state {
            "pending" => count(counts.pending),
            "processing" => counted(counts.processing, capped),
            "completed" => exact(counts.completed),
            "failed" => exact(counts.failed),
            _ => exact(counts.cancelled),
        })
    };
    let here = |state: Option<&str>| (filter.get("state") == state).then_some("true");
    html! {
        nav.tabs aria-label="States" {
            a href=(filter.with("state", None).link()) aria-current=[here(None)] { "All" }
            @for state in STATES.iter().copied() {
                a href=(filter.with("state", Some(state)).link()) aria-current=[here(Some(state))] {
                    (state) @if let Some(n) = known(state) { " " span.count { (n) } }
                }
            }
        }
    }
}

fn fields(filter: &Filter) -> Markup {
    let value = |field: &str| filter.get(field).unwrap_or_default();
    // As a browser's field wants it.
    let minute = |field: &str| value(field).get(..16).unwrap_or_default().to_owned();
    let more = ["tag", "since", "until"]
        .iter()
        .any(|field| filter.get(field).is_some());
    html! {
        form.filter method="get" action="/jobs" role="search" aria-label="Filter jobs" {
            @if let Some(state) = filter.get("state") { input type="hidden" name="state" value=(state); }
            label { span { "Number" } input.short #find name="id" inputmode="numeric" placeholder="1234" autocomplete="off"; }
            label { span { "Kind" } input name="kind" value=(value("kind")) placeholder="send_email" autocomplete="off"; }
            label { span { "Queue" } input name="queue" value=(value("queue")) placeholder="default" autocomplete="off"; }
            label { span { "Key" } input name="key" value=(value("key")) placeholder="welcome:ada" autocomplete="off"; }
            details.more open[more] {
                summary { "More" }
                div {
                    label { span { "Tag" } input name="tag" value=(value("tag")) autocomplete="off"; }
                    label { span { "Added since (UTC)" } input type="datetime-local" name="since" value=(minute("since")); }
                    label { span { "Added before (UTC)" } input type="datetime-local" name="until" value=(minute("until")); }
                }
            }
            div.go {
                button { "Filter" }
                @if !filter.is_empty() { a href="/jobs" { "Clear" } }
            }
        }
    }
}

fn none(cx: &Cx, filter: &Filter, more: bool, further: bool) -> Markup {
    if more {
        return html! { div.empty { p { "None among the last 1,000 that were looked at. There may be some further back." } } };
    }
    if further {
        return html! { div.empty { p { "That was all." } } };
    }
    match filter.is_empty() {
        true => empty(
            "No job has come yet. Add one:",
            &cx.command("enqueue echo '{\"hello\":\"world\"}'"),
        ),
        false => {
            let words = format!(
                "There are no {}. The same on the command line:",
                filter.words()
            );
            let flags = filter
                .pairs()
                .map(|(name, value)| format!(" --{name} {}", crate::open::quoted(value)));
            empty(
                &words,
                &cx.command(&format!("job list{}", flags.collect::<String>())),
            )
        }
    }
}

fn table(cx: &Cx, filter: &Filter, jobs: &[Value]) -> Markup {
    let (now, acts) = (cx.now(), cx.may_change());
    // What the filter says of all of them needs no column, nor does what none of them has.
    let states = filter.get("state").is_none();
    let queues = filter.get("queue").is_none();
    let errors = jobs.iter().any(|job| !list(job, "errors").is_empty());
    html! {
        form.list method="get" action="/jobs/bulk" {
            @for (name, value) in filter.pairs() { input type="hidden" name=(name) value=(value); }
            div.wide { table.jobs {
                thead { tr {
                    @if acts { th.check scope="col" { span.hidden { "Select" } } }
                    th scope="col" { "Job" }
                    th scope="col" { "Kind" }
                    @if errors { th scope="col" { "Last error" } }
                    @if states { th scope="col" { "State" } }
                    th.roomy scope="col" { "Added" }
                    th scope="col" { "Due or ended" }
                    th.n.roomy scope="col" { "Attempt" }
                    @if queues { th.roomy scope="col" { "Queue" } }
                } }
                tbody { @for job in jobs {
                    @let id = number(job, "id");
                    tr data-row {
                        @if acts { td.check { input type="checkbox" name="id" value=(id) aria-label={ "Select job " (id) }; } }
                        td { a.id href={ "/jobs/" (id) } { (id) } }
                        td.kind { (text(job, "kind")) }
                        @if errors { td.error { (last_error(job)) } }
                        @if states { td { (state(text(job, "state"))) } }
                        td.roomy { (time(now, job, "created_at")) }
                        td { @match text(job, "finished_at") {
                            "" => (time(now, job, "scheduled_at")),
                            _ => (time(now, job, "finished_at")),
                        } }
                        td.n.roomy { (number(job, "attempt")) " / " (number(job, "max_attempts")) }
                        @if queues { td.roomy { (text(job, "queue")) } }
                    }
                } }
            } }
            @if acts { (bar(filter)) }
        }
    }
}

fn last_error(job: &Value) -> Markup {
    let Some(last) = list(job, "errors").last() else {
        return html! { span.none { "–" } };
    };
    let message = text(last, "message");
    html! { span title=(message) { (gist(message)) } }
}

/// What went wrong, of a message that begins with whom it happened to: `sh exited with 75: timed out`.
fn gist(message: &str) -> String {
    let after = message.split_once(" exited with ");
    let told = after.and_then(|(_, rest)| rest.split_once(':'));
    let told = told
        .map(|(_, told)| told.trim())
        .filter(|told| !told.is_empty());
    let first = told.unwrap_or(message).lines().next().unwrap_or_default();
    first.chars().take(120).collect()
}

/// What may be done with jobs of a state, or of any.
fn actions(state: Option<&str>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let left_out: &[&str] = match state {
        None => &[],
        Some("pending") => &["retry"],
        Some("processing") => &["retry", "delete"],
        Some(_) => &["cancel"],
    };
    let all = [
        ("retry", "Retry …"),
        ("cancel", "Cancel …"),
        ("delete", "Delete …"),
    ];
    all.into_iter()
        .filter(|(action, _)| !left_out.contains(action))
}

/// What is done with a selection, or with all that the filter finds. A page asks before it is done.
fn bar(filter: &Filter) -> Markup {
    html! {
        fieldset.bar {
            legend.hidden { "With many jobs at once" }
            label.check { input type="radio" name="which" value="selected" checked; " the selected ones" }
            label.check { input type="radio" name="which" value="filter"; " all " (filter.words()) }
            div.acts { @for (action, word) in actions(filter.get("state")) {
                button.danger[action == "delete"] name="action" value=(action) { (word) }
            } }
        }
    }
}

fn pager(filter: &Filter, cursor: Option<&str>, next: Option<&str>, shown: usize) -> Markup {
    let older = next.map(|next| {
        let pairs = filter.pairs().chain([("cursor", next)]);
        format!("/jobs{}", query(pairs))
    });
    // A look goes through so many jobs, however few of them the filter finds.
    let few = shown < PAGE;
    let word = if few { "Look further back" } else { "Older" };
    html! {
        nav.pager aria-label="Pages of jobs" {
            @if next.is_some() && few && shown > 0 {
                span.hint { (shown) " found among the 1,000 looked at; there may be more further back" }
            }
            @if cursor.is_some() { a.button href=(filter.link()) { "Newest" } }
            @if let Some(older) = older { a.button href=(older) rel="next" { (word) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_offered_that_has_no_meaning_for_a_state() {
        let offered = |state| actions(state).map(|(action, _)| action).collect::<Vec<_>>();
        assert_eq!(offered(None), ["retry", "cancel", "delete"]);
        assert_eq!(offered(Some("pending")), ["cancel", "delete"]);
        assert_eq!(offered(Some("processing")), ["cancel"]);
        assert_eq!(offered(Some("failed")), ["retry", "delete"]);
    }

    #[test]
    fn a_look_that_found_few_says_so() {
        let filter = Filter::default();
        let told = |next, shown| pager(&filter, None, next, shown).into_string();
        let few = told(Some("c"), 17);
        assert!(few.contains("17 found among the 1,000 looked at"), "{few}");
        assert!(few.contains(">Look further back<"), "{few}");
        assert!(told(Some("c"), PAGE).contains(">Older<"));
        assert!(!told(None, 17).contains("found among"));
    }

    #[test]
    fn an_error_is_told_by_what_went_wrong() {
        assert_eq!(gist("no such user\nat line 3"), "no such user");
        assert_eq!(gist("sh exited with 75: timed out\n  x"), "timed out");
        assert_eq!(gist("sh exited with 75:\n"), "sh exited with 75:");
    }
}
