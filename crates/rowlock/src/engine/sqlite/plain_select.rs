//! Reads a query as far as an index can be told from it: one table, its columns, its condition.

use super::query::unquoted;

/// `SELECT columns FROM table WHERE condition`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainSelect {
    /// As it is written.
    pub(super) table: String,
    /// Without the table's short name, as an index wants it.
    pub(super) condition: Option<String>,
    /// What the query calls a column, and what the table does.
    columns: Vec<(String, String)>,
}

/// Words that end what comes before, or make it more than a plain query.
const MORE: [&str; 16] = [
    "JOIN",
    "CROSS",
    "NATURAL",
    "LEFT",
    "RIGHT",
    "FULL",
    "INNER",
    "OUTER",
    "GROUP",
    "HAVING",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "WINDOW",
    "DISTINCT",
    "VALUES",
];
const KEYWORDS: [&str; 12] = [
    "SELECT", "FROM", "WHERE", "ORDER", "GROUP", "INDEX", "TABLE", "ON", "AS", "BY", "TO", "SET",
];

/// Whether a name would be read as something else.
pub(super) fn is_keyword(name: &str) -> bool {
    let mut words = KEYWORDS.iter().chain(&MORE);
    words.any(|word| word.eq_ignore_ascii_case(name))
}

/// Whether a word is in the text, outside of strings and comments.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let tokens = tokens(text);
    tokens
        .iter()
        .any(|token| unquoted(token.text).eq_ignore_ascii_case(word))
}

/// Whether a query finds other rows by itself, as time goes by or at random. No index can have its
/// condition.
pub(super) fn moves(query: &str) -> bool {
    match PlainSelect::read(query) {
        Some(select) => select.condition.as_deref().is_some_and(asks_the_time),
        None => asks_the_time(query),
    }
}

fn asks_the_time(text: &str) -> bool {
    let tokens = tokens(text);
    let always = |token: &Token<'_>| MOVING.iter().any(|word| token.is(word));
    let called = |part: &[Token<'_>]| match part {
        [name, open, ..] if open.text != "(" || !CLOCKS.iter().any(|word| name.is(word)) => false,
        [_, _, end, ..] if end.text == ")" || end.is("'subsec'") || end.is("'subsecond'") => true,
        [name, _, _, end] => name.is("strftime") && end.text == ")",
        _ => false,
    };
    // The last parts are shorter: nothing comes after them.
    let mut from_each = (0..tokens.len()).map(|at| &tokens[at..tokens.len().min(at + 4)]);
    tokens.iter().any(always) || from_each.any(called)
}

/// What differs each time, and what says so to a function of time.
const MOVING: [&str; 6] = [
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "random",
    "randomblob",
    "'now'",
];
/// They tell the time if they aren't asked about another.
const CLOCKS: [&str; 6] = [
    "unixepoch",
    "datetime",
    "date",
    "time",
    "julianday",
    "strftime",
];

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    depth: usize,
    /// Whether something that separates comes before it.
    apart: bool,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

impl PlainSelect {
    /// Nothing for a query that is more than that.
    pub(super) fn read(text: &str) -> Option<Self> {
        let all = tokens(text);
        let outer = |word: &str| {
            all.iter()
                .position(|token| token.depth == 0 && token.is(word))
        };
        let more = |token: &Token<'_>| token.depth == 0 && MORE.iter().any(|word| token.is(word));
        if !all.first()?.is("SELECT") || all.iter().any(more) {
            return None;
        }
        let from = outer("FROM")?;
        let end = outer("ORDER").unwrap_or(all.len());
        let wher = outer("WHERE").unwrap_or(end);
        let (table, alias) = match all.get(from + 1..wher)? {
            [table] => (table, table),
            [table, alias] => (table, alias),
            [table, word, alias] if word.is("AS") => (table, alias),
            _ => return None,
        };
        let names = [table.text, alias.text];
        let condition = all.get(wher + 1..end).filter(|part| !part.is_empty());
        let columns = all[1..from].split(|token| token.depth == 0 && token.text == ",");
        Some(Self {
            table: table.text.to_owned(),
            condition: condition.map(|part| joined(&without_prefix(part, &names))),
            columns: columns
                .filter_map(|part| column(&without_prefix(part, &names)))
                .collect(),
        })
    }

    /// The table's column that the query shows under a name.
    pub(super) fn column_of(&self, name: &str) -> Option<String> {
        let found = self.columns.iter().find(|(shown, _)| shown == name);
        found.map(|(_, column)| column.clone())
    }
}

