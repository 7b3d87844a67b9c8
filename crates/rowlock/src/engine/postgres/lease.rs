//! Leases: join, heartbeat, leave, and what becomes of the rows of the dead.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::row::{get, json, span};
use super::statements::sql;
use super::{Postgres, lock, ms};
use crate::claim::{Expired, Heartbeat, WorkerId};
use crate::clock::Elapsed;
use crate::error::{Error, Result};
use crate::job::{Backoff, ErrorKind, JobError, JobId, Token};
use crate::log;

/// How often rows are searched for that lie about under a name nobody answers to.
const SEARCH_EVERY: Duration = Duration::from_secs(60);

impl Postgres {
    pub(super) async fn begin_lease(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        self.see_to_ids().await?;
        let (id, lease) = (worker.as_str(), ms(lease));
        let values = [
            (
                &id as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::TEXT,
            ),
            (&lease, Type::INT8),
        ];
        let rows = self.call("join", &values).await?;
        let number = rows
            .first()
            .map_or(Err(Error::LeaseLost), |row| get(row, 0))?;
        lock(&self.workers).insert(worker.clone(), number);
        self.suspects
            .store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Sequences don't travel with every kind of copy.
    pub(super) async fn see_to_ids(&self) -> Result<()> {
        let behind: i64 = match self.call("check_ids", &[]).await?.first() {
            Some(row) => get(row, 0)?,
            None => 0,
        };
        if behind > 0 {
            log::warn!(
                behind,
                "new ids were behind stored ones, as after a copy without sequences"
            );
        }
        Ok(())
    }

    /// The number that stands for a worker in the rows it holds.
    pub(super) async fn number_of(&self, worker: &WorkerId) -> Result<i64> {
        if let Some(number) = lock(&self.workers).get(worker) {
            return Ok(*number);
        }
        let id = worker.as_str();
        let rows = self
            .query(sql!("worker_number"), &[(&id, Type::TEXT)])
            .await?;
        let number = rows
            .first()
            .map_or(Err(Error::LeaseLost), |row| get(row, 0))?;
        lock(&self.workers).insert(worker.clone(), number);
        Ok(number)
    }

    pub(super) async fn beat(&self, worker: &WorkerId, held: &[Token]) -> Result<Heartbeat> {
        let number = self.number_of(worker).await?;
        let now = self.clock.elapsed();
        let in_doubt = self.holdings.must_search(worker, held, now);
        #[cfg(feature = "test-hooks")]
        let in_doubt = in_doubt && !crate::hooks::switched_off("heartbeat.search_in_doubt");
        // What a route holds under other tokens was sent, maybe by another process.
        let is_route = worker.as_str().starts_with(WorkerId::ROUTE);
        let search = !is_route
            && (in_doubt || {
                let mut searched = lock(&self.searched_by);
                is_time(searched.entry(worker.clone()).or_default(), now)
            });
        let tokens: Vec<i64> = held.iter().map(|token| token.get()).collect();
        let values = [
            (
                &number as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT8,
            ),
            (&tokens, Type::INT8_ARRAY),
            (&search, Type::BOOL),
        ];
        let rows = match self.call_aside("heartbeat", &values).await {
            Ok(rows) => rows,
            Err(why) => {
                if search {
                    self.holdings.doubt(worker, now);
                }
                return Err(why);
            }
        };
        self.holdings.keep(worker, held);
        let (mut answer, mut kinds, mut queues) = (Heartbeat::default(), Vec::new(), Vec::new());
        for row in &rows {
            let (what, name, id): (String, Option<String>, Option<i64>) =
                (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            match what.as_str() {
                "released" => answer.released = usize::try_from(id.unwrap_or(0)).unwrap_or(0),
                "cancel" => answer.cancel_requested.extend(id.map(JobId)),
                "kind" => kinds.extend(name),
                _ => queues.extend(name),
            }
        }
        answer.stopped = self
            .still_held(self.holdings.stopped(worker, &kinds, &queues))
            .await?;
        // A job that ends needn't go back.
        answer
            .stopped
            .retain(|id| !answer.cancel_requested.contains(id));
        if let Err(why) = self.set_slow_aside(worker, now).await {
            log::debug!(%why, "jobs that run for long stay in the ring for now");
        }
        Ok(answer)
    }

    /// Those that nobody has settled in another way.
    async fn still_held(&self, held: Vec<(JobId, Token)>) -> Result<Vec<JobId>> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let (ids, tokens) = columns(&held);
        let values = [
            (
                &ids as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT8_ARRAY,
            ),
            (&tokens, Type::INT8_ARRAY),
        ];
        let rows = self.query(sql!("heartbeat_held"), &values).await?;
        rows.iter().map(|row| get(row, 0).map(JobId)).collect()
    }

    /// Takes what runs for long out of the ring.
    async fn set_slow_aside(&self, worker: &WorkerId, now: Elapsed) -> Result<()> {
        let slow = self.holdings.slow(worker, now);
        if slow.is_empty() {
            return Ok(());
        }
        let (ids, tokens) = columns(&slow);
        let values = [
            (
                &ids as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT8_ARRAY,
            ),
            (&tokens, Type::INT8_ARRAY),
        ];
        let rows = self.call("set_aside", &values).await?;
        let moved: Result<Vec<JobId>> = rows.iter().map(|row| get(row, 0).map(JobId)).collect();
        self.holdings.moved(&moved?);
        Ok(())
    }

    pub(super) async fn end_lease(&self, worker: &WorkerId) -> Result<()> {
        let number = match self.number_of(worker).await {
            Err(Error::LeaseLost) => return Ok(()),
            other => other?,
        };
        self.call("leave", &[(&number, Type::INT8)]).await?;
        self.forget_lease(worker);
        Ok(())
    }

    pub(super) fn forget_lease(&self, worker: &WorkerId) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("lease.forgotten") {
            return;
        }
        self.holdings.forget(worker);
        lock(&self.workers).remove(worker);
        lock(&self.searched_by).remove(worker);
    }

