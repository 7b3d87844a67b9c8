//! Takes due jobs: with bounds where it can, without them now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::holdings::{Asking, Held, Lot};
use super::lane::Seen;
use super::outlook::Outlook;
use super::row::{Answer, Leased, Summary};
use super::rows::Rows;
use super::sweep::Budget;
use super::{Postgres, lock};
use crate::claim::{Claim, Claimed, QueueOrder};
use crate::clock;
use crate::engine::routes::DIRECT;
use crate::error::Result;
use crate::job::{JobId, Name, Token};

/// A pause after an empty answer: short at first, since what was enqueued a moment ago may still be
/// on its way to its commit.
const SHORTEST_REST: Duration = Duration::from_millis(10);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How a claim says whether its worker hears notifications.
const HEARS: i64 = 1 << 16;
const DEAF: i64 = 2 << 16;
/// The pause while notifications arrive.
const LISTENING_REST: Duration = Duration::from_secs(3);

impl Postgres {
    pub(super) async fn claim_ordinary(&self, wanted: &Claim) -> Result<Claimed> {
        let now = self.clock.elapsed();
        let outlook = self.outlook(wanted.route.as_ref());
        let sweep = {
            let mut budget = lock(&outlook.budget);
            budget.allows(now) && (budget.is_due(now) || outlook.empty_answers() > 0)
        };
        let (mut jobs, mut summary) = self.claim_once(wanted, wanted.limit, sweep).await?;
        // Nothing: what the bounds hid, or what was set aside, may be due. A job that was found doesn't wait for
        // that; the next look comes soon.
        let allowed = || lock(&outlook.budget).allows(self.clock.elapsed());
        if jobs.is_empty() && !summary.swept && (is_thorough(wanted) || allowed()) {
            (jobs, summary) = self.claim_once(wanted, wanted.limit, true).await?;
        }
        // More may have become due than is brought back at once. Whoever has to be sure goes on while all of that is others'.
        let only_others = |jobs: &[Leased], summary: &Summary| {
            is_thorough(wanted) && jobs.is_empty() && summary.lowest.is_some()
        };
        let mut again = summary.look_aside || only_others(&jobs, &summary);
        while jobs.len() < wanted.limit && again {
            let room = wanted.limit - jobs.len();
            let sweep = only_others(&jobs, &summary);
            let (more, latest) = self.claim_once(wanted, room, sweep).await?;
            summary = latest;
            again = match more.is_empty() {
                true => only_others(&jobs, &summary),
                false => summary.look_aside,
            };
            jobs.extend(more);
        }
        if jobs.len() < wanted.limit && !summary.look_aside {
            lock(&outlook.lanes).brought_back(summary.now, summary.now);
        }
        self.suspects.store(summary.suspects, Ordering::Relaxed);
        // Best first: by priority, then in the order of their lanes.
        jobs.sort_by_key(|one| {
            (
                std::cmp::Reverse(one.job.priority),
                one.ready_at,
                one.job.id,
            )
        });
        Ok(Claimed {
            next_due: self.local_time(summary.next_due, summary.now),
            rest: self.rest(&outlook, jobs.is_empty()),
            jobs: jobs.into_iter().map(|one| one.job).collect(),
        })
    }

    pub(super) async fn claim_suspect(&self, wanted: &Claim) -> Result<Claimed> {
        // Ordinary claims tell whether there are any: they are rare.
        if !self.suspects.swap(true, Ordering::Relaxed) && !is_thorough(wanted) {
            return Ok(Claimed::default());
        }
        let worker = self.number_of(&wanted.worker).await?;
        let (kinds, queues) = (texts(&wanted.kinds), texts(&wanted.queues));
        let asking = self.asking(wanted);
        let (token, route) = (wanted.token.get(), route(wanted));
        let most = i32::try_from(wanted.limit).unwrap_or(i32::MAX);
        let rows = self
            .call(
                "claim_suspect",
                &[
                    (&worker, Type::INT8),
                    (&token, Type::INT8),
                    (&kinds, Type::TEXT_ARRAY),
                    (&queues, Type::TEXT_ARRAY),
                    (&route, Type::TEXT),
                    (&most, Type::INT4),
                ],
            )
            .await?;
        let seen = lock(&self.outlook(wanted.route.as_ref()).lanes).seen();
        let mut answer = Answer::default();
        for row in &rows {
            answer.add(row, wanted.token)?;
        }
        let (jobs, summary) = self.keep(wanted, wanted.limit, answer, seen);
        asking.answered();
        Ok(Claimed {
            jobs: jobs.into_iter().map(|one| one.job).collect(),
            next_due: self.local_time(summary.next_due, summary.now),
            rest: None,
        })
    }

