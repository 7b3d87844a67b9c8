//! Crons: each tick one job, by whoever leads.

use std::time::Duration;

use jiff::Timestamp;
use rowlock::engine::{Applied, CronRow, Duty, Fire, Fired, Leading, Post, Take};
use rowlock::job::{Missed, Token};
use rowlock::reconcile::{declare_crons, fire_due, resume_cron, run_cron_now};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Cron, Error, JobId, Kind, Payload, Record, Status};

use super::world::{Site, World, name};

const MINUTE: Duration = Duration::from_secs(60);

fn every_five_minutes(called: &str) -> Cron {
    Cron::new(name(called), name(called), "*/5 * * * *")
}

async fn declare(site: &Site, crons: &[Cron], change: bool) -> Vec<Applied> {
    declare_crons(&*site.rowlock.schedule(), crons, change)
        .await
        .unwrap()
}

async fn post(site: &Site) -> Post {
    let posts = site.rowlock.lead().lead(Leading::default()).await.unwrap();
    let mut crons = posts
        .posts
        .into_iter()
        .filter(|post| post.duty == Duty::Cron);
    crons.next().expect("a post for crons")
}

/// Takes the lead, from whoever has it.
async fn lead(site: &Site) -> Token {
    let seen = post(site).await;
    let token = Token::random().unwrap();
    let take = Take {
        duty: Duty::Cron,
        seen: (seen.token, seen.beat),
        token,
    };
    let leading = Leading {
        holder: "test".to_owned(),
        take: vec![take],
        ..Leading::default()
    };
    site.rowlock.lead().lead(leading).await.unwrap();
    assert_eq!(post(site).await.token, Some(token));
    token
}

async fn fire(site: &Site, token: Token) -> rowlock::error::Result<Option<Duration>> {
    fire_due(&*site.rowlock.schedule(), &*site.rowlock.lead(), token).await
}

async fn row(site: &Site, called: &str) -> CronRow {
    let (_, rows) = site.rowlock.schedule().crons().await.unwrap();
    let mut rows = rows.into_iter().filter(|row| row.cron.name == name(called));
    rows.next().unwrap_or_else(|| panic!("cron {called}"))
}

async fn jobs(site: &Site, kind: &str) -> Vec<Record> {
    let filter = rowlock::engine::Filter {
        kind: Some(name(kind)),
        limit: 100,
        ..rowlock::engine::Filter::default()
    };
    site.rowlock.operate().jobs(filter).await.unwrap()
}

async fn due_at(site: &Site, kind: &str) -> Vec<Timestamp> {
    let found = jobs(site, kind).await;
    found.iter().map(|job| job.scheduled_at).collect()
}

fn minute(world: &World, n: u32) -> Timestamp {
    let start: Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    assert!(world.clock.now() >= start);
    start + MINUTE * n
}

pub async fn a_tick_makes_one_job_whoever_fires_it(world: World) {
    let (one, other) = (world.open(), world.open());
    declare(&one, &[every_five_minutes("report")], false).await;
    assert_eq!(row(&one, "report").await.next_at, minute(&world, 5));
    let token = lead(&one).await;
    assert_eq!(fire(&one, token).await.unwrap(), Some(5 * MINUTE));
    assert!(jobs(&one, "report").await.is_empty());
    world.advance(5 * MINUTE);
    let before = row(&one, "report").await;
    let (first, second) = tokio::join!(fire(&one, token), fire(&other, token));
    assert_eq!(first.unwrap(), Some(5 * MINUTE));
    assert_eq!(second.unwrap(), Some(5 * MINUTE));
    assert_eq!(due_at(&one, "report").await, [minute(&world, 5)]);
    // A leader that has looked before it lost its post, and one that is asked by hand.
    let late = Fire {
        cron: before.cron,
        token: Some(lead(&other).await),
        expected: before.next_at,
        ticks: vec![before.next_at],
        next_at: minute(&world, 7),
    };
    let by_hand = Fire {
        token: None,
        ..late.clone()
    };
    for again in [late, by_hand] {
        assert_eq!(
            one.rowlock.lead().fire(again).await.unwrap(),
            Fired::default()
        );
    }
    let made = jobs(&one, "report").await;
    assert_eq!(made.len(), 1);
    let row = row(&one, "report").await;
    assert_eq!(row.next_at, minute(&world, 10));
    assert_eq!(row.last, Some((minute(&world, 5), Some(made[0].id))));
}

pub async fn a_leader_that_was_replaced_fires_nothing(world: World) {
    let (old, new) = (world.open(), world.open());
    declare(&old, &[every_five_minutes("report")], false).await;
    let stale = lead(&old).await;
    let token = lead(&new).await;
    world.advance(5 * MINUTE);
    assert!(matches!(fire(&old, stale).await, Err(Error::LeaseLost)));
    assert!(jobs(&old, "report").await.is_empty());
    assert_eq!(row(&old, "report").await.next_at, minute(&world, 5));
    fire(&new, token).await.unwrap();
    assert_eq!(due_at(&old, "report").await, [minute(&world, 5)]);
}

