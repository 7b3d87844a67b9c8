//! A process of its own that competes for jobs. It logs what it ran, then settles.

use std::process::ExitCode;
use std::time::Duration;

use rowlock::claim::{Claim, WorkerId};
use rowlock::engine::Filter;
use rowlock::job::Token;
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Name, Rowlock};

pub fn act(arguments: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    match arguments {
        [role, url] if role == "claim" => runtime.block_on(claim_all(url)),
        _ => panic!("a rival has a role and a URL: {arguments:?}"),
    }
    ExitCode::SUCCESS
}

async fn claim_all(url: &str) {
    let rowlock = Rowlock::open(url).unwrap();
    let engine = rowlock.engine();
    let worker = WorkerId::random("rival").unwrap();
    engine
        .join(&worker, Duration::from_secs(300))
        .await
        .unwrap();
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
        let claim = Claim {
            worker: worker.clone(),
            token: Token::random().unwrap(),
            kinds: vec![Name::new("mail").unwrap()],
            queues: Vec::new(),
            limit: 25,
            caps: Default::default(),
            suspect: false,
        };
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
