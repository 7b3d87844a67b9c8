//! Looks that stay cheap: they find and count the same as those that look at everything.

use std::time::Duration;

use rowlock::engine::Filter;
use rowlock::engine::browse::{BYTES, LOOK, MOST, Page};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, Outcome, Payload};

use super::world::{Site, World, failed, job, name};

async fn page(site: &Site, filter: Filter, newest: bool) -> Page {
    site.rowlock.browse().browse(filter, newest).await.unwrap()
}

fn ids(page: &Page) -> Vec<JobId> {
    page.jobs.iter().map(|job| job.id).collect()
}

pub async fn a_walk_finds_every_job_once_while_jobs_come_and_end(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let first = site.stage_many("mail", 7).await;
    for newest in [false, true] {
        let mut seen = Vec::new();
        let mut filter = Filter {
            limit: 2,
            ..Filter::default()
        };
        loop {
            let page = page(&site, filter.clone(), newest).await;
            seen.extend(ids(&page));
            // One comes and one goes to the history, in the middle of the walk.
            site.stage(job("more")).await;
            if let Some(claimed) = site.claim(&worker, &["mail"], 1).await.first() {
                site.finish(claimed, Outcome::Done).await;
            }
            match page.next {
                Some(next) if seen.len() < 100 => filter.after = Some(next),
                _ => break,
            }
            if filter.after >= first.last().copied() && !newest {
                break;
            }
        }
        let mut sorted = seen.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), seen.len(), "{seen:?}");
        assert!(first.iter().all(|id| seen.contains(id)), "{seen:?}");
        let mut order = seen.clone();
        order.sort_unstable();
        if newest {
            order.reverse();
        }
        assert_eq!(seen, order);
    }
}

pub async fn a_look_ends_after_so_many_rows_and_says_where_to_go_on(world: World) {
    let site = world.open();
    let many = vec![job("mail"); LOOK + 5];
    let many = site.engine().stage(many).await.unwrap();
    let rare = site.stage(job("rare")).await;
    let mut filter = Filter {
        kind: Some(name("rare")),
        limit: 10,
        ..Filter::default()
    };
    let first = page(&site, filter.clone(), false).await;
    assert!(first.jobs.is_empty());
    assert_eq!(first.next, many[LOOK - 1].id);
    filter.after = first.next;
    let second = page(&site, filter.clone(), false).await;
    assert_eq!((ids(&second), second.next), (vec![rare], None));
    filter.after = None;
    let newest = page(&site, filter, true).await;
    assert_eq!(ids(&newest), [rare]);
    assert!(newest.next.is_some());
}

pub async fn a_page_has_what_the_filter_names(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let plain = site.stage(job("a")).await;
    world.advance(Duration::from_secs(10));
    let later = world.clock.now();
    let marked = job("b").queue(name("q")).tag(name("red"));
    let marked = site.stage(marked.unique("k").unwrap()).await;
    let claimed = site.claim_one(&worker, &["a"]).await;
    site.finish(&claimed, Outcome::Done).await;
    let any = Filter::default;
    for (filter, wanted) in [
        (any(), vec![plain, marked]),
        (
            Filter {
                state: "completed".parse().ok(),
                ..any()
            },
            vec![plain],
        ),
        (
            Filter {
                state: "pending".parse().ok(),
                ..any()
            },
            vec![marked],
        ),
        (
            Filter {
                state: "processing".parse().ok(),
                ..any()
            },
            vec![],
        ),
        (
            Filter {
                queue: Some(name("q")),
                ..any()
            },
            vec![marked],
        ),
        (
            Filter {
                kind: Some(name("a")),
                ..any()
            },
            vec![plain],
        ),
        (
            Filter {
                key: Some("k".to_owned()),
                ..any()
            },
            vec![marked],
        ),
        (
            Filter {
                tag: Some(name("red")),
                ..any()
            },
            vec![marked],
        ),
        (
            Filter {
                since: Some(later),
                ..any()
            },
            vec![marked],
        ),
        (
            Filter {
                until: Some(later),
                ..any()
            },
            vec![plain],
        ),
    ] {
        let filter = Filter {
            limit: 10,
            ..filter
        };
        let mut found = ids(&page(&site, filter.clone(), true).await);
        found.reverse();
        assert_eq!(found, wanted, "{filter:?}");
        assert_eq!(ids(&page(&site, filter, false).await), wanted);
    }
}