pub async fn missed_ticks_go_by_the_policy(world: World) {
    let site = world.open();
    let crons = [Missed::Skip, Missed::One, Missed::All]
        .map(|policy| every_five_minutes(policy.as_str()).missed(policy));
    declare(&site, &crons, false).await;
    world.advance(20 * MINUTE + MINUTE / 2);
    let token = lead(&site).await;
    assert_eq!(
        fire(&site, token).await.unwrap(),
        Some(5 * MINUTE - MINUTE / 2)
    );
    for (kind, minutes) in [
        ("skip", vec![20]),
        ("one", vec![15, 20]),
        ("all", vec![5, 10, 15, 20]),
    ] {
        let expected: Vec<_> = minutes.iter().map(|n| minute(&world, *n)).collect();
        assert_eq!(due_at(&site, kind).await, expected, "{kind}");
        assert_eq!(row(&site, kind).await.next_at, minute(&world, 25), "{kind}");
    }
}

pub async fn a_long_absence_is_made_up_for_in_rounds(world: World) {
    let site = world.open();
    let cron = Cron::new(name("often"), name("often"), "* * * * *").missed(Missed::All);
    declare(&site, &[cron], false).await;
    world.advance(1_500 * MINUTE);
    let token = lead(&site).await;
    assert_eq!(fire(&site, token).await.unwrap(), Some(Duration::ZERO));
    assert_eq!(fire(&site, token).await.unwrap(), Some(MINUTE));
    let stats = site.rowlock.operate().stats().await.unwrap();
    assert_eq!(stats.total.pending, 1_500);
}

pub async fn a_paused_cron_leaves_out_what_it_missed(world: World) {
    let site = world.open();
    let cron = every_five_minutes("report").missed(Missed::All);
    declare(&site, std::slice::from_ref(&cron), false).await;
    let schedule = site.rowlock.schedule();
    schedule.pause_cron(&cron.name, None).await.unwrap();
    let token = lead(&site).await;
    world.advance(31 * MINUTE);
    assert_eq!(fire(&site, token).await.unwrap(), None);
    assert!(row(&site, "report").await.paused);
    // A leader that has read the row before it was paused.
    let unaware = Fire {
        cron: cron.clone(),
        token: Some(token),
        expected: minute(&world, 5),
        ticks: vec![minute(&world, 5)],
        next_at: minute(&world, 10),
    };
    assert_eq!(
        site.rowlock.lead().fire(unaware).await.unwrap(),
        Fired::default()
    );
    let next = resume_cron(&*schedule, &cron.name).await.unwrap();
    assert_eq!(next, minute(&world, 35));
    assert_eq!(fire(&site, token).await.unwrap(), Some(4 * MINUTE));
    assert!(jobs(&site, "report").await.is_empty());
    world.advance(4 * MINUTE);
    fire(&site, token).await.unwrap();
    assert_eq!(due_at(&site, "report").await, [minute(&world, 35)]);
    // To resume what isn't paused loses none of its ticks.
    world.advance(5 * MINUTE);
    let next = resume_cron(&*schedule, &cron.name).await.unwrap();
    assert_eq!(next, minute(&world, 40));
}

