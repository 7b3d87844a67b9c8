//! One batch of a tick, and how a tick went.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::bounded::{May, Stopped, ask_within};
use super::row::{count, get};
use super::stage::json;
use super::statements::{call, sql};
use super::wanted;
use super::{Postgres, lock, ms};
use crate::engine::{Batch, From, Lines, TickEnd, Ticked};
use crate::error::{Error, Result};
use crate::job::{Name, Token};

/// The longest error that is kept of a tick.
const LONGEST_ERROR: usize = 2_000;

impl Postgres {
    pub(super) async fn tick_once(&self, batch: &Batch) -> Result<Ticked> {
        let pair = &batch.pair;
        let (wanted, keyless, lines, at_most) = match &batch.from {
            From::Here { cursor, limit } => {
                // Whoever asks for none would ask for ever.
                let limit = &(*limit).max(1);
                let more = limit.saturating_add(1);
                let text = wanted::rows(pair, batch.shard, cursor.as_deref(), more)?;
                let keyless = wanted::keyless(pair, batch.shard, cursor.as_deref());
                (text, keyless, None, *limit)
            }
            From::Lines(lines) => {
                let payloads: Vec<_> = lines
                    .lines
                    .iter()
                    .map(|line| serde_json::json!({ "payload": line.payload }))
                    .collect();
                let fields = pair.key.iter().map(|name| wanted::literal(name.as_str()));
                let fields: Vec<String> = fields.collect();
                let text = sql!("wanted_lines")
                    .text(&self.address.schema)
                    .replace("{fields}", &format!("ARRAY[{}]", fields.join(", ")));
                (text, None, Some(json(&payloads)?), lines.lines.len())
            }
        };
        // What was so a moment ago is likely to be so again.
        let expect_live = lock(&self.all_live)
            .get(&pair.name)
            .copied()
            .unwrap_or(false);
        let values: [super::ask::Value<'_>; 15] = [
            (&wanted, Type::TEXT),
            (&keyless, Type::TEXT),
            (&lines, Type::TEXT),
            (&i64::try_from(at_most).unwrap_or(i64::MAX), Type::INT8),
            (&pair.name.as_str(), Type::TEXT),
            (&i32::from(batch.shard), Type::INT4),
            (&batch.token.map(Token::get), Type::INT8),
            (&pair.kind.as_str(), Type::TEXT),
            (&pair.queue.as_ref().map(Name::as_str), Type::TEXT),
            (&pair.priority, Type::INT2),
            (&pair.direct, Type::BOOL),
            (&ms(pair.jitter), Type::INT8),
            (&batch.seed, Type::FLOAT8),
            (&batch.dry, Type::BOOL),
            (&expect_live, Type::BOOL),
        ];
        let text = call("tick", values.len(), &self.address.schema);
        let on = (&self.tables.pool, &self.io);
        let rows = match ask_within(on, &text, &values, "tick", (pair.timeout, May::Write)).await {
            Ok(rows) => rows,
            Err(Stopped::Blocked(_)) => {
                return Ok(Ticked {
                    blocked: true,
                    ..Ticked::default()
                });
            }
            Err(other) => return Err(other.into()),
        };
        let row = rows
            .first()
            .ok_or_else(|| Error::Bug("a tick has no answer".to_owned()))?;
        let ticked = ticked(row)?;
        let all_live = ticked.found > 0 && ticked.live == ticked.found;
        lock(&self.all_live).insert(pair.name.clone(), all_live);
        if ticked.enqueued > 0 && !batch.dry {
            crash_point!("tick.staged");
            self.bell.ring();
        }
        Ok(match &batch.from {
            From::Here { .. } => ticked,
            From::Lines(lines) => with_lines(ticked, lines),
        })
    }

    pub(super) async fn note_tick(&self, end: &TickEnd) -> Result<()> {
        let none = Ticked::default();
        let (well, ticked, error) = match &end.outcome {
            Ok(ticked) => (true, ticked, None),
            Err(why) => (false, &none, Some(bounded(why))),
        };
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let changed = self
            .execute(
                sql!("tick_end"),
                &[
                    (&end.pair.as_str(), Type::TEXT),
                    (&i32::from(end.shard), Type::INT4),
                    (&end.token.map(Token::get), Type::INT8),
                    (&well, Type::BOOL),
                    (&error, Type::TEXT),
                    (&end.cursor, Type::TEXT),
                    (&end.due_at, Type::TIMESTAMPTZ),
                    (&ms(end.took), Type::INT8),
                    (&number(ticked.found), Type::INT8),
                    (&number(ticked.enqueued), Type::INT8),
                    (&number(ticked.lost), Type::INT8),
                ],
            )
            .await?;
        match changed {
            0 if end.token.is_some() => Err(Error::LeaseLost),
            0 => Err(Error::NotFound(format!(
                "shard {} of pair {}",
                end.shard, end.pair
            ))),
            _ => Ok(()),
        }
    }
}

fn ticked(row: &Row) -> Result<Ticked> {
    Ok(Ticked {
        found: count(row, 0)?,
        enqueued: count(row, 1)?,
        lost: count(row, 2)?,
        live: count(row, 3)?,
        held_back: count(row, 4)?,
        rejected: count(row, 5)?,
        without_key: count(row, 6)?,
        repeated: count(row, 7)?,
        cursor: get(row, 8)?,
        more: get(row, 9)?,
        blocked: false,
        sample: get(row, 10)?,
        broken: get(row, 11)?,
    })
}

/// What whoever read the rows knows about them.
fn with_lines(ticked: Ticked, lines: &Lines) -> Ticked {
    let told = lines.lines.len() as u64 + lines.without_key + lines.repeated;
    Ticked {
        found: lines.found,
        // Those that were left out.
        live: ticked.live + lines.found.saturating_sub(told),
        without_key: ticked.without_key + lines.without_key,
        repeated: ticked.repeated + lines.repeated,
        cursor: lines.cursor.clone(),
        more: lines.more,
        broken: ticked.broken.or_else(|| lines.broken.clone()),
        ..ticked
    }
}

fn bounded(text: &str) -> String {
    text.replace('\0', " ")
        .chars()
        .take(LONGEST_ERROR)
        .collect()
}
