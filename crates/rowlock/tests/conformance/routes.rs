//! Routes: what goes by one, what is told of it, and what a drain may rely on.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use rowlock::claim::{Claim, ClaimedJob, WorkerId};
use rowlock::engine::{Applied, Cancel, Recalled, RouteRow};
use rowlock::job::{Backoff, ErrorKind, JobError};
use rowlock::settle::{Settled, Verdict};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Error, JobId, JobState, Kind, Outcome};

use super::world::{LEASE, Site, World, ids, job, name, wanted};

async fn declare(site: &Site, route: &str, kinds: &[&str], queues: &[&str]) -> Applied {
    declared(site, route, kinds, queues, true).await
}

async fn declared(
    site: &Site,
    route: &str,
    kinds: &[&str],
    queues: &[&str],
    change: bool,
) -> Applied {
    let names = |texts: &[&str]| texts.iter().map(|text| name(text)).collect::<Vec<_>>();
    let (kinds, queues) = (names(kinds), names(queues));
    let (route, routes) = (name(route), site.rowlock.routes());
    let applied = routes.declare_route(&route, &kinds, &queues, change).await;
    applied.unwrap()
}

async fn keep(site: &Site, route: &str) -> Vec<Recalled> {
    let holder = WorkerId::route(&name(route));
    let kept = site.rowlock.routes().keep_route(&holder, LEASE).await;
    let mut recalled = kept.unwrap();
    recalled.sort_by_key(|each| each.id);
    recalled
}

fn by(route: &str, limit: usize) -> Claim {
    Claim {
        route: Some(name(route)),
        ..wanted(&WorkerId::route(&name(route)), &[], limit)
    }
}

async fn sends(site: &Site, route: &str, limit: usize) -> Vec<ClaimedJob> {
    site.claimed(by(route, limit)).await.jobs
}

async fn route(site: &Site, route: &str) -> RouteRow {
    let rows = site.rowlock.routes().routes().await.unwrap();
    let found = rows.into_iter().find(|row| row.route.as_str() == route);
    found.unwrap_or_else(|| panic!("route {route} is not listed"))
}

fn sorted(jobs: &[ClaimedJob]) -> Vec<JobId> {
    let mut ids = ids(jobs);
    ids.sort_unstable();
    ids
}

pub async fn a_routed_kind_is_not_claimed_directly(world: World) {
    let site = world.open();
    let worker = site.join().await;
    declare(&site, "sink", &["mail"], &[]).await;
    let mail = site.stage(job("mail").priority(9)).await;
    site.stage(job("mail").delay(Duration::from_secs(5))).await;
    let other = site.stage(job("other")).await;
    let direct = site.claim(&worker, &["mail", "other"], 10).await;
    assert_eq!(ids(&direct), [other]);
    for _ in 0..2 {
        let claimed = site.claimed(wanted(&worker, &["mail", "other"], 10)).await;
        assert!(claimed.jobs.is_empty());
        assert_eq!(claimed.next_due, None, "somebody else's job was waited for");
    }
    let early = site.engine().claim(by("sink", 10)).await;
    assert!(
        matches!(early, Err(Error::LeaseLost)),
        "no drain has said that it lives: {early:?}"
    );
    keep(&site, "sink").await;
    let unrouted = site.stage(job("other")).await;
    let sent = sends(&site, "sink", 10).await;
    assert_eq!(ids(&sent), [mail]);
    let found = site.job(mail).await;
    assert_eq!(found.state, JobState::Processing);
    assert_eq!(found.locked_by.as_deref(), Some("drain:sink"));
    for _ in 0..2 {
        let claimed = site.claimed(by("sink", 10)).await;
        assert!(claimed.jobs.is_empty());
        assert!(
            claimed.next_due.is_some(),
            "its own delayed job is due next"
        );
    }
    assert_eq!(site.state(unrouted).await, JobState::Pending);
    assert_eq!(
        site.settle(&sent[0], Verdict::Done).await,
        Settled::Accepted
    );
}

