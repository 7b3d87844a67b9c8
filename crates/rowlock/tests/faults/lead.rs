//! Leaders that are stopped or killed in the middle of a tick.

use std::collections::BTreeMap;

use rowlock::engine::{Filter, PairRow};
use rowlock::switch::{Mode, Setting, Target};
use rowlock_testbed::Process;

use super::{Ground, pass, rival};
use crate::conformance::pairs::{databases_at, declare, insert_at, pair_of_rivals};

const LEASE_MS: u32 = 1_000;

impl Ground {
    fn leader(&self, environment: &[(&str, &str)]) -> Process {
        let role = ["lead", &self.home.url(), &LEASE_MS.to_string()];
        let mut leader = Process::start(rival(&role).envs(environment.iter().copied()));
        leader.line_with("ready");
        leader
    }

    fn pair(&self) -> Option<PairRow> {
        let rows = self.ask(self.site.rowlock.schedule().pairs()).unwrap();
        rows.into_iter().next()
    }

    /// How many jobs each key has had.
    fn jobs_by_key(&self) -> BTreeMap<String, usize> {
        let filter = Filter {
            limit: 100_000,
            ..Filter::default()
        };
        let jobs = self.ask(self.site.rowlock.operate().jobs(filter)).unwrap();
        let mut by_key = BTreeMap::new();
        for job in jobs {
            *by_key
                .entry(job.unique_key.unwrap_or_default())
                .or_default() += 1;
        }
        by_key
    }
}

pub fn a_leader_stopped_in_the_middle_of_a_tick_is_replaced_and_refused(ground: &Ground) {
    databases_at(&*ground.home, 500);
    ground.ask(declare(&ground.site, &pair_of_rivals()));
    let mut stopped = ground.leader(&[("ROWLOCK_PAUSE_AT", "tick.between")]);
    stopped.line_with("paused at tick.between");
    stopped.wait_until_stopped();
    let first = ground.pair().unwrap().leader.expect("a leader");
    // In a file something else of the process may have been in the middle of a write: nobody could then.
    while !ground.home.client().can_write() {
        stopped.signal("CONT");
        stopped.signal("STOP");
        stopped.wait_until_stopped();
    }
    let staged = ground.jobs_by_key().len();
    assert!(
        (10..500).contains(&staged),
        "{staged} of 500 rows in the middle of a tick"
    );
    let successor = ground.leader(&[]);
    let counts = ground.until(|counts| counts.completed == 500);
    assert_eq!((counts.pending, counts.processing), (0, 0));
    assert_ne!(ground.pair().unwrap().leader, Some(first.clone()));
    assert!(ground.jobs_by_key().values().all(|jobs| *jobs == 1));
    // From here on only the one that was replaced would tick, as it hasn't heard of the switch.
    let schedule = ground.site.rowlock.schedule();
    let pause = Some(Setting::new(Mode::Pause));
    let name = pair_of_rivals().name;
    ground
        .ask(schedule.switch(Target::Pair, &name, pause))
        .unwrap();
    // The successor looks at the switches with every look at the posts, and ticks ten times a second until then. On a
    // busy machine it may be slow to do either.
    let ticks = || ground.pair().unwrap().ticks;
    let (mut before, mut quiet) = (ticks(), 0);
    while quiet < 4 {
        pass("0.5");
        let now = ticks();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    insert_at(&*ground.home, 501, 550);
    stopped.signal("CONT");
    // Given up as a worker too, it joins anew, which comes after the rest of its tick.
    ground.until_workers(2);
    stopped.signal("TERM");
    assert_eq!(stopped.wait().0, Some(0));
    assert_eq!(ground.jobs_by_key().len(), 500, "what it wrote was refused");
    let second = ground.pair().unwrap().leader;
    assert!(
        second.is_some() && second != Some(first),
        "its post was not given up for it"
    );
    ground
        .ask(schedule.switch(Target::Pair, &name, None))
        .unwrap();
    ground.until(|counts| counts.completed == 550);
    assert!(ground.jobs_by_key().values().all(|jobs| *jobs == 1));
    successor.signal("TERM");
    assert_eq!(successor.wait().0, Some(0));
}

pub fn leaders_killed_again_and_again_lose_no_row(ground: &Ground) {
    databases_at(&*ground.home, 0);
    ground.ask(declare(&ground.site, &pair_of_rivals()));
    let mut done = 0;
    for round in 0..6 {
        insert_at(&*ground.home, round * 50 + 1, round * 50 + 50);
        done += 50;
        // At another moment around its ticks each time.
        let killed = ground.leader(&[]);
        pass(&format!("0.{}", 1 + round));
        killed.signal("KILL");
        killed.wait();
    }
    let healer = ground.leader(&[]);
    let ready = "SELECT id FROM databases WHERE state <> 'ready'";
    ground.eventually(async || {
        let source = ground.site.rowlock.lead().source();
        let mut all = pair_of_rivals();
        all.query = ready.to_owned();
        let left = source.derive(&all, 0, None, 1).await.unwrap();
        (left.found == 0).then_some(())
    });
    ground.until(|counts| counts.pending + counts.processing == 0);
    assert_eq!(ground.jobs_by_key().len(), done as usize);
    healer.signal("TERM");
    assert_eq!(healer.wait().0, Some(0));
}
