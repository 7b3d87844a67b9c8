//! Settle: outcomes become states, under the fence.

use std::time::Duration;

use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{JobState, Kind, Outcome};

use super::world::{LEASE, Site, World, error, failed, job};

pub async fn done_is_final(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    world.advance(Duration::from_secs(2));
    assert_eq!(
        site.finish(&claimed, Outcome::Done).await,
        Settled::Accepted
    );
    let found = site.job(id).await;
    assert_eq!(found.state, JobState::Completed);
    assert_eq!(found.attempt, 1);
    assert_eq!(found.finished_at, Some(world.clock.now()));
    assert_eq!(found.locked_by, None);
    assert_eq!(
        site.finish(&claimed, Outcome::Done).await,
        Settled::LeaseLost
    );
    assert_eq!(site.finish(&claimed, failed()).await, Settled::LeaseLost);
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    assert_eq!(site.state(id).await, JobState::Completed);
}

pub async fn not_needed_completes(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(
        site.finish(&claimed, Outcome::NotNeeded).await,
        Settled::Accepted
    );
    assert_eq!(site.state(id).await, JobState::Completed);
}

pub async fn a_failed_attempt_waits_thirty_seconds_times_its_number(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    for attempt in 1..=4_u32 {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        assert_eq!(claimed.attempt, attempt);
        assert_eq!(site.finish(&claimed, failed()).await, Settled::Accepted);
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Pending, attempt));
        let wait = Duration::from_secs(30) * attempt;
        let due = Duration::try_from(world.clock.now().duration_until(found.scheduled_at)).unwrap();
        assert!(
            due >= wait && due <= wait + wait / 10,
            "attempt {attempt} waits {due:?}"
        );
        world.advance(wait - Duration::from_millis(1));
        assert!(site.claim(&worker, &["mail"], 1).await.is_empty());
        world.advance(wait / 10 + Duration::from_millis(1));
    }
}

pub async fn the_last_attempt_ends_failed(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail").max_attempts(3).unwrap()).await;
    for _ in 0..3 {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        site.finish(&claimed, failed()).await;
        world.advance(Duration::from_secs(3600));
    }
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Failed, 3));
    assert_eq!(found.errors.len(), 3);
    assert!(site.claim(&worker, &["mail"], 1).await.is_empty());
}

pub async fn a_snooze_gives_the_attempt_back(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail").max_attempts(1).unwrap()).await;
    for _ in 0..3 {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        assert_eq!(claimed.attempt, 1);
        site.finish(&claimed, Outcome::Snooze(Duration::from_secs(60)))
            .await;
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
        assert!(found.errors.is_empty());
        assert!(site.claim(&worker, &["mail"], 1).await.is_empty());
        world.advance(Duration::from_secs(60));
    }
}

pub async fn a_release_gives_the_attempt_back(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(
        site.settle(&claimed, Verdict::Release).await,
        Settled::Accepted
    );
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), site.given_back());
    assert_eq!(found.scheduled_at, claimed.scheduled_at);
    assert_eq!(site.claim_one(&worker, &["mail"]).await.attempt, 1);
}

/// Every way to settle.
fn verdicts(site: &Site, claimed: &rowlock::claim::ClaimedJob, world: &World) -> Vec<Verdict> {
    let error = error(claimed, world);
    let mut all = vec![
        Verdict::Done,
        Verdict::NotNeeded,
        Verdict::Retry {
            at: world.clock.now(),
            error: error.clone(),
        },
        Verdict::Snooze(world.clock.now()),
        Verdict::Fail(error),
        Verdict::Cancelled,
        Verdict::Release,
    ];
    // No worker says that it has sent a job on, except one that is a drain.
    if !site.dispatch().capabilities().drained {
        all.push(Verdict::Sent);
    }
    all
}

async fn all_refused(site: &Site, late: &rowlock::claim::ClaimedJob, world: &World) {
    let before = serde_json::to_value(site.job(late.id).await).unwrap();
    for verdict in verdicts(site, late, world) {
        let answer = site.settle(late, verdict.clone()).await;
        assert_eq!(answer, Settled::LeaseLost, "{verdict:?}");
        let after = serde_json::to_value(site.job(late.id).await).unwrap();
        assert_eq!(after, before, "{verdict:?} changed the job");
    }
}

pub async fn a_late_settle_is_refused_in_every_form(world: World) {
    let site = world.open();
    let sleeper = site.join().await;
    site.stage(job("mail")).await;
    let late = site.claim_one(&sleeper, &["mail"]).await;
    let observer = world.open();
    assert_eq!(observer.observe(&world, LEASE, &[]).await, 1);
    all_refused(&site, &late, &world).await;

    let worker = observer.join().await;
    let current = observer.claim_suspect(&worker, &["mail"]).await.remove(0);
    assert_eq!(current.id, late.id);
    assert_eq!(
        current.attempt, late.attempt,
        "the number comes back: it is no fence"
    );
    all_refused(&site, &late, &world).await;
    assert_eq!(
        observer.finish(&current, Outcome::Done).await,
        Settled::Accepted
    );
    all_refused(&site, &late, &world).await;
}

