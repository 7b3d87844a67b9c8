//! Posts: who leads a pair or the crons, and how its ticks went.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::error::map;
use super::health::all;
use super::row;
use super::settle::execute;
use super::statements::{Sql, sql};
use crate::engine::{Duty, Leading, Post, Posts, TickEnd};
use crate::error::{Error, Result};
use crate::job::{Name, Token};

/// The longest error of a tick that is kept, in characters.
const MOST_WORDS: usize = 2_000;

/// A duty as it is stored.
fn stored(duty: &Duty) -> (&'static str, &str, u16) {
    match duty {
        Duty::Pair(name, shard) => ("pair", name.as_str(), *shard),
        Duty::Cron => ("cron", "", 0),
    }
}

pub(super) fn lead(connection: &Connection, lead: &Leading, now: Timestamp) -> Result<Posts> {
    for (duty, token) in &lead.keep {
        move_post(connection, sql!("post_keep"), duty, *token)?;
    }
    for take in &lead.take {
        let (duty, name, shard) = stored(&take.duty);
        let (token, beat) = take.seen;
        let token = token.map(Token::get);
        let values = params![
            duty,
            name,
            shard,
            take.token.get(),
            lead.holder,
            token,
            beat
        ];
        execute(connection, sql!("post_take"), values)?;
    }
    for (duty, token) in &lead.leave {
        move_post(connection, sql!("post_leave"), duty, *token)?;
    }
    posts(connection, now)
}

fn move_post(connection: &Connection, how: Sql, duty: &Duty, token: Token) -> Result<bool> {
    let (duty, name, shard) = stored(duty);
    execute(connection, how, params![duty, name, shard, token.get()])
}

pub(super) fn posts(connection: &Connection, now: Timestamp) -> Result<Posts> {
    let posts = all(connection, sql!("posts"), [], post)?;
    Ok(Posts { now, posts })
}

fn post(row: &Row<'_>) -> rusqlite::Result<Post> {
    let duty = row::text(row, 0)?;
    Ok(Post {
        duty: match duty.as_deref() {
            Some("pair") => Duty::Pair(row::name(row, 1)?, row::number(row, 2)?),
            _ => Duty::Cron,
        },
        token: row.get::<_, Option<i64>>(3)?.map(Token::stored),
        beat: row.get(4)?,
        cursor: row::text(row, 5)?,
        due_at: row::time(row, 6)?,
    })
}

/// Refuses whoever leads no more.
pub(super) fn check(connection: &Connection, fence: Option<&(Duty, Token)>) -> Result<()> {
    let Some((duty, token)) = fence else {
        return Ok(());
    };
    let (duty, name, shard) = stored(duty);
    let leads: bool = sql!("post_fence")
        .on(connection)?
        .query_row(params![duty, name, shard, token.get()], |row| row.get(0))
        .map_err(|why| map(why, "post_fence"))?;
    if leads { Ok(()) } else { Err(Error::LeaseLost) }
}

/// One post for each shard; those beyond go.
pub(super) fn set(connection: &Connection, pair: &Name, shards: u16) -> Result<()> {
    for shard in 0..shards {
        let values = params!["pair", pair.as_str(), shard];
        execute(connection, sql!("post_add"), values)?;
    }
    drop(connection, pair, shards)
}

/// The posts of a pair from a shard on go.
pub(super) fn drop(connection: &Connection, pair: &Name, from: u16) -> Result<()> {
    let values = params!["pair", pair.as_str(), from];
    execute(connection, sql!("post_drop"), values).map(|_| ())
}

/// The one post of all crons comes with the first and goes with the last.
pub(super) fn set_cron(connection: &Connection, wanted: bool) -> Result<()> {
    let statement = match wanted {
        true => sql!("post_add"),
        false => sql!("post_drop"),
    };
    execute(connection, statement, params!["cron", "", 0]).map(|_| ())
}

pub(super) fn tick_end(connection: &Connection, end: &TickEnd, now: Timestamp) -> Result<()> {
    let (pair, shard) = (end.pair.as_str(), end.shard);
    let token = end.token.map(Token::get);
    let due_at = end.due_at.map(Timestamp::as_millisecond);
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let noted = match (&end.outcome, &end.cursor) {
        (Ok(ticked), None) => {
            let (found, enqueued) = (number(ticked.found), number(ticked.enqueued));
            let (now, took, lost) = (now.as_millisecond(), row::ms(end.took), number(ticked.lost));
            let values = params![pair, shard, token, due_at, now, took, found, enqueued, lost];
            execute(connection, sql!("tick_end_done"), values)
        }
        (Ok(ticked), Some(cursor)) => {
            let values = params![pair, shard, token, due_at, number(ticked.lost), cursor];
            execute(connection, sql!("tick_end_overrun"), values)
        }
        (Err(why), _) => {
            let why: String = why.chars().take(MOST_WORDS).collect();
            let values = params![pair, shard, token, due_at, why, end.cursor];
            execute(connection, sql!("tick_end_failed"), values)
        }
    }?;
    match (noted, end.token) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Error::LeaseLost),
        (false, None) => Err(Error::NotFound(format!("shard {shard} of pair {pair}"))),
    }
}
