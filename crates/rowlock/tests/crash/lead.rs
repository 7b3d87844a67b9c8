//! A leader dies at a step of a tick. Whoever comes next finds every row and every tick of a calendar.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::Filter;
use rowlock::job::{Cron, Missed};
use rowlock::{JobState, Record, Rowlock, verify};
use rowlock_testbed::Process;

use crate::conformance::pairs::{databases_at, declare, pair_of_rivals};
use crate::conformance::world::{Home, Site, name};

const ROWS: usize = 40;
/// Minutes that nobody was there for.
const MISSED: u64 = 10;
const LEASE_MS: &str = "500";

pub fn dies_leading(home: &dyn Home, point: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    databases_at(home, ROWS as i64);
    let site = Site {
        rowlock: home.open(Clock::system()),
        detour: None,
    };
    runtime.block_on(declare(&site, &pair_of_rivals()));
    runtime.block_on(declare_cron(&site.rowlock));
    let role = |command: &mut Command| {
        command.args(["rival", "lead", &home.url(), LEASE_MS]);
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    role(command.env("ROWLOCK_CRASH_AT", point));
    let mut leader = Process::start(&mut command);
    leader.line_with(&format!("crash point {point}"));
    assert_eq!(leader.wait().0, None, "it was ended by a signal");
    let mut command = Command::new(std::env::current_exe().unwrap());
    role(&mut command);
    let healer = Process::start(&mut command);
    let jobs = runtime.block_on(all_done(&site.rowlock));
    healer.signal("TERM");
    assert_eq!(healer.wait().0, Some(0));
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_tick: BTreeMap<jiff::Timestamp, usize> = BTreeMap::new();
    for job in jobs {
        match job.unique_key {
            Some(key) => *by_key.entry(key).or_default() += 1,
            None => *by_tick.entry(job.scheduled_at).or_default() += 1,
        }
    }
    assert_eq!(by_key.len(), ROWS, "every row has had its job");
    assert!(by_tick.len() as u64 >= MISSED, "{by_tick:?}");
    assert!(by_tick.values().all(|jobs| *jobs == 1), "{by_tick:?}");
    let report = runtime.block_on(verify::check(site.rowlock.operate(), None, None));
    let report = report.unwrap();
    let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
    assert!(report.is_clean(), "{lines:#?}");
}

async fn declare_cron(rowlock: &Rowlock) {
    let kind = rowlock::Kind::new("tock").unwrap();
    rowlock.engine().add_kinds(&[kind]).await.unwrap();
    let mut cron = Cron::new(name("minutely"), name("tock"), "* * * * *");
    cron.missed = Missed::All;
    let minute = rowlock::MINUTE.as_secs() as i64;
    let now = rowlock.clock().now().as_second() / minute * minute;
    let next = jiff::Timestamp::from_second(now - MISSED as i64 * minute).unwrap();
    let declared = rowlock
        .schedule()
        .declare_crons(&[(cron, next)], true)
        .await;
    declared.unwrap();
}

/// Every job there was, once nothing is left to do.
async fn all_done(rowlock: &Rowlock) -> Vec<Record> {
    let look = async {
        let mut wakeups = rowlock.engine().wakeups();
        loop {
            wakeups.mark();
            let filter = Filter {
                limit: 10_000,
                ..Filter::default()
            };
            let jobs = rowlock.operate().jobs(filter).await.unwrap();
            let ended = jobs.iter().all(|job| job.state == JobState::Completed);
            if ended && jobs.len() >= ROWS + MISSED as usize {
                return jobs;
            }
            crate::conformance::world::a_moment(&mut wakeups).await;
        }
    };
    let patience = Duration::from_secs(100);
    let done = Clock::system().timeout(patience, look).await;
    done.expect("the rows' work is not done")
}
