//! What is wrong with a pair's query: statements that walk a whole table, and states it leaves out.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::{map, map_query};
use super::plain_select::{self, PlainSelect};
use super::stage::json;
use super::statements::sql;
use super::{health, query, row, rows};
use crate::engine::{Examined, PlanRemark};
use crate::error::Result;
use crate::reconcile::{Pair, States};

pub(super) fn examine(connection: &Connection, pair: &Pair) -> Result<Examined> {
    let mut plans = plans(connection, pair)?;
    if !plans.is_empty() {
        let remedy = remedy(connection, pair)?;
        for plan in &mut plans {
            plan.remedy.clone_from(&remedy);
        }
    }
    let mut examined = Examined {
        plans,
        ..Examined::default()
    };
    if let Some(states) = &pair.states {
        examined.unclaimed = unclaimed(connection, states)?;
        examined.missed = missed(connection, pair, states)?;
    }
    Ok(examined)
}

/// The remarks on both statements, without a remedy yet.
fn plans(connection: &Connection, pair: &Pair) -> Result<Vec<PlanRemark>> {
    let derive = rows::derive_text(connection, pair)?;
    let ask = rows::ask_text(pair);
    let filters = plain_select::has_word(&pair.query, "WHERE");
    let mut remarks = Vec::new();
    for (statement, text, whole) in [("derive", derive, !filters), ("ask", ask, false)] {
        for what in steps(connection, &text, whole)? {
            let statement = statement.to_owned();
            let remark = PlanRemark {
                statement,
                what,
                remedy: None,
            };
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
    }
    Ok(remarks)
}

/// What a statement does that takes longer with every row of a table, in words. One that wants the
/// whole table may walk it.
fn steps(connection: &Connection, text: &str, wants_all: bool) -> Result<Vec<String>> {
    let explain = query::fill(sql!("explain"), &[("statement", text)]);
    let mut statement = connection.prepare(&explain).map_err(map_query)?;
    // Its parameters stay empty: it isn't run.
    let lines = statement
        .raw_query()
        .mapped(|row| Ok(row::text(row, 3)?.unwrap_or_default()))
        .collect::<rusqlite::Result<Vec<String>>>()
        .map_err(map_query)?;
    let made_here = |name: &str| {
        let is = |line: &String| {
            let made = line.strip_prefix("CO-ROUTINE ");
            made.or(line.strip_prefix("MATERIALIZE ")) == Some(name)
        };
        name.starts_with('(') || lines.iter().any(is)
    };
    let mut said = Vec::new();
    for line in &lines {
        if line.contains("TEMP B-TREE FOR") && line.ends_with("ORDER BY") {
            said.push("sorts all its rows by key".to_owned());
        }
        let Some(scan) = line.strip_prefix("SCAN ") else {
            continue;
        };
        let (name, how) = scan.split_once(" USING ").unwrap_or((scan, ""));
        let no_table = ["VIRTUAL TABLE", "CONSTANT ROW", "VALUES"];
        if no_table.iter().any(|words| scan.contains(words)) || made_here(name) {
            continue;
        }
        let index = how.rsplit_once("INDEX ").map(|(_, index)| index);
        if !wants_all && !is_partial(connection, index)? {
            said.push(format!("walks the whole table {name}"));
        }
    }
    Ok(said)
}

/// Whether it is an index of some rows only: walking all of it is what it is for.
fn is_partial(connection: &Connection, index: Option<&str>) -> Result<bool> {
    let text = sql!("examine_index")
        .on(connection)?
        .query_row([index], |row| row::text(row, 0))
        .optional()
        .map_err(|why| map(why, "examine_index"))?;
    let text = text.flatten().unwrap_or_default();
    Ok(plain_select::has_word(&text, "WHERE"))
}

/// An index that was tried out on a copy of the schema; otherwise advice in words.
fn remedy(connection: &Connection, pair: &Pair) -> Result<Option<String>> {
    let keys: Vec<&str> = pair.key.iter().map(AsRef::as_ref).collect();
    let words = format!(
        "an index on what its conditions compare, followed by {}",
        keys.join(", ")
    );
    let Some(select) = PlainSelect::read(&pair.query) else {
        return Ok(Some(words));
    };
    for index in candidates(connection, pair, &select)? {
        if helps(connection, pair, &index)? {
            return Ok(Some(index));
        }
    }
    Ok(Some(words))
}

fn candidates(connection: &Connection, pair: &Pair, select: &PlainSelect) -> Result<Vec<String>> {
    let table = query::unquoted(&select.table);
    let has = table_columns(connection, &table)?;
    let column = |name: &str| {
        let named = select.column_of(name).unwrap_or_else(|| name.to_owned());
        has.iter()
            .find(|each| each.eq_ignore_ascii_case(&named))
            .cloned()
    };
    let key: Option<Vec<String>> = pair.key.iter().map(|name| column(name.as_str())).collect();
    let Some(key) = key else {
        return Ok(Vec::new());
    };
    // An index with everything in it is taken where one with the key alone would cost more.
    let mut all = key.clone();
    let used = |name: &&String| plain_select::has_word(&pair.query, name);
    all.extend(
        has.iter()
            .filter(used)
            .filter(|name| !key.contains(name))
            .cloned(),
    );
    let plain: String = [table.as_str(), &key.join("_")]
        .join("_")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let condition = select
        .condition
        .as_deref()
        .map(|text| format!(" WHERE {text}"));
    let index = |columns: &[String]| {
        let columns: Vec<String> = columns.iter().map(|name| named(name)).collect();
        format!(
            "CREATE INDEX rowlock_hint_{plain} ON {} ({}){}",
            named(&table),
            columns.join(", "),
            condition.as_deref().unwrap_or_default()
        )
    };
    Ok(vec![index(&key), index(&all)])
}

/// A name as people write it: in quotes only where it needs them.
fn named(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match plain && !plain_select::is_keyword(name) {
        true => name.to_owned(),
        false => query::quoted(name),
    }
}

fn table_columns(connection: &Connection, table: &str) -> Result<Vec<String>> {
    health::all(connection, sql!("examine_columns"), [table], |row| {
        row.get(0)
    })
}

/// Whether nothing is left to remark with this index.
fn helps(connection: &Connection, pair: &Pair, index: &str) -> Result<bool> {
    let copy = Connection::open_in_memory().map_err(|why| map(why, "trying an index out"))?;
    let schema: Vec<String> =
        health::all(connection, sql!("examine_schema"), [], |row| row.get(0))?;
    for part in schema {
        // What can't be made here (a virtual table) isn't what a plain query is about.
        let _ = copy.execute_batch(&part);
    }
    if copy.execute_batch(index).is_err() {
        return Ok(false);
    }
    Ok(plans(&copy, pair).is_ok_and(|left| left.is_empty()))
}

fn unclaimed(connection: &Connection, states: &States) -> Result<Vec<(String, u64)>> {
    let gaps = [
        ("column", &*query::quoted(&states.column)),
        ("table", &*query::table(&states.table)),
    ];
    let text = query::fill(sql!("coverage_states"), &gaps);
    let mut found = counts(connection, &text, [])?;
    let claims = [&states.pending, &states.terminal, &states.other];
    found.retain(|(state, _)| !claims.iter().any(|claimed| claimed.contains(state)));
    Ok(found)
}

fn missed(connection: &Connection, pair: &Pair, states: &States) -> Result<Vec<(String, u64)>> {
    let table = query::unquoted(states.table.rsplit('.').next().unwrap_or_default());
    let has = table_columns(connection, &table)?;
    if !pair
        .key
        .iter()
        .all(|key| has.iter().any(|name| name == key.as_str()))
    {
        return Ok(Vec::new());
    }
    let theirs: Vec<String> = pair
        .key
        .iter()
        .map(|key| format!("t.{}", query::quoted(key.as_str())))
        .collect();
    let whole: Vec<String> = pair
        .key
        .iter()
        .map(|key| format!("{} IS NOT NULL", query::column(key.as_str())))
        .collect();
    let gaps = [
        ("column", &*query::quoted(&states.column)),
        ("table", &*query::table(&states.table)),
        ("theirs", &*theirs.join(", ")),
        ("columns", &*query::columns(&pair.key)),
        ("whole", &*whole.join(" AND ")),
        ("query", &*pair.query),
    ];
    let text = query::fill(sql!("coverage_missed"), &gaps);
    counts(connection, &text, params![json(&states.pending)?])
}

fn counts(
    connection: &Connection,
    text: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<(String, u64)>> {
    let read = |row: &Row<'_>| {
        let state = row::text(row, 0)?.unwrap_or_else(|| "NULL".to_owned());
        Ok((state, row::count(row, 1)?))
    };
    let mut statement = connection.prepare(text).map_err(map_query)?;
    let rows = statement.query_map(values, read).map_err(map_query)?;
    rows.collect::<rusqlite::Result<_>>().map_err(map_query)
}
