//! Odd questions: unknown names, nothing at all, the same thing twice, pages past the end. What every engine answers is
//! recorded in `alike/` (`ROWLOCK_RECORD=1` writes it, by SQLite): no engine drifts where no other case looks.

use std::fmt::Debug;
use std::time::Duration;

use rowlock::claim::{Claim, WorkerId};
use rowlock::engine::{Batch, Duty, Filter, Fire, From, Leading, Lines, Take, TickEnd, Ticked};
use rowlock::job::{Cron, Token};
use rowlock::settle::{Settlement, Verdict};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, JobState, Kind, MINUTE, Name};

use super::pairs::{QUERY, kind_of, pair, set_up};
use super::world::{Site, World, job, name, wanted};

/// What was asked, and what was answered.
#[derive(Default)]
struct Answers(String);

impl Answers {
    fn note(&mut self, asked: &str, answer: impl Debug) {
        self.0 += &format!("{asked}: {answer:?}\n");
    }

    /// Numbers of jobs differ from engine to engine.
    fn note_of(&mut self, id: JobId, asked: &str, answer: impl Debug) {
        let text = format!("{answer:?}").replace(&id.to_string(), "ID");
        self.0 += &format!("{asked}: {text}\n");
    }

    fn are_as_recorded(self, site: &Site, name: &str) {
        let folder = rowlock_testbed::repository().join("crates/rowlock/tests/conformance/alike");
        let path = folder.join(format!("{name}.txt"));
        let engine = site.engine().capabilities().name;
        if engine == "sqlite" && std::env::var_os("ROWLOCK_RECORD").is_some() {
            std::fs::write(&path, &self.0).unwrap();
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        let (mut ours, mut theirs) = (self.0.lines(), recorded.lines());
        let mut differences = Vec::new();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => break,
                (now, recorded) if now != recorded => {
                    differences.push(format!("now      {now:?}\nrecorded {recorded:?}"));
                }
                _ => {}
            }
        }
        assert!(
            differences.is_empty(),
            "{engine} answers otherwise:\n{}",
            differences.join("\n")
        );
    }
}

fn nobody() -> Name {
    name("nobody")
}

fn key(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

pub async fn pairs_that_are_not_declared_are_not_found(world: World) {
    let mut answers = Answers::default();
    let pair = pair(QUERY);
    let site = set_up(&world, 35, &pair).await;
    let (schedule, lead, no) = (site.rowlock.schedule(), site.rowlock.lead(), nobody());
    answers.note("held_back", schedule.held_back(&no, None, 5).await);
    answers.note("lift", schedule.lift(&no, None).await);
    answers.note("lift a key", schedule.lift(&no, Some(key("[1]"))).await);
    answers.note("lift no key", schedule.lift(&no, Some(Vec::new())).await);
    let none = schedule.lift(&pair.name, Some(Vec::new())).await;
    answers.note("lift no key of a declared one", none);
    answers.note("still_wanted", lead.still_wanted(&no, key("[1]")).await);
    let none = lead.still_wanted(&no, Vec::new()).await;
    answers.note("still_wanted without keys", none);
    let states = vec![("odd".to_owned(), 1)];
    answers.note("uncovered", lead.uncovered(&no, states).await);
    answers.note("forget_pair", schedule.forget_pair(&no).await);
    let end = |pair: &Name, token, shard| TickEnd {
        pair: pair.clone(),
        shard,
        token,
        outcome: Ok(Ticked::default()),
        took: Duration::ZERO,
        cursor: None,
        due_at: None,
    };
    let token = Token::random().unwrap();
    answers.note("tick_end", lead.tick_end(end(&no, None, 0)).await);
    let other = lead.tick_end(end(&pair.name, None, 7)).await;
    answers.note("tick_end of no shard", other);
    let lost = lead.tick_end(end(&no, Some(token), 0)).await;
    answers.note("tick_end under a token", lost);
    let led = lead.lead(Leading {
        holder: "x".to_owned(),
        keep: vec![(Duty::Pair(no.clone(), 0), token)],
        take: vec![Take {
            duty: Duty::Pair(no.clone(), 0),
            seen: (None, 0),
            token,
        }],
        leave: vec![(Duty::Cron, token)],
    });
    let posts = led.await.map(|all| all.posts);
    let posts = posts.map(|all| all.into_iter().map(|post| (post.duty, post.beat)));
    answers.note("lead", posts.map(Iterator::collect::<Vec<_>>));
    // A key that is named twice was asked about once.
    let twice = vec!["[90]".to_owned(), "[90]".to_owned()];
    let wanted = lead.still_wanted(&pair.name, twice.clone()).await;
    answers.note("still_wanted twice", wanted);
    answers.note("its keys", schedule.held_back(&pair.name, None, 9).await);
    let none = schedule.held_back(&pair.name, None, 0).await;
    answers.note("its keys, none of them", none);
    let past = schedule.held_back(&pair.name, Some("zzz"), 5).await;
    answers.note("its keys past the end", past);
    answers.note("lift twice", schedule.lift(&pair.name, Some(twice)).await);
    answers.are_as_recorded(&site, "pairs");
}

pub async fn ticks_without_rows_or_leaders_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let pair = pair(QUERY);
    let site = set_up(&world, 35, &pair).await;
    let lead = site.rowlock.lead();
    let batch = |dry, limit| Batch {
        pair: pair.clone(),
        shard: 0,
        token: None,
        from: From::Here {
            cursor: None,
            limit,
        },
        seed: 0.0,
        dry,
    };
    let lost = Batch {
        token: Some(Token::random().unwrap()),
        ..batch(false, 10)
    };
    answers.note("under a lost token", lead.tick(lost).await);
    answers.note("dry", lead.tick(batch(true, 1000)).await);
    answers.note("dry, half of it", lead.tick(batch(true, 17)).await);
    answers.note("dry, none", lead.tick(batch(true, 0)).await);
    let lines = Batch {
        from: From::Lines(Lines::default()),
        ..batch(false, 1)
    };
    answers.note("of no lines", lead.tick(lines).await);
    let real = lead.tick(batch(false, 3)).await;
    answers.note("real, three of them", real);
    answers.are_as_recorded(&site, "ticks");
}

