//! A worker is given up while it claims.

use rowlock::JobState;
use rowlock_testbed::until;
use tokio::task::JoinSet;

use super::small::Small;
use crate::conformance::world::{LEASE, job};

/// The claim of one job, as the library makes it.
const CLAIM: &str =
    "SELECT count(id) FROM rowlock.claim_in_levels({worker}, 7, 1, '{mail}', '{}', 'fair',
    '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}')";

pub async fn a_claim_under_way_is_given_back_with_the_rest(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    site.join().await;
    let number = small.side.value("SELECT number FROM rowlock.worker");
    let id = site.stage(job("mail")).await;
    world.advance(LEASE);
    let claiming = small.own.session();
    claiming.execute("BEGIN").unwrap();
    let rows = claiming.value(&CLAIM.replace("{worker}", &number));
    assert_eq!(rows, "1");
    let observer = site.clone();
    let mut burials = JoinSet::new();
    let burial = burials.spawn(async move { observer.engine().expire().await.unwrap() });
    // It waits for the claim, or it doesn't and is over.
    until("the burial has come so far", || {
        let waiting = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                       WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()";
        (small.number(waiting) == 1 || burial.is_finished()).then_some(())
    });
    claiming.execute("COMMIT").unwrap();
    assert_eq!(burials.join_all().await[0].returned, 1);
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
}
