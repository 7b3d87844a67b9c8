//! Keys that ticks leave alone: after a failure, a cancel, or work without an effect.

use std::time::Duration;

use rowlock::engine::HeldBack;
use rowlock::settle::Verdict;
use rowlock::{MINUTE, Outcome};

use super::pairs::{QUERY, databases, kind_of, live, pair, row, set_up, tick};
use super::world::{Site, World, job, name};

async fn held_back(site: &Site) -> Vec<HeldBack> {
    let schedule = site.rowlock.schedule();
    schedule
        .held_back(&name("create"), None, 100)
        .await
        .unwrap()
}

/// Claims the job of a key and settles it.
async fn end(site: &Site, outcome: Outcome) {
    let worker = site.join().await;
    let job = site.claim_one(&worker, &["create"]).await;
    site.finish(&job, outcome).await;
    site.engine().leave(&worker).await.unwrap();
}

pub async fn a_job_that_failed_for_good_is_held_back_for_longer_and_longer(world: World) {
    let pair = pair(QUERY).hold_back(MINUTE);
    let site = set_up(&world, 1, &pair).await;
    for (n, wait) in [(1, MINUTE), (2, 4 * MINUTE), (3, 16 * MINUTE)] {
        let ticked = tick(&site, &pair).await;
        assert_eq!(ticked.enqueued, 1, "time {n}");
        assert_eq!(
            ticked.lost,
            u64::from(n == 1),
            "a known failure isn't a lost enqueue"
        );
        end(&site, Outcome::Fail("no".to_owned())).await;
        let held = held_back(&site).await;
        assert_eq!((held[0].reason.as_str(), held[0].n), ("failed", n));
        assert_eq!(held[0].not_before, Some(world.clock.now() + wait));
        assert_eq!(row(&site).await.held_back, 1);
        world.advance(wait - Duration::from_secs(1));
        assert_eq!(tick(&site, &pair).await.held_back, 1);
        assert!(live(&site).await.is_empty());
        world.advance(Duration::from_secs(1));
    }
    assert_eq!(row(&site).await.held_back, 0);
    // Whoever asks by hand is not held back.
    let direct = job("create")
        .payload_of(&serde_json::json!({"id": 1}))
        .unwrap();
    site.stage(direct).await;
}

pub async fn a_cancelled_job_is_held_back_until_it_is_lifted(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 2, &pair).await;
    tick(&site, &pair).await;
    let jobs = live(&site).await;
    site.engine()
        .cancel(vec![jobs[0].id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    // One that runs, cancelled on request.
    let worker = site.join().await;
    let running = site.claim_one(&worker, &["create"]).await;
    site.engine()
        .cancel(vec![running.id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    site.settle(&running, Verdict::Cancelled).await;
    world.advance(Duration::from_secs(7 * 86_400));
    let ticked = tick(&site, &pair).await;
    assert_eq!((ticked.held_back, ticked.enqueued), (2, 0));
    let held = held_back(&site).await;
    assert!(
        held.iter()
            .all(|key| key.reason == "cancelled" && key.not_before.is_none())
    );
    // A retry lifts it, and so does the word itself.
    let schedule = site.rowlock.schedule();
    let lifted = schedule
        .lift(&pair.name, Some(vec!["[1]".to_owned()]))
        .await
        .unwrap();
    assert_eq!(lifted, 1);
    let ticked = tick(&site, &pair).await;
    assert_eq!((ticked.held_back, ticked.enqueued), (1, 1));
    site.engine()
        .redrive(vec![running.id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert!(held_back(&site).await.is_empty());
}

pub async fn what_is_not_kept_is_held_back_all_the_same(world: World) {
    let pair = pair(QUERY);
    databases(&world, 1);
    let site = world.open();
    let mut kind = kind_of("create");
    kind.retention.failed = Duration::ZERO;
    kind.retention.cancelled = Duration::ZERO;
    site.engine().add_kinds(&[kind]).await.unwrap();
    let schedule = site.rowlock.schedule();
    schedule
        .declare_pairs(std::slice::from_ref(&pair), true)
        .await
        .unwrap();
    tick(&site, &pair).await;
    end(&site, Outcome::Fail("no".to_owned())).await;
    assert_eq!(tick(&site, &pair).await.held_back, 1);
    schedule.lift(&pair.name, None).await.unwrap();
    tick(&site, &pair).await;
    let waiting = live(&site).await.remove(0);
    site.engine()
        .cancel(vec![waiting.id])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!(tick(&site, &pair).await.held_back, 1);
}

pub async fn a_key_that_no_row_can_have_is_not_noted(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 0, &pair).await;
    for key in ["by hand", "[7]", &"0123456789abcdef".repeat(4)] {
        site.stage(job("create").unique(key).unwrap()).await;
        end(&site, Outcome::Fail("no".to_owned())).await;
    }
    let waiting = site.stage(job("create").unique("by hand").unwrap()).await;
    site.engine()
        .cancel(vec![waiting])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let mut keys: Vec<String> = held_back(&site)
        .await
        .into_iter()
        .map(|held| held.key)
        .collect();
    // A hash is the key of a row with a long one, where keys are hashed.
    keys.retain(|key| !key.starts_with('0'));
    assert_eq!(keys, ["[7]"]);
}

pub async fn a_success_is_not_noted(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 1, &pair).await;
    tick(&site, &pair).await;
    end(&site, Outcome::Done).await;
    assert!(held_back(&site).await.is_empty());
    assert_eq!(tick(&site, &pair).await.enqueued, 1, "the row still asks");
}

pub async fn done_twice_without_an_effect_is_held_back(world: World) {
    let pair = pair(QUERY).hold_back(MINUTE);
    let site = set_up(&world, 1, &pair).await;
    let lead = site.rowlock.lead();
    let key = || vec!["[1]".to_owned()];
    assert_eq!(lead.still_wanted(&pair.name, key()).await.unwrap(), 0);
    let ticked = tick(&site, &pair).await;
    assert_eq!(
        (ticked.enqueued, ticked.lost),
        (1, 0),
        "once may be bad luck"
    );
    end(&site, Outcome::Done).await;
    assert_eq!(lead.still_wanted(&pair.name, key()).await.unwrap(), 1);
    assert_eq!(tick(&site, &pair).await.held_back, 1);
    assert_eq!(held_back(&site).await[0].reason, "ineffective");
    assert_eq!(row(&site).await.ineffective, 1);
    world.advance(MINUTE);
    assert_eq!(tick(&site, &pair).await.enqueued, 1);
    end(&site, Outcome::Done).await;
    assert_eq!(lead.still_wanted(&pair.name, key()).await.unwrap(), 1);
    let held = held_back(&site).await;
    assert_eq!(held[0].not_before, Some(world.clock.now() + 4 * MINUTE));
}
