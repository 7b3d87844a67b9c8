//! Typed handlers, their shared state, and the layers around them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::job::Backoff;
use rowlock::run::{Layer, Next, Options, Stopper, Tally};
use rowlock::{Context, Cx, Done, Job, JobState, Outcome, Snooze, Worker};
use serde::{Deserialize, Serialize};

use super::world::{World, job};

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Job for Greet {
    const KIND: &'static str = "greet";
    const QUEUE: &'static str = "social";
    const KEY: &'static [&'static str] = &["name"];
    const MAX_ATTEMPTS: u32 = 2;
    fn backoff() -> Backoff {
        Backoff::Fixed {
            base: Duration::ZERO,
            jitter: 0.0,
        }
    }
}

#[derive(Default)]
struct App {
    said: Mutex<Vec<String>>,
}

async fn greet(job: Greet, cx: Cx<Arc<App>>) -> rowlock::Result {
    if job.name == "nobody" {
        "not a number".parse::<i32>()?;
    }
    if job.name == "later" {
        return Ok(Snooze(Duration::from_secs(3600)));
    }
    let attempt = cx.attempt().attempt;
    cx.said
        .lock()
        .unwrap()
        .push(format!("hello {} {attempt}", job.name));
    Ok(Done)
}

async fn run_once(worker: Worker<Arc<App>>) -> Tally {
    let options = Options {
        once: true,
        ..Options::default()
    };
    let stopper = Stopper::default();
    worker
        .options(options)
        .run_until(stopper.stop())
        .await
        .unwrap()
}

fn named(name: &str) -> Greet {
    Greet {
        name: name.to_owned(),
    }
}

pub async fn a_typed_handler_gets_its_job_and_the_shared_state(world: World) {
    let site = world.open_with(Clock::system());
    let app = Arc::new(App::default());
    let answer = site.rowlock.enqueue(&named("ada")).await.unwrap();
    let id = answer.id.unwrap();
    let found = site.job(id).await;
    assert_eq!((found.queue.as_str(), found.max_attempts), ("social", 2));
    assert_eq!(found.unique_key.as_deref(), Some("[\"ada\"]"));
    let later = site
        .rowlock
        .enqueue(&named("later"))
        .await
        .unwrap()
        .id
        .unwrap();
    run_once(Worker::new(site.rowlock.clone(), Arc::clone(&app)).handle(greet)).await;
    assert_eq!(*app.said.lock().unwrap(), ["hello ada 1"]);
    assert_eq!(site.state(id).await, JobState::Completed);
    let snoozed = site.job(later).await;
    assert_eq!((snoozed.state, snoozed.attempt), (JobState::Pending, 0));
}

pub async fn an_error_means_another_attempt_and_keeps_its_words(world: World) {
    let site = world.open_with(Clock::system());
    let nobody = site
        .rowlock
        .enqueue(&named("nobody"))
        .await
        .unwrap()
        .id
        .unwrap();
    let unfit = site
        .stage(job("greet").unique("x").unwrap().max_attempts(1).unwrap())
        .await;
    run_once(Worker::new(site.rowlock.clone(), Arc::default()).handle(greet)).await;
    for (id, attempts, words) in [
        (nobody, 2, "invalid digit"),
        (unfit, 1, "missing field `name`"),
    ] {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Failed, attempts));
        assert!(
            found.errors[0].message.contains(words),
            "{:?}",
            found.errors
        );
    }
}

struct Note(&'static str, Arc<App>);

#[rowlock::async_trait]
impl Layer for Note {
    async fn around(&self, cx: &Context, next: Next<'_>) -> Outcome {
        let Self(name, app) = self;
        app.said
            .lock()
            .unwrap()
            .push(format!("{name} in {}", cx.kind));
        let outcome = next.run(cx).await;
        app.said
            .lock()
            .unwrap()
            .push(format!("{name} out {outcome:?}"));
        outcome
    }
}

struct Closes(Arc<App>);

#[rowlock::async_trait]
impl rowlock::Handler for Closes {
    async fn run(&self, _cx: &Context) -> Outcome {
        Done
    }

    async fn close(&self) {
        self.0.said.lock().unwrap().push("closed".to_owned());
    }
}

pub async fn a_handler_behind_a_layer_is_closed_too(world: World) {
    let site = world.open_with(Clock::system());
    for layered in [false, true] {
        let app = Arc::new(App::default());
        let mut worker = Worker::new(site.rowlock.clone(), Arc::clone(&app)).handle_kind(
            rowlock::Kind::new("mail").unwrap(),
            Closes(Arc::clone(&app)),
        );
        if layered {
            worker = worker.layer(Note("outer", Arc::default()));
        }
        run_once(worker).await;
        assert_eq!(*app.said.lock().unwrap(), ["closed"], "layered: {layered}");
    }
}

pub async fn layers_run_around_every_attempt_the_first_outermost(world: World) {
    let site = world.open_with(Clock::system());
    let app = Arc::new(App::default());
    site.rowlock.enqueue(&named("ada")).await.unwrap();
    let worker = Worker::new(site.rowlock.clone(), Arc::clone(&app))
        .handle(greet)
        .layer(Note("outer", Arc::clone(&app)))
        .layer(Note("inner", Arc::clone(&app)));
    run_once(worker).await;
    let expected = [
        "outer in greet",
        "inner in greet",
        "hello ada 1",
        "inner out Done",
        "outer out Done",
    ];
    assert_eq!(*app.said.lock().unwrap(), expected);
}
