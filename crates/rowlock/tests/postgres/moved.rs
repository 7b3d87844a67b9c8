//! Rows that somebody moves or has locked while somebody else looks for them.

use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Context, Error, JobId, JobState, Kind, Outcome};
use rowlock_testbed::until;

use super::small::Small;
use crate::conformance::world::{LEASE, Site, World, error, ids, job, wanted};

/// Somebody waits for a lock.
fn until_somebody_waits(small: &Small) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("somebody waits for a lock", || {
        (small.number(waiting) == 1).then_some(())
    });
}

/// A verdict that arrives while the job is being set aside, and not yet committed, counts all the same.
pub async fn a_verdict_finds_a_job_that_is_just_being_set_aside(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    for word in ["retry", "snooze", "release", "fail", "cancelled", "done"] {
        let id = site.stage(job(word)).await;
        let claimed = site.claim_one(&worker, &[word]).await;
        let mover = small.own.session();
        mover.execute("BEGIN").unwrap();
        let token = claimed.token.get();
        let moved = format!("SELECT count(*) FROM rowlock.set_aside('{{{id}}}', '{{{token}}}')");
        assert_eq!(mover.value(&moved), "1");
        let now = world.clock.now();
        let (verdict, expected) = match word {
            "retry" => {
                let error = error(&claimed, &world);
                (Verdict::Retry { at: now, error }, JobState::Pending)
            }
            "snooze" => (Verdict::Snooze(now), JobState::Pending),
            "release" => (Verdict::Release, JobState::Pending),
            "fail" => (Verdict::Fail(error(&claimed, &world)), JobState::Failed),
            "cancelled" => (Verdict::Cancelled, JobState::Cancelled),
            _ => (Verdict::Done, JobState::Completed),
        };
        let settling = site.settle(&claimed, verdict);
        let moving = async {
            tokio::task::block_in_place(|| {
                until_somebody_waits(&small);
                mover.execute("COMMIT").unwrap();
            });
        };
        let (settled, ()) = tokio::join!(settling, moving);
        assert_eq!(settled, Settled::Accepted, "{word}");
        assert_eq!(site.state(id).await, expected, "{word}");
    }
}

fn lock_in_vain(small: &Small, id: JobId) {
    let other = small.own.session();
    let locked = format!("SELECT id FROM rowlock.job WHERE id = {id} FOR UPDATE");
    other.execute("BEGIN").unwrap();
    assert_eq!(other.value(&locked), id.to_string());
    other.execute("ROLLBACK").unwrap();
    assert!(is_marked(small, id));
}

fn is_marked(small: &Small, id: JobId) -> bool {
    let marked = format!("SELECT xmax <> '0'::xid FROM rowlock.job WHERE id = {id}");
    small.side.value(&marked) == "t"
}

/// A lock leaves its mark on a row, also one that was rolled back, and claims with a bound pass by what has a mark.
pub async fn a_job_whose_lock_was_rolled_back_is_claimed_all_the_same(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    // From here on the lane has a bound.
    site.stage(job("mail")).await;
    site.claim_one(&worker, &["mail"]).await;
    let id = site.stage(job("mail")).await;
    lock_in_vain(&small, id);
    // Time for a claim without bounds.
    world.advance(Duration::from_secs(5));
    let claimed = site.claim(&worker, &["mail"], 10).await;
    assert_eq!(ids(&claimed), [id]);
}

