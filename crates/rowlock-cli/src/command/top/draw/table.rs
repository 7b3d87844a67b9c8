//! A table as wide as the screen: columns that don't fit are cut, then left out by their rank.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::palette::Palette;
use super::{line, put};
use crate::command::top::panel::{Column, Row};
use crate::command::top::state::State;
use crate::command::top::text::{fit, width};

/// No cell is wider, and none is cut below this while a column could be left out instead.
const WIDEST: usize = 400;
const LEAST: usize = 12;
const GAP: usize = 2;

pub fn table(buffer: &mut Buffer, area: Rect, state: &mut State, palette: Palette) {
    let grid = state.grid();
    let cursor = state.cursor();
    cursor.follow(&grid.rows);
    let columns = columns(grid.columns, &grid.rows, usize::from(area.width));
    if let Some(first) = line(area, 0) {
        let names = grid.columns.iter().map(|column| column.name);
        let heading = cells(&columns, grid.columns, &names.collect::<Vec<_>>());
        put(buffer, first, 0, &heading, palette.heading());
    }
    if grid.rows.is_empty()
        && let Some(second) = line(area, 1)
    {
        put(buffer, second, 0, grid.empty, palette.aside());
    }
    let room = usize::from(area.height).saturating_sub(1);
    let lowest = (cursor.at + 1).saturating_sub(room);
    // No more rows above than needed: what was scrolled away comes back when there is room again.
    let highest = cursor
        .at
        .min(grid.rows.len().saturating_sub(room))
        .max(lowest);
    cursor.top = cursor.top.clamp(lowest, highest);
    let shown = grid.rows.iter().enumerate().skip(cursor.top).take(room);
    for (n, row) in shown {
        let Some(place) = line(area, n - cursor.top + 1) else {
            break;
        };
        let texts: Vec<&str> = row.cells.iter().map(String::as_str).collect();
        let mut style = palette.tone(row.tone);
        if n == cursor.at {
            style = palette.selected(style);
            buffer.set_style(place, style);
        }
        put(
            buffer,
            place,
            0,
            &cells(&columns, grid.columns, &texts),
            style,
        );
    }
}

/// Which columns are shown, and how wide.
fn columns(all: &[Column], rows: &[Row], room: usize) -> Vec<(usize, usize)> {
    let widest = |(n, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.cells.get(n));
        let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
        (n, widest.max(width(column.name)).min(WIDEST))
    };
    let mut shown: Vec<(usize, usize)> = all.iter().enumerate().map(widest).collect();
    loop {
        let gaps = GAP * shown.len().saturating_sub(1);
        let used: usize = shown.iter().map(|(_, wide)| wide).sum::<usize>() + gaps;
        let Some(over) = used.checked_sub(room).filter(|over| *over > 0) else {
            return shown;
        };
        let texts = shown.iter_mut().filter(|(n, _)| !all[*n].right);
        let fattest = texts.max_by_key(|(_, wide)| *wide);
        if let Some((_, wide)) = fattest.filter(|(_, wide)| *wide > LEAST) {
            // Not more than is needed, and not below the next one: they are cut in turn.
            *wide = wide.saturating_sub(over.min((*wide / 4).max(1))).max(LEAST);
            continue;
        }
        let last = shown.iter().enumerate().rev();
        let last = last.max_by_key(|(_, (n, _))| all[*n].rank);
        match last.map(|(at, _)| at) {
            Some(at) if shown.len() > 1 => drop(shown.remove(at)),
            _ => return shown,
        }
    }
}

fn cells(columns: &[(usize, usize)], all: &[Column], texts: &[&str]) -> String {
    let mut out = String::new();
    for (n, wide) in columns {
        let text = fit(texts.get(*n).copied().unwrap_or_default(), *wide);
        let gap = " ".repeat(wide.saturating_sub(width(&text)));
        let (before, after) = match all[*n].right {
            true => (gap.as_str(), ""),
            false => ("", gap.as_str()),
        };
        out.extend([before, &text, after, &" ".repeat(GAP)]);
    }
    out.truncate(out.trim_end().len());
    out
}
