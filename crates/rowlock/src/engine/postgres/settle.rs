//! Applies verdicts under the fence, and moves of operators.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foldhash::fast::FixedState;
use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::claim::texts;
use super::holdings::Spot;
use super::place::Place;
use super::row::get;
use super::stage::json;
use super::statements::sql;
use super::{Postgres, ms};
use crate::engine::Cancel;
use crate::error::{Error, Result};
use crate::job::{JobError, JobId, JobState, Name, Token};
use crate::settle::{Settled, Settlement, Verdict};

/// What is done and lies where it was claimed: groups of one segment, claim, kind and queue.
#[derive(Default)]
struct Done {
    /// The lot whose jobs are being added.
    last: Option<u64>,
    sizes: Vec<i32>,
    segments: Vec<i16>,
    tokens: Vec<i64>,
    kinds: Vec<Name>,
    queues: Vec<Name>,
    keyed: Vec<bool>,
    places: Vec<Place>,
    ids: Vec<i64>,
    began_ago: Vec<Option<i64>>,
}

impl Done {
    /// In their order: a group's jobs come one after the other.
    fn push(&mut self, spot: Spot, each: &Settlement, began_ago: Option<i64>) {
        match self.sizes.last_mut() {
            Some(size) if self.last == Some(spot.lot.number) => *size += 1,
            _ => {
                self.last = Some(spot.lot.number);
                self.sizes.push(1);
                self.segments.push(spot.lot.segment.unwrap_or(0));
                self.tokens.push(each.token.get());
                self.kinds.push(spot.lot.kind.clone());
                self.queues.push(spot.lot.queue.clone());
                self.keyed.push(spot.lot.keyed);
            }
        }
        self.places.push(spot.place);
        self.ids.push(each.id.0);
        self.began_ago.push(began_ago);
    }
}

/// All other verdicts in the form that the function takes.
#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    tokens: Vec<i64>,
    verdicts: Vec<&'static str>,
    began_ago: Vec<Option<i64>>,
    waits: Vec<Option<i64>>,
    errors: Vec<Option<String>>,
}

impl Postgres {
    /// Every verdict, each under its own fence. A second verdict on a job comes after the first.
    pub(super) async fn settle_all(&self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        if let [
            Settlement {
                id,
                token,
                verdict: Verdict::Note(error),
                ..
            },
        ] = settlements
        {
            return self
                .note_error(*id, *token, error)
                .await
                .map(|one| vec![one]);
        }
        let mut answers = vec![Settled::LeaseLost; settlements.len()];
        let mut left: Vec<usize> = (0..settlements.len()).collect();
        while !left.is_empty() {
            let mut asked = HashSet::<_, FixedState>::with_capacity_and_hasher(
                left.len(),
                FixedState::default(),
            );
            let is_first = |n: &usize| asked.insert(settlements[*n].id);
            let (now, later): (Vec<usize>, Vec<usize>) = left.into_iter().partition(is_first);
            let accepted = self
                .settle_each(now.iter().map(|n| &settlements[*n]))
                .await?;
            // Each is named once at most: as many as were asked for are all of them.
            let all = accepted.len() == now.len();
            for n in now {
                if all || accepted.binary_search(&settlements[n].id.0).is_ok() {
                    answers[n] = Settled::Accepted;
                }
            }
            left = later;
        }
        let is_expired = |each: &Settlement| matches!(each.verdict, Verdict::Expired { .. });
        if settlements.iter().any(is_expired) {
            self.suspects.store(true, Ordering::Relaxed);
        }
        self.holdings
            .settled(settlements.iter().map(|each| (&each.id, &each.token)));
        Ok(answers)
    }

    /// Writes an error to a claimed job, which stays claimed.
    async fn note_error(&self, id: JobId, token: Token, error: &JobError) -> Result<Settled> {
        let values: [(&(dyn ToSql + Sync), Type); 4] = [
            (&id.0, Type::INT8),
            (&token.get(), Type::INT8),
            (&json(error)?, Type::TEXT),
            (&self.errors_kept, Type::INT4),
        ];
        Ok(match self.execute(sql!("settle_note"), &values).await? {
            0 => Settled::LeaseLost,
            _ => Settled::Accepted,
        })
    }