/// A column that is shown as it is, perhaps under another name.
fn column(part: &[Token<'_>]) -> Option<(String, String)> {
    let (of, shown) = match part {
        [of] => (of, of),
        [of, shown] => (of, shown),
        [of, word, shown] if word.is("AS") => (of, shown),
        _ => return None,
    };
    Some((unquoted(shown.text), unquoted(of.text)))
}

fn without_prefix<'a>(part: &[Token<'a>], prefixes: &[&str]) -> Vec<Token<'a>> {
    let mut left = Vec::with_capacity(part.len());
    let mut rest = part;
    while let [first, others @ ..] = rest {
        let is_prefix = prefixes.iter().any(|prefix| first.is(prefix));
        rest = match others {
            [dot, column, others @ ..] if is_prefix && dot.text == "." => {
                let apart = first.apart;
                left.push(Token { apart, ..*column });
                others
            }
            _ => {
                left.push(*first);
                others
            }
        };
    }
    left
}

fn joined(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.apart && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(token.text);
    }
    text
}

/// Words, numbers, strings and signs; what is in parentheses is deeper than they are.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut depth, mut apart) = (0, 0_usize, true);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = length(rest, first);
        let blank = first.is_whitespace() || rest.starts_with("--") || rest.starts_with("/*");
        if blank {
            apart = true;
        } else {
            depth -= usize::from(first == ')' && depth > 0);
            let text = &rest[..length];
            found.push(Token { text, depth, apart });
            depth += usize::from(first == '(');
            apart = false;
        }
        at += length;
    }
    found
}

fn length(rest: &str, first: char) -> usize {
    let up_to = |end: &str, from: usize| {
        let found = rest.get(from..).and_then(|rest| rest.find(end));
        found.map_or(rest.len(), |at| from + at + end.len())
    };
    match first {
        '\'' | '"' | '`' => quoted(rest, first),
        '[' => up_to("]", 1),
        '-' if rest.starts_with("--") => up_to("\n", 2),
        '/' if rest.starts_with("/*") => up_to("*/", 2),
        _ if in_word(first) => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
        _ => first.len_utf8(),
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// A doubled quote doesn't end it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut inside = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = inside.next() {
        if c == quote && inside.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        let select = PlainSelect::read(text)?;
        Some((select.table, select.condition.unwrap_or_default()))
    }

    #[test]
    fn a_plain_query_is_taken_apart() {
        for (query, table, condition) in [
            ("SELECT id FROM t WHERE a = 'x'", "t", "a = 'x'"),
            (
                "select t.id from t where t.a<=3 and b in (1,2)",
                "t",
                "a<=3 and b in (1,2)",
            ),
            (
                "SELECT d.id FROM t AS d WHERE d.a = 'd.a' -- why",
                "t",
                "a = 'd.a'",
            ),
            (
                "SELECT id FROM \"a b\" /* x */ d WHERE d.\"it's\"='it''s' ORDER BY 1",
                "\"a b\"",
                "\"it's\"='it''s'",
            ),
            ("SELECT id FROM t", "t", ""),
        ] {
            let expected = (table.to_owned(), condition.to_owned());
            assert_eq!(read(query), Some(expected), "{query}");
        }
    }

    #[test]
    fn a_query_that_is_more_is_left_alone() {
        for query in [
            "SELECT id FROM a, b WHERE a.x = b.x",
            "SELECT id FROM a JOIN b USING (x)",
            "SELECT id FROM a WHERE x UNION SELECT id FROM b",
            "SELECT id FROM a GROUP BY id",
            "WITH w AS (SELECT 1 AS id) SELECT id FROM w",
            "SELECT id FROM (SELECT 1 AS id) WHERE id",
            "",
        ] {
            assert_eq!(read(query), None, "{query}");
        }
    }

    #[test]
    fn a_condition_that_moves_is_noticed() {
        for query in [
            "SELECT id FROM t WHERE due <= unixepoch()",
            "SELECT id FROM t WHERE due <= datetime ( 'now', '-1 day')",
            "SELECT id FROM t WHERE due <= CURRENT_TIMESTAMP AND a",
            "SELECT id FROM t WHERE abs(random()) % 2",
            "SELECT id FROM t WHERE due < strftime('%s')",
            "SELECT id FROM t WHERE due < unixepoch('subsec')",
            "SELECT id FROM t JOIN u USING (id) WHERE due < julianday()",
        ] {
            assert!(moves(query), "{query}");
        }
        for query in [
            "SELECT id FROM t WHERE date = 'today'",
            "SELECT id, unixepoch() AS at FROM t WHERE state = 'x'",
            "SELECT id FROM t WHERE date(due) <= '2026-01-01' -- unixepoch()",
            "SELECT id FROM t",
        ] {
            assert!(!moves(query), "{query}");
        }
    }

    #[test]
    fn the_tables_own_name_of_a_column_is_known() {
        let select = PlainSelect::read("SELECT d.\"the id\" AS id, note n FROM t d").unwrap();
        assert_eq!(select.column_of("id").as_deref(), Some("the id"));
        assert_eq!(select.column_of("n").as_deref(), Some("note"));
        assert_eq!(select.column_of("x"), None);
    }
}
