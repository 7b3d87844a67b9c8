//! A standby is promoted that has not heard of everything.

use std::collections::{BTreeMap, BTreeSet};

use rowlock::JobId;
use rowlock::verify::{self, RanLog, ToldLog};
use rowlock_testbed::{Postgres, Process, Stop, folder, until};

use super::stand::{Stand, dismiss, rival};
use crate::conformance::world::{Site, job};

async fn keys(site: &Site, ids: Vec<JobId>) -> BTreeMap<JobId, String> {
    let mut keys = BTreeMap::new();
    for id in ids {
        keys.insert(id, site.job(id).await.idempotency_key.unwrap());
    }
    keys
}

pub fn a_job_keeps_its_key_over_a_promotion_and_one_with_its_number_has_another() {
    let primary = Postgres::start_own();
    let stand = Stand::on(&primary);
    let id = stand.ask(stand.site.stage(job("mail")));
    let standby = Postgres::standby_of(&primary);
    standby.follow_nobody();
    // The standby hears of nothing that follows, the first claim ever included.
    let (key, lost) = stand.ask(async {
        let worker = stand.site.join().await;
        let first = stand.site.claim_one(&worker, &["mail"]).await;
        assert_eq!(first.id, id);
        let lost = stand.site.stage_many("later", 100).await;
        (
            first.idempotency_key().unwrap(),
            keys(&stand.site, lost).await,
        )
    });
    primary.stop(Stop::Immediate);
    standby.promote();
    let site = stand.through(&standby.url(&stand.name));
    let fresh = stand.ask(async {
        let worker = site.join().await;
        let second = site.claim_one(&worker, &["mail"]).await;
        assert_eq!((second.id, second.idempotency_key().unwrap()), (id, key));
        let fresh = site.stage_many("later", 100).await;
        keys(&site, fresh).await
    });
    let both: Vec<&JobId> = fresh.keys().filter(|id| lost.contains_key(id)).collect();
    assert!(!both.is_empty(), "no number came again: {lost:?} {fresh:?}");
    for id in both {
        assert_ne!(fresh[id], lost[id], "two jobs, one number, one key");
    }
}

const LEASE_MS: u32 = 3_000;

/// A primary with a standby, a producer that insists, and workers that know both servers.
struct Load {
    primary: Postgres,
    standby: Postgres,
    stand: Stand,
    /// Both servers; whichever takes writes is used.
    url: String,
    logs: tempfile::TempDir,
    workers: Vec<Process>,
    producer: Process,
}

impl Load {
    fn start(synchronous: bool) -> Self {
        let primary = Postgres::start_own();
        let stand = Stand::on(&primary);
        let standby = Postgres::standby_of(&primary);
        if synchronous {
            primary.set("synchronous_standby_names = '*'");
            let side = primary.session();
            until("the standby is synchronous", || {
                let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
                (side.value(state) == "1").then_some(())
            });
        }
        let url = format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/{}?target_session_attrs=read-write",
            primary.port(),
            standby.port(),
            stand.name
        );
        let logs = folder();
        let told = logs.path().join("told").display().to_string();
        let producer = Process::start(&mut rival(&["insist", &url, &told]));
        let mut load = Self {
            primary,
            standby,
            stand,
            url,
            logs,
            workers: Vec::new(),
            producer,
        };
        for _ in 0..3 {
            load.hire();
        }
        load.producer.line_with("told");
        load.stand.until(|counts| counts.completed > 0);
        load
    }

    fn log(&self, name: &str) -> String {
        self.logs.path().join(name).display().to_string()
    }

    fn hire(&mut self) {
        let (ran, keys, lease) = (self.log("ran"), self.log("keys"), LEASE_MS.to_string());
        let role = ["work", &self.url, &lease, "4", "quick,stumbles,naps", &ran];
        let mut worker = Process::start(rival(&role).env("ROWLOCK_TEST_KEYS", keys));
        worker.line_with("ready");
        self.workers.push(worker);
    }

    /// The primary is gone for good; the producer and the workers find the standby by themselves.
    fn fail_over(&mut self) -> Site {
        self.primary.stop(Stop::Immediate);
        self.standby.promote();
        for _ in 0..3 {
            self.producer.line_with("told");
        }
        self.stand.through(&self.standby.url(&self.stand.name))
    }

    /// Everything that is there has run.
    fn end(mut self, site: &Site) -> Self {
        self.producer.signal("TERM");
        let all = async || site.rowlock.operate().stats().await.ok();
        self.stand.eventually("everything has run", async || {
            let counts = all().await?.total;
            (counts.pending + counts.processing == 0).then_some(())
        });
        for worker in self.workers.drain(..) {
            dismiss(worker);
        }
        self
    }

    /// What ran: the job's unique key, its number and its idempotency key.
    fn runs(&self) -> Vec<[String; 3]> {
        let text = std::fs::read_to_string(self.log("keys")).unwrap();
        let words = |line: &str| {
            let mut words = line.split('\t').map(str::to_owned);
            [(); 3].map(|()| words.next().unwrap())
        };
        text.lines().map(words).collect()
    }
}

