//! What a drain asks of the store.

use std::time::Duration;

use async_trait::async_trait;

use super::Postgres;
use crate::claim::WorkerId;
use crate::engine::{Applied, Recalled, RouteRow, Routes, SentJob};
use crate::error::{Error, Result};
use crate::job::{JobId, Name};

#[async_trait]
impl Routes for Postgres {
    async fn store_id(&self) -> Result<u64> {
        Err(Error::Bug("routes".to_owned()))
    }

    async fn declare_route(
        &self,
        _route: &Name,
        _kinds: &[Name],
        _queues: &[Name],
        _change: bool,
    ) -> Result<Applied> {
        Err(Error::Bug("routes".to_owned()))
    }

    async fn routes(&self) -> Result<Vec<RouteRow>> {
        Err(Error::Bug("routes".to_owned()))
    }

    async fn keep_route(&self, _holder: &WorkerId, _lease: Duration) -> Result<Vec<Recalled>> {
        Err(Error::Bug("routes".to_owned()))
    }

    async fn sent(
        &self,
        _holder: &WorkerId,
        _after: Option<JobId>,
        _limit: usize,
    ) -> Result<Vec<SentJob>> {
        Err(Error::Bug("routes".to_owned()))
    }

    async fn forget_route(&self, _holder: &WorkerId) -> Result<bool> {
        Err(Error::Bug("routes".to_owned()))
    }
}
