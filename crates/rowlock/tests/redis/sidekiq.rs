//! Jobs that an unmodified Sidekiq runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use rowlock::claim::{ClaimedJob, WorkerId};
use rowlock::drain::{Hold, Pushed, Route, SidekiqJob, Sink};
use rowlock::error::Result;
use rowlock::job::{Payload, Token};
use rowlock::settle::Verdict;
use rowlock::{JobId, NewJob};
use rowlock_testbed::{Redis, Sidekiq, folder, until};
use serde_json::Value;

use crate::conformance::world::{Site, World, name};
use crate::sqlite::home::File;

/// For a push that is meant to arrive.
const LONG: Duration = Duration::from_secs(600);
const KINDS: [&str; 3] = ["note", "fail", "unknown"];

pub fn trials() -> Vec<Trial> {
    macro_rules! trials {
        ($($case:ident,)*) => {
            vec![$(Trial::test(concat!("redis_sidekiq::", stringify!($case)), || {
                tokio::runtime::Runtime::new()?.block_on($case());
                Ok(())
            })),*]
        };
    }
    trials![
        a_thousand_jobs_run_once_each_with_their_arguments,
        a_failed_job_is_tried_again_as_often_as_its_store_would,
        what_is_there_is_not_pushed_again,
        what_was_lost_is_sent_again_under_the_same_jid,
        what_can_not_be_sent_is_refused_alone,
        a_late_push_is_refused_as_a_whole,
        a_push_that_redis_refuses_leaves_nothing_behind,
        a_namespace_goes_before_every_key,
        large_jobs_go_in_parts,
    ]
}

struct Line {
    redis: Redis,
    sink: Arc<dyn Sink>,
    site: Site,
    worker: WorkerId,
    /// The store's file goes with it.
    _world: World,
}

impl Line {
    async fn new() -> Self {
        Self::with(Redis::start(), "").await
    }

    async fn with(redis: Redis, query: &str) -> Self {
        let mut route = Route::to(format!("sidekiq+{}{query}", redis.url())).unwrap();
        for (kind, class) in [("note", "Noted"), ("fail", "Failing")] {
            let job = SidekiqJob {
                class: class.to_owned(),
                args: vec![name("text"), name("n")],
            };
            route.sidekiq.insert(name(kind), job);
        }
        let sink = route.sink(&rowlock::Clock::system()).unwrap();
        assert!(!sink.reports_back());
        let world = World::real(Arc::new(File::new()));
        let site = world.open();
        let worker = site.join().await;
        let line = Self {
            redis,
            sink,
            site,
            worker,
            _world: world,
        };
        line.open().await;
        line
    }

    /// After an error too.
    async fn open(&self) {
        assert!(!self.sink.open(7).await.unwrap());
    }

