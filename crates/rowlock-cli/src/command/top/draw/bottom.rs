//! The bottom: a question, what is being typed, what is wrong, what was done, or which keys there are.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::palette::Palette;
use super::{line, put};
use crate::command::top::panel::{Panel, Tone};
use crate::command::top::state::{Mode, State};
use crate::command::top::text::{clean, wrap};
use crate::show;

/// The lines. What is wrong stays in sight until it is over.
pub fn lines(state: &State, width: u16) -> Vec<String> {
    let wrapped = |text: &str| wrap(text, usize::from(width));
    let mut lines = Vec::new();
    if let Some(why) = &state.trouble {
        let again = match state.frozen {
            true => "frozen".to_owned(),
            false => format!("trying again every {}", show::span(state.every)),
        };
        lines.extend(wrapped(&format!("error: {} ({again})", clean(why))));
    }
    match &state.mode {
        Mode::Ask(action) => lines.extend(wrapped(&clean(&format!("{} y/n", action.question())))),
        Mode::Filter => lines.push(format!("/{}_", clean(&state.filter))),
        Mode::Page(_) => lines.push("Esc goes back  arrows scroll".to_owned()),
        Mode::Help => lines.push("any key goes back".to_owned()),
        Mode::Browse => match &state.note {
            Some(note) => lines.extend(wrapped(&clean(note))),
            None => lines.push(hint(state)),
        },
    }
    lines
}

fn hint(state: &State) -> String {
    let keys = match state.panel {
        Panel::Queues => "p pause  ",
        Panel::Jobs => "r retry  c cancel  s failed or running  ",
        _ => "",
    };
    let filter = match state.filter.is_empty() {
        true => "/ filter".to_owned(),
        false => format!("filter: {} (Esc ends it)", clean(&state.filter)),
    };
    format!("{keys}Enter details  {filter}  ? help  q quit")
}

pub fn draw(buffer: &mut Buffer, area: Rect, lines: &[String], state: &State, palette: Palette) {
    // Where there isn't room for all, the last one is what a key answers.
    let skip = lines.len().saturating_sub(usize::from(area.height));
    for (n, text) in lines.iter().skip(skip).enumerate() {
        let style = match (&state.mode, &state.trouble) {
            (Mode::Ask(_), _) => palette.tone(Tone::Warn),
            (_, Some(_)) => palette.tone(Tone::Bad),
            (Mode::Browse, None) if state.note.is_none() => palette.aside(),
            _ => Style::new(),
        };
        if let Some(place) = line(area, n) {
            put(buffer, place, 0, text, style);
        }
    }
}