pub async fn switches_of_what_is_unknown_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let site = set_up(&world, 1, &pair(QUERY)).await;
    let schedule = site.rowlock.schedule();
    let set = |mode| Setting {
        mode,
        reason: None,
        by: None,
        until: None,
    };
    for target in [Target::Kind, Target::Queue, Target::Pair] {
        let cleared = schedule.switch(target, &nobody(), None).await;
        answers.note(&format!("clear of no {target}"), cleared);
        for mode in [Mode::Reject, Mode::Hold, Mode::Pause] {
            for known in ["create", "stranger"] {
                let what = format!("{target} {known} {mode:?}");
                let known = name(known);
                let done = schedule.switch(target, &known, Some(set(mode))).await;
                answers.note(&what, done);
                let on = schedule.switches().await.map(|all| all.len());
                answers.note("on", on);
                for time in ["clear", "clear again"] {
                    answers.note(time, schedule.switch(target, &known, None).await);
                }
            }
        }
    }
    let past = Setting {
        until: Some(world.clock.now()),
        ..set(Mode::Pause)
    };
    let (queue, over) = (name("q"), Some(past));
    let done = schedule.switch(Target::Queue, &queue, over).await;
    answers.note("one that is over", done);
    answers.note("on", schedule.switches().await);
    let cleared = schedule.switch(Target::Queue, &queue, None).await;
    answers.note("clear", cleared);
    for (target, of) in [
        (Target::Pair, "create"),
        (Target::Queue, "b"),
        (Target::Kind, "z"),
        (Target::Queue, "B"),
        (Target::Kind, "a-b"),
        (Target::Kind, "a.b"),
        (Target::Kind, "ab"),
    ] {
        let setting = Some(set(Mode::Pause));
        schedule.switch(target, &name(of), setting).await.unwrap();
    }
    let all = schedule.switches().await.unwrap();
    let order: Vec<_> = all.iter().map(|each| (each.target, &each.name)).collect();
    answers.note("in this order", order);
    let queues = site.rowlock.operate().queues().await.unwrap();
    let queues = queues
        .into_iter()
        .map(|row| (row.queue, row.paused, row.reason));
    answers.note("queues", queues.collect::<Vec<_>>());
    answers.are_as_recorded(&site, "switches");
}