pub async fn a_routed_queue_goes_by_its_route_except_for_kinds_with_their_own(world: World) {
    let site = world.open();
    let worker = site.join().await;
    declare(&site, "one", &[], &["bulk"]).await;
    declare(&site, "two", &["special"], &[]).await;
    let bulk = |kind: &str| job(kind).queue(name("bulk"));
    // Nobody has declared the kind `any`.
    let any = site.stage(bulk("any")).await;
    let elsewhere = site.stage(job("any")).await;
    let special = site.stage(bulk("special")).await;
    let special_elsewhere = site.stage(job("special")).await;
    let direct = site.claim(&worker, &["any", "special"], 10).await;
    assert_eq!(ids(&direct), [elsewhere]);
    keep(&site, "one").await;
    keep(&site, "two").await;
    assert_eq!(ids(&sends(&site, "one", 10).await), [any]);
    let sent = sorted(&sends(&site, "two", 10).await);
    assert_eq!(sent, [special, special_elsewhere]);
}

pub async fn a_drain_claims_every_kind_of_its_route_in_bulk(world: World) {
    let site = world.open();
    declare(&site, "sink", &["mail", "letter"], &["bulk"]).await;
    keep(&site, "sink").await;
    let mut staged = BTreeSet::new();
    for kind in ["mail", "letter", "a", "b", "c", "d"] {
        let jobs = (0..250).map(|_| job(kind).queue(name("bulk"))).collect();
        let answers = site.rowlock.enqueue_many(jobs).await.unwrap();
        staged.extend(answers.into_iter().map(|answer| answer.id.unwrap()));
    }
    staged.extend(site.stage_many("mail", 100).await);
    let urgent = site.stage(job("d").queue(name("bulk")).priority(1)).await;
    staged.insert(urgent);
    let named = Claim {
        kinds: vec![name("c"), name("elsewhere")],
        ..by("sink", 10)
    };
    let of_a_kind = site.claimed(named).await.jobs;
    assert_eq!(of_a_kind.len(), 10);
    assert!(of_a_kind.iter().all(|job| job.kind.as_str() == "c"));
    let first = sends(&site, "sink", 1_000).await;
    assert_eq!(first.len(), 1_000);
    assert!(ids(&first).contains(&urgent), "a backlog hid it");
    let kinds: BTreeSet<_> = first.iter().map(|job| job.kind.as_str()).collect();
    assert_eq!(kinds.len(), 6, "a kind was left out: {kinds:?}");
    assert!(first.iter().all(|job| job.token == first[0].token));
    let rest = sends(&site, "sink", 1_000).await;
    let all = [of_a_kind, first, rest].concat();
    assert_eq!(all.len(), staged.len());
    assert_eq!(ids(&all).into_iter().collect::<BTreeSet<_>>(), staged);
    assert!(sends(&site, "sink", 1_000).await.is_empty());
}

pub async fn a_route_that_changes_counts_for_what_is_not_sent(world: World) {
    let site = world.open();
    let worker = site.join().await;
    declare(&site, "sink", &["mail"], &[]).await;
    keep(&site, "sink").await;
    let staged = site.stage_many("mail", 3).await;
    let sent = sends(&site, "sink", 1).await;
    assert_eq!(ids(&sent), staged[..1]);
    declare(&site, "sink", &[], &[]).await;
    assert!(sends(&site, "sink", 10).await.is_empty());
    let direct = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(direct.id, staged[1]);
    declare(&site, "other", &["mail"], &[]).await;
    keep(&site, "other").await;
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    assert_eq!(ids(&sends(&site, "other", 10).await), staged[2..]);
    // Whoever has a job keeps it.
    assert_eq!(
        site.settle(&sent[0], Verdict::Done).await,
        Settled::Accepted
    );
    assert_eq!(site.finish(&direct, Outcome::Done).await, Settled::Accepted);
}

pub async fn a_route_is_never_given_up(world: World) {
    let site = world.open();
    let mortal = site.join().await;
    declare(&site, "sink", &["mail"], &[]).await;
    keep(&site, "sink").await;
    let ids = site.stage_many("mail", 2).await;
    let sent = sends(&site, "sink", 10).await;
    let direct = site.stage(job("other")).await;
    site.claim_one(&mortal, &["other"]).await;
    assert_eq!(site.observe(&world, LEASE * 4, &[]).await, 1);
    assert_eq!(site.state(direct).await, JobState::Pending);
    for id in &ids {
        let found = site.job(*id).await;
        assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
        assert_eq!(found.locked_by.as_deref(), Some("drain:sink"));
    }
    let (routes, holder) = (site.rowlock.routes(), WorkerId::route(&name("sink")));
    assert!(
        !routes.forget_route(&holder).await.unwrap(),
        "it holds jobs"
    );
    for job in &sent {
        assert_eq!(site.settle(job, Verdict::Done).await, Settled::Accepted);
    }
    assert!(routes.forget_route(&holder).await.unwrap());
    assert!(!routes.forget_route(&holder).await.unwrap());
    site.stage(job("mail")).await;
    let gone = site.engine().claim(by("sink", 1)).await;
    assert!(matches!(gone, Err(Error::LeaseLost)), "{gone:?}");
}

