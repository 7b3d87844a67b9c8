//! Turns the ring while rows go through it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};

use super::row::get;
use super::{Postgres, lock};
use crate::clock::Elapsed;
use crate::error::Result;
use crate::log;

/// What was seen of the ring at the last look.
#[derive(Debug, Default)]
pub(super) struct Ring {
    looked: Option<Elapsed>,
    /// Who held locks on segments that wait to be emptied.
    holders: Vec<String>,
    /// Since when a segment can't be emptied.
    stuck: HashMap<i32, Elapsed>,
}

/// Fewer rows don't fill a segment.
const WORTH_A_LOOK: u64 = 500;
/// A look although hardly anything went through.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// A segment that somebody keeps from being emptied is worth a word.
const STUCK: Duration = Duration::from_secs(60);

impl Postgres {
    /// Looks at the ring if enough has gone through.
    pub(super) async fn turn_ring(&self) -> Result<()> {
        let now = self.clock.elapsed();
        let seen = {
            let ring = lock(&self.ring);
            let idle = ring
                .looked
                .is_some_and(|at| now.saturating_sub(at) < AT_LEAST_EVERY);
            // Whoever is in the way is asked after again soon.
            let waiting = !ring.stuck.is_empty();
            if idle && !waiting && self.flow.load(Ordering::Relaxed) < WORTH_A_LOOK {
                return Ok(());
            }
            ring.holders.clone()
        };
        self.flow.store(0, Ordering::Relaxed);
        lock(&self.ring).looked = Some(now);
        let values: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.segment_bytes, Type::INT8), (&seen, Type::TEXT_ARRAY)];
        let rows = self.call("rotate", &values).await?;
        let mut holders = Vec::new();
        for row in &rows {
            let (segment, bytes, did): (i32, i64, String) =
                (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            let held: Vec<String> = get(row, 3)?;
            self.note(segment, bytes, &did, &held, now);
            holders.extend(held);
        }
        lock(&self.ring).holders = holders;
        Ok(())
    }

    fn note(&self, segment: i32, bytes: i64, did: &str, holders: &[String], now: Elapsed) {
        let mut ring = lock(&self.ring);
        match did {
            "retired" => {
                log::debug!(segment, bytes, "emptied a segment");
                ring.stuck.remove(&segment);
            }
            "blocked" => {
                let since = *ring.stuck.entry(segment).or_insert(now);
                if now.saturating_sub(since) >= STUCK {
                    ring.stuck.insert(segment, now);
                    let by = holders.join(", ");
                    log::warn!(
                        segment,
                        bytes,
                        by,
                        "a session keeps a segment from being emptied"
                    );
                }
            }
            "busy" => {
                ring.stuck.entry(segment).or_insert(now);
            }
            _ => {
                ring.stuck.remove(&segment);
            }
        }
    }
}
