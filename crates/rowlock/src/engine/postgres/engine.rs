//! The journey's calls, and the operators'.

use std::time::Duration;

use async_trait::async_trait;

use super::Postgres;
use crate::claim::{Claim, Claimed, Expired, Heartbeat, WorkerId};
use crate::engine::{
    Applied, Cancel, Capabilities, Dispatch, Drift, Engine, Fact, Filter, Health, Integrity,
    Operate, QueueRow, Stats, Wakeups, WorkerRow,
};
use crate::error::Result;
use crate::job::{JobId, JobState, Kind, NewJob, Record, Token};
use crate::settle::{Settled, Settlement};
use crate::stage::Enqueued;

#[async_trait]
impl Dispatch for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            server_clock: true,
            prunes_by_day: true,
            drained: false,
        }
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        self.begin_lease(worker, lease).await?;
        crash_point!("join.committed");
        Ok(())
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        let answer = self.beat(worker, &held).await?;
        crash_point!("heartbeat.committed");
        Ok(answer)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        #[cfg(feature = "test-hooks")]
        let claim = match crate::hooks::switched_off("claim.own_token") {
            true => Claim {
                token: Token::stored(self.number_of(&claim.worker).await?),
                ..claim
            },
            false => claim,
        };
        let claimed = match claim.suspect {
            true => self.claim_suspect(&claim).await?,
            false => self.claim_ordinary(&claim).await?,
        };
        crash_point!("claim.committed");
        Ok(claimed)
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.begin_suspect(worker, id, token).await?;
        crash_point!("suspect.committed");
        Ok(())
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        let answers = self.settle_all(&settlements).await?;
        crash_point!("settle.committed");
        if !settlements.iter().all(|each| each.verdict.is_end()) {
            self.bell.ring();
        }
        Ok(answers)
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.end_lease(worker).await?;
        crash_point!("leave.committed");
        self.bell.ring();
        Ok(())
    }

    fn forget(&self, worker: &WorkerId) {
        self.forget_lease(worker);
    }

    fn wakeups(&self) -> Wakeups {
        self.listener.start(&self.address, &self.io, &self.bell);
        self.bell.listen()
    }
}

#[async_trait]
impl Engine for Postgres {
    async fn add_kinds(&self, kinds: &[Kind]) -> Result<Vec<Drift>> {
        self.add_missing(kinds).await
    }

    async fn stage(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let staged = self.stage_all(&jobs).await?;
        crash_point!("stage.committed");
        self.bell.ring();
        Ok(staged)
    }

    async fn expire(&self) -> Result<Expired> {
        let expired = self.bury_the_dead().await?;
        if !expired.workers.is_empty() {
            crash_point!("expire.committed");
        }
        if expired.returned > 0 {
            self.bell.ring();
        }
        Ok(expired)
    }

    async fn cancel(&self, ids: Vec<JobId>) -> Result<Vec<Result<Cancel>>> {
        let answers = self.cancel_each(&ids).await;
        self.deep.forget();
        answers
    }

    async fn redrive(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>> {
        let answers = self.redrive_each(&ids).await?;
        self.bell.ring();
        Ok(answers)
    }

    async fn delete(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>> {
        let answers = self.delete_each(&ids).await;
        self.deep.forget();
        answers
    }

    async fn prune(&self, limit: usize) -> Result<usize> {
        let pruned = self.prune_days(limit).await?;
        crash_point!("prune.committed");
        Ok(pruned)
    }

    async fn upkeep(&self) -> Result<()> {
        self.turn_ring().await
    }
}

#[async_trait]
impl Operate for Postgres {
    async fn job(&self, id: JobId) -> Result<Option<Record>> {
        self.one_job(id).await
    }

    async fn jobs(&self, filter: Filter) -> Result<Vec<Record>> {
        self.jobs_by(&filter).await
    }

    async fn running(&self, limit: usize) -> Result<Vec<Record>> {
        self.running_jobs(limit).await
    }

    async fn ended(&self, state: JobState, limit: usize) -> Result<Vec<Record>> {
        self.ended_jobs(state, limit).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.count_all().await
    }

    async fn queues(&self) -> Result<Vec<QueueRow>> {
        self.queue_rows().await
    }

    async fn kinds(&self) -> Result<Vec<Kind>> {
        self.all_kinds().await
    }

    async fn apply(&self, kinds: &[Kind]) -> Result<Vec<Applied>> {
        self.apply_all(kinds).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.all_workers().await
    }

    async fn health(&self) -> Result<Health> {
        self.checkup().await
    }

    async fn facts(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Fact>> {
        self.facts_after(after, limit).await
    }

    async fn integrity(&self) -> Result<Integrity> {
        self.contradictions().await
    }
}
