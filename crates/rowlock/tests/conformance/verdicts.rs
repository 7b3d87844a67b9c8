//! Verdicts that the store refuses for good: nothing runs without end, and nothing else waits.

use rowlock::engine::Filter;
use rowlock::run::{Options, Stopper};
use rowlock::settle::UNWRITTEN;
use rowlock::{Context, JobState, Outcome, Record};

use super::worker::{busy_with, eventually, kind, real, run_once};
use super::world::{World, job};

pub async fn a_verdict_that_cannot_be_written_holds_up_nobody(world: World) {
    let site = real(&world);
    let refused = site.stage(job("mail").max_attempts(2).unwrap()).await;
    world.home.client().refuse_end_of(refused);
    let others = site.stage_many("mail", 20).await;
    let worker = site
        .worker(())
        .handle_kind(kind("mail"), |_: Context| async { Outcome::Done });
    let tally = run_once(worker).await;
    // Whoever doesn't write it itself hears nothing of it.
    let settled = match site.dispatch().capabilities().drained {
        true => (21, 0),
        false => (20, 1),
    };
    assert_eq!((tally.settled, tally.lost), settled);
    for id in others {
        assert_eq!(site.state(id).await, JobState::Completed);
    }
}

pub async fn a_verdict_that_is_refused_for_good_runs_no_handler_without_end(world: World) {
    let site = real(&world).straight();
    site.engine().add_kinds(&[kind("mail")]).await.unwrap();
    let id = site.stage(job("mail").max_attempts(2).unwrap()).await;
    world.home.client().refuse_end_of(id);
    let mut busy = busy_with(&site, Options::default(), Some(Outcome::Done));
    busy.begun.recv().await.unwrap();
    busy.begun.recv().await.unwrap();
    // Its attempts are used up, its end can't be written: it is held, and its row says why.
    let found = eventually(&site, async || {
        let found = site.job(id).await;
        (found.errors.len() == 2).then_some(found)
    })
    .await;
    assert_eq!((found.state, found.attempt), (JobState::Processing, 2));
    for (error, attempt) in found.errors.iter().zip(1..) {
        assert_eq!(error.attempt, attempt);
        assert!(error.message.starts_with(UNWRITTEN), "{error:?}");
        assert!(error.message.contains("not this one"), "{error:?}");
    }
    // Others go on beside it.
    let other = site.stage(job("mail")).await;
    busy.begun.recv().await.unwrap();
    let done = async |id| (site.state(id).await == JobState::Completed).then_some(());
    eventually(&site, async || done(other).await).await;
    // Once it can be written, what the handler said counts.
    world.home.client().accept_every_end();
    eventually(&site, async || done(id).await).await;
    assert!(busy.begun.try_recv().is_err(), "it ran again");
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
}

pub async fn a_verdict_that_is_always_refused_ends_with_the_last_attempt(world: World) {
    let site = real(&world);
    site.engine().add_kinds(&[kind("mail")]).await.unwrap();
    let id = site.stage(job("mail").max_attempts(2).unwrap()).await;
    let form = format!("NEW.id = {id} AND NEW.state = 'completed'");
    world.home.client().refuse_end(&form);
    let mut busy = busy_with(&site, Options::default(), Some(Outcome::Done));
    let found = eventually(&site, async || {
        let found = site.job(id).await;
        (found.state == JobState::Failed).then_some(found)
    })
    .await;
    assert_eq!((found.attempt, found.errors.len()), (2, 2));
    for error in &found.errors {
        assert!(error.message.starts_with(UNWRITTEN), "{error:?}");
    }
    let ran = std::iter::from_fn(|| busy.begun.try_recv().ok());
    let attempts: Vec<u32> = ran.map(|job| job.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
}

pub async fn a_kind_whose_verdicts_are_refused_stops_no_other(world: World) {
    let site = real(&world);
    let kinds = [kind("mail"), kind("post")];
    site.engine().add_kinds(&kinds).await.unwrap();
    world.home.client().refuse_end("NEW.kind = 'mail'");
    let [mail, post] = kinds;
    let stopper = Stopper::default();
    let options = Options {
        concurrency: 2,
        ..Options::default()
    };
    let worker = site
        .worker(())
        .options(options)
        .handle_kind(mail, |_: Context| async { Outcome::Done })
        .handle_kind(post, |_: Context| async { Outcome::Done });
    let held: Vec<_> = (0..30)
        .map(|_| job("mail").max_attempts(1).unwrap())
        .collect();
    site.rowlock.enqueue_many(held).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.run_until(stopper.stop()));
    // More of them are held than may wait for their verdicts otherwise, and nothing else ends.
    let all = || Filter {
        state: Some(JobState::Processing),
        limit: 100,
        ..Filter::default()
    };
    let drained = site.dispatch().capabilities().drained;
    eventually(&site, async || {
        let found = site.rowlock.operate().jobs(all()).await.unwrap();
        // A job in Redis takes no note.
        let held = |job: &&Record| drained || !job.errors.is_empty();
        (found.iter().filter(held).count() >= 10).then_some(())
    })
    .await;
    let ids = site.stage_many("post", 40).await;
    for id in ids {
        let done = async || (site.state(id).await == JobState::Completed).then_some(());
        eventually(&site, done).await;
    }
    world.home.client().accept_every_end();
    stopper.ask();
    work.await.unwrap().unwrap();
}
