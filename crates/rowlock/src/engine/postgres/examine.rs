//! What is wrong with how a pair's query is run, or with what it leaves out.

use deadpool::managed::Object;
use serde_json::Value as Json;
use tokio_postgres::types::{ToSql, Type};

use super::ask::Value;
use super::connect::{batch, take};
use super::error::map_reading;
use super::row::{count, get};
use super::source::{Tables, ask_text, plain, same_key};
use super::statements::sql;
use super::wanted::{self, around, quoted};
use crate::clock::Clock;
use crate::engine::{Examined, PlanRemark};
use crate::error::{Error, Result};
use crate::job::Name;
use crate::reconcile::{Pair, States};

/// A table as it has to be written, and its columns.
struct Table {
    written: String,
    columns: Vec<String>,
}

impl Tables {
    pub(super) async fn plans(&self, pair: &Pair) -> Result<Vec<PlanRemark>> {
        let types = self.key_types(pair).await?;
        // A share of the rows is found by looking at all of them.
        let whole = pair.clone().shards(1);
        let derive = wanted::rows(&whole, 0, None, pair.batch)?;
        let nothing: Vec<Option<String>> = vec![None];
        let keys: Vec<Value<'_>> = types
            .iter()
            .map(|_| (&nothing as &(dyn ToSql + Sync), Type::TEXT_ARRAY))
            .collect();
        let mut remarks = Vec::new();
        for (statement, text, values) in [
            ("derive", derive, &[][..]),
            ("ask", ask_text(pair, &types), &keys[..]),
        ] {
            let mut plan = self.explain(pair, &text, values).await?;
            if statement == "derive" && walks_of(&plan).into_iter().any(moves) {
                // Few rows are due of many: they are found by an index on their time, and sorted. Which
                // way is shorter the server decides anew each time.
                let text = around(pair, sql!("source_unordered"), &[]);
                plan = self.explain(pair, &text, &[]).await?;
            }
            let walks = walks_of(&plan);
            for walk in walks {
                if statement == "ask" && self.begins_with_key(pair, walk).await? {
                    continue;
                }
                remarks.push(self.remark(pair, statement, walk).await?);
            }
        }
        Ok(remarks)
    }

