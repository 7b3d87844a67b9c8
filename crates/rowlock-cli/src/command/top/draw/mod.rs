//! The screen: two lines of head, the panels' names, one table, and the line at the bottom. Plain ASCII
//! and no borders, so that all of it fits 80x24 and any terminal. What doesn't fit is left out.

mod bottom;
mod head;
mod palette;
mod sheet;
mod table;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use self::palette::Palette;
#[cfg(test)]
pub use self::sheet::HELP;
use super::state::{Mode, State};
use super::text::fit;

pub fn frame(frame: &mut Frame<'_>, state: &mut State) {
    let area = frame.area();
    screen(frame.buffer_mut(), area, state);
}

fn screen(buffer: &mut Buffer, area: Rect, state: &mut State) {
    let palette = Palette {
        colours: state.colours,
    };
    let mut rest = area;
    let words = bottom::lines(state, area.width);
    // The table has at least its heading and a row.
    let most = rest.height.saturating_sub(2).clamp(1, 4);
    let height = u16::try_from(words.len()).unwrap_or(most).min(most);
    let bottom = cut_bottom(&mut rest, height);
    if rest.height >= 5 {
        head::store(buffer, cut_top(&mut rest), state, palette);
    }
    if rest.height >= 5 {
        head::totals(buffer, cut_top(&mut rest), state, palette);
    }
    if rest.height >= 3 {
        head::panels(buffer, cut_top(&mut rest), state, palette);
    }
    match &mut state.mode {
        Mode::Page(page) => sheet::page(buffer, rest, page, palette),
        Mode::Help => sheet::help(buffer, rest, palette),
        _ => table::table(buffer, rest, state, palette),
    }
    bottom::draw(buffer, bottom, &words, palette);
}

fn cut_top(rest: &mut Rect) -> Rect {
    let line = Rect { height: 1, ..*rest };
    rest.y += 1;
    rest.height -= 1;
    line
}

fn cut_bottom(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect {
        y: rest.y + rest.height,
        height,
        ..*rest
    }
}

/// Writes one line into its area, from a column on; says where it ended.
fn put(buffer: &mut Buffer, line: Rect, from: u16, text: &str, style: Style) -> u16 {
    if line.height == 0 || from >= line.width {
        return from;
    }
    let room = line.width - from;
    let text = fit(text, usize::from(room));
    let (end, _) = buffer.set_stringn(line.x + from, line.y, text, usize::from(room), style);
    end - line.x
}

/// The nth line of an area, if it has so many.
fn line(area: Rect, n: usize) -> Option<Rect> {
    let n = u16::try_from(n).ok().filter(|n| *n < area.height)?;
    let y = area.y + n;
    Some(Rect {
        y,
        height: 1,
        ..area
    })
}
