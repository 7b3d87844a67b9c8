//! Puts a user's query into our statements.

use rusqlite::types::Value as Stored;
use serde_json::Value as Json;

use super::statements::Sql;
use crate::error::{Error, Result};
use crate::job::Name;

/// A template with its gaps filled, each once: what is put in is not looked through for gaps.
pub(super) fn fill(template: Sql, gaps: &[(&str, &str)]) -> String {
    let text = template.text();
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    let bare = lines.collect::<Vec<_>>().join("\n");
    let mut out = String::with_capacity(bare.len() + 200);
    let mut rest = bare.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let with = gaps.iter().find(|(gap, _)| *gap == name);
        out.push_str(with.map_or("", |(_, with)| with));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A column of the query.
pub(super) fn column(name: &str) -> String {
    format!("q.{}", quoted(name))
}

/// A name as an identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An identifier as a name.
pub(super) fn unquoted(text: &str) -> String {
    let mut inner = text.chars();
    match (inner.next(), inner.next_back()) {
        (Some('"'), Some('"')) => inner.as_str().replace("\"\"", "\""),
        (Some('`'), Some('`')) => inner.as_str().replace("``", "`"),
        (Some('['), Some(']')) => inner.as_str().to_owned(),
        _ => text.to_owned(),
    }
}

/// A table, with its schema if that is said.
pub(super) fn table(name: &str) -> String {
    let parts: Vec<String> = name
        .split('.')
        .map(|part| quoted(&unquoted(part)))
        .collect();
    parts.join(".")
}

/// The columns, separated.
pub(super) fn columns(key: &[Name]) -> String {
    let all: Vec<String> = key.iter().map(|name| column(name.as_str())).collect();
    all.join(", ")
}

/// What a key column is in a key: a number as it is, anything else as JSON; nothing stays nothing.
fn piece(name: &Name) -> String {
    let column = column(name.as_str());
    format!(
        "CASE WHEN typeof({column}) IN ('integer', 'null') THEN {column} ELSE json_quote({column}) END"
    )
}

/// The pieces of a key, separated.
pub(super) fn pieces(key: &[Name]) -> String {
    key.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// The key as jobs have it.
pub(super) fn key(key: &[Name]) -> String {
    let pieces: Vec<String> = key.iter().map(piece).collect();
    format!("'[' || {} || ']'", pieces.join(" || ',' || "))
}

/// Names and values of a JSON object of all columns.
pub(super) fn fields(columns: &[String]) -> String {
    let all: Vec<String> = columns
        .iter()
        .map(|name| format!("'{}', {}", name.replace('\'', "''"), column(name)))
        .collect();
    all.join(", ")
}

/// What each column holds.
pub(super) fn types(columns: &[String]) -> String {
    let all: Vec<String> = columns
        .iter()
        .map(|name| format!("typeof({})", column(name)))
        .collect();
    all.join(", ")
}

/// The condition that a row comes after the cursor, and what to bind, from `?first` on.
///
/// Nothing comes first in SQLite's order. A cursor that has nothing in it, because a whole batch had,
/// leaves all such rows behind.
pub(super) fn after(
    key: &[Name],
    cursor: Option<&str>,
    first: usize,
) -> Result<(String, Vec<Stored>)> {
    let Some(cursor) = cursor else {
        return Ok((String::new(), Vec::new()));
    };
    let mut values = values(cursor)
        .filter(|values| values.len() == key.len())
        .ok_or_else(|| Error::invalid(format!("{cursor:?} is not a place in this pair's keys")))?;
    let nothing = values.iter().position(|value| *value == Stored::Null);
    values.truncate(nothing.unwrap_or(values.len()));
    let marks: Vec<String> = (first..first + values.len())
        .map(|n| format!("?{n}"))
        .collect();
    let (left, marks) = (columns(&key[..values.len()]), marks.join(", "));
    let condition = match nothing.map(|at| column(key[at].as_str())) {
        None => format!("WHERE ({left}) > ({marks})"),
        Some(column) if values.is_empty() => format!("WHERE {column} IS NOT NULL"),
        Some(column) => format!("WHERE ({left}) >= ({marks}) AND {column} IS NOT NULL"),
    };
    Ok((condition, values))
}

/// The values of a key; nothing for a text that isn't one.
pub(super) fn values(key: &str) -> Option<Vec<Stored>> {
    let Ok(Json::Array(parts)) = serde_json::from_str(key) else {
        return None;
    };
    parts.into_iter().map(value).collect()
}

fn value(part: Json) -> Option<Stored> {
    Some(match part {
        Json::Null => Stored::Null,
        Json::String(text) => Stored::Text(text),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Stored::Integer(whole),
            None => Stored::Real(number.as_f64()?),
        },
        _ => return None,
    })
}

/// What a row may have where a key has these values, two for each column: one that is written as a
/// number may be kept as a text, and the other way round. Nothing if no row can be asked for.
pub(super) fn spellings(key: &str, columns: usize) -> Option<Vec<Stored>> {
    let Ok(Json::Array(parts)) = serde_json::from_str(key) else {
        return None;
    };
    if parts.len() != columns {
        return None;
    }
    let both: Option<Vec<[Stored; 2]>> = parts.into_iter().map(two_spellings).collect();
    Some(both?.into_iter().flatten().collect())
}

fn two_spellings(part: Json) -> Option<[Stored; 2]> {
    let other = match &part {
        Json::Bool(is) => {
            return Some([
                Stored::Integer(i64::from(*is)),
                Stored::Text(is.to_string()),
            ]);
        }
        Json::Number(number) => Some(Stored::Text(number.to_string())),
        Json::String(text) => serde_json::from_str(text)
            .ok()
            .and_then(|number| value(Json::Number(number))),
        _ => return None,
    };
    let plain = value(part)?;
    Some([plain.clone(), other.unwrap_or(plain)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Name> {
        names.iter().map(|name| Name::new(*name).unwrap()).collect()
    }

    #[test]
    fn what_is_put_in_is_not_looked_through_for_gaps() {
        let template = Sql {
            name: "x",
            text: "-- purpose: {query}\nSELECT {fields} FROM ({query})",
        };
        let filled = fill(
            template,
            &[("fields", "'{query}'"), ("query", "a {fields}")],
        );
        assert_eq!(filled, "SELECT '{query}' FROM (a {fields})");
    }

    #[test]
    fn a_cursor_is_bound_in_its_own_types() {
        let (sql, values) = after(&names(&["a", "b"]), Some("[\"x\",7]"), 5).unwrap();
        assert_eq!(sql, "WHERE (q.\"a\", q.\"b\") > (?5, ?6)");
        assert_eq!(values, [Stored::Text("x".to_owned()), Stored::Integer(7)]);
        assert!(after(&names(&["a", "b"]), Some("[1]"), 1).is_err());
        assert!(after(&names(&["a"]), Some("x"), 1).is_err());
    }

    #[test]
    fn a_key_is_asked_for_in_both_its_spellings() {
        let text = |text: &str| Stored::Text(text.to_owned());
        let asked = spellings("[\"7\", 8, true, \"a\"]", 4).unwrap();
        let expected = [
            [text("7"), Stored::Integer(7)],
            [Stored::Integer(8), text("8")],
            [Stored::Integer(1), text("true")],
            [text("a"), text("a")],
        ];
        assert_eq!(asked, expected.concat());
        for bad in ["[1]", "[1,null]", "[1,[2]]", "x", "{}"] {
            assert_eq!(spellings(bad, 2), None, "{bad}");
        }
    }

    #[test]
    fn a_cursor_without_a_value_leaves_such_rows_behind() {
        let (sql, values) = after(&names(&["a", "b"]), Some("[3,null]"), 1).unwrap();
        assert_eq!(sql, "WHERE (q.\"a\") >= (?1) AND q.\"b\" IS NOT NULL");
        assert_eq!(values, [Stored::Integer(3)]);
        let (sql, values) = after(&names(&["a", "b"]), Some("[null,3]"), 1).unwrap();
        assert_eq!(sql, "WHERE q.\"a\" IS NOT NULL");
        assert!(values.is_empty());
    }
}
