//! Leases: who is dead, and what becomes of what they held.

use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock;
use rowlock::job::ErrorKind;
use rowlock::settle::{Settled, UNWRITTEN, Verdict};
use rowlock::{JobId, JobState, Outcome};

use super::world::{LEASE, Site, World, failed, job};

pub async fn a_silent_worker_is_given_up_after_a_whole_lease(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    site.claim_one(&worker, &["mail"]).await;
    let observer = world.open();
    assert_eq!(observer.observe(&world, LEASE - LEASE / 6, &[]).await, 0);
    assert_eq!(site.state(id).await, JobState::Processing);
    world.advance(LEASE / 6);
    let expired = observer.expire().await;
    assert_eq!(expired.workers, [worker]);
    assert_eq!(expired.returned, 1);
    assert_eq!(site.state(id).await, JobState::Pending);
    assert!(site.workers().await.is_empty());
}

pub async fn a_worker_that_beats_keeps_its_jobs(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    let observer = world.open();
    let held = [claimed.token];
    let dead = observer
        .observe(&world, LEASE * 5, &[(&site, &worker, &held)])
        .await;
    assert_eq!(dead, 0);
    assert_eq!(
        site.job(id).await.locked_by.as_deref(),
        Some(site.holder(&worker).as_str())
    );
    assert_eq!(
        site.finish(&claimed, Outcome::Done).await,
        Settled::Accepted
    );
}

pub async fn a_job_that_cannot_be_given_back_keeps_no_other(world: World) {
    let site = world.open().straight();
    let ids = site.stage_many("mail", 20).await;
    // Two dead workers; the first one has a job that is to be cancelled, which the history refuses.
    let (first, second) = (site.join().await, site.join().await);
    assert_eq!(site.claim(&first, &["mail"], 10).await.len(), 10);
    assert_eq!(site.claim(&second, &["mail"], 10).await.len(), 10);
    let refused = held_by(&site, &first, &ids).await;
    site.engine().cancel(vec![refused]).await.unwrap();
    world.home.client().refuse_end_of(refused);
    let observer = world.open().straight();
    observer.observe(&world, LEASE, &[]).await;
    let expired = observer.expire().await;
    assert!(!expired.workers.contains(&first), "{expired:?}");
    for id in ids.iter().filter(|id| **id != refused) {
        assert_eq!(site.state(*id).await, JobState::Pending);
    }
    // It says why, once however often it is tried.
    observer.expire().await;
    let found = site.job(refused).await;
    assert_eq!(
        (found.state, found.errors.len()),
        (JobState::Processing, 1),
        "{found:?}"
    );
    assert!(
        found.errors[0].message.starts_with(UNWRITTEN),
        "{:?}",
        found.errors
    );
    world.home.client().accept_every_end();
    observer.expire().await;
    assert_eq!(site.state(refused).await, JobState::Cancelled);
    assert!(site.workers().await.is_empty());
}

async fn held_by(site: &Site, worker: &WorkerId, ids: &[JobId]) -> JobId {
    let holder = site.holder(worker);
    for id in ids {
        if site.job(*id).await.locked_by.as_deref() == Some(holder.as_str()) {
            return *id;
        }
    }
    panic!("it holds none");
}

/// A worker claims everything due and dies.
async fn dies_holding(world: &World, site: &Site, limit: usize) -> usize {
    let worker = site.join().await;
    let claimed = site.claim(&worker, &["mail"], limit).await.len();
    assert_eq!(site.observe(world, LEASE, &[]).await, 1);
    claimed
}

pub async fn five_hundred_jobs_claimed_ahead_are_charged_nothing(world: World) {
    let site = world.open();
    let ids = site.stage_many("mail", 500).await;
    assert_eq!(dies_holding(&world, &site, 500).await, 500);
    for id in &ids {
        let found = site.job(*id).await;
        assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
        assert!(found.errors.is_empty());
    }
}