    /// The ids of those that were accepted, rising.
    async fn settle_each<'a>(
        &self,
        settlements: impl Iterator<Item = &'a Settlement>,
    ) -> Result<Vec<i64>> {
        let now = self.clock.now();
        let settlements: Vec<&Settlement> = settlements.collect();
        let claims = settlements.iter().map(|each| (&each.id, &each.token));
        let mut spotted: Vec<_> = self
            .holdings
            .spots(claims)
            .into_iter()
            .zip(&settlements)
            .collect();
        // In one order, so that two of these don't wait for each other. Who goes by ids alone may meet them
        // crosswise: then one of both is ended by the server, and tries again.
        spotted
            .sort_unstable_by_key(|(spot, each)| (spot.as_ref().map(|at| at.lot.number), each.id));
        let (mut done, mut others) = (Done::default(), Columns::default());
        for (spot, each) in spotted {
            // The server's time rules: it is told how long ago, and how long to wait.
            let began = each.started_at.map(|at| ms(between(at, now)));
            let (verdict, wait, error) = spell(&each.verdict, now);
            match spot {
                Some(spot) if verdict == "done" => done.push(spot, each, began),
                _ => {
                    others.ids.push(each.id.0);
                    others.tokens.push(each.token.get());
                    others.began_ago.push(began);
                    others.verdicts.push(verdict);
                    others.waits.push(wait);
                    others.errors.push(error.map(json).transpose()?);
                }
            }
        }
        let (kinds, queues) = (texts(&done.kinds), texts(&done.queues));
        let asked = self
            .ask_often(
                sql!("settle_call"),
                &[
                    (&done.sizes, Type::INT4_ARRAY),
                    (&done.segments, Type::INT2_ARRAY),
                    (&done.tokens, Type::INT8_ARRAY),
                    (&kinds, Type::TEXT_ARRAY),
                    (&queues, Type::TEXT_ARRAY),
                    (&done.keyed, Type::BOOL_ARRAY),
                    (&done.places, Type::TID_ARRAY),
                    (&done.ids, Type::INT8_ARRAY),
                    (&done.began_ago, Type::INT8_ARRAY),
                    (&others.ids, Type::INT8_ARRAY),
                    (&others.tokens, Type::INT8_ARRAY),
                    (&others.verdicts, Type::TEXT_ARRAY),
                    (&others.began_ago, Type::INT8_ARRAY),
                    (&others.waits, Type::INT8_ARRAY),
                    (&others.errors, Type::TEXT_ARRAY),
                    (&self.errors_kept, Type::INT4),
                ],
            )
            .await;
        if asked.is_err() {
            // Perhaps because they are somewhere else: the next try looks for them by their ids.
            self.holdings
                .misplaced(settlements.iter().map(|each| &each.id));
        }
        let accepted: Option<Vec<i64>> = asked?.first().map_or(Ok(None), |row| get(row, 0))?;
        let mut accepted = accepted.unwrap_or_default();
        accepted.sort_unstable();
        Ok(accepted)
    }

    pub(super) async fn cancel_each(&self, ids: &[JobId]) -> Result<Vec<Result<Cancel>>> {
        self.operate_on("cancel", ids, |id, answer, state, _| match answer {
            Some("cancelled") => Ok(Cancel::Cancelled),
            Some(_) => Ok(Cancel::Requested),
            None => Err(refuse(id, state, "it has ended already")),
        })
        .await
    }

    pub(super) async fn redrive_each(&self, ids: &[JobId]) -> Result<Vec<Result<()>>> {
        self.operate_on("redrive", ids, |id, answer, state, holder| {
            match (answer, holder) {
                (Some(_), _) => Ok(()),
                (None, Some(holder)) => Err(refuse(
                    id,
                    state,
                    &format!(
                        "job {holder} is live and has the same unique key; wait for it or cancel it"
                    ),
                )),
                (None, None) => Err(refuse(id, state, "only ended jobs can be retried")),
            }
        })
        .await
    }

    pub(super) async fn delete_each(&self, ids: &[JobId]) -> Result<Vec<Result<()>>> {
        self.operate_on("delete", ids, |id, answer, state, _| match answer {
            Some(_) => Ok(()),
            None => Err(refuse(
                id,
                state,
                &format!("cancel it first (rowlock job cancel {id})"),
            )),
        })
        .await
    }

    async fn operate_on<T>(
        &self,
        function: &'static str,
        ids: &[JobId],
        read: impl Fn(JobId, Option<&str>, Option<JobState>, Option<i64>) -> Result<T>,
    ) -> Result<Vec<Result<T>>> {
        // In one order, so that two of these don't wait for each other; each answer to its own.
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|n| ids[*n]);
        let numbers: Vec<i64> = order.iter().map(|n| ids[*n].0).collect();
        let values = [(&numbers as &(dyn ToSql + Sync), Type::INT8_ARRAY)];
        let rows = self.call(function, &values).await?;
        let mut answers: Vec<(usize, Result<T>)> = Vec::with_capacity(ids.len());
        for (n, row) in order.into_iter().zip(&rows) {
            let (answer, state): (Option<String>, Option<String>) = (get(row, 0)?, get(row, 1)?);
            let holder = if row.len() > 2 { get(row, 2)? } else { None };
            let state = state.map(|state| state.parse()).transpose()?;
            answers.push((n, read(ids[n], answer.as_deref(), state, holder)));
        }
        answers.sort_by_key(|(n, _)| *n);
        let answers = answers.into_iter().map(|(_, answer)| answer).collect();
        Ok(answers)
    }

    /// Day by day, each in a transaction of its own.
    pub(super) async fn prune_days(&self, limit: usize) -> Result<usize> {
        let mut all = 0;
        while all < limit {
            let rows = self.call("prune", &[]).await?;
            let pruned: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
            if pruned == 0 {
                break;
            }
            all += usize::try_from(pruned).unwrap_or(0);
        }
        self.call("tidy", &[]).await?;
        Ok(all)
    }
}

fn refuse(id: JobId, state: Option<JobState>, why: &str) -> Error {
    match state {
        None => Error::NotFound(format!("job {id}")),
        Some(state) => Error::Conflict {
            id,
            state,
            why: why.to_owned(),
        },
    }
}

/// From one time to a later one; nothing when it isn't later.
pub(super) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(from.duration_until(to)).unwrap_or_default()
}

fn spell(verdict: &Verdict, now: Timestamp) -> (&'static str, Option<i64>, Option<&JobError>) {
    match verdict {
        Verdict::Done | Verdict::NotNeeded => ("done", None, None),
        Verdict::Fail(error) => ("fail", None, Some(error)),
        Verdict::Cancelled => ("cancelled", None, None),
        Verdict::Retry { at, error } => ("retry", Some(ms(between(now, *at))), Some(error)),
        Verdict::Snooze(until) => ("snooze", Some(ms(between(now, *until))), None),
        Verdict::Release => ("release", None, None),
        // Not one of a batch: see settle_all.
        Verdict::Note(error) => ("note", None, Some(error)),
        Verdict::Sent => ("sent", None, None),
        Verdict::Expired { charged: None } => ("expired", None, None),
        Verdict::Expired {
            charged: Some((at, error)),
        } => ("charged", Some(ms(between(now, *at))), Some(error)),
    }
}
