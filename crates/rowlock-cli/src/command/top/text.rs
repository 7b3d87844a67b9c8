//! Text for a screen: harmless, as wide as there is room, and payloads over several lines.

use std::time::Duration;

use ratatui::text::Span;

use crate::show;

/// Text from a store: it can't play tricks on the terminal.
pub fn clean(text: &str) -> String {
    show::text(text)
}

/// A duration for a column: `3ms`, `1.5s`, `10m32s`.
pub fn short(time: Duration) -> String {
    show::span(time).replace(' ', "")
}

/// How many columns it takes up.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most so many columns of it; a `~` says that there is more.
pub fn fit(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (kept, _) = split(text, most.saturating_sub(1));
    match most {
        0 => String::new(),
        _ => format!("{kept}~"),
    }
}

/// The part that fits into so many columns, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > most {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// The same text in lines of at most so many columns, broken at spaces where there are some.
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest) > most {
        let (first, _) = split(rest, most);
        // A character that is wider than the screen is cut off by the screen.
        let first = match first.is_empty() {
            true => rest.chars().next().map_or(rest, |c| &rest[..c.len_utf8()]),
            false => first,
        };
        let end = match first.rfind(' ') {
            Some(at) if at > most / 2 => at,
            _ => first.len(),
        };
        lines.push(rest[..end].to_owned());
        rest = rest[end..].trim_start_matches(' ');
    }
    if lines.is_empty() || !rest.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

/// JSON over several lines. Only white space is added: numbers and the order of fields stay as they are.
pub fn spread(json: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut last = ' ';
    let start = |lines: &mut Vec<String>, depth: usize| lines.push("  ".repeat(depth.min(20)));
    for c in json.chars() {
        if !quoted && c.is_whitespace() {
            continue;
        }
        if !quoted && matches!(c, '}' | ']') {
            depth = depth.saturating_sub(1);
            if !matches!(last, '{' | '[') {
                start(&mut lines, depth);
            }
        } else if !quoted && matches!(last, '{' | '[' | ',') {
            start(&mut lines, depth);
        }
        if let Some(line) = lines.last_mut() {
            line.push(c);
            if c == ':' && !quoted {
                line.push(' ');
            }
        }
        if !quoted && matches!(c, '{' | '[') {
            depth += 1;
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
        // What stands in a string opens nothing.
        last = if quoted { '"' } else { c };
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_contains_can_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[2J\u{9b}m\n"), "a\\u{1b}[2J\\u{9b}m\\n");
        assert_eq!(clean("exe\u{202e}gpj"), "exe\\u{202e}gpj");
        assert_eq!(clean("Größe 数"), "Größe 数");
    }

    #[test]
    fn text_is_cut_by_columns_and_not_by_letters() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc~");
        assert_eq!(fit("数数数", 4), "数~");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn long_lines_are_broken_and_nothing_is_left_out() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("数数", 1), ["数", "数"]);
    }

    #[test]
    fn a_payload_is_spread_over_lines_as_it_was_written() {
        let lines = spread(r#"{"b":1.10,"a":[1,{"x":"{,\"}"}],"e":{},"s":""}"#);
        let shown = [
            "{",
            "  \"b\": 1.10,",
            "  \"a\": [",
            "    1,",
            "    {",
            "      \"x\": \"{,\\\"}\"",
            "    }",
            "  ],",
            "  \"e\": {},",
            "  \"s\": \"\"",
            "}",
        ];
        assert_eq!(lines, shown);
    }
}
