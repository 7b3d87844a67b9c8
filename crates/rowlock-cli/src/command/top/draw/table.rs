//! A table as wide as the screen: columns that don't fit are cut, then left out by their rank.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::palette::Palette;
use super::{line, put};
use crate::command::top::panel::{Column, Row};
use crate::command::top::state::State;
use crate::command::top::text::{fit, width};

/// No cell is wider.
const WIDEST: usize = 400;
/// No text is cut below this: a column is left out instead.
const LEAST: usize = 10;
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

/// Which columns are shown, and how wide. Numbers are never cut; texts share what is left.
fn columns(all: &[Column], rows: &[Row], room: usize) -> Vec<(usize, usize)> {
    let whole = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(n));
        let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
        widest.max(width(all[n].name)).min(WIDEST)
    };
    let whole: Vec<usize> = (0..all.len()).map(whole).collect();
    let least = |n: usize| match all[n].right {
        true => whole[n],
        false => whole[n].min(LEAST),
    };
    let mut shown: Vec<(usize, usize)> = (0..all.len()).map(|n| (n, least(n))).collect();
    let used = |shown: &[(usize, usize)]| -> usize {
        let gaps = GAP * shown.len().saturating_sub(1);
        shown.iter().map(|(_, wide)| wide).sum::<usize>() + gaps
    };
    while used(&shown) > room && shown.len() > 1 {
        let ranked = shown.iter().enumerate();
        let last = ranked.max_by_key(|(_, (n, _))| all[*n].rank);
        let Some((at, _)) = last else { break };
        shown.remove(at);
    }
    for _ in used(&shown)..room {
        let cut = shown.iter_mut().filter(|(n, wide)| *wide < whole[*n]);
        let Some((_, wide)) = cut.min_by_key(|(_, wide)| *wide) else {
            break;
        };
        *wide += 1;
    }
    shown
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::top::panel::{Key, Tone};

    #[test]
    fn numbers_are_whole_texts_share_the_room_and_the_least_important_goes() {
        let column = |name, right, rank| Column { name, right, rank };
        let all = [
            column("NAME", false, 0),
            column("N", true, 1),
            column("M", true, 3),
            column("WHY", false, 2),
        ];
        let cells = [
            "a".repeat(30),
            "1,234,567".to_owned(),
            "9".to_owned(),
            "b".repeat(20),
        ];
        let rows = [Row {
            key: Key::Named(String::new()),
            cells: cells.to_vec(),
            tone: Tone::Plain,
        }];
        assert_eq!(columns(&all, &rows, 80), [(0, 30), (1, 9), (2, 1), (3, 20)]);
        assert_eq!(columns(&all, &rows, 50), [(0, 17), (1, 9), (2, 1), (3, 17)]);
        assert_eq!(columns(&all, &rows, 34), [(0, 11), (1, 9), (3, 10)]);
        assert_eq!(columns(&all, &rows, 25), [(0, 14), (1, 9)]);
        assert_eq!(columns(&all, &rows, 4), [(0, 10)]);
    }
}