    /// Whether what is walked is an index by which a single row is found: a table may be so small today
    /// that walking it is quicker.
    async fn begins_with_key(&self, pair: &Pair, walk: &Json) -> Result<bool> {
        let word = |field: &str| walk.get(field).and_then(Json::as_str);
        let (schema, index) = (word("Schema"), word("Index Name"));
        let values: [Value<'_>; 2] = [(&schema, Type::TEXT), (&index, Type::TEXT)];
        let rows = self
            .rows(pair, &plain(sql!("source_index")), &values)
            .await?;
        let first: Option<String> = rows.first().map(|row| get(row, 0)).transpose()?;
        Ok(first.is_some_and(|first| pair.key.iter().any(|name| name.as_str() == first)))
    }

    async fn explain(&self, pair: &Pair, text: &str, values: &[Value<'_>]) -> Result<Json> {
        let client = take(&self.pool, pair.timeout).await?;
        // It is left inside a transaction: nobody else gets it.
        let client = Object::take(client);
        let asked = async {
            batch(&client, &plain(sql!("source_look")), "source_look").await?;
            let explain = plain(sql!("source_explain")).replace("{statement}", text);
            let rows = client.query_typed(&explain, values).await;
            rows.map_err(|why| map_reading(&why, "source_explain"))
        };
        let rows = Clock::system()
            .timeout(pair.timeout, asked)
            .await
            .ok_or_else(|| Error::Unavailable("no plan in time".to_owned()))??;
        let row = rows
            .first()
            .ok_or_else(|| Error::Bug("there is no plan".to_owned()))?;
        let plan: Plan = get(row, 0)?;
        Ok(plan.0)
    }

    async fn remark(&self, pair: &Pair, statement: &str, walk: &Json) -> Result<PlanRemark> {
        let word = |field: &str| walk.get(field).and_then(Json::as_str).unwrap_or_default();
        let relation = word("Relation Name");
        let table = self.table(pair, Some(word("Schema")), relation).await?;
        let what = match word("Node Type") {
            "Seq Scan" => format!("walks the whole table {relation}"),
            _ => format!(
                "walks the whole index {} of the table {relation}",
                word("Index Name")
            ),
        };
        Ok(PlanRemark {
            statement: statement.to_owned(),
            what,
            remedy: table.and_then(|table| remedy(&table, word("Alias"), word("Filter"), pair)),
        })
    }

    /// Nothing if there is no such table. Without a schema the name is read as it would be in a query.
    async fn table(&self, pair: &Pair, schema: Option<&str>, name: &str) -> Result<Option<Table>> {
        let values: [Value<'_>; 2] = [(&schema, Type::TEXT), (&name, Type::TEXT)];
        let rows = self
            .rows(pair, &plain(sql!("source_table")), &values)
            .await?;
        let read = |row| {
            Ok(Table {
                written: get(row, 0)?,
                columns: get(row, 1)?,
            })
        };
        rows.first().map(read).transpose()
    }

    /// Which states nobody claims, and which rows of ours the query misses.
    pub(super) async fn cover(
        &self,
        pair: &Pair,
        states: &States,
        examined: &mut Examined,
    ) -> Result<()> {
        let wrong = |what: String| Error::invalid(format!("pair {}: {what}", pair.name));
        let table = self.table(pair, None, &states.table).await?;
        let table = table.ok_or_else(|| {
            wrong(format!(
                "its states name the table {}, which isn't there",
                states.table
            ))
        })?;
        if !table.columns.contains(&states.column) {
            return Err(wrong(format!(
                "its states name the column {}, which {} doesn't have",
                states.column, states.table
            )));
        }
        let column = quoted(&states.column);
        let parts = [("{column}", column.as_str()), ("{table}", &table.written)];
        let known: Vec<&str> = [&states.pending, &states.terminal, &states.other]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let text = around(pair, sql!("source_states"), &parts);
        examined.unclaimed = self.states_by(pair, &text, &known).await?;
        if pair
            .key
            .iter()
            .all(|key| table.columns.iter().any(|name| name == key.as_str()))
        {
            let matches = same_key(&pair.key);
            let parts = [parts[0], parts[1], ("{matches}", matches.as_str())];
            let pending: Vec<&str> = states.pending.iter().map(String::as_str).collect();
            let text = around(pair, sql!("source_missed"), &parts);
            examined.missed = self.states_by(pair, &text, &pending).await?;
        }
        Ok(())
    }

    async fn states_by(
        &self,
        pair: &Pair,
        text: &str,
        states: &[&str],
    ) -> Result<Vec<(String, u64)>> {
        let rows = self
            .rows(pair, text, &[(&states, Type::TEXT_ARRAY)])
            .await?;
        rows.iter()
            .map(|row| Ok((get(row, 0)?, count(row, 1)?)))
            .collect()
    }
}

/// A plan as the server sends it: JSON in its text form.
struct Plan(Json);

impl<'a> tokio_postgres::types::FromSql<'a> for Plan {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(serde_json::from_slice(raw)?))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::JSON
    }
}

/// Whether what a step looks for is another thing at another time.
fn moves(walk: &Json) -> bool {
    let filter = walk.get("Filter").and_then(Json::as_str);
    filter.is_some_and(|filter| !is_fixed(filter))
}

fn walks_of(plan: &Json) -> Vec<&Json> {
    let mut walks = Vec::new();
    whole_walks(plan, &mut walks);
    walks
}

/// The steps that look at every row of a table.
fn whole_walks<'a>(plan: &'a Json, found: &mut Vec<&'a Json>) {
    match plan {
        Json::Array(parts) => parts.iter().for_each(|part| whole_walks(part, found)),
        Json::Object(node) => {
            let kind = node.get("Node Type").and_then(Json::as_str);
            let filtered = node.contains_key("Filter");
            let bounded = node.contains_key("Index Cond");
            let walks = match kind {
                Some("Seq Scan") => true,
                Some("Index Scan" | "Index Only Scan") => filtered && !bounded,
                _ => false,
            };
            if walks {
                found.push(plan);
            }
            for below in ["Plan", "Plans"] {
                if let Some(below) = node.get(below) {
                    whole_walks(below, found);
                }
            }
        }
        _ => {}
    }
}

/// The index that would make the walk short; nothing if the table has no such columns.
fn remedy(table: &Table, alias: &str, filter: &str, pair: &Pair) -> Option<String> {
    let has = |name: &str| table.columns.iter().any(|column| column == name);
    if !pair.key.iter().map(Name::as_str).all(has) {
        return None;
    }
    let key: Vec<String> = pair.key.iter().map(|name| bare(name.as_str())).collect();
    let filter = filter.replace(&format!("{}.", bare(alias)), "");
    let on = format!("CREATE INDEX CONCURRENTLY ON {}", table.written);
    if filter.is_empty() {
        return Some(format!("{on} ({})", key.join(", ")));
    }
    if is_fixed(&filter) {
        return Some(format!("{on} ({}) WHERE {filter}", key.join(", ")));
    }
    let words = words(&filter);
    let mut columns: Vec<String> = table
        .columns
        .iter()
        .filter(|column| words.iter().any(|word| word == *column))
        .map(|column| bare(column))
        .collect();
    columns.extend(key.into_iter().filter(|name| !words.contains(name)));
    Some(format!("{on} ({})", columns.join(", ")))
}

/// Whether a condition says the same at any time: it calls nothing and asks nobody.
fn is_fixed(filter: &str) -> bool {
    let calls = filter.char_indices().any(|(at, c)| {
        let before = filter[..at].chars().next_back();
        c == '(' && before.is_some_and(|before| before.is_alphanumeric() || before == '_')
    });
    let asks = ["CURRENT_", "LOCALTIME", "SubPlan", "InitPlan", "$"];
    !calls && !asks.iter().any(|word| filter.contains(word))
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A name as one writes it: in quotes only if it needs them.
fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => name.to_owned(),
        false => quoted(name),
    }
}
