//! Processes of their own: one that competes for jobs, one that works with handlers that misbehave.

use std::process::{Command, ExitCode};
use std::time::Duration;

use rowlock::claim::{Claim, WorkerId};
use rowlock::engine::Filter;
use rowlock::job::{Backoff, Token};
use rowlock::run::{Options, Signals, Stopper};
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Context, Kind, Name, Outcome, Rowlock, Worker};

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
        ["work", url, lease, slots, kinds] => runtime.block_on(work(url, lease, slots, kinds)),
        _ => panic!("a rival has a role and its arguments: {arguments:?}"),
    }
    ExitCode::SUCCESS
}

/// Competes for jobs: logs what it ran, then settles.
async fn claim_all(url: &str) {
    let rowlock = Rowlock::open(url).unwrap();
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
        wakeups.next().await;
    }
    // More rounds than there are jobs would mean that claims don't take anything.
    for _ in 0..10_000 {
        let claim = wanted(&worker, "mail", 25);
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
    let rowlock = Rowlock::open(url).unwrap();
    let engine = rowlock.engine();
    let worker = WorkerId::random("rival").unwrap();
    engine
        .join(&worker, Duration::from_secs(300))
        .await
        .unwrap();
    let before = rowlock::hooks::sqlite_steps();
    let claimed = engine.claim(wanted(&worker, "known", 20)).await.unwrap();
    let steps = rowlock::hooks::sqlite_steps() - before;
    println!("{} jobs, steps {steps}", claimed.jobs.len());
}

fn wanted(worker: &WorkerId, kind: &str, limit: usize) -> Claim {
    Claim {
        worker: worker.clone(),
        token: Token::random().unwrap(),
        kinds: vec![Name::new(kind).unwrap()],
        queues: Vec::new(),
        order: Default::default(),
        limit,
        caps: Default::default(),
        suspect: false,
    }
}

/// Works until a signal, with the handlers that `kinds` names.
async fn work(url: &str, lease: &str, slots: &str, kinds: &str) {
    let rowlock = Rowlock::open(url).unwrap();
    let options = Options {
        lease: Duration::from_millis(lease.parse().unwrap()),
        concurrency: slots.parse().unwrap(),
        grace: Duration::from_secs(60),
        ..Options::default()
    };
    let mut worker = Worker::new(rowlock.clone(), ()).options(options);
    for name in kinds.split(',') {
        let mut kind = Kind::new(name).unwrap();
        kind.backoff = Backoff::Fixed {
            base: Duration::ZERO,
            jitter: 0.0,
        };
        let rowlock = rowlock.clone();
        worker = worker.handle_kind(kind, move |cx: Context| {
            let rowlock = rowlock.clone();
            async move {
                // A line for each of thousands would be most of the work.
                if cx.kind.as_str() != "quick" {
                    println!("began {} {}", cx.kind, cx.id);
                }
                run(&cx, &rowlock).await
            }
        });
    }
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    println!("ready");
    let tally = tokio::select! {
        tally = worker.run_until(stopper.stop()) => tally.unwrap(),
        never = signals.ask(&stopper) => match never {},
    };
    println!("settled {} lost {}", tally.settled, tally.lost);
}

async fn run(cx: &Context, rowlock: &Rowlock) -> Outcome {
    match cx.kind.as_str() {
        "poison" => {
            if !cx.suspect {
                holds_ahead(rowlock, 500).await;
            }
            std::process::abort()
        }
        "panics" => panic!("no good"),
        "waits" => {
            let _told = Told;
            std::future::pending().await
        }
        // Neither of the two is polite: they block the only thread there is.
        "blocks" => sleep("3.2"),
        "naps" => sleep("0.2"),
        _ => Outcome::Done,
    }
}

/// Waits until this process holds so many jobs beside the one that asks.
async fn holds_ahead(rowlock: &Rowlock, jobs: u64) {
    let mut wakeups = rowlock.engine().wakeups();
    loop {
        wakeups.mark();
        let workers = rowlock.operate().workers().await.unwrap();
        if let Some(worker) = workers.iter().find(|worker| worker.holds > jobs) {
            println!("holds {}", worker.holds);
            return;
        }
        // Nobody need ring: the next claim of this very process is what it waits for.
        let soon = Duration::from_millis(1);
        rowlock.clock().timeout(soon, wakeups.next()).await;
    }
}

/// Says when a handler was dropped before its end.
struct Told;

impl Drop for Told {
    fn drop(&mut self) {
        println!("dropped");
    }
}

fn sleep(seconds: &str) -> Outcome {
    assert!(
        Command::new("sleep")
            .arg(seconds)
            .status()
            .unwrap()
            .success()
    );
    Outcome::Done
}
