//! The frame of every page: where one is, where one can go, who one is.

use maud::{DOCTYPE, Markup, html};

use super::asset::{ICON, SCRIPT, STYLE};
use super::note::Note;
use crate::web::problem::Problem;

/// The pages, and the key after `g` that leads there.
pub const PLACES: [(&str, &str, &str); 8] = [
    ("/", "Overview", "o"),
    ("/jobs", "Jobs", "j"),
    ("/queues", "Queues", "q"),
    ("/workers", "Workers", "w"),
    ("/pairs", "Pairs & crons", "p"),
    ("/drains", "Drains", "d"),
    ("/switches", "Switches", "s"),
    ("/health", "Health", "h"),
];

/// What a frame says beside its page.
pub struct Frame<'a> {
    pub title: &'a str,
    /// Which of the places it belongs to.
    pub here: &'a str,
    pub store: &'a str,
    pub role: &'a str,
    pub now: String,
    /// What its stream needn't tell it again.
    pub told: u64,
    pub note: Option<Note>,
}

impl Frame<'_> {
    pub fn around(&self, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title))
                body data-now=(self.now) data-told=(self.told) {
                    a.skip href="#main" { "Skip to the content" }
                    header.side {
                        a.brand href="/" { (mark()) "rowlock" }
                        nav aria-label="Pages" { ul {
                            @for (path, name, key) in PLACES {
                                @let here = (path == self.here).then_some("page");
                                li { a href=(path) aria-current=[here] data-key=(key) { (name) } }
                            }
                        } }
                        div.who {
                            span.store title=(self.store) { (breakable(self.store)) }
                            span.role { (self.role) span.version { " · rowlock " (env!("CARGO_PKG_VERSION")) } }
                            span #pulse hidden { "live" }
                            button #keys type="button" hidden { "Keys " kbd { "?" } }
                        }
                    }
                    main #main tabindex="-1" {
                        @if let Some(note) = &self.note {
                            p.note.bad[!note.well] role="status" { (note.words) }
                        }
                        (main)
                    }
                    (help())
                }
            }
        }
    }
}

/// An address or a path that may break between its parts, and not within `://`.
fn breakable(text: &str) -> Markup {
    let is_break = |(at, c): &(usize, char)| {
        let head = &text[..*at];
        match c {
            '/' => !head.is_empty() && !head.ends_with([':', '/']),
            '@' => true,
            _ => head.ends_with("//"),
        }
    };
    let breaks = text.char_indices().filter(is_break).map(|(at, _)| at);
    let ends: Vec<usize> = breaks.chain([text.len()]).collect();
    let starts = [0].into_iter().chain(ends.iter().copied());
    let parts = starts.zip(&ends).map(|(start, end)| &text[start..*end]);
    html! { @for (n, part) in parts.enumerate() { @if n > 0 { wbr; } (part) } }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            title { (title) " · rowlock" }
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            link rel="icon" href=(ICON.path) type="image/svg+xml";
            link rel="stylesheet" href=(STYLE.path);
            script src=(SCRIPT.path) defer {}
        }
    }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" aria-hidden="true" {
            path d="M6 4v8a6 6 0 0 0 12 0V4M12 18v3" {}
        }
    }
}

/// Shown by the script; without it there are no keys to explain.
fn help() -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            div.lists {
            dl {
                @for (_, name, key) in PLACES {
                    div { dt { kbd { "g" } " " kbd { (key) } } dd { (name) } }
                }
                div { dt { kbd { "g" } " " kbd { "n" } } dd { "New job" } }
            }
            dl {
                div { dt { kbd { "/" } } dd { "Filter, or find a job" } }
                div { dt { kbd { "j" } " " kbd { "k" } } dd { "Next row, row before" } }
                div { dt { kbd { "x" } } dd { "Select the row" } }
                div { dt { kbd { "Enter" } } dd { "Open the row" } }
                div { dt { kbd { "?" } } dd { "This list" } }
                div { dt { kbd { "Esc" } } dd { "Leave this list, or a field" } }
            }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Something that went wrong, as a page.
pub fn problem(problem: &Problem, back: &str) -> Markup {
    // What the API tells programs is of no use here.
    let remedy = match problem.remedy.contains("/api/v1") {
        false => problem.remedy.as_str(),
        true if problem.status == 404 => "go back to the list and look what there is",
        true => "correct it and try again",
    };
    let place = PLACES.iter().find(|(path, ..)| *path == back);
    let (path, name, _) = place.unwrap_or(&PLACES[0]);
    html! {
        section.problem {
            h1 { (problem.sentence) }
            p { (remedy) }
            p.code { (problem.status.as_u16()) " " (problem.code) }
            p { a.button href=(path) { "Go to " (name) } }
        }
    }
}

/// The same for somebody who mustn't see more than that.
pub fn bare(main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Not here"))
            body.bare { main #main { (main) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_breaks_before_its_parts() {
        let shown = |text| breakable(text).into_string();
        assert_eq!(
            shown("postgres://me@there/mine"),
            "postgres://<wbr>me<wbr>@there<wbr>/mine"
        );
        assert_eq!(shown("sqlite /var/x.db"), "sqlite <wbr>/var<wbr>/x.db");
    }
}
