use super::*;
use crate::run::attempt::release;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// So many slots that wait, and as many jobs that they can take.
fn local(jobs: i64, slots: usize) -> Local {
    let local = Local::new(WorkerId::random("test").unwrap(), BTreeMap::new());
    local.add((1..=jobs).map(|id| ClaimedJob::sample(id, 7)).collect());
    assert_eq!((0..99).filter(|_| local.wants_slot(slots)).count(), slots);
    local
}

#[tokio::test]
async fn as_many_slots_begin_as_there_are_jobs_for() {
    let local = local(3, 3);
    assert!(!local.wants_slot(64), "three jobs have three slots");
    for _ in 0..3 {
        local.take().await.unwrap();
    }
    assert_eq!((local.running(), local.held()), (3, 3));
}

#[tokio::test]
async fn whoever_wakes_the_shift_makes_way_for_it() {
    let local = local(3, 3);
    let (reports, mut endings) = mpsc::unbounded_channel();
    let mut then = Vec::new();
    for _ in 0..2 {
        let taken = local.take().await.unwrap();
        then.push(local.report(release(taken.job), &reports));
    }
    assert_eq!(then, [Then::MakeWay, Then::GoOn]);
    while let Ok(ended) = endings.try_recv() {
        local.reported(std::slice::from_ref(&ended));
    }
    assert_eq!((local.unfinished(), local.settling()), (0, 2));
    let taken = local.take().await.unwrap();
    assert_eq!(
        local.report(release(taken.job), &reports),
        Then::MakeWay,
        "it sleeps again"
    );
}

#[tokio::test]
async fn a_slot_that_a_lost_lease_has_left_behind_is_replaced() {
    let local = local(1, 1);
    let (reports, _endings) = mpsc::unbounded_channel();
    let stuck = local.take().await.unwrap();
    local.forget();
    assert_eq!(local.held(), 0);
    local.add(vec![ClaimedJob::sample(1, 8)]);
    assert!(local.wants_slot(1), "the first one may never end");
    let again = local.take().await.unwrap();
    assert_eq!(again.job.token, Token::stored(8));
    assert_eq!(local.report(release(stuck.job), &reports), Then::End);
    assert_eq!(local.running(), 1, "the same job, under another claim");
    assert_eq!(local.report(release(again.job), &reports), Then::GoOn);
    assert_eq!(local.running(), 0);
}

#[tokio::test]
async fn nothing_starts_once_it_is_closed_or_nobody_listens() {
    let local = local(2, 2);
    let (reports, endings) = mpsc::unbounded_channel();
    let taken = local.take().await.unwrap();
    drop(endings);
    assert_eq!(local.report(release(taken.job), &reports), Then::End);
    local.close();
    assert!(local.take().await.is_none());
}

#[tokio::test]
async fn a_full_queue_lets_others_pass() {
    let limits = BTreeMap::from([(name("mail"), 1)]);
    let local = Local::new(WorkerId::random("test").unwrap(), limits);
    let mut other = ClaimedJob::sample(9, 7);
    other.queue = name("other");
    local.add(vec![
        ClaimedJob::sample(1, 7),
        ClaimedJob::sample(2, 7),
        other,
    ]);
    assert_eq!((0..99).filter(|_| local.wants_slot(3)).count(), 3);
    let ids = [local.take().await.unwrap(), local.take().await.unwrap()].map(|taken| taken.job.id);
    assert_eq!(ids, [JobId(1), JobId(9)]);
    assert_eq!(local.held(), 3, "the second one waits for the first");
}
