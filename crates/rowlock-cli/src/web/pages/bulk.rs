//! What is done with many jobs: told with its count first, done when confirmed, as much as one request
//! may do, and then as often as it takes.

use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::bulk_count::{self, Many};
use super::filter::Filter;
use super::form::Form;
use super::note::Note;
use super::words::{number, text};
use super::{Cx, Done, Page};
use crate::show;
use crate::web::problem::Problem;

/// What is to be done with which.
struct Asked {
    action: String,
    ids: Vec<i64>,
    filter: Filter,
}

impl Asked {
    fn of(form: &Form) -> Result<Self, Problem> {
        let filter = Filter::of(form)?;
        let action = form.word("action").unwrap_or("retry").to_owned();
        let ids: Option<Vec<i64>> = form.all("id").iter().map(|id| id.parse().ok()).collect();
        let ids = ids.ok_or_else(|| Problem::invalid("id must be a job's number"))?;
        let selected = form.word("which") != Some("filter");
        if selected && ids.is_empty() {
            return Err(Problem::new(
                axum::http::StatusCode::BAD_REQUEST,
                "invalid",
                "no job is selected",
                "tick some, or choose all that the filter finds",
            ));
        }
        let ids = if selected { ids } else { Vec::new() };
        Ok(Self {
            action,
            ids,
            filter,
        })
    }

    fn body(&self, confirm: bool, cursor: Option<&str>) -> Value {
        let mut body = json!({ "action": self.action });
        if confirm {
            body["confirm"] = true.into();
        }
        if let Some(cursor) = cursor {
            body["cursor"] = cursor.into();
        }
        if !self.ids.is_empty() {
            body["ids"] = json!(self.ids);
        } else if self.filter.is_empty() {
            body["all"] = true.into();
        } else {
            body["filter"] = self.filter.object();
        }
        body
    }

    fn fields(&self) -> Markup {
        html! {
            input type="hidden" name="action" value=(self.action);
            @for id in &self.ids { input type="hidden" name="id" value=(id); }
            @if self.ids.is_empty() { input type="hidden" name="which" value="filter"; }
            @for (name, value) in self.filter.pairs() { input type="hidden" name=(name) value=(value); }
        }
    }

    fn which(&self) -> String {
        match self.ids.is_empty() {
            false => "selected jobs".to_owned(),
            true if self.filter.is_empty() && self.action == "retry" => {
                "failed jobs, all there are".to_owned()
            }
            true if self.filter.is_empty() => "jobs, all there are".to_owned(),
            true => self.filter.words(),
        }
    }
}

/// `Retry`, with what it means.
fn meaning(action: &str) -> (&'static str, &'static str) {
    match action {
        "retry" => (
            "Retry",
            "They get all their attempts again, and keep the errors they have.",
        ),
        "cancel" => (
            "Cancel",
            "Waiting ones are called off. Workers of running ones are asked to stop.",
        ),
        _ => (
            "Delete",
            "They are gone for good. Running ones are left alone.",
        ),
    }
}

/// How many it is about. Only somebody who may change them is asked.
async fn counted(cx: &Cx, asked: &Asked) -> Result<Many, Problem> {
    if !asked.ids.is_empty() {
        let body = asked.body(false, None);
        let counted = cx.change(Method::POST, "/jobs/bulk", &body).await?;
        let jobs = number(&counted, "count");
        return Ok(Many { jobs, more: false });
    }
    crate::web::operator(cx.caller)?;
    if !["retry", "cancel", "delete"].contains(&asked.action.as_str()) {
        let sentence = format!("nothing can be done that is called {}", asked.action);
        return Err(Problem::invalid(sentence));
    }
    bulk_count::found(cx, &asked.action, &asked.filter).await
}

pub async fn ask(cx: &Cx) -> Result<Page, Problem> {
    let asked = Asked::of(&cx.query)?;
    let many = counted(cx, &asked).await?;
    let (word, means) = meaning(&asked.action);
    // Whoever presses Enter once too often must lose nothing.
    let for_good = asked.action == "delete";
    let main = html! {
        section.confirm {
            h1 { (word) " " (many.words()) " " (asked.which()) "?" }
            @if many.none() {
                p { "There is nothing to do: " (asked.action) " has no meaning for any of them." }
            } @else {
                p { (means) }
                @if many.more { p.hint { "There are more than were counted. All of them are meant; what was done is told exactly." } }
                (cx.form("/jobs/bulk", &html! {
                    (asked.fields())
                    button.danger[for_good].primary[!for_good] autofocus[!for_good] { (word) " them" }
                }))
            }
            a.button href=(asked.filter.link()) autofocus[for_good] { "Leave them" }
        }
    };
    Ok(Page::new(format!("{word} jobs"), "/jobs", main))
}

pub async fn run(cx: &Cx, form: &Form) -> Result<Done, Problem> {
    let asked = Asked::of(form)?;
    let body = asked.body(true, form.word("cursor"));
    let done = cx.change(Method::POST, "/jobs/bulk", &body).await?;
    let words = told(&done);
    let well = number(&done, "conflicts") + number(&done, "missing") == 0;
    let Some(next) = done["next"].as_str() else {
        return Ok(Done::Go(asked.filter.link(), Note { well, words }));
    };
    let (word, _) = meaning(&asked.action);
    let main = html! {
        section.confirm {
            h1 { "There may be more" }
            p { (words) ". One request goes through a bounded number of rows, so that workers get their turn." }
            (cx.form("/jobs/bulk", &html! {
                (asked.fields())
                input type="hidden" name="cursor" value=(next);
                button.primary autofocus { "Go on" }
            }))
            a.button href=(asked.filter.link()) { "Stop here" }
        }
    };
    Ok(Done::More(Page::new(format!("{word} jobs"), "/jobs", main)))
}

/// `37 queued, 2 could not be: ...`
fn told(done: &Value) -> String {
    let changed = done["changed"].as_object().into_iter().flatten();
    let mut parts: Vec<String> = changed
        .map(|(word, n)| format!("{} {word}", show::count(n.as_u64().unwrap_or_default())))
        .collect();
    if parts.is_empty() {
        parts.push("none changed".to_owned());
    }
    let conflicts = number(done, "conflicts");
    if conflicts > 0 {
        let first = text(done, "first_conflict");
        parts.push(format!("{} could not be: {first}", show::count(conflicts)));
    }
    match number(done, "missing") {
        0 => {}
        missing => parts.push(format!("{} are gone", show::count(missing))),
    }
    parts.join(", ")
}
