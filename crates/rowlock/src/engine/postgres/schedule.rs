//! Pairs, crons, switches and the leader's calls.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::Postgres;
use crate::engine::{
    Applied, Batch, Column, CronRow, Examined, Fire, HeldBack, Lead, Leading, Lines, PairRow,
    Posts, Schedule, Source, TickEnd, Ticked,
};
use crate::error::{Error, Result};
use crate::job::{Cron, Name};
use crate::reconcile::Pair;
use crate::stage::Enqueued;
use crate::switch::{Setting, Switch, Target};

fn later<T>() -> Result<T> {
    Err(Error::Bug("not built yet".to_owned()))
}

#[async_trait]
impl Schedule for Postgres {
    async fn switch(&self, _: Target, _: &Name, _: Option<Setting>) -> Result<()> {
        later()
    }
    async fn switches(&self) -> Result<Vec<Switch>> {
        Ok(Vec::new())
    }
    async fn declare_pairs(&self, _: &[Pair], _: bool) -> Result<Vec<Applied>> {
        later()
    }
    async fn pairs(&self) -> Result<Vec<PairRow>> {
        Ok(Vec::new())
    }
    async fn forget_pair(&self, _: &Name) -> Result<()> {
        later()
    }
    async fn held_back(&self, _: &Name, _: Option<&str>, _: usize) -> Result<Vec<HeldBack>> {
        later()
    }
    async fn lift(&self, _: &Name, _: Option<Vec<String>>) -> Result<usize> {
        later()
    }
    async fn declare_crons(&self, _: &[(Cron, Timestamp)], _: bool) -> Result<Vec<Applied>> {
        later()
    }
    async fn crons(&self) -> Result<(Timestamp, Vec<CronRow>)> {
        later()
    }
    async fn pause_cron(&self, _: &Name, _: Option<Timestamp>) -> Result<()> {
        later()
    }
    async fn forget_cron(&self, _: &Name) -> Result<()> {
        later()
    }
}

#[async_trait]
impl Lead for Postgres {
    async fn lead(&self, _: Leading) -> Result<Posts> {
        later()
    }
    async fn tick(&self, _: Batch) -> Result<Ticked> {
        later()
    }
    async fn tick_end(&self, _: TickEnd) -> Result<()> {
        later()
    }
    async fn still_wanted(&self, _: &Name, _: Vec<String>) -> Result<u64> {
        later()
    }
    async fn uncovered(&self, _: &Name, _: Vec<(String, u64)>) -> Result<()> {
        later()
    }
    async fn fire(&self, _: Fire) -> Result<Vec<(Timestamp, Enqueued)>> {
        later()
    }
    fn source(&self) -> Arc<dyn Source> {
        Arc::new(Here)
    }
}

struct Here;

#[async_trait]
impl Source for Here {
    async fn columns(&self, _: &Pair) -> Result<Vec<Column>> {
        later()
    }
    async fn derive(&self, _: &Pair, _: u16, _: Option<&str>, _: usize) -> Result<Lines> {
        later()
    }
    async fn ask(&self, _: &Pair, _: &[String]) -> Result<Vec<bool>> {
        later()
    }
    async fn examine(&self, _: &Pair) -> Result<Examined> {
        later()
    }
}

pub fn source(_url: &str) -> Result<Arc<dyn Source>> {
    later()
}