pub async fn suspects_of_a_route_are_claimed_together(world: World) {
    let site = world.open();
    let worker = site.join().await;
    declare(&site, "sink", &["mail"], &["bulk"]).await;
    keep(&site, "sink").await;
    let mut staged = site.stage_many("mail", 3).await;
    for kind in ["a", "b"] {
        staged.push(site.stage(job(kind).queue(name("bulk"))).await);
    }
    let bereft = Verdict::Expired { charged: None };
    for sent in sends(&site, "sink", 10).await {
        assert_eq!(site.settle(&sent, bereft.clone()).await, Settled::Accepted);
    }
    let fresh = site.stage(job("mail")).await;
    assert_eq!(ids(&sends(&site, "sink", 10).await), [fresh]);
    let direct = site.claim_suspect(&worker, &["mail", "a", "b"]).await;
    assert!(direct.is_empty(), "{direct:?}");
    let suspects = Claim {
        suspect: true,
        ..by("sink", 10)
    };
    let suspects = site.claimed(suspects).await.jobs;
    assert_eq!(sorted(&suspects), staged);
    assert!(suspects.iter().all(|job| job.suspect && job.attempt == 1));
}

pub async fn what_a_route_holds_is_listed_in_pages(world: World) {
    let site = world.open();
    let mut kind = Kind::new("mail").unwrap();
    kind.max_attempts = 3;
    kind.backoff = Backoff::Linear {
        base: Duration::from_secs(7),
        jitter: 0.5,
    };
    site.engine()
        .add_kinds(std::slice::from_ref(&kind))
        .await
        .unwrap();
    declare(&site, "sink", &["mail"], &[]).await;
    declare(&site, "other", &["letter"], &[]).await;
    keep(&site, "sink").await;
    keep(&site, "other").await;
    let staged = site.stage_many("mail", 25).await;
    site.stage_many("letter", 3).await;
    let mut tokens = Vec::new();
    for limit in [5, 5, 15] {
        tokens.extend(sends(&site, "sink", limit).await);
    }
    assert_eq!(sends(&site, "other", 10).await.len(), 3);
    let (routes, holder) = (site.rowlock.routes(), WorkerId::route(&name("sink")));
    world.advance(Duration::from_secs(40));
    let mut listed = Vec::new();
    for expected in [10, 10, 5, 0] {
        let after = listed.last().map(|job: &rowlock::engine::SentJob| job.id);
        let page = routes.sent(&holder, after, 10).await.unwrap();
        assert_eq!(page.len(), expected);
        listed.extend(page);
    }
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), staged);
    for job in &listed {
        let claimed = tokens.iter().find(|sent| sent.id == job.id).unwrap();
        assert_eq!(job.token, claimed.token);
        assert_eq!(job.age, Some(Duration::from_secs(40)));
        assert_eq!((job.attempt, job.max_attempts), (1, 3));
        assert_eq!(job.backoff, kind.backoff);
        assert!(!job.suspect);
    }
    let behind = world.clock.shifted(SignedDuration::from_hours(-1)).unwrap();
    let behind = world.open_with(behind).rowlock.routes();
    let age = behind.sent(&holder, None, 1).await.unwrap()[0].age;
    match site.engine().capabilities().server_clock {
        true => assert_eq!(age, Some(Duration::from_secs(40))),
        false => assert_eq!(age, None, "that clock has gone backwards"),
    }
}

