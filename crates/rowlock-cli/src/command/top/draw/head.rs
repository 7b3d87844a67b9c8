//! The head: which store, how often it is looked at, what it has in all, and the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use rowlock::engine::Counts;

use super::palette::Palette;
use super::put;
use crate::command::stats::oldest;
use crate::command::top::panel::{Panel, Tone};
use crate::command::top::rate;
use crate::command::top::state::{State, View};
use crate::command::top::text::width;
use crate::show;

pub fn store(buffer: &mut Buffer, line: Rect, state: &State, palette: Palette) {
    let seen = state.seen.queues.is_some();
    let at = match seen {
        true => state.seen.now.strftime("%H:%M:%SZ").to_string(),
        false => String::new(),
    };
    let pace = match state.frozen {
        true => "FROZEN, space goes on".to_owned(),
        false => format!("every {}", show::span(state.every)),
    };
    let right = format!("{at}  {pace}");
    let left = format!("rowlock {}  {}", env!("CARGO_PKG_VERSION"), state.store);
    let room = usize::from(line.width);
    let start = room.saturating_sub(width(&right));
    let short = Rect {
        width: u16::try_from(start.saturating_sub(2)).unwrap_or(line.width),
        ..line
    };
    put(buffer, short, 0, &left, palette.heading());
    let style = match state.frozen {
        true => palette.tone(Tone::Warn),
        false => palette.aside(),
    };
    put(
        buffer,
        line,
        u16::try_from(start).unwrap_or(0),
        &right,
        style,
    );
}

pub fn totals(buffer: &mut Buffer, line: Rect, state: &State, palette: Palette) {
    let Some(queues) = &state.seen.queues else {
        return;
    };
    let sum = |count: fn(&Counts) -> u64| -> String {
        show::count(queues.iter().map(|row| count(&row.counts)).sum())
    };
    let longest = queues.iter().map(|row| &row.counts).max_by(|one, other| {
        let waited = |counts: &Counts| counts.oldest_pending_seconds.unwrap_or(-1.0);
        waited(one).total_cmp(&waited(other))
    });
    let mut parts = vec![
        format!("pending {}", sum(|counts| counts.pending)),
        format!("running {}", sum(|counts| counts.processing)),
    ];
    if let Some(rate) = state.seen.rates.total() {
        parts.push(format!("done {}/s", rate::shown(rate.completed)));
        parts.push(format!("failed {}/s", rate::shown(rate.failed)));
    }
    if let Some(counts) = longest.filter(|counts| counts.oldest_pending_seconds.is_some()) {
        parts.push(format!("oldest {}", oldest(counts).replace(' ', "")));
    }
    let kept = [sum(|counts| counts.completed), sum(|counts| counts.failed)];
    parts.push(format!("kept {} done, {} failed", kept[0], kept[1]));
    put(buffer, line, 0, &parts.join("  "), palette.aside());
}

pub fn panels(buffer: &mut Buffer, line: Rect, state: &State, palette: Palette) {
    let mut at = 0;
    for (n, panel) in Panel::ALL.into_iter().enumerate() {
        let title = match (panel == state.panel, panel, state.view) {
            (true, Panel::Jobs, View::Failed) => "jobs: failed",
            (true, Panel::Jobs, View::Running) => "jobs: running",
            _ => panel.title(),
        };
        let style = match panel == state.panel {
            true => palette.selected(Style::new()),
            false => Style::new(),
        };
        at = put(buffer, line, at, &format!(" {} {title} ", n + 1), style);
    }
}