pub fn four_workers_go_on_behind_a_standby_that_was_three_seconds_behind() {
    let mut load = Load::start(false);
    load.standby.follow_nobody();
    // The standby hears of none of it: neither of this worker, nor of the jobs of three seconds.
    load.hire();
    crate::faults::pass("3");
    let site = load.fail_over();
    load.hire();
    let load = load.end(&site);
    let (mut keys, mut numbers, mut runs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for [job, number, key] in load.runs() {
        let first = keys.entry(job.clone()).or_insert_with(|| key.clone());
        assert_eq!(*first, key, "{job} had two keys");
        numbers
            .entry(number)
            .or_insert_with(BTreeSet::new)
            .insert(key);
        *runs.entry(job).or_insert(0) += 1;
    }
    let jobs: BTreeSet<&String> = keys.values().collect();
    assert_eq!(jobs.len(), keys.len(), "two jobs had one key");
    let twice = numbers.values().filter(|keys| keys.len() > 1).count();
    assert!(twice > 0, "no number came again");
    // Before, after, and once more for those that stumble or whose worker was cut off: nothing goes round.
    let most = runs.values().max().copied().unwrap_or(0);
    assert!(most <= 4, "a job ran {most} times");
    let more = runs.values().filter(|runs| **runs > 1).count();
    load.stand.ask(async {
        let workers = site.rowlock.operate().workers().await.unwrap();
        let names: BTreeSet<_> = workers.iter().map(|worker| worker.id.clone()).collect();
        assert_eq!(names.len(), workers.len());
        let integrity = site.rowlock.operate().integrity().await.unwrap();
        assert!(integrity.is_clean(), "{integrity:?}");
    });
    println!(
        "asynchronous, promoted 3 s behind: {} jobs ran, one key each; {twice} numbers stood for two jobs, two keys each; \
         {more} jobs ran more than once, none more than {most} times",
        keys.len()
    );
}

pub fn a_synchronous_standby_loses_nothing_and_repeats_nothing() {
    let mut load = Load::start(true);
    load.hire();
    load.producer.line_with("told");
    let site = load.fail_over();
    let load = load.end(&site);
    let (told, ran) = (
        ToldLog::read(load.log("told")).unwrap(),
        RanLog::read(load.log("ran")).unwrap(),
    );
    let report = verify::check(site.rowlock.operate(), Some(&told), Some(&ran));
    let report = load.stand.ask(report).unwrap();
    let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
    assert!(report.is_clean() && report.lost == 0, "{lines:#?}");
    println!(
        "synchronous: {} enqueues were acknowledged\n{}",
        told.enqueued(),
        lines.join("\n")
    );
}
