//! A checkup of what waits: it stays cheap, and says where it has stopped counting.

use std::time::Duration;

use rowlock::Kind;
use rowlock::engine::AtLeast;
use rowlock::settle::{Settled, Verdict};
use rowlock::switch::{Mode, Setting, Target};

use super::world::{Site, World, job, name};

/// More than are counted of a lane.
const MANY: usize = 1_200;
const COUNTED: AtLeast = AtLeast {
    n: 1_000,
    more: true,
};
const DAY: Duration = Duration::from_secs(86_400);
/// So long that what is due is late.
const LATE: Duration = Duration::from_secs(120);

async fn known(site: &Site, kinds: &[&str]) {
    let kinds: Vec<Kind> = kinds.iter().map(|kind| Kind::new(*kind).unwrap()).collect();
    site.engine().add_kinds(&kinds).await.unwrap();
}

/// The kinds of which nobody takes a job, and how many wait.
async fn unhandled(site: &Site) -> Vec<(String, AtLeast)> {
    let health = site.rowlock.operate().health().await.unwrap();
    let told = health.unhandled.into_iter();
    told.map(|each| {
        assert!(each.oldest >= LATE, "{each:?}");
        (each.kind.to_string(), each.jobs)
    })
    .collect()
}

pub async fn jobs_of_an_unknown_kind_are_counted_up_to_a_thousand(world: World) {
    let site = world.open();
    known(&site, &["mail"]).await;
    site.stage_many("mail", MANY).await;
    site.stage_many("typo", MANY).await;
    site.stage_many("typos", 2).await;
    site.stage(job("later").delay(DAY)).await;
    let health = site.rowlock.operate().health().await.unwrap();
    let expected = [
        (name("later"), AtLeast::exactly(1)),
        (name("typo"), COUNTED),
        (name("typos"), AtLeast::exactly(2)),
    ];
    assert_eq!(health.unknown_kinds, expected);
}

/// Where lanes are looked at one by one, nothing is missed; what is set aside in one place may hide something.
pub async fn whoever_has_not_seen_all_that_waits_says_so(world: World) {
    let site = world.open();
    known(&site, &["mail"]).await;
    let health = async || site.rowlock.operate().health().await.unwrap();
    assert!(!health().await.unseen);
    let later = std::iter::repeat_with(|| job("mail").delay(DAY)).take(MANY);
    site.rowlock.enqueue_many(later.collect()).await.unwrap();
    site.stage(job("typo").delay(DAY * 2)).await;
    let health = health().await;
    let found = health.unknown_kinds == [(name("typo"), AtLeast::exactly(1))];
    assert!(found != health.unseen, "{health:?}");
}

pub async fn a_kind_of_which_one_job_runs_is_handled_however_many_wait(world: World) {
    let site = world.open();
    known(&site, &["mail", "post"]).await;
    site.stage_many("mail", MANY).await;
    site.stage_many("post", 3).await;
    assert_eq!(unhandled(&site).await, [], "they came just now");
    world.advance(LATE);
    let post = ("post".to_owned(), AtLeast::exactly(3));
    let both = [("mail".to_owned(), COUNTED), post.clone()];
    assert_eq!(unhandled(&site).await, both);
    let worker = site.join().await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(unhandled(&site).await, [post]);
    let settled = site.settle(&claimed, Verdict::Done).await;
    assert_eq!(settled, Settled::Accepted);
    assert_eq!(unhandled(&site).await, both);
}

pub async fn what_is_stopped_or_goes_by_a_route_is_not_unhandled(world: World) {
    let site = world.open();
    known(&site, &["held", "paused", "sent", "mail"]).await;
    for kind in ["held", "paused", "sent", "mail"] {
        site.stage(job(kind)).await;
    }
    site.stage(job("mail").queue(name("shut"))).await;
    let schedule = site.rowlock.schedule();
    for (target, of, mode) in [
        (Target::Kind, "held", Mode::Hold),
        (Target::Kind, "paused", Mode::Pause),
        (Target::Queue, "shut", Mode::Reject),
    ] {
        let on = Some(Setting::new(mode));
        schedule.switch(target, &name(of), on).await.unwrap();
    }
    let routes = site.rowlock.routes();
    let (route, sent) = (name("redis"), [name("sent")]);
    let declared = routes.declare_route(&route, &sent, &[], true);
    declared.await.unwrap();
    world.advance(LATE);
    let mail = ("mail".to_owned(), AtLeast::exactly(1));
    assert_eq!(unhandled(&site).await, [mail]);
}
