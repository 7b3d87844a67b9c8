//! How things look to people: durations, columns, and text that can't play tricks on a terminal.

use std::path::Path;
use std::time::Duration;

/// A duration in at most two units: `3 ms`, `1.5 s`, `10 m`, `2 h 5 m`, `3 d`.
pub fn span(time: Duration) -> String {
    let (ms, secs) = (time.as_millis(), time.as_secs());
    match secs {
        0 => format!("{ms} ms"),
        1..10 if ms % 1000 >= 100 => format!("{}.{} s", secs, ms % 1000 / 100),
        1..60 => format!("{secs} s"),
        60..3_600 => two(secs / 60, "m", secs % 60, "s"),
        3_600..86_400 => two(secs / 3_600, "h", secs % 3_600 / 60, "m"),
        _ => two(secs / 86_400, "d", secs % 86_400 / 3_600, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// The time from one moment to a later one; nothing if it isn't later.
pub fn between(from: jiff::Timestamp, to: jiff::Timestamp) -> Duration {
    from.duration_until(to).try_into().unwrap_or_default()
}

/// A number with separators: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size: `12 KiB`, `1,234 MiB`.
pub fn bytes(bytes: u64) -> String {
    match bytes / 1024 {
        kib @ 0..1024 => format!("{kib} KiB"),
        kib => format!("{} MiB", count(kib / 1024)),
    }
}

/// A path as one would type it: `./rowlock.db`.
pub fn path(path: &Path) -> String {
    let plain = path.is_relative() && !path.starts_with(".") && !path.starts_with("..");
    let dot = if plain { "./" } else { "" };
    format!("{dot}{}", text(&path.display().to_string()))
}

/// Text from a job or a file, with control characters made visible, and with whatever turns or hides the text
/// beside it.
pub fn text(text: &str) -> String {
    spelled_out(text, plays_tricks)
}

/// The same for text of several lines.
pub fn lines(text: &str) -> String {
    spelled_out(text, |c| plays_tricks(c) && !matches!(c, '\n' | '\t'))
}

/// The same for JSON, which stays JSON: what it leaves as it is stands within strings.
pub fn json(text: String) -> String {
    if !text.contains(plays_tricks) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match plays_tricks(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

fn spelled_out(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match hidden(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

fn plays_tricks(c: char) -> bool {
    #[cfg(feature = "test-hooks")]
    if rowlock::hooks::switched_off("show.escaped") {
        return false;
    }
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The same, cut in the middle: an error says what failed first, and why last.
pub fn ends(whole: &str, longest: usize) -> String {
    let length = whole.chars().count();
    if length <= longest {
        return text(whole);
    }
    let half = longest / 2;
    let first: String = whole.chars().take(half).collect();
    let last: String = whole.chars().skip(length - half).collect();
    let bytes = count(whole.len() as u64);
    format!(
        "{} ... {} ({bytes} bytes, all of it with --json)",
        text(&first),
        text(&last)
    )
}

/// The same, cut to a length that fits a screen.
pub fn excerpt(whole: &str, longest: usize) -> String {
    match whole.char_indices().nth(longest) {
        None => text(whole),
        Some((end, _)) => format!(
            "{} ... ({} bytes, all of it with --json)",
            text(&whole[..end]),
            count(whole.len() as u64)
        ),
    }
}

/// Rows as aligned columns. The first row is the heading.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [usize],
}

impl Table {
    /// A table with a heading; the columns in `right` are numbers.
    pub fn new(heading: &[&str], right: &'static [usize]) -> Self {
        let heading = heading.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = vec![heading];
        Self { rows, right }
    }

    /// Adds a row. A cell stays in its line, whatever is in it.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows
            .push(cells.iter().map(|cell| text(cell)).collect());
    }

    /// The lines.
    pub fn lines(&self) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = match self.right.contains(&at) {
                    true => (gap.as_str(), ""),
                    false => ("", gap.as_str()),
                };
                line.extend([before, cell, after, "  "]);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (ms, shown) in [
            (0, "0 ms"),
            (3, "3 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_540, "1.5 s"),
            (59_999, "59 s"),
            (600_000, "10 m"),
            (605_000, "10 m 5 s"),
            (7_500_000, "2 h 5 m"),
            (259_200_000, "3 d"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), shown);
        }
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count).join(" "),
            "0 999 1,000 1,234,567"
        );
    }

    #[test]
    fn a_jobs_text_can_not_move_the_cursor() {
        assert_eq!(text("a\u{1b}[2Jb\n\u{9b}c"), "a\\u{1b}[2Jb\\n\\u{9b}c");
        assert_eq!(text("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(lines("a\u{1b}\n\tb"), "a\\u{1b}\n\tb");
        let mut table = Table::new(&["QUEUE"], &[]);
        table.row(vec!["a\nb\u{1b}".into()]);
        assert_eq!(table.lines(), "QUEUE\na\\nb\\u{1b}\n");
        let written = json("[\"a\u{9b}\u{7f}\"]".to_owned());
        assert_eq!(written, "[\"a\\u009b\\u007f\"]");
        let read: Vec<String> = serde_json::from_str(&written).unwrap();
        assert_eq!(read, ["a\u{9b}\u{7f}"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["ID", "KIND"], &[0]);
        table.row(vec!["100".into(), "echo".into()]);
        table.row(vec!["7".into(), "a".into()]);
        assert_eq!(table.lines(), " ID  KIND\n100  echo\n  7  a\n");
    }
}