pub async fn a_late_settle_is_refused_after_a_release_gave_the_attempt_back(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage(job("mail")).await;
    let early = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(
        site.settle(&early, Verdict::Release).await,
        Settled::Accepted
    );
    all_refused(&site, &early, &world).await;
    // The same worker, the same attempt: only the token tells the two claims apart.
    let current = site.claim_one(&worker, &["mail"]).await;
    assert_eq!((current.id, current.attempt), (early.id, early.attempt));
    all_refused(&site, &early, &world).await;
    assert_eq!(
        site.finish(&current, Outcome::Done).await,
        Settled::Accepted
    );
}

pub async fn a_sent_job_is_gone(world: World) {
    let site = world.open().straight();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(
        site.settle(&claimed, Verdict::Sent).await,
        Settled::Accepted
    );
    assert!(site.is_gone(id).await);
}

pub async fn errors_of_all_attempts_are_kept_within_bounds(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail").max_attempts(15).unwrap()).await;
    for _ in 0..15 {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        let outcome = Outcome::Retry {
            error: format!("boom \u{0} {} {}", claimed.attempt, "x".repeat(100_000)),
            after: Some(Duration::ZERO),
        };
        site.finish(&claimed, outcome).await;
    }
    let errors = site.job(id).await.errors;
    let attempts: Vec<u32> = errors.iter().map(|error| error.attempt).collect();
    assert_eq!(attempts, (6..=15).collect::<Vec<_>>());
    assert!(errors.iter().all(|error| error.message.len() < 10_000));
    assert!(errors[0].message.starts_with("boom \u{fffd} 6"));
}

pub async fn a_retention_of_zero_keeps_nothing(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let mut kind = Kind::new("mail").unwrap();
    kind.retention.completed = Duration::ZERO;
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    let done = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(
        site.finish(&claimed, Outcome::Done).await,
        Settled::Accepted
    );
    assert!(site.is_gone(done).await);
    let failed = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    site.finish(&claimed, Outcome::Fail("no".to_owned())).await;
    assert_eq!(site.state(failed).await, JobState::Failed);
    let stats = site.rowlock.operate().stats().await.unwrap().total;
    assert_eq!((stats.completed, stats.failed), (0, 1));
}

pub async fn each_verdict_of_a_batch_has_its_own_answer(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 3).await;
    let claimed = site.claim(&worker, &["mail"], 3).await;
    site.settle(&claimed[1], Verdict::Done).await;
    let batch = claimed
        .iter()
        .map(|job| Settlement {
            id: job.id,
            token: job.token,
            verdict: Verdict::Done,
            started_at: None,
        })
        .collect();
    let answers = site.dispatch().settle(batch).await.unwrap();
    assert_eq!(
        answers,
        [Settled::Accepted, Settled::LeaseLost, Settled::Accepted]
    );
}

pub async fn verdicts_of_one_call_are_judged_one_by_one(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let mut fleeting = Kind::new("fleeting").unwrap();
    fleeting.retention.completed = Duration::ZERO;
    site.engine().add_kinds(&[fleeting]).await.unwrap();
    let mut jobs = Vec::new();
    for kind in ["mail", "fleeting", "mail", "fleeting", "mail"] {
        site.stage(job(kind)).await;
        jobs.push(site.claim_one(&worker, &[kind]).await);
    }
    // Two of them have been given back and claimed again: the first claims are no longer current.
    for late in &jobs[2..4] {
        site.settle(late, Verdict::Release).await;
        site.claim_one(&worker, &[late.kind.as_str()]).await;
    }
    let retry = Verdict::Retry {
        at: world.clock.now(),
        error: error(&jobs[4], &world),
    };
    let verdict = |n: usize, verdict: &Verdict| Settlement {
        id: jobs[n].id,
        token: jobs[n].token,
        verdict: verdict.clone(),
        started_at: None,
    };
    let call = vec![
        verdict(0, &Verdict::Done),
        verdict(1, &Verdict::Done),
        verdict(2, &Verdict::Done),
        verdict(3, &Verdict::NotNeeded),
        verdict(4, &retry),
        verdict(0, &Verdict::Done),
        verdict(1, &Verdict::NotNeeded),
        verdict(4, &Verdict::Done),
    ];
    let (yes, no) = (Settled::Accepted, Settled::LeaseLost);
    let answers = site.dispatch().settle(call).await.unwrap();
    assert_eq!(answers, [yes, yes, no, no, yes, no, no, no]);
    assert_eq!(site.state(jobs[0].id).await, JobState::Completed);
    assert!(site.is_gone(jobs[1].id).await);
    for running in &jobs[2..4] {
        assert_eq!(site.state(running.id).await, JobState::Processing);
    }
    assert_eq!(site.state(jobs[4].id).await, JobState::Pending);
}
