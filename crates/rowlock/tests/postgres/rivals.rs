//! Late commits, rollbacks, retries and delays, while the ring turns as fast as it can.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowlock::JobId;
use rowlock::claim::ClaimedJob;
use rowlock::clock::{Clock, add};
use rowlock::job::{ErrorKind, JobError, Token};
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::verify::check;
use rowlock_testbed::Session;
use tokio::task::JoinSet;

use super::home::Own;
use super::small::Small;
use crate::conformance::world::{Site, a_moment, wanted};

const TRANSACTIONS: u64 = 120;
/// So many are open at a time: each stays open while about as many others begin and end.
const OPEN: usize = 20;
const KINDS: [&str; 3] = ["plain", "stumbles", "naps"];
/// It can only fail the case.
const DEADLINE: Duration = Duration::from_secs(60);

/// The same numbers for the same seed (splitmix64).
fn mix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What became of the transactions of one producer.
#[derive(Default)]
struct Told {
    committed: BTreeSet<JobId>,
    rolled_back: BTreeSet<JobId>,
}

fn produce(own: &Own, seed: u64) -> Told {
    let mut told = Told::default();
    let mut idle: Vec<Session> = (0..OPEN).map(|_| own.session()).collect();
    let mut open: Vec<(Session, Vec<JobId>)> = Vec::new();
    let mut begun = 0;
    for n in 0.. {
        let dice = mix(seed, n);
        let may_begin = begun < TRANSACTIONS && !idle.is_empty();
        if may_begin && (open.is_empty() || !dice.is_multiple_of(3)) {
            begun += 1;
            let session = idle.pop().unwrap();
            let level = match dice >> 8 & 3 {
                0 => "BEGIN ISOLATION LEVEL REPEATABLE READ",
                _ => "BEGIN",
            };
            session.execute(level).unwrap();
            let jobs: Vec<String> = (0..dice >> 16 & 31)
                .map(|job| {
                    let kind = KINDS[usize::try_from(mix(dice, job) % 3).unwrap()];
                    let delay = mix(dice, job + 100) % 400;
                    match delay < 100 {
                        true => format!(r#"{{"kind": "{kind}", "delay_ms": {delay}}}"#),
                        false => format!(r#"{{"kind": "{kind}"}}"#),
                    }
                })
                .collect();
            let sql = format!("SELECT id FROM rowlock.stage('[{}]')", jobs.join(","));
            let ids = session.query(&sql).unwrap().into_iter().flatten().flatten();
            open.push((session, ids.map(|id| JobId(id.parse().unwrap())).collect()));
        } else if open.is_empty() {
            break;
        } else {
            let at = usize::try_from(dice >> 16).unwrap() % open.len();
            let (session, ids) = open.swap_remove(at);
            match dice >> 8 & 3 {
                0 => {
                    session.execute("ROLLBACK").unwrap();
                    told.rolled_back.extend(ids);
                }
                _ => {
                    session.execute("COMMIT").unwrap();
                    told.committed.extend(ids);
                }
            }
            idle.push(session);
        }
    }
    told
}

/// How often each job was done.
type Done = Arc<Mutex<BTreeMap<JobId, u32>>>;

async fn consume(site: Site, done: Done, over: Arc<AtomicBool>, seed: u64) {
    let worker = site.join().await;
    let mut wakeups = site.engine().wakeups();
    let mut dice = seed;
    while !over.load(Ordering::Relaxed) {
        let claim = wanted(&worker, &KINDS, 40);
        let jobs = site.engine().claim(claim).await.unwrap().jobs;
        site.engine().upkeep().await.unwrap();
        if jobs.is_empty() {
            a_moment(&mut wakeups).await;
            continue;
        }
        let mut verdict = |job: &ClaimedJob| {
            dice = mix(dice, 1);
            let at = add(
                site.rowlock.clock().now(),
                Duration::from_millis(dice % 150),
            );
            match job.kind.as_str() {
                "stumbles" if job.attempt == 1 => Verdict::Retry {
                    at,
                    error: JobError::new(job.attempt, at, ErrorKind::Error, "the first time"),
                },
                "naps" if dice >> 8 & 1 == 0 => Verdict::Snooze(at),
                _ if dice >> 16 & 7 == 0 => Verdict::Release,
                _ => Verdict::Done,
            }
        };
        let settlement = |job: &ClaimedJob| Settlement {
            id: job.id,
            token: job.token,
            verdict: verdict(job),
            started_at: None,
        };
        let settlements: Vec<Settlement> = jobs.iter().map(settlement).collect();
        let answers = site.engine().settle(settlements.clone()).await.unwrap();
        for (settlement, answer) in settlements.iter().zip(answers) {
            assert_eq!(answer, Settled::Accepted, "{settlement:?}");
            if settlement.verdict == Verdict::Done {
                *done.lock().unwrap().entry(settlement.id).or_default() += 1;
            }
        }
    }
}

pub async fn nothing_is_lost_while_the_ring_turns(small: Small) {
    let seed = match std::env::var("ROWLOCK_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => Token::random().unwrap().get().unsigned_abs(),
    };
    eprintln!("repeat with ROWLOCK_SEED={seed}");
    let (done, over) = (Done::default(), Arc::new(AtomicBool::new(false)));
    let mut consumers = JoinSet::new();
    for n in 0..2 {
        let site = small.open_with(&Clock::system(), 8 * 1024);
        consumers.spawn(consume(site, done.clone(), over.clone(), seed ^ n));
    }
    let mut producers = JoinSet::new();
    for n in 0..2 {
        let own = Arc::clone(&small.own);
        producers.spawn_blocking(move || produce(&own, mix(seed, n)));
    }
    let (mut told, mut seen, mut retired) = (Told::default(), Vec::new(), 0);
    let clock = Clock::system();
    let mut quiet_since = None;
    loop {
        // As the engine does, but without a pause.
        let turned = small.rotate_at(8 * 1024, &seen);
        retired += turned.iter().filter(|each| each.did == "retired").count();
        seen = turned.into_iter().flat_map(|each| each.holders).collect();
        while let Some(one) = producers.try_join_next() {
            let one = one.unwrap();
            told.committed.extend(one.committed);
            told.rolled_back.extend(one.rolled_back);
        }
        // A consumer ends only by a panic.
        if let Some(ended) = consumers.try_join_next() {
            ended.unwrap();
        }
        if !producers.is_empty() {
            continue;
        }
        let since = *quiet_since.get_or_insert(clock.elapsed());
        let ran: BTreeSet<JobId> = done.lock().unwrap().keys().copied().collect();
        let missing: Vec<&JobId> = told.committed.difference(&ran).collect();
        if missing.is_empty() || clock.elapsed() - since > DEADLINE {
            assert_eq!(missing, [&JobId(0); 0], "never done");
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    while let Some(consumer) = consumers.join_next().await {
        consumer.unwrap();
    }
    let done = std::mem::take(&mut *done.lock().unwrap());
    assert!(done.values().all(|times| *times == 1), "{done:?}");
    let ran: BTreeSet<JobId> = done.into_keys().collect();
    assert_eq!(ran.intersection(&told.rolled_back).count(), 0);
    assert_eq!(ran, told.committed);
    assert!(retired > 20, "the ring hardly turned: {retired}");
    let site = small.open(&Clock::system());
    let stats = site.rowlock.operate().stats().await.unwrap().total;
    let left = (stats.pending, stats.processing, stats.completed);
    assert_eq!(left, (0, 0, u64::try_from(ran.len()).unwrap()));
    let report = check(site.rowlock.operate(), None, None).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
}
