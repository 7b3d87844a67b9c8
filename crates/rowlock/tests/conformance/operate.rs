//! What operators do.

use std::time::Duration;

use rowlock::engine::{Applied, AtLeast, Cancel, Filter, Health};
use rowlock::settle::{Settled, Verdict};
use rowlock::{Error, JobId, JobState, Kind, Outcome};

use super::world::{LEASE, Site, World, error, failed, job, name};

async fn conflict(site: &Site, id: JobId, answer: rowlock::error::Result<()>) -> String {
    match answer {
        Err(Error::Conflict {
            id: named,
            state,
            why,
        }) => {
            assert_eq!((named, state), (id, site.state(id).await));
            why
        }
        other => panic!("{other:?}"),
    }
}

pub async fn a_pending_job_is_cancelled_at_once(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let answers = site.engine().cancel(vec![id, JobId(999)]).await.unwrap();
    assert!(matches!(answers[0], Ok(Cancel::Cancelled)));
    assert!(matches!(answers[1], Err(Error::NotFound(_))));
    assert_eq!(site.state(id).await, JobState::Cancelled);
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    let again = site.engine().cancel(vec![id]).await.unwrap().remove(0);
    conflict(&site, id, again.map(|_| ())).await;
}

pub async fn a_running_job_is_asked_to_stop_and_may_finish_first(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let ids = site.stage_many("mail", 2).await;
    let claimed = site.claim(&worker, &["mail"], 2).await;
    for id in &ids {
        let answer = site.engine().cancel(vec![*id]).await.unwrap().remove(0);
        assert!(matches!(answer, Ok(Cancel::Requested)));
        assert_eq!(site.state(*id).await, JobState::Processing);
    }
    let mut asked = site
        .beat(&worker, &[claimed[0].token])
        .await
        .unwrap()
        .cancel_requested;
    asked.sort_unstable();
    assert_eq!(asked, ids);
    assert_eq!(
        site.finish(&claimed[0], Outcome::Done).await,
        Settled::Accepted
    );
    assert_eq!(site.state(ids[0]).await, JobState::Completed);
    assert_eq!(
        site.finish(&claimed[1], Outcome::Cancel).await,
        Settled::Accepted
    );
    assert_eq!(site.state(ids[1]).await, JobState::Cancelled);
}

pub async fn a_flagged_job_of_a_dead_worker_ends_cancelled(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    site.claim_one(&worker, &["mail"]).await;
    site.engine().cancel(vec![id]).await.unwrap();
    assert_eq!(site.observe(&world, LEASE, &[]).await, 1);
    assert_eq!(site.state(id).await, JobState::Cancelled);
}

pub async fn a_flagged_job_gets_no_other_attempt(world: World) {
    let site = world.open();
    let at = world.clock.now();
    for way in ["retry", "snooze", "release", "leave", "lost answer"] {
        let worker = site.join().await;
        let id = site.stage(job("mail")).await;
        let claimed = site.claim_one(&worker, &["mail"]).await;
        site.engine().cancel(vec![id]).await.unwrap();
        match way {
            "retry" => {
                let error = error(&claimed, &world);
                site.settle(&claimed, Verdict::Retry { at, error }).await;
                assert_eq!(site.job(id).await.errors.len(), 1);
            }
            "snooze" => {
                site.settle(&claimed, Verdict::Snooze(at)).await;
            }
            "release" => {
                site.settle(&claimed, Verdict::Release).await;
            }
            "leave" => site.engine().leave(&worker).await.unwrap(),
            _ => {
                let beat = site.beat(&worker, &[]).await.unwrap();
                assert!(beat.cancel_requested.is_empty(), "nobody runs it");
            }
        }
        assert_eq!(site.state(id).await, JobState::Cancelled, "after a {way}");
    }
}