    async fn claim_once(
        &self,
        wanted: &Claim,
        limit: usize,
        sweep: bool,
    ) -> Result<(Vec<Leased>, Summary)> {
        #[cfg(feature = "test-hooks")]
        let sweep = sweep && !crate::hooks::switched_off("claim.sweep");
        let worker = self.number_of(&wanted.worker).await?;
        let outlook = self.outlook(wanted.route.as_ref());
        let (token, route) = (wanted.token.get(), route(wanted));
        let most = i32::try_from(limit).unwrap_or(i32::MAX);
        let (kinds, queues) = (texts(&wanted.kinds), texts(&wanted.queues));
        let (order, weighed, weights) = order(&wanted.order);
        let (capped, caps) = split(&wanted.caps);
        let turn = i64::try_from(self.turn.fetch_add(1, Ordering::Relaxed) & 0xffff).unwrap_or(0);
        // Only a worker that hears notifications asks for them: every one takes a lock that all of them share.
        let turn = turn
            + match self.is_listening() {
                true => HEARS,
                false => DEAF,
            };
        let may_begin_anew = lock(&outlook.budget).allows(self.clock.elapsed());
        let (bounds, aside_after, seen) = {
            let lanes = lock(&outlook.lanes);
            match sweep {
                true => (Default::default(), Timestamp::UNIX_EPOCH, lanes.seen()),
                false => (lanes.bounds(), lanes.aside_after(), lanes.seen()),
            }
        };
        let began = self.clock.elapsed();
        let asking = self.asking(wanted);
        let answer = self
            .read_often(
                "claim_in_levels",
                &[
                    (&worker, Type::INT8),
                    (&token, Type::INT8),
                    (&most, Type::INT4),
                    (&kinds, Type::TEXT_ARRAY),
                    (&queues, Type::TEXT_ARRAY),
                    (&order, Type::TEXT),
                    (&weighed, Type::TEXT_ARRAY),
                    (&weights, Type::INT4_ARRAY),
                    (&capped, Type::TEXT_ARRAY),
                    (&caps, Type::INT4_ARRAY),
                    (&turn, Type::INT8),
                    (&sweep, Type::BOOL),
                    (&may_begin_anew, Type::BOOL),
                    (&seen.unsorted, Type::INT8),
                    (&aside_after, Type::TIMESTAMPTZ),
                    (&bounds.queues, Type::TEXT_ARRAY),
                    (&bounds.kinds, Type::TEXT_ARRAY),
                    (&bounds.priorities, Type::INT2_ARRAY),
                    (&bounds.times, Type::TIMESTAMPTZ_ARRAY),
                    (&bounds.ids, Type::INT8_ARRAY),
                    (&route, Type::TEXT),
                ],
                |rows| read(rows, wanted.token),
            )
            .await
            // Rows that it had locked are passed by from now on, but for a claim without bounds.
            .inspect_err(|_| {
                #[cfg(feature = "test-hooks")]
                if crate::hooks::switched_off("claim.failed") {
                    return;
                }
                *lock(&outlook.budget) = Budget::default();
            })?;
        let answer = self.keep(wanted, limit, answer, seen);
        asking.answered();
        if answer.1.swept {
            lock(&outlook.budget).spent(began, self.clock.elapsed());
        }
        Ok(answer)
    }

    /// Takes the answer in: what we hold now, and where the next claim begins.
    fn keep(
        &self,
        wanted: &Claim,
        limit: usize,
        answer: Answer,
        seen: Seen,
    ) -> (Vec<Leased>, Summary) {
        let leased = answer.leased;
        let summary = answer.summary.unwrap_or(Summary {
            next_due: None,
            now: Timestamp::UNIX_EPOCH,
            look_aside: false,
            suspects: true,
            swept: false,
            unsorted: None,
            stopped: Vec::new(),
            store: None,
            lowest: None,
            furthest: None,
        });
        self.flow
            .fetch_add(u64::try_from(leased.len()).unwrap_or(0), Ordering::Relaxed);
        let outlook = self.outlook(wanted.route.as_ref());
        let taken = (&leased[..], leased.len() >= limit);
        lock(&outlook.lanes).answered(wanted, taken, &summary, seen);
        let held = self.lots(wanted, &leased);
        match wanted.route {
            // It may be settled by another process.
            Some(_) => self.holdings.add_sent(held),
            None => self.holdings.add(held),
        }
        (leased, summary)
    }

