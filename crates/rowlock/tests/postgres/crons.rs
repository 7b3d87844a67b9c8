//! Crons beside an application's open transaction that has the key of one's job.

use std::time::Duration;

use jiff::Timestamp;
use rowlock::clock::Clock;
use rowlock::engine::{Duty, Fire, Fired, Leading, Take};
use rowlock::error::Error;
use rowlock::job::{Cron, Token};
use rowlock::reconcile::{fire_due, tick_by_hand};
use rowlock::{Payload, Status};
use rowlock_testbed::{Session, until};

use super::home::wait;
use super::pairs::{Desk, QUERY, TABLE};
use super::small::Small;
use crate::conformance::world::name;

/// A cron whose job has a key, as every job of the desk's kind.
fn keyed(called: &str, id: u32) -> Cron {
    let payload = Payload::parse(&format!("{{\"id\":{id}}}")).unwrap();
    Cron::new(name(called), name("create"), "*/5 * * * *").payload(payload)
}

/// Declares them, due at once.
async fn declare(desk: &Desk, crons: &[Cron]) -> Timestamp {
    let at = desk.world.clock.now();
    let crons: Vec<(Cron, Timestamp)> = crons.iter().map(|cron| (cron.clone(), at)).collect();
    desk.schedule().declare_crons(&crons, false).await.unwrap();
    at
}

/// Takes the lead, also from a leader that has it.
async fn lead(desk: &Desk) -> Token {
    let posts = desk.lead().lead(Leading::default()).await.unwrap().posts;
    let post = posts.iter().find(|post| post.duty == Duty::Cron).unwrap();
    let token = Token::random().unwrap();
    let take = Take {
        duty: Duty::Cron,
        seen: (post.token, post.beat),
        token,
    };
    let leading = Leading {
        take: vec![take],
        ..Leading::default()
    };
    desk.lead().lead(leading).await.unwrap();
    token
}

fn enqueue(rival: &Session, ids: &[u32]) {
    rival.execute("BEGIN").unwrap();
    for id in ids {
        let _ = rival.value(&format!(
            "SELECT id FROM rowlock.enqueue('create', '{{\"id\":{id}}}')"
        ));
    }
}

pub async fn an_open_enqueue_of_a_key_holds_up_no_other_cron_and_no_other_row(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let ids = [101, 102, 103, 104, 105, 106];
    let mut crons: Vec<Cron> = ids.iter().map(|id| keyed(&format!("a{id}"), *id)).collect();
    crons.push(Cron::new(name("last"), name("report"), "*/5 * * * *"));
    let at = declare(&desk, &crons).await;
    let rival = desk.small.own.session();
    enqueue(&rival, &ids);
    let seventh = desk.small.own.session();
    enqueue(&seventh, &[7]);
    let token = lead(&desk).await;
    let (schedule, leader) = (desk.schedule(), desk.lead());
    let fire = || fire_due(&*schedule, &*leader, token);
    let clock = Clock::system();
    let began = clock.elapsed();
    let again = fire().await.unwrap();
    // Each waits for a moment only: otherwise this would be half a minute.
    let took = clock.elapsed().saturating_sub(began);
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(again, Some(Duration::from_secs(1)), "they are tried soon");
    let reports = "SELECT count(*) FROM rowlock.job WHERE kind = 'report'";
    assert_eq!(desk.small.number(reports), 1);
    let due = || {
        let rows = wait(schedule.crons()).unwrap().1;
        rows.iter().filter(|row| row.next_at == at).count()
    };
    assert_eq!(due(), ids.len());
    let tick = || tick_by_hand(&desk.site.rowlock, &desk.pair, false, |_| {});
    let ticked = tick().await.unwrap();
    assert_eq!((ticked.found, ticked.enqueued), (20, 19), "{ticked:?}");
    // What was open comes to nothing: now it is theirs.
    rival.execute("ROLLBACK").unwrap();
    seventh.execute("ROLLBACK").unwrap();
    assert!(fire().await.unwrap() > Some(Duration::from_secs(60)));
    assert_eq!(due(), 0);
    assert_eq!(tick().await.unwrap().enqueued, 1);
    assert_eq!(desk.keys().len(), 20 + ids.len());
    assert_eq!(desk.small.number(reports), 1);
}

/// Fires a tick whose key an open transaction has. `meanwhile` happens while it waits, unless that goes by
/// unseen.
fn fire_beside(desk: &Desk, fire: Fire, meanwhile: impl FnOnce()) -> Result<Fired, Error> {
    let waits = "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
                 WHERE NOT l.granted AND a.datname = current_database()";
    std::thread::scope(|scope| {
        let leader = desk.lead();
        let firing = scope.spawn(move || wait(leader.fire(fire)));
        while !firing.is_finished() {
            if desk.small.number(waits) == 1 {
                meanwhile();
                break;
            }
        }
        firing.join().unwrap()
    })
}

pub async fn a_leader_that_waits_for_a_key_holds_no_post(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let cron = keyed("nightly", 101);
    let at = declare(&desk, std::slice::from_ref(&cron)).await;
    let fire = |token| Fire {
        cron: cron.clone(),
        token,
        expected: at,
        ticks: vec![at],
        next_at: at + Duration::from_secs(300),
    };
    let rival = desk.small.own.session();
    enqueue(&rival, &[101]);
    let token = lead(&desk).await;
    // Its beat gets through.
    until("a leader waits for the key", || {
        let mut seen = false;
        let post = "SELECT beat FROM rowlock.post WHERE duty = 'cron' FOR UPDATE NOWAIT";
        let fired = fire_beside(&desk, fire(Some(token)), || {
            let _ = desk.small.side.value(post);
            seen = true;
        });
        assert!(fired.unwrap().blocked);
        seen.then_some(())
    });
    rival.execute("ROLLBACK").unwrap();
    // And so does another process that takes the post.
    until("a leader is replaced while it waits", || {
        enqueue(&rival, &[101]);
        let token = wait(lead(&desk));
        let fired = fire_beside(&desk, fire(Some(token)), || {
            wait(lead(&desk));
            rival.execute("ROLLBACK").unwrap();
        });
        rival.execute("ROLLBACK").unwrap();
        match fired {
            Err(Error::LeaseLost) => Some(()),
            // It was given up too soon.
            fired => {
                assert!(fired.as_ref().is_ok_and(|fired| fired.blocked), "{fired:?}");
                None
            }
        }
    });
    assert_eq!(desk.keys(), Vec::<String>::new());
    // A call by hand has nothing else to do, and waits for longer.
    enqueue(&rival, &[101]);
    let by_hand = fire_beside(&desk, fire(None), || {
        rival.execute("ROLLBACK").unwrap();
    });
    assert_eq!(by_hand.unwrap().ticks[0].1.status, Status::Queued);
}
