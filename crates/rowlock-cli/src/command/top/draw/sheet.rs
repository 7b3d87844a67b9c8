//! What takes the table's place: everything about one thing, and the help.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::palette::Palette;
use super::{line, put};
use crate::command::top::state::Page;
use crate::command::top::text::wrap;

/// One line for each key, as docs/top.md has them.
pub const HELP: [(&str, &str); 13] = [
    ("q  Ctrl-C", "quit"),
    ("Tab  1 ... 6", "the next panel; a panel by its number"),
    ("arrows  j  k", "move; also PgUp, PgDn, g, G"),
    ("Enter", "everything about the selected row; Esc goes back"),
    ("/", "only rows with this text; Esc shows all again"),
    ("s", "jobs: those that run, or those that failed"),
    ("p", "pause or resume the selected queue"),
    ("r", "retry the selected job"),
    ("c", "cancel the selected job"),
    ("space", "freeze, and go on"),
    ("+  -", "look more often, less often"),
    ("?", "this help; any key leaves it"),
    ("", "p, r and c ask before they change anything"),
];

pub fn help(buffer: &mut Buffer, area: Rect, palette: Palette) {
    if let Some(first) = line(area, 0) {
        put(buffer, first, 0, "KEYS", palette.heading());
    }
    for (n, (key, does)) in HELP.iter().enumerate() {
        if let Some(place) = line(area, n + 1) {
            put(buffer, place, 0, &format!("{key:<14}{does}"), Style::new());
        }
    }
}

pub fn page(buffer: &mut Buffer, area: Rect, page: &mut Page, palette: Palette) {
    let lines: Vec<String> = page
        .lines
        .iter()
        .flat_map(|line| folded(line, usize::from(area.width)))
        .collect();
    let room = usize::from(area.height).saturating_sub(1);
    page.top = page.top.min(lines.len().saturating_sub(room));
    let more = match lines.len() > room {
        true => {
            let last = (page.top + room).min(lines.len());
            format!("  (lines {} to {last} of {})", page.top + 1, lines.len())
        }
        false => String::new(),
    };
    if let Some(first) = line(area, 0) {
        put(
            buffer,
            first,
            0,
            &format!("{}{more}", page.title),
            palette.heading(),
        );
    }
    for (n, text) in lines.iter().skip(page.top).enumerate() {
        let Some(place) = line(area, n + 1) else {
            break;
        };
        put(buffer, place, 0, text, Style::new());
    }
}

/// The lines of one entry; those that follow stand below its value.
fn folded(text: &str, room: usize) -> Vec<String> {
    const INDENT: usize = 11;
    if room <= INDENT * 2 {
        return wrap(text, room);
    }
    let value = text
        .char_indices()
        .nth(INDENT)
        .map_or(text.len(), |(at, _)| at);
    let (what, value) = text.split_at(value);
    let lines = wrap(value, room - INDENT).into_iter().enumerate();
    let place = |(n, line): (usize, String)| match n {
        0 => format!("{what}{line}"),
        _ => format!("{:INDENT$}{line}", ""),
    };
    lines.map(place).collect()
}
