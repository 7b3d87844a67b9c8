//! A job that is staged alone goes another way than one among others: it is stored the same.

use rowlock::clock::Clock;
use rowlock::engine::postgres::Schema;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, Kind, NewJob, Payload, Status};

use super::home::wait;
use super::small::Small;
use crate::conformance::world::{Home, Site, job, name};

fn kind(of: &str) -> Kind {
    let mut kind = Kind::new(of).unwrap();
    (kind.queue, kind.priority, kind.max_attempts) = (name("post"), 3, 7);
    kind
}

fn with(payload: &str) -> NewJob {
    job("letter").payload(Payload::parse(payload).unwrap())
}

/// All but its number and its times.
fn same_row(small: &Small, one: JobId, other: JobId) -> bool {
    let row = |id: JobId| {
        format!(
            "SELECT to_jsonb(job) - ARRAY['id', 'ready_at', 'scheduled_at', 'created_at'] \
             || jsonb_build_object('due', scheduled_at = created_at) FROM rowlock.job WHERE id = {id}"
        )
    };
    let same = format!("SELECT (({}) = ({}))::integer", row(one), row(other));
    small.number(&same) == 1
}

async fn alone(site: &Site, job: &NewJob) -> (Option<JobId>, Status) {
    let answer = site.rowlock.enqueue(job).await.unwrap();
    (answer.id, answer.status)
}

pub async fn a_job_alone_is_stored_like_one_among_others(small: Small) {
    let site = small.open(&Clock::system());
    site.rowlock
        .operate()
        .apply(&[kind("letter")])
        .await
        .unwrap();
    let long = format!("{{\"text\":\"{}\"}}", "a, \\\"b\\\" {c} ".repeat(100));
    let jobs = [
        job("letter"),
        job("stranger"),
        with("{}"),
        with(r#"{"a":"quoted \"b\", back\\slash, {braces}, NULL, \u00e9 ü 日本"}"#),
        with(r#"["NULL", null, "", "a,b"]"#),
        with(&long),
        job("letter").queue(name("other")).priority(i16::MIN),
        job("letter").priority(i16::MAX).max_attempts(1).unwrap(),
        job("letter")
            .trace_context("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
            .unwrap(),
    ];
    for job in jobs {
        // The first of its lane goes the long way, the second needn't.
        let first = alone(&site, &job).await.0.unwrap();
        let second = alone(&site, &job).await.0.unwrap();
        let pair = vec![job.clone(), job.clone()];
        let pair = site.rowlock.enqueue_many(pair).await.unwrap();
        for other in [first, pair[0].id.unwrap(), pair[1].id.unwrap()] {
            assert!(same_row(&small, second, other), "{job:?}");
        }
    }
}

pub async fn what_speaks_against_a_job_is_seen_when_it_comes_alone(small: Small) {
    let site = small.open(&Clock::system());
    let mut keyed = kind("keyed");
    keyed.key = vec![name("to")];
    let kinds = [kind("letter"), keyed];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let schedule = site.rowlock.schedule();
    let set = async |target: Target, of: &str, mode: Option<Mode>| {
        let setting = mode.map(Setting::new);
        schedule.switch(target, &name(of), setting).await.unwrap();
    };
    alone(&site, &job("letter")).await;
    for (target, of) in [(Target::Kind, "letter"), (Target::Queue, "post")] {
        set(target, of, Some(Mode::Reject)).await;
        assert_eq!(alone(&site, &job("letter")).await.1, Status::Rejected);
        set(target, of, Some(Mode::Hold)).await;
        assert_eq!(alone(&site, &job("letter")).await.1, Status::Held);
        set(target, of, None).await;
        assert_eq!(alone(&site, &job("letter")).await.1, Status::Queued);
    }
    let to_ada = job("keyed").payload(Payload::parse(r#"{"to":"ada"}"#).unwrap());
    let (holder, status) = alone(&site, &to_ada).await;
    assert_eq!(status, Status::Queued);
    assert_eq!(alone(&site, &to_ada).await, (holder, Status::Duplicate));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    let by_sql =
        format!("SELECT rowlock.stage_plain('{{letter,{deep:?},NULL,NULL,NULL,NULL,NULL}}')");
    let refused = small.side.execute(&by_sql).unwrap_err();
    assert!(refused.contains("deeper than 128"), "{refused}");
    let by_sql =
        |parts: &str| format!("SELECT rowlock.stage_plain('{{letter,{parts},NULL,NULL}}')");
    let out_of_range = small
        .side
        .query(&by_sql("NULL,NULL,40000,NULL"))
        .unwrap_err();
    assert!(out_of_range.contains("priority must be"), "{out_of_range}");
    let answer = small.side.value(&by_sql("NULL,NULL,NULL,NULL"));
    assert_eq!(answer.parse::<i64>().unwrap() % 4, 0, "it is queued");
    let nested = "SELECT * FROM rowlock.enqueue('letter', tags => ARRAY[['a'], ['b']])";
    let refused = small.side.execute(nested).unwrap_err();
    assert!(refused.contains("a tag is not a valid name"), "{refused}");
}

pub async fn a_prepared_enqueue_stores_what_any_other_does(small: Small) {
    let site = small.open(&Clock::system());
    let mut keyed = kind("keyed");
    keyed.key = vec![name("to")];
    let kinds = [kind("letter"), keyed];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let to_ada = job("keyed").payload(Payload::parse(r#"{"to":"ada"}"#).unwrap());
    let jobs = [job("letter"), job("letter").priority(3), to_ada.clone()];
    let mut others = Vec::new();
    for job in &jobs {
        others.push(alone(&site, job).await.0.unwrap());
    }
    let staged = wait(async {
        let url = small.own.url();
        let connecting = tokio_postgres::connect(&url, tokio_postgres::NoTls);
        let (mut client, connection) = connecting.await.unwrap();
        let connection = tokio::runtime::Handle::current().spawn(connection);
        let prepared = Schema::default().prepare(&client).await.unwrap();
        let mut staged = Vec::new();
        for job in &jobs {
            let answer = rowlock::enqueue(prepared.on(&client), job).await;
            staged.push(answer.unwrap());
        }
        let transaction = client.transaction().await.unwrap();
        let undone = rowlock::enqueue(prepared.on(&transaction), &jobs[0]).await;
        assert_eq!(undone.unwrap().status, Status::Queued);
        transaction.rollback().await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        staged
    });
    for ((answer, other), job) in staged.iter().zip(others).zip(&jobs) {
        match *job == to_ada {
            true => assert_eq!((answer.id, answer.status), (Some(other), Status::Duplicate)),
            false => assert!(same_row(&small, other, answer.id.unwrap()), "{job:?}"),
        }
    }
    assert_eq!(small.number("SELECT count(*) FROM rowlock.job"), 5);
}
