//! Copies of a store: by a dump, and row by row without what isn't a row.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;

use rowlock::claim::ClaimedJob;
use rowlock::settle::Verdict;
use rowlock::{JobId, JobState, Status};
use rowlock_testbed::{Finished, Postgres, Process};

use super::home::Own;
use super::small::{Small, done, drain_all};
use crate::conformance::world::{Home, LEASE, Site, World, ids, job};

/// A store in the middle of its life.
struct Life {
    waiting: BTreeSet<JobId>,
    running: Vec<ClaimedJob>,
    ended: BTreeSet<JobId>,
    keyed: JobId,
    /// What each of all these jobs is known by outside.
    known_by: BTreeMap<JobId, String>,
    highest: JobId,
}

async fn life(small: &Small, world: &World) -> Life {
    let site = small.open(&world.clock);
    let worker = site.join().await;
    for _ in 0..3 {
        small.turn(&site, &worker, "filler").await;
    }
    let mut waiting: BTreeSet<JobId> = site.stage_many("mail", 30).await.into_iter().collect();
    let running = site.claim(&worker, &["mail"], 15).await;
    done(&site, &running[..10]).await;
    let ended = ids(&running[..10]).into_iter().collect();
    for job in &running {
        waiting.remove(&job.id);
    }
    waiting.insert(site.stage(job("mail").delay(LEASE * 10)).await);
    let keyed = site.stage(job("mail").unique("one").unwrap()).await;
    waiting.insert(keyed);
    let mut known_by = BTreeMap::new();
    for id in waiting.iter().copied().chain(ids(&running)) {
        let key = site.job(id).await.idempotency_key;
        known_by.insert(id, key.unwrap());
    }
    Life {
        known_by,
        highest: keyed,
        running: running[10..].to_vec(),
        waiting,
        ended,
        keyed,
    }
}

/// All of it goes on in a copy, and no id is used twice.
async fn goes_on(life: &Life, copy: Arc<Own>, world: &World) {
    let world = World {
        home: copy as Arc<dyn Home>,
        clock: world.clock.clone(),
    };
    let site: Site = world.open();
    let worker = site.join().await;
    let fresh = site.stage_many("mail", 20).await;
    assert!(fresh.iter().all(|id| *id > life.highest), "{fresh:?}");
    for id in &life.ended {
        assert_eq!(site.state(*id).await, JobState::Completed);
    }
    for (id, key) in &life.known_by {
        let now = site.job(*id).await.idempotency_key;
        assert_eq!(now.as_ref(), Some(key), "job {id}");
    }
    let again = job("mail").unique("one").unwrap();
    let again = site.rowlock.enqueue(&again).await.unwrap();
    assert_eq!(
        (again.status, again.id),
        (Status::Duplicate, Some(life.keyed))
    );
    // Nobody works on what was being worked on when the copy was made.
    let dead = site
        .observe(&world, LEASE * 2, &[(&site, &worker, &[])])
        .await;
    assert_eq!(dead, 1);
    for _ in &life.running {
        let suspect = site.claim_suspect(&worker, &["mail"]).await;
        assert!(ids(&life.running).contains(&suspect[0].id));
        site.settle(&suspect[0], Verdict::Done).await;
    }
    world.advance(LEASE * 10);
    let ran = drain_all(&site, &worker, &["mail"], life.waiting.len() + 20).await;
    let all: BTreeSet<JobId> = life.waiting.iter().chain(&fresh).copied().collect();
    assert_eq!(BTreeSet::from_iter(ran), all);
    let health = site.rowlock.operate().health().await.unwrap();
    assert_eq!(health.drift, [""; 0]);
    let integrity = site.rowlock.operate().integrity().await.unwrap();
    assert!(integrity.is_clean(), "{integrity:?}");
    let after = job("mail").unique("one").unwrap();
    assert_eq!(
        site.rowlock.enqueue(&after).await.unwrap().status,
        Status::Queued
    );
}

fn run(program: &str, url: &str, more: &[&str], input: &str) -> Finished {
    let path = Postgres::program(program);
    let finished = Process::run(Command::new(path).args(["--dbname", url]).args(more), input);
    assert_eq!(finished.code, Some(0), "{program}: {}", finished.stderr);
    finished
}

pub async fn a_restored_dump_goes_on(small: Small) {
    let world = small.world();
    let life = life(&small, &world).await;
    let dump = run("pg_dump", &small.own.url(), &["--schema", "rowlock"], "").stdout;
    let url = small.own.empty_url();
    run(
        "psql",
        &url,
        &["--set", "ON_ERROR_STOP=1", "--quiet"],
        &dump,
    );
    goes_on(&life, Arc::new(Own::at(&url)), &world).await;
}

/// Copies every row, and nothing else.
fn rows_only(small: &Small) -> Own {
    let copy = Own::new();
    let there = copy.session();
    let tables = small.side.query(
        "SELECT oid::regclass FROM pg_class
         WHERE relnamespace = 'rowlock'::regnamespace AND relkind = 'r'
           AND relname NOT IN ('migration', 'schema_part', 'job')",
    );
    for table in tables.unwrap().into_iter().flatten().flatten() {
        let rows = format!("SELECT coalesce(json_agg(row), '[]') FROM ONLY {table} AS row");
        let rows = small.side.value(&rows);
        let insert = format!(
            "INSERT INTO {table}
             SELECT * FROM json_populate_recordset(NULL::{table}, $rows${rows}$rows$)"
        );
        there.execute(&insert).unwrap();
    }
    assert_eq!(there.value("SELECT last_value FROM rowlock.job_id"), "1");
    copy
}

pub async fn a_copy_without_sequences_uses_no_id_twice(small: Small) {
    let world = small.world();
    // The first id there is, too.
    let first = small.open(&world.clock).stage(job("first")).await;
    let copy = World {
        home: Arc::new(rows_only(&small)),
        ..world.clone()
    };
    let site = copy.open();
    site.join().await;
    assert!(site.stage(job("second")).await > first);
    let life = life(&small, &world).await;
    let copy = rows_only(&small);
    copy.time_is(world.clock.now());
    goes_on(&life, Arc::new(copy), &world).await;
}