    async fn stage(&self, kind: &str, n: usize) {
        let new = |n: usize| {
            let payload = format!(r#"{{"n":{n},"more":[],"text":"ä {n}"}}"#);
            let job = NewJob::new(kind).unwrap();
            job.payload(Payload::parse(&payload).unwrap())
                .queue(name(["default", "mail"][n % 2]))
        };
        let jobs = (0..n).map(new).collect();
        self.site.rowlock.enqueue_many(jobs).await.unwrap();
    }

    async fn claim(&self, limit: usize) -> Vec<ClaimedJob> {
        self.site.claim(&self.worker, &KINDS, limit).await
    }

    async fn push(&self, jobs: &[ClaimedJob]) -> Result<Pushed> {
        self.sink.push(jobs, LONG).await
    }

    async fn holds(&self, jobs: &[ClaimedJob]) -> Vec<Hold> {
        let jobs: Vec<_> = jobs.iter().map(|job| (job.id, job.token)).collect();
        self.sink.holds(&jobs).await.unwrap()
    }

    /// What lies in a queue, newest first.
    fn queue(&self, queue: &str) -> Vec<Value> {
        let lines = self.redis.command(&["LRANGE", queue, "0", "-1"]);
        let item = |line: &str| serde_json::from_str(line).unwrap();
        lines.lines().map(item).collect()
    }
}

fn arguments(n: usize) -> String {
    format!(r#"["ä {n}",{n}]"#)
}

async fn a_thousand_jobs_run_once_each_with_their_arguments() {
    let line = Line::new().await;
    line.stage("note", 1000).await;
    let folder = folder();
    let sidekiq = Sidekiq::start(&line.redis, folder.path(), &["mail", "default"]);
    let mut sent = BTreeMap::new();
    loop {
        let jobs = line.claim(300).await;
        if jobs.is_empty() {
            break;
        }
        assert_eq!(line.push(&jobs).await.unwrap().refused, []);
        // As a drain that has not heard the answer.
        assert_eq!(line.push(&jobs).await.unwrap().refused, []);
        for job in &jobs {
            let payload: Value = job.payload.to().unwrap();
            let n = usize::try_from(payload["n"].as_u64().unwrap()).unwrap();
            let jid = format!("{:.8}{:016x}", job.idempotency_key().unwrap(), job.id.0);
            sent.insert(jid, arguments(n));
        }
    }
    assert_eq!(sent.len(), 1000);
    until("every job has run", || {
        (sidekiq.ran().len() >= 1000).then_some(())
    });
    sidekiq.stop();
    assert_eq!(line.redis.command(&["ZCARD", "retry"]), "0");
    let ran = sidekiq.ran();
    assert_eq!(ran.len(), 1000);
    let ran: BTreeMap<_, _> = ran.into_iter().map(|run| (run.jid, run.args)).collect();
    assert_eq!(ran, sent);
    assert_eq!(line.sink.fill().await.unwrap().ready, 0);
}

async fn a_failed_job_is_tried_again_as_often_as_its_store_would() {
    let line = Line::new().await;
    for attempts in [1, 3] {
        let payload = Payload::parse(r#"{"n":1,"text":""}"#).unwrap();
        let job = NewJob::new("fail").unwrap().payload(payload);
        line.site.stage(job.max_attempts(attempts).unwrap()).await;
    }
    let jobs = line.claim(2).await;
    line.push(&jobs).await.unwrap();
    let folder = folder();
    let sidekiq = Sidekiq::start(&line.redis, folder.path(), &["default"]);
    let all = |set: &str| {
        let item = line.redis.command(&["ZRANGE", set, "0", "-1"]);
        serde_json::from_str::<Value>(&item).ok()
    };
    let [given_up, waits] = ["dead", "retry"].map(|set| until(set, || all(set)));
    sidekiq.stop();
    assert_eq!(given_up["retry"], 0);
    assert_eq!(
        (&waits["retry"], &waits["retry_count"]),
        (&2.into(), &0.into())
    );
}

async fn what_is_there_is_not_pushed_again() {
    let line = Line::new().await;
    line.stage("note", 6).await;
    let jobs = line.claim(6).await;
    assert_eq!(line.holds(&jobs).await, [Hold::Gone; 6]);
    assert_eq!(line.push(&jobs[..3]).await.unwrap().ready, 3);
    let mut half = [Hold::Gone; 6];
    half[..3].fill(Hold::Delivered);
    assert_eq!(line.holds(&jobs).await, half);
    let other = (jobs[0].id, Token::random().unwrap());
    assert_eq!(line.sink.holds(&[other]).await.unwrap(), [Hold::Gone]);
    // The rest of them only.
    assert_eq!(line.push(&jobs).await.unwrap().ready, 6);
    assert_eq!(line.holds(&jobs).await, [Hold::Delivered; 6]);
    // Also when Sidekiq has run them, and when the store knows.
    line.redis.command(&["DEL", "queue:mail", "queue:default"]);
    assert_eq!(line.push(&jobs).await.unwrap().ready, 0);
    line.sink
        .forget(&[(jobs[0].id, jobs[0].token)])
        .await
        .unwrap();
    assert_eq!(line.push(&jobs).await.unwrap().ready, 0);
    let marker = format!("rowlock:sent:{}", jobs[0].token.get());
    let life: u32 = line.redis.command(&["TTL", &marker]).parse().unwrap();
    assert!((60..=3600).contains(&life), "{life}");
}

async fn what_was_lost_is_sent_again_under_the_same_jid() {
    let line = Line::new().await;
    line.stage("note", 1).await;
    let first = line.claim(1).await;
    line.push(&first).await.unwrap();
    let before = line.queue("queue:default");
    line.redis.restart();
    assert_eq!(line.redis.command(&["DBSIZE"]), "0");
    // The connection is gone with it; any call may say so, and the next makes a new one.
    let _ = line.sink.open(7).await;
    line.open().await;
    assert_eq!(line.holds(&first).await, [Hold::Gone]);
    line.site.settle(&first[0], Verdict::Release).await;
    let second = line.claim(1).await;
    assert_ne!(first[0].token, second[0].token);
    line.push(&second).await.unwrap();
    let after = line.queue("queue:default");
    assert_eq!(before.len(), 1);
    for field in ["jid", "rowlock_key", "args", "retry", "class", "queue"] {
        assert_eq!(before[0][field], after[0][field], "{field}");
    }
}

async fn what_can_not_be_sent_is_refused_alone() {
    let line = Line::new().await;
    let mut ids: Vec<JobId> = Vec::new();
    for (kind, payload) in [
        ("note", r#"{"n":1,"text":"good"}"#),
        ("note", r#"{"n":2}"#),
        ("note", "[3]"),
        ("unknown", "{}"),
        ("note", r#"{"n":5,"text":"good"}"#),
    ] {
        let payload = Payload::parse(payload).unwrap();
        let job = NewJob::new(kind).unwrap().payload(payload);
        ids.push(line.site.stage(job).await);
    }
    let jobs = line.claim(5).await;
    let pushed = line.push(&jobs).await.unwrap();
    assert_eq!(pushed.ready, 2);
    let refused: BTreeMap<_, _> = pushed.refused.into_iter().collect();
    assert_eq!(refused.keys().copied().collect::<Vec<_>>(), ids[1..4]);
    for (id, word) in [(ids[1], "text"), (ids[2], "object"), (ids[3], "class")] {
        assert!(refused[&id].contains(word), "{}", refused[&id]);
    }
    let numbers: Vec<_> = line.queue("queue:default");
    let numbers: Vec<_> = numbers.iter().map(|job| job["args"][1].clone()).collect();
    assert_eq!(numbers, [5, 1]);
    // A drain that dies now must not take the others for delivered.
    let held = line.holds(&jobs).await;
    let delivered = jobs
        .iter()
        .zip(held)
        .filter(|(_, hold)| *hold == Hold::Delivered);
    let delivered: Vec<_> = delivered.map(|(job, _)| job.id).collect();
    assert_eq!(delivered, [ids[0], ids[4]]);
}

async fn a_late_push_is_refused_as_a_whole() {
    let line = Line::new().await;
    line.stage("note", 2).await;
    let jobs = line.claim(2).await;
    let why = line.sink.push(&jobs, Duration::ZERO).await.unwrap_err();
    assert!(why.is_transient(), "{why}");
    assert_eq!(line.redis.command(&["DBSIZE"]), "0");
    assert_eq!(line.push(&jobs).await.unwrap().ready, 2);
}

async fn a_push_that_redis_refuses_leaves_nothing_behind() {
    let line = Line::new().await;
    line.stage("note", 2).await;
    let jobs = line.claim(2).await;
    // No room; a key of somebody else's; a user who may push but not keep a marker.
    let hindrances: [(&[&str], &[&str], &str); 3] = [
        (
            &["CONFIG", "SET", "maxmemory", "1"],
            &["CONFIG", "SET", "maxmemory", "0"],
            "is full",
        ),
        (
            &["SET", "queue:default", "text"],
            &["DEL", "queue:default"],
            "remove that one",
        ),
        (
            &["ACL", "SETUSER", "default", "-set"],
            &["ACL", "SETUSER", "default", "+set"],
            "allow the user",
        ),
    ];
    for (hinder, help, remedy) in hindrances {
        line.redis.command(hinder);
        let why = line.push(&jobs[..1]).await.unwrap_err().to_string();
        assert!(why.contains(remedy), "{why}");
        line.redis.command(help);
        line.open().await;
        assert_eq!(line.redis.command(&["LLEN", "queue:default"]), "0");
        assert_eq!(line.holds(&jobs[..1]).await, [Hold::Gone], "{hinder:?}");
    }
    assert_eq!(line.push(&jobs).await.unwrap().ready, 2);
}

async fn a_namespace_goes_before_every_key() {
    let line = Line::with(Redis::start(), "?prefix=shop").await;
    line.stage("note", 1).await;
    let jobs = line.claim(1).await;
    assert_eq!(line.push(&jobs).await.unwrap().ready, 1);
    let keys = line.redis.command(&["KEYS", "*"]);
    assert_eq!(keys.lines().count(), 3);
    assert!(keys.lines().all(|key| key.starts_with("shop:")), "{keys}");
    assert_eq!(line.queue("shop:queue:default").len(), 1);
    assert_eq!(line.redis.command(&["SMEMBERS", "shop:queues"]), "default");
    assert_eq!(line.holds(&jobs).await, [Hold::Delivered]);
}

async fn large_jobs_go_in_parts() {
    let line = Line::new().await;
    let text = "x".repeat(1_000_000);
    for n in 0..10 {
        let payload = Payload::parse(&format!(r#"{{"n":{n},"text":"{text}"}}"#)).unwrap();
        let job = NewJob::new("note").unwrap().payload(payload);
        line.site.stage(job).await;
    }
    let jobs = line.claim(10).await;
    assert_eq!(line.push(&jobs).await.unwrap().ready, 10);
    let stats = line.redis.command(&["INFO", "commandstats"]);
    let calls = stats.lines().find(|line| line.starts_with("cmdstat_lpush"));
    assert!(calls.unwrap().contains("calls=3,"), "{stats}");
    let numbers = line.queue("queue:default");
    let numbers: Vec<_> = numbers.iter().map(|job| job["args"][1].clone()).collect();
    assert_eq!(numbers, (0..10).rev().collect::<Vec<_>>());
    assert_eq!(line.holds(&jobs).await, [Hold::Delivered; 10]);
}
