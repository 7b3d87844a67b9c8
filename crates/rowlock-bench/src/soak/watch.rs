//! What is seen from outside: tables and catalogue by the server, memory by the system.

use std::fmt;

use anyhow::{Context, Result};
use rowlock::Rowlock;

use super::child::Worker;
use crate::measurement::percentile;
use crate::server::{Server, Session};

/// One look. Bytes, and times of claims since the look before, in ms.
pub(super) struct Moment {
    pub(super) claims: Vec<f64>,
    pub(super) memory: f64,
    pub(super) segments: f64,
    pub(super) beside: f64,
    pub(super) history: f64,
    pub(super) catalogue: f64,
    waiting: u64,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: f64| bytes / 1e6;
        write!(
            f,
            "claim p50 {:.2} p99 {:.2} ms, {} wait, worker {:.1} MB, segments {:.1}, keys and aside {:.1}, \
             history {:.0}, catalogue {:.1} MB",
            percentile(&self.claims, 0.5),
            percentile(&self.claims, 0.99),
            self.waiting,
            mb(self.memory),
            mb(self.segments),
            mb(self.beside),
            mb(self.history),
            mb(self.catalogue)
        )
    }
}

pub(super) struct Watch {
    session: Session,
    bytes: String,
    pub(super) seen: Vec<Moment>,
}

impl Watch {
    pub(super) async fn new(server: &Server) -> Result<Self> {
        Ok(Self {
            session: server.session().await?,
            bytes: server.put(include_str!("bytes.sql")),
            seen: Vec::new(),
        })
    }

    pub(super) async fn look(&mut self, rowlock: &Rowlock, worker: &Worker) -> Result<&Moment> {
        let row = self.session.client.query_one(&self.bytes, &[]).await?;
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let bytes = |at: usize| row.get::<_, i64>(at) as f64;
        let moment = Moment {
            claims: worker.claims()?,
            memory: memory(worker.pid())?,
            segments: bytes(0),
            beside: bytes(1),
            history: bytes(2),
            catalogue: bytes(3),
            waiting: rowlock.operate().stats().await?.total.pending,
        };
        self.seen.push(moment);
        self.seen.last().context("it was just added")
    }
}

/// What a process has in memory.
fn memory(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("the system doesn't say what a process has in memory")?;
    Ok(kilobytes.trim().parse::<f64>()? * 1024.0)
}
