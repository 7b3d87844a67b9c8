//! The key of a job, which its handlers give to the other end of an effect.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::claim::ClaimedJob;
use rowlock::engine::Filter;
use rowlock::settle::Verdict;
use rowlock::{JobState, Outcome};

use super::world::{LEASE, World, failed, job};

pub async fn a_job_keeps_its_key_whatever_happens_to_it(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail").max_attempts(2).unwrap()).await;
    let key = site.job(id).await.idempotency_key.unwrap();
    let keeps = |job: &ClaimedJob, what: &str| {
        assert_eq!(
            (job.id, job.idempotency_key().unwrap()),
            (id, key.clone()),
            "{what}"
        );
    };
    let first = site.claim_one(&worker, &["mail"]).await;
    keeps(&first, "the first claim");
    world.advance(Duration::from_millis(1));
    site.settle(&first, Verdict::Release).await;
    let released = site.claim_one(&worker, &["mail"]).await;
    keeps(&released, "after a release");
    site.finish(&released, failed()).await;
    world.advance(Duration::from_secs(300));
    let second = site.claim_one(&worker, &["mail"]).await;
    keeps(&second, "after a back-off");
    site.finish(&second, failed()).await;
    assert_eq!(site.state(id).await, JobState::Failed);
    let redriven = site.engine().redrive(vec![id]).await.unwrap().remove(0);
    redriven.unwrap();
    let third = site.claim_one(&worker, &["mail"]).await;
    keeps(&third, "after a retry by hand");
    site.finish(&third, Outcome::Snooze(LEASE * 10)).await;
    world.advance(LEASE * 11);
    let dying = site.join().await;
    let fourth = site.claim_one(&dying, &["mail"]).await;
    keeps(&fourth, "after a long wait");
    assert!(site.observe(&world, LEASE * 2, &[]).await >= 1);
    let worker = site.join().await;
    let suspect = site.claim_suspect(&worker, &["mail"]).await.remove(0);
    keeps(&suspect, "after its worker died");
    site.finish(&suspect, Outcome::Done).await;
    let ended = site.job(id).await;
    assert_eq!(
        (ended.state, ended.idempotency_key),
        (JobState::Completed, Some(key))
    );
}

pub async fn jobs_of_one_call_have_a_key_each(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 50).await;
    let listed = Filter {
        limit: 100,
        ..Filter::default()
    };
    let listed = site.rowlock.operate().jobs(listed).await.unwrap();
    let listed: BTreeSet<_> = listed
        .into_iter()
        .flat_map(|job| job.idempotency_key)
        .collect();
    assert_eq!(listed.len(), 50);
    let claimed = site.claim(&worker, &["mail"], 50).await;
    let claimed = claimed.iter().map(|job| job.idempotency_key().unwrap());
    assert_eq!(claimed.collect::<BTreeSet<_>>(), listed);
}