/// A claim without bounds that takes long: the next has to wait.
async fn use_up_the_budget(small: &Small, world: &World, site: &Site, worker: &WorkerId) {
    site.stage(job("mail")).await;
    let other = small.own.session();
    other.execute("BEGIN").unwrap();
    other
        .execute("LOCK TABLE rowlock.lane IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let claiming = site.claim_one(worker, &["mail"]);
    let waiting = async {
        tokio::task::block_in_place(|| {
            until_somebody_waits(small);
            world.advance(Duration::from_secs(10));
            other.execute("COMMIT").unwrap();
        });
    };
    tokio::join!(claiming, waiting);
}

/// Whoever goes when there is nothing to do has looked everywhere before, whatever that costs.
pub async fn a_worker_that_runs_once_finds_what_its_bounds_hide(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    use_up_the_budget(&small, &world, &site, &worker).await;
    let id = site.stage(job("mail")).await;
    lock_in_vain(&small, id);
    let once = site
        .worker(())
        .handle_kind(Kind::new("mail").unwrap(), |_: Context| async {
            Outcome::Done
        });
    let tally = once.run_once().await.unwrap();
    assert_eq!(tally.settled, 1);
    assert_eq!(site.state(id).await, JobState::Completed);
}

/// A thousand are brought back at a time, whoever's they are.
pub async fn a_worker_that_runs_once_goes_on_behind_jobs_of_others(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let kinds = ["mail", "other"].map(|kind| Kind::new(kind).unwrap());
    site.engine().add_kinds(&kinds).await.unwrap();
    let others = 5_500;
    small
        .side
        .execute(&format!(
            "INSERT INTO rowlock.aside
             SELECT 1000000 + n, due, due, due, NULL, NULL, NULL, 0, 5, 0, false, false, false, false, 'default',
                    CASE WHEN n > {others} THEN 'mail' ELSE 'other' END, NULL, NULL, NULL, NULL, NULL, '{{}}'
             FROM generate_series(1, {others} + 10) AS n,
                  LATERAL (SELECT rowlock.now() - interval '1 h' + n * interval '1 ms' AS due) AS at"
        ))
        .unwrap();
    let once = site
        .worker(())
        .handle_kind(Kind::new("mail").unwrap(), |_: Context| async {
            Outcome::Done
        });
    assert_eq!(once.run_once().await.unwrap().settled, 10);
}

/// So are the rows of a claim that failed, even when no claim without bounds is due for long.
pub async fn what_a_failed_claim_had_locked_is_taken_by_the_next(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    use_up_the_budget(&small, &world, &site, &worker).await;
    let id = site.stage(job("mail")).await;
    let table = format!("rowlock.job_{}", small.segment());
    let refuse = format!(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '57014'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION public.refuse()"
    );
    small.side.execute(&refuse).unwrap();
    let wanted = wanted(&worker, &["mail"], 10);
    let failed = site.engine().claim(wanted).await;
    assert!(failed.is_err(), "{failed:?}");
    let allow = format!("DROP TRIGGER refuse ON {table}; DROP FUNCTION public.refuse()");
    small.side.execute(&allow).unwrap();
    assert!(is_marked(&small, id));
    let claimed = site.claim(&worker, &["mail"], 10).await;
    assert_eq!(ids(&claimed), [id]);
}

/// Whoever rewrites a table puts every row somewhere else, perhaps where another of the same claim was.
pub async fn a_verdict_ends_its_own_job_though_another_lies_in_its_place(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    site.stage_many("mail", 40).await;
    let claimed = site.claim(&worker, &["mail"], 40).await;
    let before: Vec<String> = claimed.iter().map(|job| small.place(job.id)).collect();
    let full = format!("VACUUM FULL rowlock.job_{}", small.segment());
    small.side.execute(&full).unwrap();
    let after: Vec<String> = claimed.iter().map(|job| small.place(job.id)).collect();
    let replaced = |n: &usize| before[*n] != after[*n] && after.contains(&before[*n]);
    let victim = (0..claimed.len())
        .find(replaced)
        .expect("another lies in its place");
    let settlement = Settlement {
        id: claimed[victim].id,
        token: claimed[victim].token,
        verdict: Verdict::Done,
        started_at: None,
    };
    // Nothing has happened at the first try; the second looks for the job by its number.
    let refused = site.engine().settle(vec![settlement]).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let settled = site.settle(&claimed[victim], Verdict::Done).await;
    assert_eq!(settled, Settled::Accepted);
    for (n, job) in claimed.iter().enumerate() {
        let expected = match n == victim {
            true => JobState::Completed,
            false => JobState::Processing,
        };
        assert_eq!(site.state(job.id).await, expected);
    }
}

/// A transaction that completes a job and stays open holds up nothing but that job.
pub async fn an_open_completion_holds_up_nobody_else(small: Small) {
    let world = small.world();
    let (site, observer) = (small.open(&world.clock), small.open(&world.clock));
    let (first, second) = (site.join().await, site.join().await);
    let open = site.stage(job("mail")).await;
    let completing = site.claim_one(&first, &["mail"]).await;
    let other = site.stage(job("mail")).await;
    let slow = site.claim_one(&second, &["mail"]).await;
    let caller = small.own.session();
    caller.execute("BEGIN").unwrap();
    let token = completing.token.get();
    let done = format!("SELECT rowlock.complete(NULL, {open}, {token}, NULL)");
    assert_eq!(caller.value(&done), "t");
    // It runs for long, and its worker beats: the beat is answered, and the other job is set aside.
    world.advance(Duration::from_secs(11));
    site.beat(&first, &[completing.token]).await.unwrap();
    site.beat(&second, &[slow.token]).await.unwrap();
    assert!(small.place(other).starts_with("rowlock.aside"));
    // Both fall silent: the second is buried, the first when its transaction has ended.
    assert_eq!(observer.observe(&world, LEASE, &[]).await, 1);
    assert_eq!(site.workers().await, std::slice::from_ref(&first));
    assert_eq!(site.state(other).await, JobState::Pending);
    caller.execute("COMMIT").unwrap();
    let expired = observer.engine().expire().await.unwrap();
    assert_eq!(expired.workers, [first]);
    assert_eq!(site.state(open).await, JobState::Completed);
}

/// A held job that somebody has locked keeps no claim waiting.
pub async fn a_locked_job_that_was_held_stops_no_claim(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let switch = |to: &str| {
        let sql = format!(
            "INSERT INTO rowlock.kind (kind, switch) VALUES ('mail', {to})
             ON CONFLICT (kind) DO UPDATE SET switch = {to}"
        );
        small.side.execute(&sql).unwrap();
    };
    switch("'hold'");
    let held = site.stage(job("mail")).await;
    switch("NULL");
    let caller = small.own.session();
    caller.execute("BEGIN").unwrap();
    let lock = format!("SELECT id FROM rowlock.aside WHERE id = {held} FOR UPDATE");
    assert_eq!(caller.value(&lock), held.to_string());
    let free = site.stage(job("other")).await;
    let claimed = site.claim(&worker, &["mail", "other"], 10).await;
    assert_eq!(claimed.iter().map(|job| job.id).collect::<Vec<_>>(), [free]);
    caller.execute("ROLLBACK").unwrap();
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(claimed.id, held);
    let settled = site.finish(&claimed, Outcome::Done).await;
    assert_eq!(settled, Settled::Accepted);
}

/// Megabytes of payload move like any other.
pub async fn large_payloads_keep_nothing_from_moving(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let fill = "INSERT INTO rowlock.aside
        SELECT nextval('rowlock.job_id'), rowlock.now() - interval '2 s', rowlock.now() - interval '2 s',
               rowlock.now(), NULL, NULL, NULL, 0, 5, 0, false, false, false, false, 'default', 'mail', NULL,
               NULL, NULL, NULL, NULL, json_build_array(repeat('x', 1040000))
        FROM generate_series(1, 1100)";
    small.side.execute(fill).unwrap();
    let mut claimed = 0;
    // Fewer at a time, since each is a megabyte on its way to us.
    while claimed < 1_100 {
        let jobs = site.claim(&worker, &["mail"], 100).await;
        assert!(!jobs.is_empty(), "{claimed} were claimed");
        claimed += jobs.len();
        for job in &jobs {
            assert_eq!(site.settle(job, Verdict::Release).await, Settled::Accepted);
        }
        if claimed >= 200 {
            break;
        }
    }
    small
        .side
        .execute("SELECT setval('rowlock.ring', 9)")
        .unwrap();
    until("the segment is empty", || {
        small.rotate(&[]);
        (small.sizes()[0] == 0).then_some(())
    });
    assert_eq!(small.number("SELECT count(*) FROM rowlock.job"), 1_100);
}
