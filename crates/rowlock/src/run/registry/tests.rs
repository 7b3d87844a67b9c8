use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::run::attempt::release;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// So many slots that wait, and as many jobs that they can take.
fn registry(jobs: i64, slots: usize) -> Registry {
    let registry = Registry::new(WorkerId::random("test").unwrap(), BTreeMap::new());
    registry.add((1..=jobs).map(|id| ClaimedJob::sample(id, 7)).collect());
    assert_eq!(
        (0..99).filter(|_| registry.wants_slot(slots)).count(),
        slots
    );
    registry
}

#[tokio::test]
async fn as_many_slots_begin_as_there_are_jobs_for() {
    let registry = registry(3, 3);
    assert!(!registry.wants_slot(64), "three jobs have three slots");
    for _ in 0..3 {
        registry.take().await.unwrap();
    }
    assert_eq!((registry.running(), registry.held()), (3, 3));
}

#[tokio::test]
async fn whoever_wakes_the_shift_makes_way_for_it() {
    let registry = registry(3, 3);
    let (reports, mut endings) = mpsc::unbounded_channel();
    let mut then = Vec::new();
    for _ in 0..2 {
        let taken = registry.take().await.unwrap();
        then.push(registry.report(release(taken.job), &reports));
    }
    assert_eq!(then, [Then::MakeWay, Then::GoOn]);
    while let Ok(ended) = endings.try_recv() {
        registry.reported(std::slice::from_ref(&ended));
    }
    assert_eq!((registry.unfinished(), registry.settling()), (0, 2));
    let taken = registry.take().await.unwrap();
    assert_eq!(
        registry.report(release(taken.job), &reports),
        Then::MakeWay,
        "it sleeps again"
    );
}

#[tokio::test]
async fn a_slot_that_a_lost_lease_has_left_behind_is_replaced() {
    let registry = registry(1, 1);
    let (reports, _endings) = mpsc::unbounded_channel();
    let stuck = registry.take().await.unwrap();
    registry.forget();
    assert_eq!(registry.held(), 0);
    registry.add(vec![ClaimedJob::sample(1, 8)]);
    assert!(registry.wants_slot(1), "the first one may never end");
    let again = registry.take().await.unwrap();
    assert_eq!(again.job.token, Token::stored(8));
    assert_eq!(registry.report(release(stuck.job), &reports), Then::End);
    assert_eq!(registry.running(), 1, "the same job, under another claim");
    assert_eq!(registry.report(release(again.job), &reports), Then::GoOn);
    assert_eq!(registry.running(), 0);
}

#[tokio::test]
async fn nothing_starts_once_it_is_closed_or_nobody_listens() {
    let registry = registry(2, 2);
    let (reports, endings) = mpsc::unbounded_channel();
    let taken = registry.take().await.unwrap();
    drop(endings);
    assert_eq!(registry.report(release(taken.job), &reports), Then::End);
    registry.close();
    assert!(registry.take().await.is_none());
}

#[tokio::test]
async fn a_full_queue_lets_others_pass() {
    let limits = BTreeMap::from([(name("mail"), 1)]);
    let registry = Registry::new(WorkerId::random("test").unwrap(), limits);
    let mut other = ClaimedJob::sample(9, 7);
    other.queue = name("other");
    registry.add(vec![
        ClaimedJob::sample(1, 7),
        ClaimedJob::sample(2, 7),
        other,
    ]);
    assert_eq!((0..99).filter(|_| registry.wants_slot(3)).count(), 3);
    let ids = [
        registry.take().await.unwrap(),
        registry.take().await.unwrap(),
    ]
    .map(|taken| taken.job.id);
    assert_eq!(ids, [JobId(1), JobId(9)]);
    assert_eq!(registry.held(), 3, "the second one waits for the first");
}

fn answers(token: i64, ids: &[i64]) -> Vec<Answer> {
    let token = Token::stored(token);
    ids.iter()
        .map(|id| (JobId(*id), token, crate::settle::Settled::Accepted))
        .collect()
}

#[tokio::test]
async fn a_token_is_held_by_its_claim_then_by_its_jobs_and_then_by_their_verdicts() {
    let registry = Arc::new(Registry::new(
        WorkerId::random("test").unwrap(),
        BTreeMap::new(),
    ));
    let (seven, eight) = (Token::stored(7), Token::stored(8));
    let asked = registry.ask(vec![seven, eight]);
    assert_eq!(registry.tokens().len(), 2);
    registry.add(vec![ClaimedJob::sample(1, 7), ClaimedJob::sample(2, 7)]);
    drop(asked);
    assert_eq!(registry.tokens(), [seven], "the other one brought nothing");
    assert!(registry.wants_slot(1));
    let (reports, mut endings) = mpsc::unbounded_channel();
    for id in [1, 2] {
        let taken = registry.take().await.unwrap();
        assert_eq!(registry.tokens(), [seven]);
        registry.report(release(taken.job), &reports);
        assert_eq!(registry.tokens(), [seven]);
        registry.reported(&[endings.try_recv().unwrap()]);
        assert_eq!(registry.tokens(), [seven]);
        registry.settled(&answers(7, &[id]));
    }
    assert!(registry.tokens().is_empty());
    assert_eq!(registry.held(), 0);
}

#[tokio::test]
async fn a_slot_that_ends_without_a_report_leaves_its_job_to_the_shift() {
    let registry = registry(2, 1);
    let replaced = AtomicBool::new(false);
    let mut hold = Hold::new(&registry, &replaced);
    hold.take(&registry.take().await.unwrap().job);
    drop(hold);
    assert_eq!((registry.running(), registry.held()), (0, 2));
    let orphaned = registry.take_orphaned();
    assert_eq!(orphaned.len(), 1);
    assert_eq!((registry.settling(), registry.held()), (1, 2));
    assert!(!replaced.load(Ordering::Relaxed), "the slot goes on");
    assert_eq!(registry.take().await.unwrap().job.id, JobId(2));
}

#[tokio::test]
async fn a_slot_that_was_replaced_after_a_lost_lease_leaves_nothing_and_ends() {
    let registry = registry(1, 1);
    let replaced = AtomicBool::new(false);
    let mut hold = Hold::new(&registry, &replaced);
    hold.take(&registry.take().await.unwrap().job);
    registry.forget();
    drop(hold);
    assert!(replaced.load(Ordering::Relaxed));
    assert!(registry.take_orphaned().is_empty());
}

#[tokio::test]
async fn verdicts_of_a_lost_lease_settle_nothing_of_the_next_one() {
    let registry = registry(1, 1);
    let (reports, _endings) = mpsc::unbounded_channel();
    registry.report(release(registry.take().await.unwrap().job), &reports);
    registry.forget();
    registry.add(vec![ClaimedJob::sample(2, 8)]);
    registry.report(release(registry.take().await.unwrap().job), &reports);
    registry.settled(&answers(7, &[1]));
    assert_eq!(registry.held(), 1);
    assert_eq!(registry.tokens(), [Token::stored(8)]);
}
