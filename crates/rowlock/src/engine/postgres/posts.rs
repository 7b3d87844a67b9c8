//! Who leads what.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Postgres;
use super::row::{get, name, time};
use super::stage;
use crate::engine::{Duty, Leading, Post, Posts};
use crate::error::{Error, Result};
use crate::job::Token;

impl Postgres {
    pub(super) async fn lead_all(&self, lead: &Leading) -> Result<Posts> {
        let held = |act: &str, (duty, token): &(Duty, Token)| {
            wish(act, duty, *token, (None, 0)) // what was seen doesn't matter
        };
        let keep = lead.keep.iter().map(|post| held("keep", post));
        let leave = lead.leave.iter().map(|post| held("leave", post));
        let take = lead
            .take
            .iter()
            .map(|take| wish("take", &take.duty, take.token, take.seen));
        let wishes: Vec<Value> = keep.chain(take).chain(leave).collect();
        let text = stage::json(&wishes)?;
        let rows = self
            .call(
                "lead_posts",
                &[
                    (&lead.holder.as_str(), Type::TEXT),
                    (&text.as_str(), Type::TEXT),
                ],
            )
            .await?;
        let first = rows.first().map_or(Ok(None), |row| time(row, 0))?;
        let now: Timestamp =
            first.ok_or_else(|| Error::Bug("the server didn't tell the time".to_owned()))?;
        let posts: Result<Vec<Option<Post>>> = rows.iter().map(post).collect();
        Ok(Posts {
            now,
            posts: posts?.into_iter().flatten().collect(),
        })
    }
}

fn wish(act: &str, duty: &Duty, token: Token, (seen, beat): (Option<Token>, i64)) -> Value {
    let (word, name, shard) = match duty {
        Duty::Pair(name, shard) => ("pair", name.as_str(), *shard),
        Duty::Cron => ("cron", "", 0),
    };
    json!({
        "act": act,
        "duty": word,
        "name": name,
        "shard": shard,
        "token": token.get(),
        "seen": seen.map(Token::get),
        "beat": beat,
    })
}

/// Nothing for the row that only tells the time.
fn post(row: &Row) -> Result<Option<Post>> {
    let duty = match get::<Option<String>>(row, 1)?.as_deref() {
        None => return Ok(None),
        Some("cron") => Duty::Cron,
        Some(_) => {
            let shard = u16::try_from(get::<i32>(row, 3)?).unwrap_or(0);
            Duty::Pair(name(row, 2)?, shard)
        }
    };
    Ok(Some(Post {
        duty,
        token: get::<Option<i64>>(row, 4)?.map(Token::stored),
        beat: get(row, 5)?,
        cursor: get(row, 6)?,
        due_at: time(row, 7)?,
    }))
}