/// The suspect is started by a worker that dies of it; returns the attempt it ran as.
async fn runs_and_dies(world: &World, site: &Site) -> u32 {
    let worker = site.join().await;
    let claimed = site.claim_suspect(&worker, &["mail"]).await.remove(0);
    let engine = site.dispatch();
    engine
        .start_suspect(&worker, claimed.id, claimed.token)
        .await
        .unwrap();
    assert_eq!(site.observe(world, LEASE, &[]).await, 1);
    claimed.attempt
}

pub async fn a_poison_job_pays_for_itself_and_ends_failed(world: World) {
    let site = world.open();
    let poison = site.stage(job("mail").max_attempts(3).unwrap()).await;
    dies_holding(&world, &site, 1).await;
    for attempt in 1..=3 {
        assert_eq!(runs_and_dies(&world, &site).await, attempt);
        let found = site.job(poison).await;
        assert_eq!(found.attempt, attempt);
        assert_eq!(found.errors.len(), usize::try_from(attempt).unwrap());
        assert_eq!(found.errors[0].kind, ErrorKind::Lease);
        if attempt < 3 {
            let worker = site.join().await;
            assert!(
                site.claim_suspect(&worker, &["mail"]).await.is_empty(),
                "no back-off"
            );
            site.dispatch().leave(&worker).await.unwrap();
            world.advance(Duration::from_secs(300));
        }
    }
    assert_eq!(site.state(poison).await, JobState::Failed);
}

pub async fn a_suspect_that_never_started_pays_nothing(world: World) {
    let site = world.open();
    let id = site.stage(job("mail").max_attempts(1).unwrap()).await;
    dies_holding(&world, &site, 1).await;
    for _ in 0..5 {
        let worker = site.join().await;
        assert_eq!(site.claim_suspect(&worker, &["mail"]).await.len(), 1);
        assert_eq!(site.observe(&world, LEASE, &[]).await, 1);
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
    }
}

pub async fn suspects_are_claimed_alone_and_a_settle_clears_the_mark(world: World) {
    let site = world.open();
    site.stage_many("mail", 3).await;
    dies_holding(&world, &site, 3).await;
    let worker = site.join().await;
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    let suspect = site.claim_suspect(&worker, &["mail"]).await;
    assert_eq!(suspect.len(), 1);
    assert!(suspect[0].suspect);
    site.finish(&suspect[0], failed()).await;
    world.advance(Duration::from_secs(60));
    let cleared = site.claim(&worker, &["mail"], 10).await;
    assert_eq!(cleared.len(), 1);
    assert_eq!(cleared[0].id, suspect[0].id);
    assert!(!cleared[0].suspect);
}

pub async fn a_claim_whose_answer_was_lost_is_released_by_its_living_owner(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 5).await;
    let kept = site.claim(&worker, &["mail"], 2).await;
    let lost = site.claim(&worker, &["mail"], 3).await;
    let beat = site.beat(&worker, &[kept[0].token]).await.unwrap();
    assert_eq!(beat.released, 3);
    for job in &lost {
        let found = site.job(job.id).await;
        assert_eq!((found.state, found.attempt), site.given_back());
        assert_eq!(site.settle(job, Verdict::Done).await, Settled::LeaseLost);
    }
    for job in &kept {
        assert_eq!(site.settle(job, Verdict::Done).await, Settled::Accepted);
    }
    assert_eq!(site.claim(&worker, &["mail"], 10).await.len(), 3);
}

pub async fn a_lost_claim_is_missed_at_the_next_heartbeat(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 2).await;
    for _ in 0..2 {
        assert_eq!(site.beat(&worker, &[]).await.unwrap().released, 0);
        let lost = site.claim_one(&worker, &["mail"]).await;
        assert_eq!(site.beat(&worker, &[]).await.unwrap().released, 1);
        let found = site.job(lost.id).await;
        assert_eq!((found.state, found.attempt), site.given_back());
    }
}

/// A live worker beside an observer whose wall clock is off.
async fn nobody_expires(world: &World, offset: jiff::SignedDuration) {
    let site = world.open();
    let worker = site.join().await;
    let id = site
        .stage(job("mail").at("2000-01-01T00:00:00Z".parse().unwrap()))
        .await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    let off = world.open_with(world.clock.shifted(offset).unwrap());
    let held = [claimed.token];
    let living: [(&Site, &WorkerId, &[_]); 1] = [(&site, &worker, &held)];
    assert_eq!(off.observe(world, LEASE * 3, &living).await, 0, "{offset}");
    assert_eq!(site.state(id).await, JobState::Processing);
    assert_eq!(
        site.finish(&claimed, Outcome::Done).await,
        Settled::Accepted
    );
    site.dispatch().leave(&worker).await.unwrap();
}

