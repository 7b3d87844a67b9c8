//! The bottom: a question, what is being typed, what is wrong, what was done, or which keys there are.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::palette::Palette;
use super::{line, put};
use crate::command::top::panel::{Panel, Tone};
use crate::command::top::state::{Mode, State};
use crate::command::top::text::{clean, wrap};
use crate::show;

/// A line, and how it is meant; nothing for what is said beside.
pub type Said = (String, Option<Tone>);

/// The lines. What is wrong stays in sight until it is over.
pub fn lines(state: &State, width: u16) -> Vec<Said> {
    let mut lines = Vec::new();
    let mut say = |text: &str, tone: Option<Tone>| {
        let wrapped = wrap(text, usize::from(width)).into_iter();
        lines.extend(wrapped.map(|line| (line, tone)));
    };
    if let Some(why) = &state.trouble {
        let again = match state.frozen {
            true => "frozen".to_owned(),
            false => format!("trying again every {}", show::span(state.every)),
        };
        let told = format!("error: {} ({again})", clean(why));
        say(&told, Some(Tone::Bad));
    }
    match (&state.mode, &state.note) {
        (Mode::Ask(action), _) => {
            let question = format!("{} y/n", action.question());
            say(&clean(&question), Some(Tone::Warn));
        }
        (Mode::Filter, _) => say(&format!("/{}_", clean(&state.filter)), Some(Tone::Plain)),
        (Mode::Page(_), _) => say("Esc goes back  arrows scroll", None),
        (Mode::Help, _) => say("any key goes back", None),
        (Mode::Browse, Some(note)) => say(&clean(note), Some(Tone::Plain)),
        // One line: what doesn't fit is in the help.
        (Mode::Browse, None) => lines.push((hint(state), None)),
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

pub fn draw(buffer: &mut Buffer, area: Rect, lines: &[Said], palette: Palette) {
    // Where there isn't room for all, the last one is what a key answers.
    let skip = lines.len().saturating_sub(usize::from(area.height));
    for (n, (text, tone)) in lines.iter().skip(skip).enumerate() {
        let style = tone.map_or_else(|| palette.aside(), |tone| palette.tone(tone));
        if let Some(place) = line(area, n) {
            put(buffer, place, 0, text, style);
        }
    }
}
