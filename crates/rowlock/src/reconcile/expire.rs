//! Expire and prune: what the dead held is given back, what was kept long enough goes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::claim::Observer;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::event;
use crate::log;

/// Samples are never taken more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// How often ended jobs are looked through.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// How many are removed in one transaction.
const PRUNE_BATCH: usize = 1_000;

/// Looks after the store until it is dropped. Any number of processes may do so at once.
pub async fn upkeep(engine: Arc<dyn Engine>, clock: Clock, lease: Duration) {
    let (doubted, _) = watch::channel(false);
    upkeep_and_tell(engine, clock, lease, doubted).await;
}

/// The same. `doubted` tells whether workers are being watched that seem to be dead: what they hold comes back, or is
/// theirs.
pub(crate) async fn upkeep_and_tell(
    engine: Arc<dyn Engine>,
    clock: Clock,
    lease: Duration,
    doubted: watch::Sender<bool>,
) {
    tokio::join!(
        expire_and_prune(&engine, &clock, lease, &doubted),
        engines_own(&engine, &clock)
    );
}

/// How often the engine is asked whether it has something to look after.
const OWN_PAUSE: Duration = Duration::from_millis(200);

async fn engines_own(engine: &Arc<dyn Engine>, clock: &Clock) {
    loop {
        if let Err(why) = engine.upkeep().await {
            log::warn!(%why, "the store's own upkeep waits");
        }
        clock.sleep(OWN_PAUSE).await;
    }
}

async fn expire_and_prune(
    engine: &Arc<dyn Engine>,
    clock: &Clock,
    lease: Duration,
    doubted: &watch::Sender<bool>,
) {
    let mut pruned_at = None;
    loop {
        let mut shortest = lease;
        let expired = engine.expire().await;
        let some = expired.as_ref().is_ok_and(|found| found.doubted > 0);
        doubted.send_if_modified(|old| std::mem::replace(old, some) != some);
        if let Ok(expired) = &expired {
            shortest = shortest.min(expired.shortest_lease.unwrap_or(lease));
        }
        match expired {
            Ok(expired) if expired.workers.is_empty() => {}
            Ok(expired) => {
                event::expired(&expired);
                let (returned, ended) = (expired.returned, expired.ended);
                for worker in &expired.workers {
                    log::warn!(%worker, "a worker was silent for a whole lease");
                }
                log::warn!(returned, ended, "gave back what it held");
            }
            Err(why) => log::warn!(%why, "can't look for silent workers"),
        }
        let now = clock.elapsed();
        if pruned_at.is_none_or(|at| now.saturating_sub(at) >= PRUNE_EVERY) {
            pruned_at = Some(now);
            prune(&**engine).await;
        }
        // A worker with a shorter lease than ours is watched at its own pace.
        let pause = shortest / Observer::SAMPLES_PER_LEASE;
        clock.sleep(pause.max(SHORTEST_PAUSE)).await;
    }
}

async fn prune(engine: &dyn Engine) {
    loop {
        match engine.prune(PRUNE_BATCH).await {
            Ok(PRUNE_BATCH) => {}
            Ok(0) => return,
            Ok(removed) => return log::debug!(removed, "pruned ended jobs"),
            Err(why) => return log::warn!(%why, "can't prune ended jobs"),
        }
    }
}
