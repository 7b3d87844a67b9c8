//! Processes of their own: each is this test binary in another role.

mod besiege;
mod budget;
mod drain;
mod insist;
mod late;
mod lead;
mod produce;
mod serve;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use rowlock::Name;
use rowlock::claim::WorkerId;
use rowlock::clock::Clock;
use rowlock::engine::Filter;
use rowlock::settle::{Settled, Settlement, Verdict};

use crate::conformance::home_at;
use crate::conformance::world::wanted;

pub fn act(arguments: &[String]) -> ExitCode {
    // One thread for everything: a handler that blocks it blocks all but the heartbeat.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["claim", url] => runtime.block_on(claim_all(url)),
        ["cost", url] => runtime.block_on(cost(url)),
        ["work", url, lease, slots, kinds] => {
            runtime.block_on(work::work(url, lease, slots, kinds, None));
        }
        ["work", url, lease, slots, kinds, ran] => {
            runtime.block_on(work::work(url, lease, slots, kinds, Some(ran)));
        }
        ["produce", url, told, seed, jobs] => {
            let (seed, jobs) = (seed.parse().unwrap(), jobs.parse().unwrap());
            runtime.block_on(produce::produce(url, told, seed, jobs));
        }
        ["besiege", url, told, seed, transactions] => {
            let (seed, transactions) = (seed.parse().unwrap(), transactions.parse().unwrap());
            runtime.block_on(besiege::besiege(url, told, seed, transactions));
        }
        ["visit", url, class, log, rounds] => {
            runtime.block_on(budget::visit(url, class, log, rounds.parse().unwrap()));
        }
        ["hold", url, class] => runtime.block_on(budget::hold(url, class)),
        ["full", disk] => crate::postgres::space::inside(disk.as_ref()),
        ["insist", url, told] => runtime.block_on(insist::insist(url, told)),
        ["migrate", url] => home_at(url).migrate(),
        ["prune", url] => runtime.block_on(prune(url)),
        ["lead", url, lease] => runtime.block_on(lead::lead(url, lease)),
        ["serve", url, lease] => runtime.block_on(serve::serve(url, lease)),
        ["drain", url, sink, lease, kinds, ref rest @ ..] => {
            runtime.block_on(drain::drain(url, sink, lease, kinds, rest.first().copied()));
        }
        ["late", url, lease] => runtime.block_on(late::late(url, lease)),
        _ => panic!("a rival has a role and its arguments: {arguments:?}"),
    }
    ExitCode::SUCCESS
}

/// Competes for jobs: logs what it ran, then settles.
async fn claim_all(url: &str) {
    let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
    let engine = rowlock.engine();
    let worker = WorkerId::random("rival").unwrap();
    let lease = Duration::from_secs(300);
    engine.join(&worker, lease).await.unwrap();
    let mut wakeups = engine.wakeups();
    println!("ready");
    let go = Filter {
        kind: Some(Name::new("go").unwrap()),
        limit: 1,
        ..Filter::default()
    };
    while rowlock.operate().jobs(go.clone()).await.unwrap().is_empty() {
        crate::conformance::world::a_moment(&mut wakeups).await;
    }
    // More rounds than there are jobs would mean that claims don't take anything.
    for _ in 0..10_000 {
        let claim = wanted(&worker, &["mail"], 25);
        let jobs = engine.claim(claim).await.unwrap().jobs;
        if jobs.is_empty() {
            engine.leave(&worker).await.unwrap();
            return;
        }
        for job in &jobs {
            println!("ran {}", job.id);
        }
        let done = jobs
            .iter()
            .map(|job| Settlement {
                id: job.id,
                token: job.token,
                verdict: Verdict::Done,
                started_at: None,
            })
            .collect();
        let settled = engine.settle(done).await.unwrap();
        assert!(
            settled.iter().all(|answer| *answer == Settled::Accepted),
            "{settled:?}"
        );
    }
    panic!("the jobs don't come to an end");
}

/// Claims twenty known jobs and tells what that took, in steps of the engine.
async fn cost(url: &str) {
    let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
    let engine = rowlock.engine();
    let worker = WorkerId::random("rival").unwrap();
    engine
        .join(&worker, Duration::from_secs(300))
        .await
        .unwrap();
    let before = rowlock::hooks::sqlite_steps();
    let claimed = engine.claim(wanted(&worker, &["known"], 20)).await.unwrap();
    let steps = rowlock::hooks::sqlite_steps() - before;
    println!("{} jobs, steps {steps}", claimed.jobs.len());
}

/// Removes everything that is over, long after.
async fn prune(url: &str) {
    let late = Clock::manual("2100-01-01T00:00:00Z".parse().unwrap());
    let home = home_at(url);
    home.time_is(late.now());
    let engine = home.open(late).engine();
    while engine.prune(20).await.unwrap() > 0 {}
}
