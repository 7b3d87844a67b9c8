//! Pairs as declared, how they are doing, and the keys they hold back.

use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::row::{count, get, json, name, span, time};
use super::statements::sql;
use super::{Postgres, ms, stage};
use crate::engine::{Applied, HeldBack, PairRow, once};
use crate::error::{Error, Result};
use crate::job::{Name, spelled};
use crate::log;
use crate::reconcile::Pair;
use crate::switch::{Mode, Switch, Target};

impl Postgres {
    pub(super) async fn write_pairs(&self, pairs: &[Pair], change: bool) -> Result<Vec<Applied>> {
        let kinds = self.all_kinds().await?;
        let mut wishes = Vec::with_capacity(pairs.len());
        let mut shown = Vec::with_capacity(pairs.len());
        once("pair", pairs.iter().map(|pair| &pair.name))?;
        for pair in pairs {
            pair.check()?;
            pair.fits(kinds.iter().find(|kind| kind.name == pair.kind))?;
            let declared = spelled(&pair.stored());
            wishes.push(serde_json::json!({
                "name": pair.name.as_str(),
                "kind": pair.kind.as_str(),
                "declared": declared,
                "hold_back_ms": ms(pair.hold_back),
                "shards": pair.shards,
            }));
            shown.push(declared);
        }
        let text = stage::json(&wishes)?;
        let rows = self
            .call(
                "declare_pairs",
                &[(&text.as_str(), Type::TEXT), (&change, Type::BOOL)],
            )
            .await?;
        let mut applied = Vec::with_capacity(pairs.len());
        for (pair, declared) in pairs.iter().zip(&shown) {
            let of_pair = |row: &&Row| name(row, 0).is_ok_and(|name| name == pair.name);
            let before = rows.iter().find(of_pair).map(|row| json::<Value>(row, 1));
            applied.push(Applied::over(
                before.transpose()?.flatten().as_ref(),
                declared,
            ));
        }
        Ok(applied)
    }

    pub(super) async fn all_pairs(&self) -> Result<Vec<PairRow>> {
        let rows = self.query(sql!("pairs"), &[]).await?;
        let mut pairs = Vec::with_capacity(rows.len());
        for row in &rows {
            // One that can't be read stops no other.
            match pair_row(row) {
                Ok(pair) => pairs.push(pair),
                Err(why) => {
                    let pair = name(row, 17)?;
                    log::error!(%pair, %why, "left out a pair");
                }
            }
        }
        Ok(pairs)
    }

    pub(super) async fn remove_pair(&self, name: &Name) -> Result<()> {
        let removed = self
            .execute(sql!("pair_forget"), &[(&name.as_str(), Type::TEXT)])
            .await?;
        match removed {
            0 => Err(not_found(name)),
            _ => Ok(()),
        }
    }

    /// `NotFound` for a pair that isn't declared. Asked when nothing was found or changed: then it costs a round trip.
    async fn must_exist(&self, name: &Name) -> Result<()> {
        let asked = [(&name.as_str() as _, Type::TEXT)];
        match self.ask(sql!("pair_exists"), &asked).await?.is_empty() {
            true => Err(not_found(name)),
            false => Ok(()),
        }
    }

    pub(super) async fn keys_held_back(
        &self,
        pair: &Name,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldBack>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .query(
                sql!("pair_keys"),
                &[
                    (&pair.as_str(), Type::TEXT),
                    (&after, Type::TEXT),
                    (&limit, Type::INT8),
                ],
            )
            .await?;
        if rows.is_empty() {
            self.must_exist(pair).await?;
        }
        let read = |row: &Row| {
            Ok(HeldBack {
                key: get(row, 0)?,
                reason: get(row, 1)?,
                not_before: time(row, 2)?,
                n: u32::try_from(get::<i32>(row, 3)?).unwrap_or(0),
            })
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn lift_keys(&self, pair: &Name, keys: Option<&[String]>) -> Result<usize> {
        let lifted = self
            .execute(
                sql!("pair_lift"),
                &[(&pair.as_str(), Type::TEXT), (&keys, Type::TEXT_ARRAY)],
            )
            .await?;
        if lifted == 0 {
            self.must_exist(pair).await?;
        }
        Ok(usize::try_from(lifted).unwrap_or(usize::MAX))
    }

    pub(super) async fn note_still_wanted(&self, pair: &Name, keys: &[String]) -> Result<u64> {
        let rows = self
            .call(
                "still_wanted",
                &[(&pair.as_str(), Type::TEXT), (&keys, Type::TEXT_ARRAY)],
            )
            .await?;
        let ineffective = rows.first().map_or(Ok(0), |row| count(row, 0))?;
        if ineffective == 0 {
            self.must_exist(pair).await?;
        }
        Ok(ineffective)
    }

    pub(super) async fn note_uncovered(&self, pair: &Name, states: &[(String, u64)]) -> Result<()> {
        let text = stage::json(&states)?;
        let noted = self
            .execute(
                sql!("pair_uncovered"),
                &[(&pair.as_str(), Type::TEXT), (&text, Type::TEXT)],
            )
            .await?;
        match noted {
            0 => Err(not_found(pair)),
            _ => Ok(()),
        }
    }
}

fn not_found(name: &Name) -> Error {
    Error::NotFound(format!("pair {name}"))
}

fn pair_row(row: &Row) -> Result<PairRow> {
    let text: String = get(row, 0)?;
    let pair: Pair = serde_json::from_str(&text)
        .map_err(|why| Error::Schema(format!("a pair can't be read ({why}): declare it again")))?;
    let switch = match get::<Option<String>>(row, 13)? {
        None => None,
        Some(_) => Some(Switch {
            target: Target::Pair,
            name: pair.name.clone(),
            mode: Mode::Pause,
            reason: get(row, 14)?,
            by: get(row, 15)?,
            until: time(row, 16)?,
            rejected: 0,
        }),
    };
    Ok(PairRow {
        pair,
        last_success: time(row, 1)?,
        age: span(row, 2)?.unwrap_or_default(),
        duration: span(row, 3)?.unwrap_or_default(),
        found: count(row, 4)?,
        enqueued: count(row, 5)?,
        lost_enqueues: count(row, 6)?,
        ineffective: count(row, 7)?,
        held_back: count(row, 8)?,
        ticks: count(row, 9)?,
        error: get(row, 10)?,
        leader: get(row, 11)?,
        uncovered: json(row, 12)?.unwrap_or_default(),
        switch,
    })
}