pub async fn declaring_nothing_or_the_same_twice_is_answered_alike(world: World) {
    let mut answers = Answers::default();
    let first = pair(QUERY);
    let site = set_up(&world, 1, &first).await;
    let (engine, operate) = (site.engine(), site.rowlock.operate());
    let schedule = site.rowlock.schedule();
    let kind = |name: &str, priority| {
        let mut kind = Kind::new(name).unwrap();
        kind.priority = priority;
        kind
    };
    answers.note("no kinds to add", engine.add_kinds(&[]).await);
    answers.note("no kinds to apply", operate.apply(&[]).await);
    let twice = [kind("twice", 1), kind("twice", 2)];
    answers.note("a kind twice", operate.apply(&twice).await);
    answers.note("to add a kind twice", engine.add_kinds(&twice).await);
    let alike = [kind("alike", 1), kind("alike", 1)];
    answers.note("a kind twice alike", operate.apply(&alike).await);
    let some = [kind("b", 1), kind("a-b", 1), kind("ab", 1), kind("B", 1)];
    answers.note("kinds", operate.apply(&some).await);
    let other = [kind("b", 1), kind("ab", 7), kind("new", 1)];
    answers.note("other kinds to add", engine.add_kinds(&other).await);
    answers.note("other kinds", operate.apply(&other).await);
    let mut misfit = kind_of("create");
    misfit.key = Vec::new();
    let spoiled = [kind("a-before", 1), misfit, kind("z-after", 1)];
    answers.note("one that a pair relies on", operate.apply(&spoiled).await);
    answers.note("the same to add", engine.add_kinds(&spoiled[1..2]).await);
    let kinds = operate.kinds().await.unwrap();
    let kinds = kinds.into_iter().map(|kind| (kind.name, kind.priority));
    answers.note("kinds by now", kinds.collect::<Vec<_>>());

    let second = first.clone().hold_back(MINUTE * 7);
    let both = [first.clone(), second];
    answers.note("no pairs", schedule.declare_pairs(&[], true).await);
    for change in [false, true] {
        let declared = schedule.declare_pairs(&both, change).await;
        answers.note("a pair twice", declared);
    }
    let mut half = [first.clone(), first.clone()];
    half[0].name = name("a-before");
    half[1].name = name("without");
    half[1].kind = name("unknown");
    let declared = schedule.declare_pairs(&half, true).await;
    answers.note("one without a kind", declared);
    let pairs = schedule.pairs().await.unwrap();
    let pairs = pairs.into_iter().map(|row| row.pair.name);
    answers.note("pairs by now", pairs.collect::<Vec<_>>());
    answers.are_as_recorded(&site, "declared");
}

pub async fn crons_that_are_unknown_or_named_twice_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let site = world.open();
    let (schedule, lead) = (site.rowlock.schedule(), site.rowlock.lead());
    let (now, no) = (world.clock.now(), nobody());
    let cron = |of: &str, at: &str| Cron::new(name(of), name("tick"), at);
    answers.note("forget", schedule.forget_cron(&no).await);
    answers.note("pause", schedule.pause_cron(&no, None).await);
    answers.note("resume", schedule.pause_cron(&no, Some(now)).await);
    answers.note("none", schedule.declare_crons(&[], true).await);
    let twice = [(cron("n", "0 1 * * *"), now), (cron("n", "0 2 * * *"), now)];
    answers.note("twice", schedule.declare_crons(&twice, true).await);
    let bad = [
        (cron("a", "0 1 * * *"), now),
        (cron("bad", "nonsense"), now),
    ];
    answers.note("no pattern", schedule.declare_crons(&bad, true).await);
    let good = [(cron("n", "0 1 * * *"), now), (cron("B", "0 1 * * *"), now)];
    answers.note("two", schedule.declare_crons(&good, false).await);
    answers.note("again", schedule.declare_crons(&good, true).await);
    let crons = schedule.crons().await.unwrap().1;
    let crons = crons.into_iter().map(|row| (row.cron.name, row.paused));
    answers.note("crons by now", crons.collect::<Vec<_>>());
    let fire = |of: &str, token, ticks| Fire {
        cron: cron(of, "0 1 * * *"),
        token,
        expected: now,
        ticks,
        next_at: now,
    };
    let token = Some(Token::random().unwrap());
    for (what, fire) in [
        ("no tick", fire("n", None, Vec::new())),
        ("a tick twice", fire("n", None, vec![now, now])),
        ("a tick again", fire("n", None, vec![now])),
        ("a tick under a lost token", fire("n", token, vec![now])),
        ("a tick of none", fire("nobody", None, vec![now])),
    ] {
        answers.note(what, lead.fire(fire).await.map(|fired| fired.ticks.len()));
    }
    answers.are_as_recorded(&site, "crons");
}

