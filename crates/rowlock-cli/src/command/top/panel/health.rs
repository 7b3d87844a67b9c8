//! Health: the findings of `doctor`, the bad ones first.

use super::{Column, Grid, Key, Row, Tone, text};
use crate::command::doctor::{Finding, Level};
use crate::command::top::look::Seen;
use crate::command::top::state::Page;
use crate::command::top::text::clean;

const COLUMNS: [Column; 3] = [text("LEVEL", 1), text("CODE", 2), text("WHAT", 0)];

fn level(each: &Finding) -> &'static str {
    match each.level {
        Level::Ok => "ok",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

/// A code may be told more than once.
fn key(each: &Finding) -> Key {
    Key::Named(format!("{} {}", each.code, each.what))
}

pub fn grid(seen: &Seen) -> Grid {
    let mut found: Vec<&Finding> = seen.health.iter().flatten().collect();
    found.sort_by_key(|each| match each.level {
        Level::Error => 0,
        Level::Warn => 1,
        Level::Info => 2,
        Level::Ok => 3,
    });
    let rows = found.into_iter().map(|each| Row {
        key: key(each),
        cells: vec![
            level(each).to_owned(),
            each.code.to_owned(),
            clean(&each.what),
        ],
        tone: match each.level {
            Level::Error => Tone::Bad,
            Level::Warn => Tone::Warn,
            Level::Info => Tone::Plain,
            Level::Ok => Tone::Quiet,
        },
    });
    Grid {
        columns: &COLUMNS,
        rows: rows.collect(),
        empty: "examining the store, as `rowlock doctor` does ...",
    }
}

pub fn page(seen: &Seen, selected: &Key) -> Option<Page> {
    let mut found = seen.health.iter().flatten();
    let each = found.find(|each| key(each) == *selected)?;
    let mut page = Page::new(format!("finding {}", each.code));
    page.add("level", level(each));
    page.add("what", &each.what);
    if let Some(remedy) = &each.remedy {
        page.add("remedy", remedy);
    }
    page.add("page", &format!("docs/findings/{}.md", each.code));
    Some(page)
}
