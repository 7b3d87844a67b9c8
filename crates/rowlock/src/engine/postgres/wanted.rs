//! Puts a pair's query into statements of ours: by key, after a key, so many rows.

use serde_json::value::RawValue;

use super::connect::Schema;
use super::statements::{Sql, sql};
use crate::error::{Error, Result};
use crate::job::Name;
use crate::reconcile::Pair;

/// The rows of a shard after a key, in the order of their keys.
pub(super) fn rows(pair: &Pair, shard: u16, after: Option<&str>, limit: usize) -> Result<String> {
    let key = key(&pair.key);
    let order: Vec<String> = pair.key.iter().map(column).collect();
    let after = match after {
        None => "true".to_owned(),
        Some(cursor) => format!("({}) > ({})", order.join(", "), literals(pair, cursor)?),
    };
    let of_shard = match pair.shards {
        0 | 1 => "true".to_owned(),
        // A row without a key is the first shard's.
        shards => format!("coalesce((hashtext({key}) & 2147483647) % {shards}, 0) = {shard}"),
    };
    // Of a single column they come last. Of several they would stand between the others, and no batch
    // could go on after one.
    let whole = match order.as_slice() {
        [_] => "true".to_owned(),
        columns => format!("{} IS NOT NULL", columns.join(" IS NOT NULL AND ")),
    };
    let text = sql!("wanted")
        .text(&Schema::default())
        .replace("{key}", &key)
        .replace("{whole}", &whole)
        .replace("{order}", &order.join(", "))
        .replace("{limit}", &limit.to_string())
        .replace("{shard}", &of_shard)
        .replace("{after}", &after);
    // Last: whatever is in it is the user's.
    Ok(text.replace("{query}", &pair.query))
}

/// A statement that speaks of the query as `wanted_row`.
pub(super) fn around(pair: &Pair, statement: Sql, parts: &[(&str, &str)]) -> String {
    let mut text = statement.text(&Schema::default());
    for (name, part) in parts {
        text = text.replace(name, part);
    }
    text.replace("{query}", &pair.query)
}

/// How many rows have no key, of those that the batches of a tick don't meet; asked with the last one.
/// Nothing where the batch after `after` meets them, and for all shards but the first.
pub(super) fn keyless(pair: &Pair, shard: u16, after: Option<&str>) -> Option<String> {
    if shard > 0 || (after.is_none() && pair.key.len() == 1) {
        return None;
    }
    let missing: Vec<String> = pair
        .key
        .iter()
        .map(|name| format!("{} IS NULL", column(name)))
        .collect();
    let missing = missing.join(" OR ");
    let parts = [("{keyless}", missing.as_str())];
    Some(around(pair, sql!("wanted_keyless"), &parts))
}

/// The key as every enqueue spells it; nothing without one of its values.
pub(super) fn key(columns: &[Name]) -> String {
    let values: Vec<String> = columns
        .iter()
        .map(|name| {
            // The same text, and cheaper, for what most keys are.
            let column = column(name);
            format!(
                "CASE WHEN pg_typeof({column}) IN ('bigint'::regtype, 'integer'::regtype) \
                 THEN {column}::text ELSE to_jsonb({column})::text END"
            )
        })
        .collect();
    format!("'[' || {} || ']'", values.join(" || ',' || "))
}

/// A column of the query.
pub(super) fn column(name: &Name) -> String {
    format!("wanted_row.{}", quoted(name.as_str()))
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Text that has no type yet: beside a column it takes the column's.
pub(super) fn literal(text: &str) -> String {
    let text = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", text.replace('\\', "\\\\")),
        false => format!("'{text}'"),
    }
}

fn literals(pair: &Pair, cursor: &str) -> Result<String> {
    let wrong = || Error::Bug(format!("pair {}: {cursor:?} is no key", pair.name));
    let values = values(cursor, pair.key.len()).ok_or_else(wrong)?;
    let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
    Ok(values.join(", "))
}

/// The values of a key, as the columns' types read them; nothing if it isn't a key of so many.
pub(super) fn values(key: &str, columns: usize) -> Option<Vec<String>> {
    let parts: Vec<&RawValue> = serde_json::from_str(key).ok()?;
    let read = |part: &&RawValue| match part.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        // As it is written: a number may have more digits than ours.
        other => Some(other.to_owned()),
    };
    let values: Vec<String> = parts.iter().map(read).collect::<Option<_>>()?;
    let fits = values.len() == columns && !values.iter().any(|value| value.contains('\0'));
    fits.then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let read = |key, columns| values(key, columns);
        let texts = |list: &[&str]| Some(list.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(read("[7]", 1), texts(&["7"]));
        let digits = "[123456789012345678901234567890.10, \"a\\\"b\\u00e4\"]";
        assert_eq!(
            read(digits, 2),
            texts(&["123456789012345678901234567890.10", "a\"bä"])
        );
        for bad in ["[null]", "[]", "7", "[1,2]", "[\"\\u0000\"]", "x"] {
            assert_eq!(read(bad, 1), None, "{bad}");
        }
    }

    #[test]
    fn a_value_can_not_leave_its_quotes() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("\\' OR 1=1"), "E'\\\\'' OR 1=1'");
    }

    #[test]
    fn what_a_query_says_is_left_alone() {
        let name = |text: &str| Name::new(text).unwrap();
        let query = "SELECT id FROM rowlock.x WHERE a = '{key}{limit}' -- end";
        let pair = Pair::new(name("k"), vec![name("id")], query).shards(2);
        let text = rows(&pair, 1, Some("[\"a\"]"), 5).unwrap();
        assert!(text.contains(&format!("(\n{query}\n)")), "{text}");
        assert!(text.contains("(wanted_row.\"id\") > ('a')"), "{text}");
        assert!(text.ends_with("LIMIT 5"), "{text}");
    }
}
