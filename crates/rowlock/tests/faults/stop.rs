//! Deploys: workers that are asked to stop under load.

use rowlock::JobState;

use super::Ground;
use crate::conformance::world::job;

pub fn a_first_signal_lets_running_jobs_finish(ground: &Ground) {
    let site = &ground.site;
    // A minute of them: the signal comes before their end, however late.
    let ids = ground.ask(site.stage_many("naps", 300));
    let mut worker = ground.worker(5_000, 4, "naps");
    worker.line_with("began naps");
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let began = lines
        .iter()
        .filter(|line| line.starts_with("began"))
        .count();
    let (mut completed, mut pending) = (0, 0);
    for id in ids {
        let found = ground.ask(site.job(id));
        match found.state {
            JobState::Completed => completed += 1,
            JobState::Pending => {
                assert_eq!(found.attempt, 0, "job {id} was charged");
                pending += 1;
            }
            other => panic!("job {id} is {other}"),
        }
    }
    assert_eq!(completed, began, "what had begun was finished");
    assert!(pending > 0, "it stopped before the end");
}

pub fn a_second_signal_gives_everything_back_uncharged(ground: &Ground) {
    let site = &ground.site;
    let ids = ground.ask(async {
        site.stage_many("mail", 2_000).await;
        let waits = (0..50).map(|_| job("waits").priority(5)).collect();
        let answers = site.rowlock.enqueue_many(waits).await.unwrap();
        answers
            .into_iter()
            .map(|answer| answer.id.unwrap())
            .collect::<Vec<_>>()
    });
    let mut worker = ground.worker(5_000, 8, "mail,waits");
    for _ in 0..8 {
        worker.line_with("began waits");
    }
    // Two of one kind could be merged into one by the system.
    worker.signal("TERM");
    worker.signal("INT");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    for id in ids {
        let found = ground.ask(site.job(id));
        assert_eq!(
            (found.state, found.attempt),
            (JobState::Pending, 0),
            "job {id}"
        );
    }
    assert!(
        ground
            .ask(site.rowlock.operate().workers())
            .unwrap()
            .is_empty()
    );
}
