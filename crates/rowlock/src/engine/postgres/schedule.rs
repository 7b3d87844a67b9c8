//! Pairs, crons, switches and the leader's calls.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::Postgres;
use crate::engine::{
    Applied, Batch, CronRow, Fire, Fired, HeldBack, Lead, Leading, PairRow, Posts, Schedule,
    Source, TickEnd, Ticked,
};
use crate::error::Result;
use crate::job::{Cron, Name};
use crate::reconcile::Pair;
use crate::switch::{Setting, Switch, Target};

#[async_trait]
impl Schedule for Postgres {
    async fn switch(&self, target: Target, name: &Name, setting: Option<Setting>) -> Result<()> {
        self.set_switch(target, name, setting).await?;
        self.bell.ring();
        Ok(())
    }

    async fn switches(&self) -> Result<Vec<Switch>> {
        self.all_switches().await
    }

    async fn declare_pairs(&self, pairs: &[Pair], change: bool) -> Result<Vec<Applied>> {
        self.write_pairs(pairs, change).await
    }

    async fn pairs(&self) -> Result<Vec<PairRow>> {
        self.all_pairs().await
    }

    async fn forget_pair(&self, name: &Name) -> Result<()> {
        self.remove_pair(name).await
    }

    async fn held_back(
        &self,
        pair: &Name,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldBack>> {
        self.keys_held_back(pair, after, limit).await
    }

    async fn lift(&self, pair: &Name, keys: Option<Vec<String>>) -> Result<usize> {
        self.lift_keys(pair, keys.as_deref()).await
    }

    async fn declare_crons(
        &self,
        crons: &[(Cron, Timestamp)],
        change: bool,
    ) -> Result<Vec<Applied>> {
        self.write_crons(crons, change).await
    }

    async fn crons(&self) -> Result<(Timestamp, Vec<CronRow>)> {
        self.all_crons().await
    }

    async fn pause_cron(&self, name: &Name, resume_at: Option<Timestamp>) -> Result<()> {
        self.stop_cron(name, resume_at).await
    }

    async fn forget_cron(&self, name: &Name) -> Result<()> {
        self.remove_cron(name).await
    }
}

#[async_trait]
impl Lead for Postgres {
    async fn lead(&self, lead: Leading) -> Result<Posts> {
        let posts = self.lead_all(&lead).await?;
        crash_point!("lead.committed");
        Ok(posts)
    }

    async fn tick(&self, batch: Batch) -> Result<Ticked> {
        self.tick_once(&batch).await
    }

    async fn tick_end(&self, end: TickEnd) -> Result<()> {
        self.note_tick(&end).await?;
        crash_point!("tick.recorded");
        Ok(())
    }

    async fn still_wanted(&self, pair: &Name, keys: Vec<String>) -> Result<u64> {
        self.note_still_wanted(pair, &keys).await
    }

    async fn uncovered(&self, pair: &Name, states: Vec<(String, u64)>) -> Result<()> {
        self.note_uncovered(pair, &states).await
    }

    async fn fire(&self, fire: Fire) -> Result<Fired> {
        let fired = self.fire_ticks(&fire).await?;
        crash_point!("cron.committed");
        if !fired.ticks.is_empty() {
            self.bell.ring();
        }
        Ok(fired)
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.questions) as Arc<dyn Source>
    }
}