pub async fn a_glance_counts_the_same_as_a_whole_count(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("mail", 5).await;
    world.advance(Duration::from_secs(5));
    for outcome in [Outcome::Done, failed(), Outcome::Fail("x".to_owned())] {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        site.finish(&claimed, outcome).await;
    }
    site.claim_one(&worker, &["mail"]).await;
    let later = job("mail").queue(name("other"));
    site.stage(later.delay(Duration::from_secs(600))).await;
    let hold = Some(Setting::new(Mode::Hold));
    let schedule = site.rowlock.schedule();
    schedule
        .switch(Target::Kind, &name("held"), hold)
        .await
        .unwrap();
    site.engine()
        .stage(vec![job("held").priority(3)])
        .await
        .unwrap();
    let stats = site.rowlock.operate().stats().await.unwrap();
    let glance = site.rowlock.browse().glance().await.unwrap();
    assert_eq!(glance.len(), stats.queues.len(), "{glance:?}");
    for (queue, counts) in stats.queues {
        assert_eq!(glance[&queue].counts, counts, "{queue}");
        assert!(!glance[&queue].capped);
    }
    let operate = site.rowlock.operate();
    let running = operate.running(10).await.unwrap();
    let in_hand = site.rowlock.browse().in_hand(10).await.unwrap();
    assert_eq!(in_hand.len(), 1);
    assert_eq!(in_hand[0].id, running[0].id);
    assert_eq!(in_hand[0].locked_by, running[0].locked_by);
    let hands = site.rowlock.browse().hands().await.unwrap();
    assert_eq!(hands, operate.workers().await.unwrap());
    assert_eq!(hands.iter().map(|hand| hand.holds).sum::<u64>(), 1);
}

pub async fn the_newest_runs_are_told_with_how_long_they_took(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let staged = site.stage_many("mail", 5).await;
    for (seconds, outcome) in [
        (7, Outcome::Done),
        (2, Outcome::Fail("x".to_owned())),
        (3, Outcome::Done),
    ] {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        world.advance(Duration::from_secs(seconds));
        site.finish(&claimed, outcome).await;
    }
    site.engine().cancel(vec![staged[4]]).await.unwrap();
    let browse = site.rowlock.browse();
    let runs = browse.runs(10).await.unwrap();
    let took: Vec<u64> = runs.iter().map(|run| run.took.as_secs()).collect();
    assert_eq!(
        took,
        [3, 2, 7],
        "the newest first, and none that never began"
    );
    assert!(runs[0].finished_at > runs[1].finished_at);
    assert_eq!(browse.runs(2).await.unwrap().len(), 1, "rows are looked at");
}

pub async fn counts_stop_at_ten_thousand(world: World) {
    let site = world.open();
    let more = usize::try_from(MOST).unwrap() + 1;
    site.engine().stage(vec![job("mail"); more]).await.unwrap();
    site.stage(job("mail").queue(name("small"))).await;
    let glance = site.rowlock.browse().glance().await.unwrap();
    let large = &glance[&name("default")];
    assert_eq!((large.counts.pending, large.capped), (MOST, true));
    let small = &glance[&name("small")];
    assert_eq!((small.counts.pending, small.capped), (1, false));
}

pub async fn a_count_that_was_cut_is_exact_again_once_claims_come_so_far(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let (most, more) = (usize::try_from(MOST).unwrap(), 50);
    site.engine()
        .stage(vec![job("mail"); most + more])
        .await
        .unwrap();
    let queue = name("default");
    for _ in 0..2 {
        assert!(site.rowlock.browse().glance().await.unwrap()[&queue].capped);
    }
    let claimed = site.claim(&worker, &["mail"], 3 * more).await;
    assert_eq!(claimed.len(), 3 * more);
    // The first ones go on: whoever looks for one of them finds it.
    for job in &claimed[more + 5..] {
        site.finish(job, Outcome::Done).await;
    }
    let seen = site.rowlock.browse().glance().await.unwrap().remove(&queue);
    let seen = seen.unwrap();
    let counts = (seen.counts.pending, seen.counts.processing, seen.capped);
    assert_eq!(counts, (MOST - 100, 55, false));
}

