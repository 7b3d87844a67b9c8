//! Rivals: own connections, started together at a barrier, round after round; and whole processes.

use std::collections::HashSet;
use std::future::Future;
use std::process::Command;
use std::sync::Arc;

use rowlock::settle::{Settled, Verdict};
use rowlock::{JobId, Outcome, Status};
use rowlock_testbed::Process;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::world::{Site, World, job};

const ROUNDS: usize = 30;
const RIVALS: usize = 4;

/// Each rival does `work` with a handle of its own, all of them at the same moment.
async fn together<T, F>(sites: &[Site], work: impl Fn(Site, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(sites.len()));
    let mut rivals = JoinSet::new();
    for (n, site) in sites.iter().enumerate() {
        let (barrier, work) = (Arc::clone(&barrier), work(site.clone(), n));
        rivals.spawn(async move {
            barrier.wait().await;
            work.await
        });
    }
    rivals.join_all().await
}

fn sites(world: &World) -> Vec<Site> {
    (0..RIVALS).map(|_| world.open()).collect()
}

pub async fn rival_claims_never_share_a_job(world: World) {
    let sites = sites(&world);
    let mut workers = Vec::new();
    for site in &sites {
        workers.push(site.join().await);
    }
    for round in 0..ROUNDS {
        let staged: HashSet<JobId> = sites[0].stage_many("mail", 20).await.into_iter().collect();
        let claims = together(&sites, |site, n| {
            let worker = workers[n].clone();
            async move {
                let mut all = Vec::new();
                loop {
                    let jobs = site.claim(&worker, &["mail"], 3).await;
                    if jobs.is_empty() {
                        return all;
                    }
                    all.extend(jobs);
                    assert!(all.len() <= 20, "more was claimed than staged");
                }
            }
        })
        .await;
        let claimed: Vec<_> = claims.into_iter().flatten().collect();
        let distinct: HashSet<JobId> = claimed.iter().map(|job| job.id).collect();
        assert_eq!(
            claimed.len(),
            distinct.len(),
            "a job was claimed twice in round {round}"
        );
        assert_eq!(distinct, staged, "round {round}");
        for job in &claimed {
            assert_eq!(sites[0].settle(job, Verdict::Done).await, Settled::Accepted);
        }
    }
}

pub async fn rival_stages_make_one_job_per_key(world: World) {
    let sites = sites(&world);
    for round in 0..ROUNDS {
        let answers = together(&sites, |site, _| async move {
            let new = job("mail").unique(format!("key {round}")).unwrap();
            site.rowlock.enqueue(&new).await.unwrap()
        })
        .await;
        let queued: Vec<_> = answers
            .iter()
            .filter(|answer| answer.status == Status::Queued)
            .collect();
        assert_eq!(queued.len(), 1, "round {round}: {answers:?}");
        assert!(
            answers.iter().all(|answer| answer.id == queued[0].id),
            "{answers:?}"
        );
    }
}

pub async fn rival_settles_are_accepted_once(world: World) {
    let sites = sites(&world);
    let worker = sites[0].join().await;
    for round in 0..ROUNDS {
        sites[0].stage(job("mail")).await;
        let claimed = sites[0].claim_one(&worker, &["mail"]).await;
        let answers = together(&sites, |site, n| {
            let claimed = claimed.clone();
            async move {
                let outcome = match n % 2 {
                    0 => Outcome::Done,
                    _ => Outcome::Fail("no".to_owned()),
                };
                site.finish(&claimed, outcome).await
            }
        })
        .await;
        let accepted = answers
            .iter()
            .filter(|answer| **answer == Settled::Accepted)
            .count();
        assert_eq!(accepted, 1, "round {round}");
    }
}

const PROCESSES: usize = 16;
const JOBS: usize = 10_000;

pub async fn sixteen_processes_share_ten_thousand_jobs_each_once(world: World) {
    // The rivals live by the system's clock, and so must what is due for them.
    let site = world.open_with(rowlock::Clock::system());
    let staged: HashSet<i64> = site
        .stage_many("mail", JOBS)
        .await
        .iter()
        .map(|id| id.0)
        .collect();
    let me = std::env::current_exe().unwrap();
    let url = world.home.url();
    let mut rivals: Vec<Process> = (0..PROCESSES)
        .map(|_| Process::start(Command::new(&me).args(["rival", "claim", &url])))
        .collect();
    // They wait for one more job, so that all of them are running when the first one claims.
    for rival in &mut rivals {
        rival.line_with("ready");
    }
    site.stage(job("go")).await;
    let mut ran = Vec::new();
    for rival in rivals {
        let (code, lines) = rival.wait();
        assert_eq!(code, Some(0), "{lines:?}");
        let mine: Vec<i64> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("ran ")?.parse().ok())
            .collect();
        ran.extend(mine);
    }
    let distinct: HashSet<i64> = ran.iter().copied().collect();
    assert_eq!(
        ran.len(),
        distinct.len(),
        "a job was claimed by two processes"
    );
    assert_eq!(distinct, staged);
    let stats = site.rowlock.operate().stats().await.unwrap().total;
    assert_eq!((stats.completed, stats.processing), (JOBS as u64, 0));
    assert_eq!(world.home.client().integrity(), "ok");
}
