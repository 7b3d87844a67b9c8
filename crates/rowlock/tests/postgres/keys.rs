//! Unique keys that outlive their jobs, because jobs were removed by hand.

use rowlock::Status;
use rowlock::engine::postgres::{free_keys, orphaned_keys};

use super::home::wait;
use super::small::Small;
use crate::conformance::world::job;

pub async fn a_key_whose_job_is_gone_is_found_and_freed(small: Small) {
    let world = small.world();
    let site = world.open();
    let keyed = |key: &str| job("mail").unique(key).unwrap();
    let mut ids = Vec::new();
    for key in ["gone", "back", "live"] {
        ids.push(site.stage(keyed(key)).await);
    }
    let address = small.own.address();
    assert_eq!(wait(orphaned_keys(&address)).unwrap(), []);
    let segment = format!("rowlock.job_{}", small.segment());
    let remove = format!(
        "CREATE TABLE saved AS SELECT * FROM {segment}; DELETE FROM {segment} WHERE unique_key <> 'live'"
    );
    small.side.execute(&remove).unwrap();
    let told = site.rowlock.enqueue(&keyed("gone")).await.unwrap();
    assert_eq!((told.status, told.id), (Status::Duplicate, Some(ids[0])));
    let found = wait(orphaned_keys(&address)).unwrap();
    let named: Vec<_> = found
        .iter()
        .map(|each| (each.key.as_str(), each.job))
        .collect();
    assert_eq!(named, [("gone", ids[0]), ("back", ids[1])]);
    let wrong = site.rowlock.operate().integrity().await.unwrap().store;
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    // One job comes back after it was missed, and an enqueue of the other's key is under way.
    let restore = format!("INSERT INTO {segment} SELECT * FROM saved WHERE unique_key = 'back'");
    small.side.execute(&restore).unwrap();
    let rival = small.own.session();
    rival
        .execute("BEGIN; SELECT rowlock.enqueue('mail', unique_key => 'new')")
        .unwrap();
    assert_eq!(wait(free_keys(&address, &found)).unwrap(), 1);
    rival.execute("COMMIT").unwrap();
    assert_eq!(wait(orphaned_keys(&address)).unwrap(), []);
    let wrong = site.rowlock.operate().integrity().await.unwrap().store;
    assert_eq!(wrong, [""; 0]);
    let queued = site.rowlock.enqueue(&keyed("gone")).await.unwrap();
    assert_eq!(queued.status, Status::Queued);
    for (key, id) in [("back", ids[1]), ("live", ids[2])] {
        let held = site.rowlock.enqueue(&keyed(key)).await.unwrap();
        assert_eq!((held.status, held.id), (Status::Duplicate, Some(id)));
    }
}