pub async fn a_count_that_was_cut_follows_what_this_process_takes_away(world: World) {
    let site = world.open();
    let most = usize::try_from(MOST).unwrap();
    let staged = site.engine().stage(vec![job("mail"); most + 50]).await;
    let ids: Vec<JobId> = staged.unwrap().iter().filter_map(|each| each.id).collect();
    let queue = name("default");
    let mut left = MOST + 50;
    // The first ones stay, and one that was seen to have many behind it may be among them.
    for (from, calls_off) in [(150, true), (9_000, false)] {
        let glance = site.rowlock.browse().glance().await.unwrap();
        assert_eq!(glance[&queue].capped, left > MOST);
        let some = ids[from..from + 100].to_vec();
        left -= 100;
        match calls_off {
            true => drop(site.engine().cancel(some).await.unwrap()),
            false => drop(site.engine().delete(some).await.unwrap()),
        }
        let glance = site.rowlock.browse().glance().await.unwrap();
        let seen = &glance[&queue];
        assert_eq!((seen.counts.pending, seen.capped), (left, false));
    }
}

pub async fn a_page_of_large_jobs_ends_early_and_says_where_to_go_on(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let letter = format!("\"{}\"", "x".repeat(1_000_000));
    let large = job("mail").payload(Payload::parse(&letter).unwrap());
    let staged = site.engine().stage(vec![large; 12]).await.unwrap();
    let all: Vec<JobId> = staged.iter().filter_map(|each| each.id).collect();
    let most = BYTES / letter.len() + 1;
    for newest in [false, true] {
        let mut filter = Filter {
            limit: 50,
            ..Filter::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = page(&site, filter.clone(), newest).await;
            assert!(!page.jobs.is_empty() && page.jobs.len() <= most);
            seen.extend(ids(&page));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        seen.sort();
        assert_eq!(seen, all);
    }
    assert_eq!(site.claim(&worker, &["mail"], 12).await.len(), 12);
    let in_hand = site.rowlock.browse().in_hand(50).await.unwrap();
    assert_eq!(in_hand.len(), most);
}

pub async fn what_is_later_held_or_running_is_exact_or_said_to_be_cut(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let (each, most) = (6_000, usize::try_from(MOST).unwrap());
    let hold = Some(Setting::new(Mode::Hold));
    let schedule = site.rowlock.schedule();
    schedule
        .switch(Target::Kind, &name("held"), hold)
        .await
        .unwrap();
    let stage = async |job: rowlock::NewJob, jobs: usize| {
        drop(site.engine().stage(vec![job; jobs]).await.unwrap());
    };
    // One queue's jobs must not hide another's, and none is over the limit alone.
    for queue in ["first", "second"] {
        let later = job("mail").queue(name(queue));
        stage(later.delay(Duration::from_secs(3_600)), each).await;
    }
    stage(job("held").queue(name("held")), most + 1).await;
    let glance = site.rowlock.browse().glance().await.unwrap();
    for queue in ["first", "second"] {
        let seen = glance.get(&name(queue));
        let exact = seen.is_some_and(|seen| seen.counts.scheduled == each as u64);
        let cut = glance.values().all(|seen| seen.capped);
        assert!(exact || cut, "{queue}: {glance:?}");
    }
    let held = &glance[&name("held")];
    assert_eq!((held.counts.held, held.capped), (MOST, true));
    stage(job("run"), most + 1).await;
    for _ in 0..=most / 1_000 {
        site.claim(&worker, &["run"], 1_000).await;
    }
    let glance = site.rowlock.browse().glance().await.unwrap();
    let run = &glance[&name("default")];
    assert_eq!((run.counts.processing, run.capped), (MOST, true));
}