pub async fn jobs_that_are_unknown_ended_or_named_twice_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let site = world.open();
    let engine = site.engine();
    answers.note("stage nothing", engine.stage(Vec::new()).await);
    for ids in [Vec::new(), vec![JobId(999_999)], vec![JobId(0), JobId(-4)]] {
        answers.note("cancel", engine.cancel(ids.clone()).await);
        answers.note("redrive", engine.redrive(ids.clone()).await);
        answers.note("delete", engine.delete(ids.clone()).await);
    }
    let worker = site.join().await;
    let id = site.stage(job("mail")).await;
    answers.note_of(id, "redrive a pending one", engine.redrive(vec![id]).await);
    answers.note_of(id, "cancel it twice", engine.cancel(vec![id, id]).await);
    answers.note_of(id, "and again", engine.cancel(vec![id]).await);
    answers.note_of(id, "redrive it twice", engine.redrive(vec![id, id]).await);
    answers.note_of(id, "delete it twice", engine.delete(vec![id, id]).await);
    let id = site.stage(job("mail")).await;
    let token = Token::random().unwrap();
    let stranger = WorkerId::random("stranger").unwrap();
    let none = engine.claim(wanted(&worker, &["mail"], 0)).await;
    answers.note("claim none", none.map(|got| got.jobs.len()));
    let none = engine.claim(wanted(&worker, &[], 5)).await;
    answers.note("claim of no kind", none.map(|got| got.jobs.len()));
    let none = engine.claim(wanted(&stranger, &["mail"], 5)).await;
    answers.note("claim of a stranger", none.map(|got| got.jobs.len()));
    let beat = engine.heartbeat(&stranger, Vec::new()).await;
    answers.note("heartbeat of a stranger", beat);
    answers.note("a stranger leaves", engine.leave(&stranger).await);
    let twice = Claim {
        queues: vec![name("default"), name("default")],
        ..wanted(&worker, &["mail", "mail"], 5)
    };
    let got = engine.claim(twice).await.unwrap().jobs;
    answers.note("kinds and queues named twice", got.len());
    let begun = engine.start_suspect(&stranger, id, token).await;
    answers.note("a stranger begins it", begun);
    let begun = engine.start_suspect(&worker, id, token).await;
    answers.note("its worker begins it under another token", begun);
    answers.note_of(id, "redrive a running one", engine.redrive(vec![id]).await);
    answers.note_of(id, "delete it", engine.delete(vec![id]).await);
    answers.note_of(id, "cancel it twice", engine.cancel(vec![id, id]).await);
    answers.note("settle nothing", engine.settle(Vec::new()).await);
    let done = |token| Settlement {
        id,
        token,
        verdict: Verdict::Done,
        started_at: None,
    };
    let other = Settlement {
        id: JobId(77_777),
        ..done(token)
    };
    let wrong = engine.settle(vec![done(token), other]).await;
    answers.note("settle under another token", wrong);
    let twice = vec![done(got[0].token), done(got[0].token)];
    answers.note("settle twice", engine.settle(twice).await);
    answers.note("prune none", engine.prune(0).await);
    let again = engine.join(&worker, Duration::from_secs(60)).await;
    answers.note("join again", again);
    answers.note("leave", engine.leave(&worker).await);
    answers.note("leave again", engine.leave(&worker).await);
    answers.are_as_recorded(&site, "jobs");
}