    /// What was claimed, each with what it shares with others.
    fn lots<'a>(
        &'a self,
        wanted: &'a Claim,
        leased: &'a [Leased],
    ) -> impl Iterator<Item = (JobId, Held)> + 'a {
        let (mut lots, since): (Vec<Arc<Lot>>, _) = (Vec::new(), self.clock.elapsed());
        leased.iter().map(move |Leased { job, place, .. }| {
            let keyed = job.unique_key.is_some();
            let is_its = |lot: &&Arc<Lot>| {
                (lot.segment, lot.keyed, &lot.kind, &lot.queue)
                    == (job.segment, keyed, &job.kind, &job.queue)
            };
            let lot = match lots.iter().rfind(is_its) {
                Some(lot) => Arc::clone(lot),
                None => {
                    let lot = Arc::new(Lot {
                        number: self.holdings.next_lot(),
                        worker: wanted.route.is_none().then(|| wanted.worker.clone()),
                        token: wanted.token,
                        segment: job.segment,
                        kind: job.kind.clone(),
                        queue: job.queue.clone(),
                        keyed,
                        since,
                    });
                    lots.push(Arc::clone(&lot));
                    lot
                }
            };
            let place = place.filter(|_| job.segment.is_some());
            (job.id, Held { lot, place })
        })
    }

    /// Rows of a lost answer are found by the worker's next heartbeat; a route has none, it is asked for
    /// what it has sent.
    fn asking(&self, wanted: &Claim) -> Asking<'_> {
        let worker = wanted.route.is_none().then(|| wanted.worker.clone());
        self.holdings.asking(worker, self.clock.elapsed())
    }

    /// A time of the server's, by the clock of this process: whoever waits for it looks at this one.
    fn local_time(&self, time: Option<Timestamp>, server_now: Timestamp) -> Option<Timestamp> {
        let wait = Duration::try_from(server_now.duration_until(time?)).unwrap_or_default();
        Some(clock::add(self.clock.now(), wait))
    }

    fn rest(&self, outlook: &Outlook, empty: bool) -> Option<Duration> {
        let answers = outlook.answered(empty);
        // Something may have been committed between the look and the sign.
        if !empty {
            return Some(SHORTEST_REST);
        }
        let pause = SHORTEST_REST.saturating_mul(1 << answers.saturating_sub(1).min(10));
        let rest = match (pause < LONGEST_REST, self.is_listening()) {
            (true, _) => Some(pause),
            (false, true) => Some(LISTENING_REST),
            (false, false) => None,
        };
        // After a notification enqueues are silent for a moment.
        match self.listener.look_again() {
            Some(again) => rest.map(|rest| rest.min(again)),
            None => rest,
        }
    }
}

/// Reads an answer while it comes.
async fn read(mut rows: Rows, token: Token) -> Result<Result<Answer>, tokio_postgres::Error> {
    let mut answer = Answer::default();
    while let Some(row) = rows.next().await? {
        if let Err(why) = answer.add(&row, token) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(answer))
}

fn is_thorough(wanted: &Claim) -> bool {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("claim.thorough") {
        return false;
    }
    wanted.thorough
}

fn route(wanted: &Claim) -> &str {
    wanted.route.as_ref().map_or(DIRECT, Name::as_str)
}

pub(super) fn texts(names: &[Name]) -> Vec<&str> {
    names.iter().map(Name::as_str).collect()
}

fn order(order: &QueueOrder) -> (&'static str, Vec<&str>, Vec<i32>) {
    match order {
        QueueOrder::Fair => ("fair", Vec::new(), Vec::new()),
        QueueOrder::Strict => ("strict", Vec::new(), Vec::new()),
        QueueOrder::Weighted(weights) => {
            let number = |weight: &u32| i32::try_from((*weight).max(1)).unwrap_or(i32::MAX);
            let names = weights.keys().map(Name::as_str).collect();
            ("weighted", names, weights.values().map(number).collect())
        }
    }
}

fn split(caps: &BTreeMap<Name, usize>) -> (Vec<&str>, Vec<i32>) {
    let number = |cap: &usize| i32::try_from(*cap).unwrap_or(i32::MAX);
    (
        caps.keys().map(Name::as_str).collect(),
        caps.values().map(number).collect(),
    )
}