pub async fn a_worker_with_its_wall_clock_an_hour_off_expires_nobody(world: World) {
    for hours in [1, -1] {
        nobody_expires(&world, jiff::SignedDuration::from_hours(hours)).await;
    }
}

pub async fn an_observer_that_was_away_expires_nobody(world: World) {
    let site = world.open();
    site.join().await;
    let observer = world.open();
    if site.detour.is_some() {
        // Redis has counted: silence is silence, whichever drain looks.
        world.advance(LEASE);
        assert_eq!(observer.expire().await.workers.len(), 1);
        return;
    }
    // Its samples are too far apart to prove anything, however long the silence.
    for _ in 0..10 {
        assert!(observer.expire().await.workers.is_empty());
        world.advance(LEASE);
    }
    assert_eq!(observer.observe(&world, LEASE, &[]).await, 1);
}

pub async fn a_clock_that_jumps_gives_up_nobody_alive_and_keeps_nobody_dead(world: World) {
    const HOUR: Duration = Duration::from_secs(3600);
    let site = world.open().straight();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    let held = [claimed.token];
    let observer = world.open().straight();
    let living: [(&Site, &WorkerId, &[_]); 1] = [(&site, &worker, &held)];
    assert_eq!(observer.observe(&world, LEASE / 2, &living).await, 0);
    // The store's own clock, where it has one, jumps ahead and stays there for a while.
    world.home.time_is(clock::add(world.clock.now(), HOUR));
    let looked = observer.expire().await;
    assert!(looked.workers.is_empty(), "{:?}", looked.workers);
    assert_eq!(site.state(id).await, JobState::Processing);
    site.beat(&worker, &held).await.unwrap();
    // Then it is set back: what was heard last lies an hour ahead now.
    assert_eq!(observer.observe(&world, LEASE * 2, &living).await, 0);
    assert_eq!(site.state(id).await, JobState::Processing);
    world.home.time_is(clock::add(world.clock.now(), HOUR));
    site.beat(&worker, &held).await.unwrap();
    assert_eq!(observer.observe(&world, LEASE, &[]).await, 1);
    assert_eq!(site.state(id).await, JobState::Pending);
}

pub async fn whoever_watches_is_told_the_shortest_lease(world: World) {
    let site = world.open();
    let engine = site.engine();
    assert_eq!(engine.expire().await.unwrap().shortest_lease, None);
    site.straight().join().await;
    let hasty = WorkerId::random("hasty").unwrap();
    let short = Duration::from_secs(3);
    engine.join(&hasty, short).await.unwrap();
    assert_eq!(engine.expire().await.unwrap().shortest_lease, Some(short));
    // Watched at its own pace it is given up after its own lease, and the other one isn't.
    for _ in 0..6 {
        world.advance(short / 6);
        let dead = engine.expire().await.unwrap().workers;
        assert!(dead.is_empty() || dead == [hasty.clone()], "{dead:?}");
    }
    assert_eq!(site.rowlock.operate().workers().await.unwrap().len(), 1);
}

pub async fn rows_of_a_worker_that_somebody_removed_are_given_back(world: World) {
    let site = world.open().straight();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    site.claim_one(&worker, &["mail"]).await;
    world.home.client().execute("DELETE FROM rowlock_worker");
    site.expire().await;
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
}

pub async fn a_worker_that_leaves_gives_back_what_it_holds(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let ids = site.stage_many("mail", 3).await;
    site.claim(&worker, &["mail"], 3).await;
    site.dispatch().leave(&worker).await.unwrap();
    for id in ids {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), site.given_back());
    }
    let next = site.join().await;
    assert_eq!(
        site.claim(&next, &["mail"], 10).await.len(),
        3,
        "they are no suspects"
    );
}
