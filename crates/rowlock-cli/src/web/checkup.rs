//! A checkup asks much, so one answer serves everybody who asks for a while, and one that takes longer
//! than a request may is there for the next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rowlock::Clock;
use rowlock::clock::Elapsed;
use rowlock::run::task::Tasks;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Web;
use super::problem::Problem;
use crate::command::doctor;
use crate::open::Setup;

/// How long an answer is good, at least.
const FRESH: Duration = Duration::from_secs(30);
/// A store that takes long to look through is looked through less often.
const REST: u32 = 20;
/// How long whoever began a checkup waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The last checkup, and whether one is made.
#[derive(Debug, Default)]
pub struct Checkup {
    state: Arc<Mutex<State>>,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Last>,
    running: bool,
}

#[derive(Debug)]
struct Last {
    began: Elapsed,
    took: Duration,
    at: Timestamp,
    findings: Value,
}

/// Whatever becomes of a checkup, the next one may begin.
struct Running(Arc<Mutex<State>>);

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.0).running = false;
    }
}

impl Checkup {
    /// The findings, and when they were made: the last ones while new ones are being made.
    pub async fn findings(&self, web: &Web) -> Result<Value, Problem> {
        let clock = web.rowlock.clock();
        let (tell, told) = oneshot::channel();
        {
            let mut state = lock(&self.state);
            let now = clock.elapsed();
            if let Some(last) = &state.last
                && (state.running || last.is_fresh(now))
            {
                return Ok(last.shown());
            }
            if state.running {
                return Err(Problem::under_way());
            }
            state.running = true;
            let running = Running(Arc::clone(&self.state));
            let (setup, clock) = (web.setup.clone(), clock.clone());
            let mut tasks = lock(&self.tasks);
            tasks.tidy();
            tasks.start("rowlock-checkup", async move {
                // Nobody may be waiting any more.
                let _ = tell.send(made(&running, &setup, &clock).await);
            });
        }
        match clock.timeout(PATIENCE, told).await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) | None => Err(Problem::under_way()),
        }
    }
}

async fn made(running: &Running, setup: &Setup, clock: &Clock) -> Result<Value, Problem> {
    let (began, at) = (clock.elapsed(), clock.now());
    let found = doctor::findings(setup, doctor::Depth::Plans).await?;
    let made = Last {
        began,
        took: clock.elapsed().saturating_sub(began),
        at,
        findings: json!(found),
    };
    Ok(lock(&running.0).last.insert(made).shown())
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Last {
    fn is_fresh(&self, now: Elapsed) -> bool {
        now.saturating_sub(self.began) < FRESH.max(self.took * REST)
    }

    fn shown(&self) -> Value {
        let took = self.took.as_secs_f64();
        json!({ "looked_at": self.at, "took_seconds": took, "findings": self.findings })
    }
}