pub async fn a_cancel_and_a_pause_reach_what_was_sent(world: World) {
    let site = world.open();
    declare(&site, "sink", &["mail", "other"], &[]).await;
    assert!(keep(&site, "sink").await.is_empty());
    let mails = site.stage_many("mail", 2).await;
    let slow = site.stage(job("other").queue(name("slow"))).await;
    let sent = sends(&site, "sink", 10).await;
    assert!(keep(&site, "sink").await.is_empty());
    let answer = site
        .engine()
        .cancel(vec![mails[0]])
        .await
        .unwrap()
        .remove(0);
    assert!(matches!(answer, Ok(Cancel::Requested)));
    let recalled = |id: JobId, cancel| {
        let token = sent.iter().find(|job| job.id == id).unwrap().token;
        Recalled { id, token, cancel }
    };
    let asked = recalled(mails[0], true);
    assert_eq!(keep(&site, "sink").await, [asked]);
    let switch = async |target, of: &str, mode: Option<Mode>| {
        let schedule = site.rowlock.schedule();
        let setting = mode.map(Setting::new);
        schedule.switch(target, &name(of), setting).await.unwrap();
    };
    switch(Target::Queue, "slow", Some(Mode::Pause)).await;
    let stopped = recalled(slow, false);
    assert_eq!(keep(&site, "sink").await, [asked, stopped]);
    switch(Target::Kind, "mail", Some(Mode::Hold)).await;
    let held = recalled(mails[1], false);
    assert_eq!(keep(&site, "sink").await, [asked, held, stopped]);
    switch(Target::Kind, "mail", None).await;
    switch(Target::Queue, "slow", None).await;
    assert_eq!(keep(&site, "sink").await, [asked]);
    for job in &sent {
        assert_eq!(site.state(job.id).await, JobState::Processing);
        site.settle(job, Verdict::Release).await;
    }
    assert_eq!(site.state(mails[0]).await, JobState::Cancelled);
    assert_eq!(site.state(mails[1]).await, JobState::Pending);
    assert!(keep(&site, "sink").await.is_empty());
}

pub async fn an_expired_verdict_marks_or_charges(world: World) {
    let site = world.open();
    declare(&site, "sink", &["mail"], &[]).await;
    keep(&site, "sink").await;
    let id = site.stage(job("mail")).await;
    let first = sends(&site, "sink", 1).await.remove(0);
    let marked = Verdict::Expired { charged: None };
    assert_eq!(site.settle(&first, marked.clone()).await, Settled::Accepted);
    assert_eq!(
        site.settle(&first, marked.clone()).await,
        Settled::LeaseLost
    );
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
    assert!(found.errors.is_empty());
    let suspects = || Claim {
        suspect: true,
        ..by("sink", 10)
    };
    let second = site.claimed(suspects()).await.jobs.remove(0);
    let at = world.clock.now() + Duration::from_secs(30);
    let why = JobError::new(second.attempt, world.clock.now(), ErrorKind::Lease, "gone");
    let charged = Verdict::Expired {
        charged: Some((at, why)),
    };
    assert_eq!(
        site.settle(&second, charged.clone()).await,
        Settled::Accepted
    );
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 1));
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.errors[0].kind, ErrorKind::Lease);
    assert!(
        site.claimed(suspects()).await.jobs.is_empty(),
        "no back-off"
    );
    world.advance(Duration::from_secs(30));
    assert!(sends(&site, "sink", 10).await.is_empty(), "no suspect");
    let third = site.claimed(suspects()).await.jobs.remove(0);
    assert_eq!((third.attempt, third.suspect), (2, true));
    // What somebody wants cancelled gets no other attempt.
    site.engine().cancel(vec![id]).await.unwrap();
    assert_eq!(site.settle(&third, marked).await, Settled::Accepted);
    assert_eq!(site.state(id).await, JobState::Cancelled);
    let another = site.stage(job("mail")).await;
    let fourth = sends(&site, "sink", 1).await.remove(0);
    site.engine().cancel(vec![another]).await.unwrap();
    assert_eq!(site.settle(&fourth, charged).await, Settled::Accepted);
    assert_eq!(site.state(another).await, JobState::Cancelled);
}

