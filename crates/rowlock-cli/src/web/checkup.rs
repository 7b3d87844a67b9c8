//! A checkup reads everything, so one answer serves everybody who asks for a while.

use std::time::Duration;

use jiff::Timestamp;
use rowlock::clock::Elapsed;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Web;
use super::problem::Problem;
use crate::command::doctor;

/// How long an answer is good, at least.
const FRESH: Duration = Duration::from_secs(30);
/// A store that takes long to look through is looked through less often.
const REST: u32 = 20;

/// The last checkup.
#[derive(Debug, Default)]
pub struct Checkup(Mutex<Option<Last>>);

#[derive(Debug)]
struct Last {
    began: Elapsed,
    took: Duration,
    at: Timestamp,
    findings: Value,
}

impl Checkup {
    /// The findings, and when they were made. Whoever comes while one is made waits for it.
    pub async fn findings(&self, web: &Web) -> Result<Value, Problem> {
        let clock = web.rowlock.clock();
        let mut last = self.0.lock().await;
        let now = clock.elapsed();
        let fresh = last.as_ref().filter(|last| {
            let age = now.saturating_sub(last.began);
            age < FRESH.max(last.took * REST)
        });
        if let Some(last) = fresh {
            return Ok(last.shown());
        }
        let at = clock.now();
        let found = doctor::findings(&web.setup, doctor::Depth::All).await?;
        let made = Last {
            began: now,
            took: clock.elapsed().saturating_sub(now),
            at,
            findings: json!(found),
        };
        Ok(last.insert(made).shown())
    }
}

impl Last {
    fn shown(&self) -> Value {
        let took = self.took.as_secs_f64();
        json!({ "looked_at": self.at, "took_seconds": took, "findings": self.findings })
    }
}