    /// How many workers, and jobs of theirs, this process remembers.
    #[cfg(feature = "test-hooks")]
    #[must_use]
    pub fn remembered(&self) -> [usize; 4] {
        let [jobs, doubts] = self.holdings.remembered();
        [
            lock(&self.workers).len(),
            lock(&self.searched_by).len(),
            jobs,
            doubts,
        ]
    }

    pub(super) async fn begin_suspect(
        &self,
        worker: &WorkerId,
        id: JobId,
        token: Token,
    ) -> Result<()> {
        let number = self.number_of(worker).await?;
        let (id, token) = (id.0, token.get());
        let values = [
            (
                &number as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT8,
            ),
            (&id, Type::INT8),
            (&token, Type::INT8),
        ];
        let rows = self.call("start_suspect", &values).await?;
        match rows.first().map_or(Ok(false), |row| get(row, 0))? {
            true => Ok(()),
            false => Err(Error::LeaseLost),
        }
    }

    pub(super) async fn bury_the_dead(&self) -> Result<Expired> {
        let mut expired = Expired::default();
        let (mut samples, mut beats, mut doubted) = (Vec::new(), Vec::new(), Vec::new());
        let asked = self.clock.elapsed();
        let rows = self.query(sql!("expire_sample"), &[]).await?;
        let times = (asked, self.clock.elapsed());
        for row in &rows {
            let sample = Sample {
                number: get(row, 0)?,
                id: WorkerId::stored(get(row, 1)?),
                seen: get(row, 3)?,
                attempt: get(row, 5)?,
                suspect: get(row, 6)?,
                suspect_token: get(row, 7)?,
                backoff: json(row, 8)?,
            };
            let lease = span(row, 2)?.unwrap_or_default();
            expired.shortest_lease =
                Some(expired.shortest_lease.map_or(lease, |one| one.min(lease)));
            beats.push((sample.id.clone(), sample.seen, lease));
            if get(row, 4)? {
                doubted.push(sample.id.clone());
            }
            samples.push(sample);
        }
        #[cfg_attr(
            not(feature = "test-hooks"),
            expect(unused_mut, reason = "for mutants")
        )]
        let mut dead = lock(&self.observer).sample(times, &beats);
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("expire.by_beat") {
            dead.clone_from(&doubted);
        }
        doubted.retain(|id| !dead.contains(id));
        expired.doubted = doubted.len();
        if !dead.is_empty() {
            crash_point!("expire.found");
        }
        for sample in samples
            .into_iter()
            .filter(|sample| dead.contains(&sample.id))
        {
            match self.bury(&sample, &mut expired).await {
                Ok(true) => expired.workers.push(sample.id),
                Ok(false) => {}
                // One that can't be buried now keeps nobody else from it.
                Err(why) => {
                    lock(&self.observer).refused(&why);
                    log::warn!(worker = %sample.id, %why, "a dead worker's jobs wait");
                }
            }
        }
        // Behind a pooler the server may change without a word.
        if is_time(&mut lock(&self.searched), self.clock.elapsed()) {
            self.see_to_ids().await?;
            for row in &self.query(sql!("expire_strays"), &[]).await? {
                let stray = Sample::stray(get(row, 0)?);
                self.bury(&stray, &mut expired).await?;
            }
        }
        if expired.returned > 0 {
            self.suspects
                .store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(expired)
    }

    async fn bury(&self, dead: &Sample, expired: &mut Expired) -> Result<bool> {
        let attempt = u32::try_from(dead.attempt.unwrap_or(0)).unwrap_or(0);
        let wait = dead
            .backoff
            .clone()
            .unwrap_or_default()
            .wait_with_jitter(attempt);
        let why = format!("worker {} died while it ran this job", dead.id);
        let error = JobError::new(attempt, self.clock.now(), ErrorKind::Lease, &why);
        let error = super::stage::json(&error)?;
        let wait = ms(wait);
        let values = [
            (
                &dead.number as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT8,
            ),
            (&dead.seen, Type::TIMESTAMPTZ),
            (&dead.suspect, Type::INT8),
            (&dead.suspect_token, Type::INT8),
            (&wait, Type::INT8),
            (&error, Type::TEXT),
            (&self.errors_kept, Type::INT4),
            // The same heartbeat was seen for a whole lease.
            (&true, Type::BOOL),
        ];
        let rows = self.call("expire", &values).await?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        let (buried, returned, ended): (bool, i32, i32) =
            (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        expired.returned += usize::try_from(returned).unwrap_or(0);
        expired.ended += usize::try_from(ended).unwrap_or(0);
        Ok(buried)
    }
}

/// Whether it is time to search through all live rows again.
fn is_time(searched: &mut Option<Elapsed>, now: Elapsed) -> bool {
    let due = searched.is_none_or(|at| now.saturating_sub(at) >= SEARCH_EVERY);
    if due {
        *searched = Some(now);
    }
    due
}

fn columns(held: &[(JobId, Token)]) -> (Vec<i64>, Vec<i64>) {
    held.iter().map(|(id, token)| (id.0, token.get())).unzip()
}

/// A worker as it was found.
struct Sample {
    number: i64,
    id: WorkerId,
    seen: Option<Timestamp>,
    attempt: Option<i32>,
    suspect: Option<i64>,
    suspect_token: Option<i64>,
    backoff: Option<Backoff>,
}

impl Sample {
    /// Somebody removed its row: nobody beats for what it holds.
    fn stray(number: i64) -> Self {
        Self {
            number,
            id: WorkerId::stored(format!("worker {number}")),
            seen: None,
            attempt: None,
            suspect: None,
            suspect_token: None,
            backoff: None,
        }
    }
}