pub async fn unsent_jobs_and_their_lag_are_told(world: World) {
    let site = world.open();
    declare(&site, "sink", &["mail"], &["bulk"]).await;
    declare(&site, "two", &["special"], &[]).await;
    let bulk = |kind: &str| job(kind).queue(name("bulk"));
    site.stage(job("mail")).await;
    world.advance(Duration::from_secs(90));
    site.stage(bulk("mail")).await;
    site.stage(bulk("any")).await;
    site.stage(bulk("special")).await;
    site.stage(job("mail").delay(Duration::from_secs(3600)))
        .await;
    site.stage(job("any")).await;
    let rows = site.rowlock.routes().routes().await.unwrap();
    let names: Vec<_> = rows.iter().map(|row| row.route.as_str()).collect();
    assert_eq!(names, ["sink", "two"]);
    let (sink, two) = (&rows[0], &rows[1]);
    assert_eq!((sink.unsent, sink.lag_ms, sink.sent), (3, 90_000, 0));
    assert_eq!((sink.seen_at, sink.drained), (None, false));
    assert_eq!(sink.kinds, [name("mail")]);
    assert_eq!(sink.queues, [name("bulk")]);
    assert_eq!((two.unsent, two.lag_ms), (1, 0));
    keep(&site, "sink").await;
    let sent = sends(&site, "sink", 10).await;
    site.stage_many("mail", 5).await;
    world.advance(LEASE / 2);
    let sink = route(&site, "sink").await;
    assert_eq!((sink.unsent, sink.lag_ms, sink.sent), (5, 15_000, 3));
    assert_eq!(sink.seen_at, Some(world.clock.now() - LEASE / 2));
    assert!(sink.drained);
    world.advance(LEASE);
    assert!(!route(&site, "sink").await.drained, "nobody was heard");
    // A route that nothing goes by is listed while it holds something.
    declare(&site, "sink", &[], &[]).await;
    let sink = route(&site, "sink").await;
    assert_eq!((sink.unsent, sink.lag_ms, sink.sent), (0, 0, 3));
    assert!(sink.kinds.is_empty() && sink.queues.is_empty());
    for job in &sent {
        site.settle(job, Verdict::Done).await;
    }
    let rows = site.rowlock.routes().routes().await.unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    site.stage_many("special", 10_050).await;
    assert_eq!(route(&site, "two").await.unsent, RouteRow::MOST);
}

pub async fn what_was_sent_is_counted_though_its_kind_goes_by_no_route_any_more(world: World) {
    let site = world.open();
    declare(&site, "sink", &["mail"], &[]).await;
    keep(&site, "sink").await;
    site.stage_many("mail", 1_300).await;
    assert_eq!(sends(&site, "sink", 1_200).await.len(), 1_200);
    declare(&site, "sink", &[], &[]).await;
    assert_eq!(route(&site, "sink").await.sent, 1_200);
}

pub async fn declaring_a_route_moves_kinds_and_says_so(world: World) {
    let site = world.open();
    let changed = |what: &str| Applied::Changed(vec![what.to_owned()]);
    let added = declared(&site, "sink", &["mail"], &["bulk"], false).await;
    assert_eq!(added, Applied::Added);
    let again = declared(&site, "sink", &["mail"], &["bulk"], false).await;
    assert_eq!(again, Applied::Unchanged);
    assert_eq!(
        site.rowlock.operate().kinds().await.unwrap(),
        [Kind::new("mail").unwrap()]
    );
    let report = Kind::new("report").unwrap();
    site.engine().add_kinds(&[report]).await.unwrap();
    for (change, kinds) in [(false, 1), (true, 2)] {
        let moved = declared(&site, "sink", &["mail", "report"], &["bulk"], change).await;
        assert_eq!(moved, changed(r#"kind report: "direct" -> "sink""#));
        assert_eq!(route(&site, "sink").await.kinds.len(), kinds);
    }
    let moved = declare(&site, "other", &["report"], &[]).await;
    assert_eq!(moved, changed(r#"kind report: "sink" -> "other""#));
    assert_eq!(route(&site, "other").await.kinds, [name("report")]);
    assert_eq!(route(&site, "sink").await.kinds, [name("mail")]);
    let left = declare(&site, "sink", &["mail"], &[]).await;
    assert_eq!(left, changed(r#"queue bulk: "sink" -> "direct""#));
    assert!(route(&site, "sink").await.queues.is_empty());
    let both = declared(&site, "sink", &["mail", "new"], &["bulk"], false).await;
    assert_eq!(both, changed(r#"queue bulk: "direct" -> "sink""#));
    let sink = route(&site, "sink").await;
    assert_eq!(sink.kinds, [name("mail"), name("new")]);
    assert!(sink.queues.is_empty(), "it was not to be changed");
    // A kind that is written again keeps its route.
    let mut urgent = Kind::new("mail").unwrap();
    urgent.priority = 5;
    site.rowlock.operate().apply(&[urgent]).await.unwrap();
    assert_eq!(route(&site, "sink").await.kinds.len(), 2);
    let routes = site.rowlock.routes();
    let refused = routes
        .declare_route(&name("direct"), &[name("mail")], &[], true)
        .await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let number = site.rowlock.routes().store_id().await.unwrap();
    let elsewhere = world.open().rowlock.routes();
    assert_eq!(elsewhere.store_id().await.unwrap(), number);
    assert!(number > 0);
}