pub async fn a_cron_run_by_hand_keeps_its_ticks(world: World) {
    let site = world.open();
    let payload = Payload::parse(r#"{"of":"sales"}"#).unwrap();
    let cron = every_five_minutes("report").payload(payload.clone());
    let cron = cron.queue(name("slow")).priority(7);
    declare(&site, &[cron], false).await;
    let (schedule, leader) = (site.rowlock.schedule(), site.rowlock.lead());
    let called = name("report");
    world.advance(5 * MINUTE);
    let first = run_cron_now(&*schedule, &*leader, &called).await.unwrap();
    let second = run_cron_now(&*schedule, &*leader, &called).await.unwrap();
    assert_eq!(
        (first.status, second.status),
        (Status::Queued, Status::Queued)
    );
    assert_ne!(first.id, second.id);
    assert_eq!(row(&site, "report").await.next_at, minute(&world, 5));
    let token = lead(&site).await;
    fire(&site, token).await.unwrap();
    let made = jobs(&site, "report").await;
    assert_eq!(made.len(), 3);
    for job in &made {
        assert_eq!((&job.payload, job.priority), (&payload, 7));
        assert_eq!(job.queue, name("slow"));
    }
    schedule.pause_cron(&called, None).await.unwrap();
    run_cron_now(&*schedule, &*leader, &called).await.unwrap();
    assert!(row(&site, "report").await.paused);
    let unknown = run_cron_now(&*schedule, &*leader, &name("reprot")).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
}

pub async fn a_tick_whose_key_is_held_is_answered_with_the_holder(world: World) {
    let site = world.open();
    let mut kind = Kind::new("report").unwrap();
    kind.key = vec![name("of")];
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    let payload = Payload::parse(r#"{"of":"sales"}"#).unwrap();
    let cron = every_five_minutes("report").payload(payload);
    declare(&site, &[cron], false).await;
    let token = lead(&site).await;
    let last_job = || async {
        world.advance(5 * MINUTE);
        fire(&site, token).await.unwrap();
        row(&site, "report").await.last.unwrap().1.unwrap()
    };
    let first: JobId = last_job().await;
    assert_eq!(last_job().await, first);
    let (schedule, leader) = (site.rowlock.schedule(), site.rowlock.lead());
    let by_hand = run_cron_now(&*schedule, &*leader, &name("report"))
        .await
        .unwrap();
    assert_eq!(
        (by_hand.id, by_hand.status),
        (Some(first), Status::Duplicate)
    );
    assert_eq!(jobs(&site, "report").await.len(), 1);
    site.engine().cancel(vec![first]).await.unwrap();
    assert_ne!(last_job().await, first);
}

pub async fn a_switch_refuses_or_holds_a_tick_as_any_enqueue(world: World) {
    let site = world.open();
    declare(&site, &[every_five_minutes("report")], false).await;
    let schedule = site.rowlock.schedule();
    let called = name("report");
    let reject = Some(Setting::new(Mode::Reject));
    schedule
        .switch(Target::Kind, &called, reject)
        .await
        .unwrap();
    let token = lead(&site).await;
    world.advance(5 * MINUTE);
    assert_eq!(fire(&site, token).await.unwrap(), Some(5 * MINUTE));
    assert!(jobs(&site, "report").await.is_empty());
    let leader = site.rowlock.lead();
    let by_hand = run_cron_now(&*schedule, &*leader, &called).await.unwrap();
    assert_eq!((by_hand.id, by_hand.status), (None, Status::Rejected));
    let hold = Some(Setting::new(Mode::Hold));
    schedule.switch(Target::Kind, &called, hold).await.unwrap();
    world.advance(5 * MINUTE);
    fire(&site, token).await.unwrap();
    assert_eq!(due_at(&site, "report").await, [minute(&world, 10)]);
    let stats = site.rowlock.operate().stats().await.unwrap();
    assert_eq!((stats.total.pending, stats.total.held), (1, 1));
}

pub async fn a_cron_that_cannot_be_fired_keeps_no_other_from_it(world: World) {
    let site = world.open();
    let mut kind = Kind::new("a_keyless").unwrap();
    kind.key = vec![name("of")];
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    let crons = ["a_keyless", "broken", "report"].map(every_five_minutes);
    declare(&site, &crons, false).await;
    let broken = serde_json::to_string(&Cron::new(name("broken"), name("broken"), "soon"));
    world.home.client().execute(&format!(
        "UPDATE rowlock_cron SET declared = '{}' WHERE name = 'broken'",
        broken.unwrap()
    ));
    let token = lead(&site).await;
    world.advance(5 * MINUTE);
    // They are tried again at every look; the next tick is the good one's.
    assert_eq!(fire(&site, token).await.unwrap(), Some(5 * MINUTE));
    assert_eq!(due_at(&site, "report").await, [minute(&world, 5)]);
    for bad in ["a_keyless", "broken"] {
        assert!(jobs(&site, bad).await.is_empty());
        assert_eq!(row(&site, bad).await.next_at, minute(&world, 5), "{bad}");
    }
    declare(&site, &crons[1..2], true).await;
    assert_eq!(row(&site, "broken").await.next_at, minute(&world, 10));
}

pub async fn the_table_of_crons_rules_until_it_is_told_to_change(world: World) {
    let site = world.open();
    let first = every_five_minutes("report");
    let called = &first.name;
    let crons = std::slice::from_ref(&first);
    assert_eq!(declare(&site, crons, false).await, [Applied::Added]);
    assert_eq!(declare(&site, crons, true).await, [Applied::Unchanged]);
    world.advance(MINUTE);
    let hourly = Cron::new(called.clone(), name("report"), "@hourly").tz("Europe/Berlin");
    let drift = declare(&site, std::slice::from_ref(&hourly), false).await;
    let Applied::Changed(differences) = &drift[0] else {
        panic!("{drift:?}");
    };
    assert!(
        differences.contains(&r#"cron: "*/5 * * * *" -> "@hourly""#.to_owned()),
        "{differences:?}"
    );
    assert_eq!(row(&site, "report").await.cron, first);
    assert_eq!(
        declare(&site, std::slice::from_ref(&hourly), true).await,
        drift
    );
    let changed = row(&site, "report").await;
    assert_eq!(
        (&changed.cron, changed.next_at),
        (&hourly, minute(&world, 60))
    );
    // Another policy doesn't move its next tick.
    world.advance(90 * MINUTE);
    let lazy = hourly.clone().missed(Missed::Skip);
    declare(&site, &[lazy], true).await;
    assert_eq!(row(&site, "report").await.next_at, minute(&world, 60));

    let schedule = site.rowlock.schedule();
    schedule.forget_cron(called).await.unwrap();
    assert!(schedule.crons().await.unwrap().1.is_empty());
    for refused in [
        schedule.forget_cron(called).await,
        schedule.pause_cron(called, None).await,
        resume_cron(&*schedule, called).await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
    }
    let never = Cron::new(name("never"), name("report"), "0 0 30 2 *");
    let refused = declare_crons(&*schedule, &[never], true).await.unwrap_err();
    assert!(refused.to_string().contains("cron never"), "{refused}");
}
