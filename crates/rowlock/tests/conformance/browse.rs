//! Looks that stay cheap: they find and count the same as those that look at everything.

use std::time::Duration;

use rowlock::engine::Filter;
use rowlock::engine::browse::{LOOK, MOST, Page};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, Outcome};

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