pub async fn a_redrive_keeps_errors_and_gives_attempts_back(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail").max_attempts(1).unwrap()).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    let live = site.engine().redrive(vec![id]).await.unwrap().remove(0);
    conflict(&site, id, live).await;
    site.finish(&claimed, failed()).await;
    assert_eq!(site.state(id).await, JobState::Failed);
    site.engine()
        .redrive(vec![id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.finished_at, None);
    let stats = site.rowlock.operate().stats().await.unwrap().total;
    assert_eq!((stats.failed, stats.pending), (0, 1));
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!((claimed.id, claimed.attempt), (id, 1));
    site.finish(&claimed, Outcome::Done).await;
    assert_eq!(site.state(id).await, JobState::Completed);
}

pub async fn a_redrive_that_meets_a_live_holder_is_refused(world: World) {
    let site = world.open();
    let first = site.stage(job("mail").unique("x").unwrap()).await;
    site.engine().cancel(vec![first]).await.unwrap();
    let second = site.stage(job("mail").unique("x").unwrap()).await;
    let answer = site.engine().redrive(vec![first]).await.unwrap().remove(0);
    let why = conflict(&site, first, answer).await;
    assert!(why.contains(&second.to_string()), "{why}");
    assert_eq!(site.state(first).await, JobState::Cancelled);
    site.engine().delete(vec![second]).await.unwrap();
    site.engine()
        .redrive(vec![first])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let again = site
        .rowlock
        .enqueue(&job("mail").unique("x").unwrap())
        .await
        .unwrap();
    assert_eq!(
        again.id,
        Some(first),
        "the redriven job holds its key again"
    );
}

pub async fn a_running_job_is_not_deleted(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    let answer = site.engine().delete(vec![id]).await.unwrap().remove(0);
    conflict(&site, id, answer).await;
    site.finish(&claimed, Outcome::Done).await;
    site.engine()
        .delete(vec![id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert!(site.is_gone(id).await);
}

pub async fn pruning_takes_only_what_is_over_and_counts_exactly(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 25).await;
    for (n, claimed) in site.claim(&worker, &["mail"], 25).await.iter().enumerate() {
        let outcome = match n {
            0..10 => Outcome::Done,
            10..15 => Outcome::Fail("no".to_owned()),
            15..20 => Outcome::Cancel,
            _ => continue,
        };
        site.finish(claimed, outcome).await;
    }
    let day = Duration::from_secs(24 * 3600);
    let left = async || {
        let stats = site.rowlock.operate().stats().await.unwrap().total;
        (
            stats.completed,
            stats.failed,
            stats.cancelled,
            stats.processing,
        )
    };
    assert_eq!(site.engine().prune(100).await.unwrap(), 0);
    assert_eq!(left().await, (10, 5, 5, 5));
    world.advance(day);
    if site.engine().capabilities().prunes_by_day {
        assert_eq!(site.engine().prune(4).await.unwrap(), 10, "a whole day");
    } else {
        assert_eq!(site.engine().prune(4).await.unwrap(), 4);
        assert_eq!(left().await, (6, 5, 5, 5));
        assert_eq!(site.engine().prune(100).await.unwrap(), 6);
    }
    assert_eq!(left().await, (0, 5, 5, 5));
    world.advance(day * 6);
    assert_eq!(site.engine().prune(100).await.unwrap(), 5);
    assert_eq!(left().await, (0, 5, 0, 5));
    world.advance(day * 23);
    assert_eq!(site.engine().prune(100).await.unwrap(), 5);
    assert_eq!(left().await, (0, 0, 0, 5));
    assert_eq!(world.home.client().integrity(), "ok");
}

pub async fn stats_count_every_state_and_its_views(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 4).await;
    world.advance(Duration::from_secs(5));
    for outcome in [Outcome::Done, failed()] {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        site.finish(&claimed, outcome).await;
    }
    site.claim_one(&worker, &["mail"]).await;
    site.stage(
        job("mail")
            .queue(name("other"))
            .delay(Duration::from_secs(60)),
    )
    .await;
    let stats = site.rowlock.operate().stats().await.unwrap();
    let total = &stats.total;
    assert_eq!(
        (total.pending, total.processing, total.completed),
        (3, 1, 1)
    );
    assert_eq!((total.scheduled, total.retrying, total.held), (2, 1, 0));
    assert_eq!(total.oldest_pending_seconds, Some(5.0));
    let default = &stats.queues[&name("default")];
    assert_eq!((default.pending, default.scheduled), (2, 1));
    let other = &stats.queues[&name("other")];
    assert_eq!((other.pending, other.oldest_pending_seconds), (1, None));
}

pub async fn filters_find_what_they_name(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let plain = site.stage(job("a")).await;
    world.advance(Duration::from_secs(10));
    let later = world.clock.now();
    let marked = job("b")
        .queue(name("q"))
        .tag(name("red"))
        .unique("k")
        .unwrap();
    let marked = site.stage(marked).await;
    let claimed = site.claim_one(&worker, &["a"]).await;
    site.finish(&claimed, Outcome::Done).await;
    let find = async |filter: Filter| {
        let filter = Filter {
            limit: 10,
            ..filter
        };
        let jobs = site.rowlock.operate().jobs(filter).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let all = Filter::default;
    assert_eq!(find(all()).await, [plain, marked]);
    assert_eq!(
        find(Filter {
            after: Some(plain),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            state: Some(JobState::Completed),
            ..all()
        })
        .await,
        [plain]
    );
    assert_eq!(
        find(Filter {
            kind: Some(name("b")),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            queue: Some(name("q")),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            tag: Some(name("red")),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            tag: Some(name("blue")),
            ..all()
        })
        .await,
        []
    );
    assert_eq!(
        find(Filter {
            key: Some("k".to_owned()),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            since: Some(later),
            ..all()
        })
        .await,
        [marked]
    );
    assert_eq!(
        find(Filter {
            until: Some(later),
            ..all()
        })
        .await,
        [plain]
    );
}

pub async fn what_runs_is_listed_by_its_start_and_what_ended_by_falling_number(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let operate = site.rowlock.operate();
    let ids = site.stage_many("mail", 6).await;
    let mut claimed = Vec::new();
    for _ in &ids {
        claimed.push(site.claim_one(&worker, &["mail"]).await);
        world.advance(Duration::from_secs(1));
    }
    let verdicts = [
        Outcome::Done,
        Outcome::Fail("x".to_owned()),
        Outcome::Fail("y".to_owned()),
    ];
    for (job, verdict) in claimed.iter().zip(verdicts) {
        site.finish(job, verdict).await;
    }
    let ids_of = |jobs: Vec<rowlock::Record>| jobs.iter().map(|job| job.id.0).collect::<Vec<_>>();
    let claimed: Vec<i64> = claimed.iter().map(|job| job.id.0).collect();
    let running = operate.running(10).await.unwrap();
    assert!(running.iter().all(|job| job.locked_by.is_some()));
    assert_eq!(ids_of(running), claimed[3..]);
    assert_eq!(ids_of(operate.running(2).await.unwrap()), claimed[3..5]);
    let failed = operate.ended(JobState::Failed, 10).await.unwrap();
    assert_eq!(failed[0].errors.len(), 1);
    assert_eq!(ids_of(failed), [claimed[2], claimed[1]]);
    let last = operate.ended(JobState::Failed, 1).await.unwrap();
    assert_eq!(ids_of(last), [claimed[2]]);
    let done = operate.ended(JobState::Completed, 10).await.unwrap();
    assert_eq!(ids_of(done), [claimed[0]]);
}

pub async fn kinds_are_applied_and_drift_is_named(world: World) {
    let site = world.open();
    let mut kind = Kind::new("mail").unwrap();
    kind.key = vec![name("to")];
    kind.retention.completed = Duration::from_secs(90);
    assert!(
        site.engine()
            .add_kinds(std::slice::from_ref(&kind))
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        site.rowlock.operate().kinds().await.unwrap(),
        [kind.clone()]
    );
    let stored = kind.clone();
    kind.priority = 3;
    let drift = site
        .engine()
        .add_kinds(std::slice::from_ref(&kind))
        .await
        .unwrap();
    assert_eq!(drift[0].differences, ["priority: 0 -> 3"]);
    assert_eq!(
        site.rowlock.operate().kinds().await.unwrap(),
        [stored],
        "a worker changes no row"
    );
    let applied = site
        .rowlock
        .operate()
        .apply(std::slice::from_ref(&kind))
        .await
        .unwrap();
    assert_eq!(
        applied,
        [Applied::Changed(vec!["priority: 0 -> 3".to_owned()])]
    );
    assert_eq!(site.rowlock.operate().kinds().await.unwrap(), [kind]);
}

pub async fn a_checkup_names_what_was_left_lying_about(world: World) {
    let site = world.open();
    let store = site.rowlock.operate();
    // Where the whole database is published, that is named from the start.
    let well = Health {
        published: store.health().await.unwrap().published,
        ..Health::default()
    };
    assert_eq!(store.health().await.unwrap(), well);
    let known = Kind::new("mail").unwrap();
    site.engine().add_kinds(&[known]).await.unwrap();
    site.stage_many("mail", 2).await;
    site.stage_many("typo", 3).await;
    let expected = Health {
        unknown_kinds: vec![(name("typo"), AtLeast::exactly(3))],
        ..well
    };
    assert_eq!(store.health().await.unwrap(), expected);
    let worker = site.join().await;
    let joined = store.workers().await.unwrap().remove(0);
    assert_eq!(joined.seen_at, joined.joined_at);
    world.advance(LEASE / 3);
    site.beat(&worker, &[]).await.unwrap();
    let beaten = store.workers().await.unwrap().remove(0);
    assert_eq!(
        beaten.seen_at,
        rowlock::clock::add(joined.joined_at, LEASE / 3)
    );
}