pub async fn pages_past_the_end_and_empty_ranges_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let site = world.open();
    let (operate, browse) = (site.rowlock.operate(), site.rowlock.browse());
    let ids = site.stage_many("mail", 7).await;
    let worker = site.join().await;
    for job in site.claim(&worker, &["mail"], 3).await {
        site.settle(&job, Verdict::Done).await;
    }
    let now = world.clock.now();
    let all = Filter {
        limit: 1_000,
        ..Filter::default()
    };
    let later = now + Duration::from_secs(9);
    let range = |since, until| Filter {
        since,
        until,
        ..all.clone()
    };
    let after = |id| Filter {
        after: Some(JobId(id)),
        ..all.clone()
    };
    let most = |limit| Filter {
        limit,
        ..all.clone()
    };
    for (what, filter) in [
        ("none", most(0)),
        ("two", most(2)),
        ("seven", most(7)),
        ("all", all.clone()),
        ("as many as can be", most(usize::MAX)),
        ("from the end to the start", range(Some(later), Some(now))),
        ("a range without length", range(Some(now), Some(now))),
        ("since now", range(Some(now), None)),
        ("after the fifth", after(ids[4].0)),
        ("after the last", after(ids[6].0)),
        ("past the end", after(i64::MAX)),
        ("after less than nothing", after(-5)),
        (
            "of no kind",
            Filter {
                kind: Some(nobody()),
                ..all.clone()
            },
        ),
    ] {
        let jobs = operate.jobs(filter.clone()).await;
        answers.note(&format!("jobs, {what}"), jobs.map(|jobs| jobs.len()));
        for newest in [false, true] {
            let page = browse.browse(filter.clone(), newest).await;
            let page = page.map(|page| (page.jobs.len(), page.next.is_some()));
            answers.note(&format!("a page, {what}, newest {newest}"), page);
        }
    }
    for state in [JobState::Pending, JobState::Processing, JobState::Completed] {
        for limit in [0, 2, 9] {
            let ended = operate.ended(state, limit).await.map(|jobs| jobs.len());
            answers.note(&format!("ended, {state}, {limit}"), ended);
        }
    }
    answers.note("running", operate.running(0).await.map(|jobs| jobs.len()));
    answers.note("in hand", browse.in_hand(0).await.map(|jobs| jobs.len()));
    for limit in [0, 2, 9] {
        answers.note("runs", browse.runs(limit).await.map(|runs| runs.len()));
    }
    for (after, limit) in [(None, 2), (Some(JobId(-3)), 9), (Some(JobId(i64::MAX)), 9)] {
        let facts = operate.facts(after, limit).await.map(|facts| facts.len());
        answers.note(&format!("facts after {after:?}, {limit}"), facts);
    }
    let stats = operate.stats().await.unwrap().queues;
    answers.note("counted", stats.keys().collect::<Vec<_>>());
    let glance = browse.glance().await.unwrap();
    answers.note("at a glance", glance.keys().collect::<Vec<_>>());
    answers.are_as_recorded(&site, "pages");
}

pub async fn routes_that_are_unknown_or_named_twice_are_answered_alike(world: World) {
    let mut answers = Answers::default();
    let site = world.open();
    let routes = site.rowlock.routes();
    let (route, holder) = (name("redis"), WorkerId::route(&name("redis")));
    answers.note("none", routes.routes().await.map(|all| all.len()));
    let declare = async |kinds: &[&str], queues: &[&str], change| {
        let names = |all: &[&str]| all.iter().map(|each| name(each)).collect::<Vec<_>>();
        let (kinds, queues) = (names(kinds), names(queues));
        routes.declare_route(&route, &kinds, &queues, change).await
    };
    answers.note("of nothing", declare(&[], &[], true).await);
    let twice = declare(&["k", "k", "B"], &["q", "q"], true).await;
    answers.note("of things named twice", twice);
    answers.note("of less, a look", declare(&["k"], &[], false).await);
    let rows = routes.routes().await.unwrap();
    let rows = rows
        .into_iter()
        .map(|row| (row.route, row.kinds, row.queues, row.sent, row.drained));
    answers.note("by now", rows.collect::<Vec<_>>());
    answers.note("of less", declare(&["k"], &[], true).await);
    let direct = routes.declare_route(&name("direct"), &[], &[], true).await;
    answers.note("called direct", direct);
    answers.note("sent", routes.sent(&holder, None, 0).await);
    let past = routes.sent(&holder, Some(JobId(i64::MAX)), 4).await;
    answers.note("sent, past the end", past);
    answers.note("forget", routes.forget_route(&holder).await);
    let lease = Duration::from_secs(9);
    answers.note("keep", routes.keep_route(&holder, lease).await);
    for time in ["forget", "forget again"] {
        answers.note(time, routes.forget_route(&holder).await);
    }
    answers.are_as_recorded(&site, "routes");
}
