//! The closed circle: rows, ticks, workers and rows again, on the system's clock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::Filter;
use rowlock::run::{Options, Stopper, Tally};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Context, JobState, Outcome, Pair, Worker};
use serde::Deserialize;
use tokio::task::JoinHandle;

use super::pairs::{QUERY, databases, declare, insert, kind_of, live, pair, row, tick};
use super::world::{Home, Site, World, job, name};

#[derive(Deserialize)]
struct Row {
    id: i64,
}

/// What handlers did: how often each row's ran, how many of them at once.
#[derive(Default)]
struct Book {
    ran: Mutex<HashMap<i64, usize>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Book {
    fn enter(&self, id: i64) {
        *self.ran.lock().unwrap().entry(id).or_default() += 1;
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.at_once.fetch_sub(1, Ordering::SeqCst);
    }

    fn runs(&self) -> usize {
        self.ran.lock().unwrap().values().sum()
    }
}

fn ready(home: &dyn Home, id: i64) {
    home.client().execute(&format!(
        "UPDATE databases SET state = 'ready' WHERE id = {id}"
    ));
}

/// A worker whose handler creates databases: the row says so afterwards.
fn creates(world: &World, site: &Site, book: &Arc<Book>) -> Worker {
    let (home, book) = (Arc::clone(&world.home), Arc::clone(book));
    handles(site, move |id| {
        book.enter(id);
        ready(&*home, id);
        book.leave();
        Outcome::Done
    })
}

fn handles(site: &Site, run: impl Fn(i64) -> Outcome + Send + Sync + 'static) -> Worker {
    let kind = kind_of("create");
    let run = Arc::new(run);
    Worker::new(site.rowlock.clone(), ()).handle_kind(kind, move |cx: Context| {
        let run = Arc::clone(&run);
        async move {
            let row: Row = cx.payload.to().unwrap();
            tokio::task::spawn_blocking(move || run(row.id))
                .await
                .unwrap()
        }
    })
}

struct Running {
    stopper: Stopper,
    work: JoinHandle<rowlock::error::Result<Tally>>,
}

fn start(worker: Worker, lease: Duration) -> Running {
    let stopper = Stopper::default();
    let options = Options {
        lease,
        poll: Duration::from_millis(50),
        ..Options::default()
    };
    let work = worker.options(options).run_until(stopper.stop());
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(work);
    Running { stopper, work }
}

impl Running {
    async fn stop(self) {
        self.stopper.ask();
        self.work.await.unwrap().unwrap();
    }
}

/// Waits for something to become true, at most as long as a case may take.
async fn until<F: Future<Output = bool>>(what: &str, is: impl Fn() -> F) {
    let clock = Clock::system();
    let waited = clock.timeout(Duration::from_secs(120), async {
        while !is().await {
            clock.sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_some(), "{what} didn't happen");
}

fn real(world: &World) -> Site {
    world.home.time_passes();
    world.open_with(Clock::system())
}

async fn run_once(worker: Worker) {
    worker.run_once().await.unwrap();
}

fn quick(pair: Pair) -> Pair {
    pair.every(Duration::from_millis(100))
}

pub async fn a_worker_derives_and_runs_what_rows_ask_for(world: World) {
    databases(&world, 25);
    let site = real(&world);
    let book = Arc::default();
    run_once(creates(&world, &site, &book).pair(quick(pair(QUERY)))).await;
    assert_eq!(book.runs(), 25);
    assert!(book.ran.lock().unwrap().values().all(|runs| *runs == 1));
    let seen = row(&site).await;
    assert_eq!((seen.enqueued, seen.ticks), (25, 1));
    assert_eq!(seen.leader, None, "it has left its post");
}

pub async fn a_queue_that_is_thrown_away_comes_back(world: World) {
    const ROWS: i64 = 10_000;
    databases(&world, ROWS);
    let site = real(&world);
    let book: Arc<Book> = Arc::default();
    let done = Arc::clone(&book);
    // Many rows at once: the rows themselves are not what is tried here.
    let home = Arc::clone(&world.home);
    let finished: Arc<Mutex<Vec<i64>>> = Arc::default();
    let worker = handles(&site, move |id| {
        done.enter(id);
        let mut finished = finished.lock().unwrap();
        finished.push(id);
        if finished.len() >= 200 || done.runs() as i64 >= ROWS {
            let ids: Vec<String> = finished.drain(..).map(|id| id.to_string()).collect();
            let ids = ids.join(", ");
            home.client().execute(&format!(
                "UPDATE databases SET state = 'ready' WHERE id IN ({ids})"
            ));
        }
        done.leave();
        Outcome::Done
    });
    let pair = quick(pair(QUERY)).without_closed_loop();
    let running = start(worker.pair(pair), Duration::from_secs(30));
    until("the first hundred", || async { book.runs() >= 100 }).await;
    let deleted = throw_away(&site).await;
    // What the worker had not claimed yet, however fast it is.
    assert!(deleted > 0, "nothing was thrown away");
    let all = || async {
        let ran = book.ran.lock().unwrap();
        ran.len() as i64 == ROWS
    };
    until("every row's work", all).await;
    running.stop().await;
}

async fn throw_away(site: &Site) -> usize {
    let mut deleted = 0;
    let mut after = None;
    loop {
        let filter = Filter {
            state: Some(JobState::Pending),
            after,
            limit: 1_000,
            ..Filter::default()
        };
        let page = site.rowlock.operate().jobs(filter).await.unwrap();
        let Some(last) = page.last() else {
            return deleted;
        };
        after = Some(last.id);
        let ids = page.iter().map(|job| job.id).collect();
        let answers = site.engine().delete(ids).await.unwrap();
        deleted += answers.iter().filter(|answer| answer.is_ok()).count();
    }
}

pub async fn enqueue_tick_and_retry_of_a_key_make_one_live_job(world: World) {
    const ROUNDS: i64 = 30;
    databases(&world, 0);
    let site = real(&world);
    let pair = pair(QUERY);
    declare(&site, &pair).await;
    let book: Arc<Book> = Arc::default();
    let (note, home) = (Arc::clone(&book), Arc::clone(&world.home));
    let worker = handles(&site, move |id| {
        note.enter(id);
        let first = note.ran.lock().unwrap()[&id] == 1;
        if !first {
            ready(&*home, id);
        }
        note.leave();
        match first {
            true => super::world::failed(),
            false => Outcome::Done,
        }
    });
    let running = start(worker.pair(quick(pair.clone())), Duration::from_secs(30));
    for round in 1..=ROUNDS {
        insert(&world, round, round);
        let payload = serde_json::json!({ "id": round });
        let direct = || job("create").payload_of(&payload).unwrap();
        let (one, other) = (direct(), direct());
        let sites = (real(&world), real(&world));
        let _ = tokio::join!(
            tick(&sites.0, &pair),
            sites.0.rowlock.enqueue(&one),
            sites.1.rowlock.enqueue(&other),
            tick(&sites.1, &pair),
        );
        assert!(live(&site).await.len() <= 1, "one live job");
        let done = || async {
            book.ran
                .lock()
                .unwrap()
                .get(&round)
                .is_some_and(|n| *n >= 2)
        };
        until("both attempts", done).await;
        until("no live job", || async { live(&site).await.is_empty() }).await;
    }
    running.stop().await;
    assert_eq!(
        book.most_at_once.load(Ordering::SeqCst),
        1,
        "one run at a time"
    );
    // Whoever came after the effect found that nothing was needed: two attempts, one effect.
    let ran = book.ran.lock().unwrap().clone();
    assert!(ran.values().all(|runs| *runs == 2), "{ran:?}");
}

pub async fn a_row_that_needs_nothing_any_more_is_not_worked_on(world: World) {
    databases(&world, 3);
    let site = real(&world);
    let pair = pair(QUERY);
    declare(&site, &pair).await;
    tick(&site, &pair).await;
    let ids: Vec<_> = live(&site).await.iter().map(|job| job.id).collect();
    ready(&*world.home, 2);
    let book = Arc::default();
    run_once(creates(&world, &site, &book).pair(pair)).await;
    let ran = book.ran.lock().unwrap().clone();
    assert!(!ran.contains_key(&2), "{ran:?}");
    assert_eq!(ran.len(), 2);
    let skipped = site.job(ids[1]).await;
    assert_eq!(skipped.state, JobState::Completed);
}

pub async fn without_the_question_it_runs_all_the_same(world: World) {
    databases(&world, 1);
    let site = real(&world);
    let pair = pair(QUERY).without_still_needed();
    declare(&site, &pair).await;
    tick(&site, &pair).await;
    ready(&*world.home, 1);
    let book: Arc<Book> = Arc::default();
    run_once(creates(&world, &site, &book).pair(pair)).await;
    assert_eq!(book.runs(), 1);
}

pub async fn a_handler_that_lies_is_found_out(world: World) {
    databases(&world, 3);
    let site = real(&world);
    let book: Arc<Book> = Arc::default();
    let (note, home) = (Arc::clone(&book), Arc::clone(&world.home));
    let liar = handles(&site, move |id| {
        note.enter(id);
        if id != 2 {
            ready(&*home, id);
        }
        note.leave();
        Outcome::Done
    });
    // Long enough for the question after a run, also on a busy machine: a tick before it makes another job.
    let pair = pair(QUERY).every(Duration::from_millis(500));
    declare(&site, &pair).await;
    let running = start(liar.pair(pair), Duration::from_secs(30));
    until("the lie is found out", || async {
        row(&site).await.ineffective == 1
    })
    .await;
    let runs = book.runs();
    let ticks = row(&site).await.ticks;
    until("more ticks", || async {
        row(&site).await.ticks >= ticks + 5
    })
    .await;
    running.stop().await;
    let ran = book.ran.lock().unwrap().clone();
    assert_eq!((ran[&1], ran[&3]), (1, 1));
    // A tick may come between the end of a run and the question: then it takes one run more.
    assert!(ran[&2] >= 2, "{ran:?}");
    assert_eq!(book.runs(), runs, "no loop");
    let seen = row(&site).await;
    assert_eq!((seen.ineffective, seen.held_back), (1, 1));
    assert!(seen.ticks > 5);
}

pub async fn a_key_is_forgotten_once_its_row_wants_nothing(world: World) {
    databases(&world, 2);
    let site = real(&world);
    let pair = quick(pair(QUERY));
    declare(&site, &pair).await;
    let lead = site.rowlock.lead();
    let both = vec!["[1]".to_owned(), "[2]".to_owned()];
    lead.still_wanted(&pair.name, both.clone()).await.unwrap();
    lead.still_wanted(&pair.name, both).await.unwrap();
    assert_eq!(row(&site).await.held_back, 2);
    ready(&*world.home, 1);
    let book = Arc::default();
    run_once(creates(&world, &site, &book).pair(pair)).await;
    let schedule = site.rowlock.schedule();
    let held = schedule.held_back(&name("create"), None, 10).await.unwrap();
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0].key, "[2]");
}

pub async fn a_failing_pair_does_not_stop_the_others(world: World) {
    databases(&world, 5);
    let site = real(&world);
    let book: Arc<Book> = Arc::default();
    let broken = quick(pair("SELECT id FROM nowhere")).name(name("broken"));
    let worker = creates(&world, &site, &book)
        .pair(broken)
        .pair(quick(pair(QUERY)));
    let running = start(worker, Duration::from_secs(30));
    until("the rows' work", || async { book.runs() == 5 }).await;
    let rows = site.rowlock.schedule().pairs().await.unwrap();
    assert!(
        rows[0].error.as_ref().unwrap().contains("nowhere"),
        "{rows:?}"
    );
    assert_eq!(rows[0].last_success, None);
    assert_eq!(rows[1].error, None);
    running.stop().await;
}

pub async fn a_paused_pair_does_not_tick(world: World) {
    databases(&world, 1);
    let site = real(&world);
    let pair = quick(pair(QUERY));
    declare(&site, &pair).await;
    let schedule = site.rowlock.schedule();
    let pause = Some(Setting::new(Mode::Pause));
    schedule
        .switch(Target::Pair, &pair.name, pause)
        .await
        .unwrap();
    let book: Arc<Book> = Arc::default();
    run_once(creates(&world, &site, &book).pair(pair.clone())).await;
    assert_eq!((book.runs(), row(&site).await.ticks), (0, 0));
    schedule
        .switch(Target::Pair, &pair.name, None)
        .await
        .unwrap();
    run_once(creates(&world, &site, &book).pair(pair)).await;
    assert_eq!(book.runs(), 1);
}

pub async fn rows_of_another_database_get_their_jobs(world: World) {
    // The store itself, by its address: another connection, and read as if it were foreign.
    databases(&world, 12);
    let site = real(&world);
    let pair = quick(pair(QUERY).batch(5).source(world.home.url()));
    let book: Arc<Book> = Arc::default();
    run_once(creates(&world, &site, &book).pair(pair)).await;
    assert_eq!(book.runs(), 12);
    let seen = row(&site).await;
    assert_eq!((seen.found, seen.enqueued, seen.ticks), (12, 12, 1));
    assert_eq!(book.ran.lock().unwrap().len(), 12);
}

pub async fn a_tick_that_overruns_goes_on_where_it_was(world: World) {
    databases(&world, 3_000);
    let site = real(&world);
    // Far more statements than there is time for, and no second tick for an hour.
    let mut slow = pair(QUERY).batch(1).every(Duration::from_secs(3600));
    // Each of them has as long, on a busy machine too.
    slow.timeout = Duration::from_secs(1);
    declare(&site, &slow).await;
    let worker = Worker::new(site.rowlock.clone(), ())
        .handle_kind(kind_of("other"), |_: Context| async { Outcome::Done });
    let running = start(worker.pair(slow), Duration::from_secs(30));
    until("one whole tick", || async { row(&site).await.ticks == 1 }).await;
    running.stop().await;
    let seen = row(&site).await;
    assert_eq!((seen.found, seen.enqueued), (3_000, 3_000), "each row once");
    assert_eq!(live(&site).await.len(), 3_000);
}

pub async fn a_slow_question_keeps_no_job_waiting(world: World) {
    databases(&world, 1);
    let site = real(&world);
    let endless = "SELECT id FROM databases WHERE state = 'pending' AND (WITH RECURSIVE n (i) AS \
                   (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n) > 0";
    let mut slow = pair(endless).every(Duration::from_secs(3600));
    slow.timeout = Duration::from_secs(3600);
    declare(&site, &slow).await;
    let direct = job("create")
        .payload_of(&serde_json::json!({"id": 1}))
        .unwrap();
    site.stage(direct).await;
    let book: Arc<Book> = Arc::default();
    let running = start(
        creates(&world, &site, &book).pair(slow),
        Duration::from_secs(30),
    );
    until("the job runs unasked", || async { book.runs() == 1 }).await;
    running.stop().await;
}

pub async fn a_pair_that_was_changed_or_removed_is_so_at_once(world: World) {
    databases(&world, 2);
    let site = real(&world);
    let slow = pair(QUERY).every(Duration::from_secs(3600));
    declare(&site, &slow).await;
    let book: Arc<Book> = Arc::default();
    let worker = creates(&world, &site, &book).pair(slow.clone());
    let running = start(worker, Duration::from_secs(2));
    until("the first tick", || async { book.runs() == 2 }).await;
    insert(&world, 3, 4);
    let schedule = site.rowlock.schedule();
    schedule.declare_pairs(&[quick(slow)], true).await.unwrap();
    until("a tick at the new pace", || async { book.runs() == 4 }).await;
    // Without its pair nobody asks whether a job is needed.
    schedule.forget_pair(&name("create")).await.unwrap();
    let id = 1;
    let forgotten = || async {
        let payload = serde_json::json!({ "id": id });
        site.stage(job("create").payload_of(&payload).unwrap())
            .await;
        until("no live job", || async { live(&site).await.is_empty() }).await;
        book.runs() > 4
    };
    until("a job runs without a row", forgotten).await;
    running.stop().await;
}
