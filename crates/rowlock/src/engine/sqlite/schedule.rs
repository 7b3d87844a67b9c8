//! Pairs, crons, switches and the leader's calls.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Sqlite, crons, held_back, pairs, posts, switches};
use crate::engine::{
    Applied, Batch, CronRow, Fire, Fired, HeldBack, Lead, Leading, PairRow, Posts, Schedule,
    Source, TickEnd, Ticked,
};
use crate::error::Result;
use crate::job::{Cron, Name};
use crate::reconcile::Pair;
use crate::switch::{Setting, Switch, Target};

#[async_trait]
impl Schedule for Sqlite {
    async fn switch(&self, target: Target, name: &Name, setting: Option<Setting>) -> Result<()> {
        let (name, now) = (name.clone(), self.clock.now());
        self.write(1, true, move |on| match &setting {
            Some(setting) => switches::set(on, target, &name, setting),
            None => switches::clear(on, target, &name, now),
        })
        .await
    }

    async fn switches(&self) -> Result<Vec<Switch>> {
        let now = self.clock.now();
        self.read(move |on| switches::switches(on, now)).await
    }

    async fn declare_pairs(&self, pairs: &[Pair], change: bool) -> Result<Vec<Applied>> {
        let (pairs, now) = (pairs.to_vec(), self.clock.now());
        self.write(1, false, move |on| pairs::declare(on, &pairs, change, now))
            .await
    }

    async fn pairs(&self) -> Result<Vec<PairRow>> {
        let now = self.clock.now();
        self.read(move |on| pairs::pairs(on, now)).await
    }

    async fn forget_pair(&self, name: &Name) -> Result<()> {
        let name = name.clone();
        self.write(1, false, move |on| pairs::forget(on, &name))
            .await
    }

    async fn held_back(
        &self,
        pair: &Name,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldBack>> {
        let (pair, after) = (pair.clone(), after.map(str::to_owned));
        self.read(move |on| held_back::list(on, &pair, after.as_deref(), limit))
            .await
    }

    async fn lift(&self, pair: &Name, keys: Option<Vec<String>>) -> Result<usize> {
        let pair = pair.clone();
        self.write(1, false, move |on| {
            pairs::must_exist(on, &pair)?;
            held_back::lift(on, &pair, keys.as_deref())
        })
        .await
    }

    async fn declare_crons(
        &self,
        crons: &[(Cron, Timestamp)],
        change: bool,
    ) -> Result<Vec<Applied>> {
        let crons = crons.to_vec();
        self.write(1, false, move |on| crons::declare(on, &crons, change))
            .await
    }

    async fn crons(&self) -> Result<(Timestamp, Vec<CronRow>)> {
        let now = self.clock.now();
        let rows = self.read(crons::crons).await?;
        Ok((now, rows))
    }

    async fn pause_cron(&self, name: &Name, resume_at: Option<Timestamp>) -> Result<()> {
        let name = name.clone();
        self.write(1, false, move |on| crons::pause(on, &name, resume_at))
            .await
    }

    async fn forget_cron(&self, name: &Name) -> Result<()> {
        let name = name.clone();
        self.write(1, false, move |on| crons::forget(on, &name))
            .await
    }
}

#[async_trait]
impl Lead for Sqlite {
    async fn lead(&self, lead: Leading) -> Result<Posts> {
        let now = self.clock.now();
        if lead.keep.is_empty() && lead.take.is_empty() && lead.leave.is_empty() {
            return self.read(move |on| posts::posts(on, now)).await;
        }
        let posts = self
            .write(1, false, move |on| posts::lead(on, &lead, now))
            .await?;
        crash_point!("lead.committed");
        Ok(posts)
    }

    async fn tick(&self, batch: Batch) -> Result<Ticked> {
        self.tick_batch(batch).await
    }

    async fn tick_end(&self, end: TickEnd) -> Result<()> {
        let now = self.clock.now();
        self.write(1, false, move |on| posts::tick_end(on, &end, now))
            .await?;
        crash_point!("tick.recorded");
        Ok(())
    }

    async fn still_wanted(&self, pair: &Name, keys: Vec<String>) -> Result<u64> {
        let (pair, now) = (pair.clone(), self.clock.now());
        self.write(keys.len(), false, move |on| {
            held_back::still_wanted(on, &pair, &keys, now)
        })
        .await
    }

    async fn uncovered(&self, pair: &Name, states: Vec<(String, u64)>) -> Result<()> {
        let pair = pair.clone();
        self.write(1, false, move |on| pairs::uncovered(on, &pair, &states))
            .await
    }

    async fn fire(&self, fire: Fire) -> Result<Fired> {
        let now = self.clock.now();
        let ticks = self
            .write(fire.ticks.len(), true, move |on| {
                crons::fire(on, &fire, now)
            })
            .await?;
        crash_point!("cron.committed");
        Ok(Fired {
            ticks,
            blocked: false,
        })
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.tables) as Arc<dyn Source>
    }
}
