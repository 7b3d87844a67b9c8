//! What a drain asks of Redis.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Value};

use super::address::Address;
use super::batch::Batch;
use super::connect::{Link, field};
use super::envelope::{before, open};
use super::group::{Forgotten, Group, GroupId, Seen, groups};
use super::scripts::{ASK, PUSH};
use crate::claim::ClaimedJob;
use crate::clock::Clock;
use crate::drain::{Fill, Hold, Pushed, Report, Sink};
use crate::engine::{Recalled, SentJob};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::{JobId, Token};

/// The most jobs that are asked about at once: Redis does nothing else meanwhile.
const JOBS: usize = 1_000;
/// How many groups of verdicts are read at once, at first and at last.
const PAGES: [usize; 4] = [16, 64, 256, 1024];

/// A Redis that hands jobs to workers and their verdicts back.
#[derive(Debug)]
pub struct RedisSink {
    link: Link,
    /// Its own connection: what waits there waits at the server.
    reader: Link,
    clock: Clock,
    store: Mutex<Option<u64>>,
    seen: Mutex<Seen>,
    /// Tells this process from others that drain to the same place.
    me: i64,
}

impl RedisSink {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that isn't one of a Redis.
    pub fn new(url: &str, clock: Clock) -> Result<Self> {
        let address = Address::parse(url)?;
        let io = Io::start("rowlock-redis")?;
        Ok(Self {
            link: Link::new(address.clone(), io.clone()),
            reader: Link::new(address, io),
            clock,
            store: Mutex::default(),
            seen: Mutex::default(),
            me: Token::random()?.get(),
        })
    }

    fn seen<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn store(&self) -> Result<u64> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.ok_or_else(|| Error::Bug("a sink is used before it is opened".to_owned()))
    }

    fn foreign(&self) -> Error {
        let address = self.link.address();
        Error::Schema(format!(
            "{address} is used by another store: give each one a prefix of its own with ?prefix=NAME \
             in the URL, or remove the key {}:owner if that store is gone",
            address.keys()
        ))
    }

    /// Sends some jobs, which arrive together before `deadline` or not at all.
    async fn send(&self, batch: &Batch, deadline: u64) -> Result<usize> {
        let store = self.store()?;
        let answer: Vec<String> = PUSH
            .run(&self.link, |command| {
                command.arg(deadline).arg(store);
                batch.write(command);
            })
            .await?;
        let mut answer = answer.iter().map(String::as_str);
        match (answer.next().unwrap_or_default(), answer.next()) {
            ("ok", Some(ready)) => Ok(ready.parse().unwrap_or(0)),
            ("late", _) => Err(Error::Unavailable(format!(
                "jobs arrived too late at {} and were refused there: they are sent again",
                self.link.address()
            ))),
            ("owner", Some("")) => Err(Error::Unavailable(format!(
                "{} has lost everything it held: it is sent again",
                self.link.address()
            ))),
            ("owner", _) => Err(self.foreign()),
            other => Err(Error::Bug(format!("push.lua says {other:?}"))),
        }
    }

    /// The time by Redis' own clock, in milliseconds.
    async fn time(&self) -> Result<u64> {
        let (seconds, micros): (u64, u64) = self.link.ask(&redis::cmd("TIME"), "time").await?;
        Ok(seconds * 1000 + micros / 1000)
    }

    /// Verdicts after a place in the stream; waits for the first one.
    async fn read(&self, after: GroupId, most: usize, wait: Duration) -> Result<(Vec<Group>, u64)> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(most);
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        if ms > 0 {
            read.arg("BLOCK").arg(ms);
        }
        read.arg("STREAMS")
            .arg(format!("{}:reports", self.link.address().keys()))
            .arg(format!("{}-{}", after.0, after.1));
        let mut both = redis::pipe();
        both.add_command(read).cmd("TIME");
        // A read that nobody waits for any more may still be before this one.
        let (found, (seconds, micros)): (Value, (u64, u64)) =
            self.reader.ask_for_long(&both, wait * 2, "read").await?;
        let groups = groups(found).ok_or_else(|| Error::Bug("XREAD answers oddly".to_owned()))?;
        Ok((groups, seconds * 1000 + micros / 1000))
    }

    async fn forget_there(&self, forgotten: &Forgotten) -> Result<()> {
        let _: i64 = ASK
            .run(&self.link, |command| {
                command.arg("forget").arg(forgotten.groups.len());
                for ((ms, number), verdicts) in &forgotten.groups {
                    command.arg(format!("{ms}-{number}")).arg(verdicts);
                }
                command.arg(forgotten.reported.len());
                named(command, &forgotten.reported);
                named(command, &forgotten.others);
            })
            .await?;
        Ok(())
    }
}

fn named(command: &mut Cmd, jobs: &[(JobId, Token)]) {
    for (id, token) in jobs {
        command.arg(id.0).arg(token.get());
    }
}

#[async_trait]
impl Sink for RedisSink {
    fn reports_back(&self) -> bool {
        true
    }

    async fn open(&self, store: u64) -> Result<bool> {
        let info: String = self.link.ask(&redis::cmd("INFO"), "info").await?;
        let run = field(&info, "run_id").unwrap_or("-");
        let evicted = field(&info, "evicted_keys").unwrap_or("0");
        let answer: Vec<String> = ASK
            .run(&self.link, |command| {
                command.arg("open").arg(store).arg(run).arg(evicted);
            })
            .await?;
        let is_new = match answer.first().map(String::as_str) {
            Some("known") => false,
            Some("new" | "restarted") => true,
            _ => return Err(self.foreign()),
        };
        if is_new {
            self.seen(|seen| *seen = Seen::default());
        }
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
        Ok(is_new)
    }

    async fn push(&self, jobs: &[ClaimedJob], within: Duration) -> Result<Pushed> {
        let begun = self.clock.elapsed();
        let (batches, refused) = Batch::of(jobs);
        let mut pushed = Pushed { ready: 0, refused };
        // By Redis' clock as it was before now: never too late.
        let time = self.time().await?;
        let left = within.saturating_sub(self.clock.elapsed().saturating_sub(begun));
        let deadline = time + u64::try_from(left.as_millis()).unwrap_or(u64::MAX / 2);
        for batch in &batches {
            pushed.ready = self.send(batch, deadline).await?;
        }
        Ok(pushed)
    }

    async fn holds(&self, jobs: &[(JobId, Token)]) -> Result<Vec<Hold>> {
        let mut holds = Vec::with_capacity(jobs.len());
        for some in jobs.chunks(JOBS) {
            let answer: String = ASK
                .run(&self.link, |command| {
                    command.arg("holds");
                    named(command, some);
                })
                .await?;
            holds.extend(answer.bytes().map(|hold| match hold {
                b'H' => Hold::Held,
                b'B' => Hold::Bereft,
                _ => Hold::Gone,
            }));
        }
        match holds.len() == jobs.len() {
            true => Ok(holds),
            false => Err(Error::Bug(
                "ask.lua has not answered for each job".to_owned(),
            )),
        }
    }

    async fn waiting(&self, from: u64) -> Result<(u64, Vec<(JobId, Token)>)> {
        let answer: Vec<i64> = ASK
            .run(&self.link, |command| {
                command.arg("list").arg(from);
            })
            .await?;
        let Some((next, jobs)) = answer.split_first() else {
            return Ok((0, Vec::new()));
        };
        let jobs = jobs.chunks_exact(2);
        let jobs = jobs.map(|job| (JobId(job[0]), Token::stored(job[1])));
        Ok((u64::try_from(*next).unwrap_or(0), jobs.collect()))
    }

    async fn bereft(&self, most: usize) -> Result<Vec<SentJob>> {
        let found: Vec<(i64, i64, bool, Vec<u8>)> = ASK
            .run(&self.link, |command| {
                command.arg("bereft").arg(most);
            })
            .await?;
        let found = found.into_iter().map(|(id, token, begun, entry)| {
            let token = Token::stored(token);
            let mut sent = SentJob::new(JobId(id), token);
            // What can't be read had not begun.
            if let Some(Ok(job)) = open(&entry, token).map(|opened| opened.job) {
                sent.attempt = job.attempt;
                sent.max_attempts = job.max_attempts;
                sent.backoff = job.backoff;
                sent.suspect = begun;
            }
            sent
        });
        Ok(found.collect())
    }

    async fn is_my_turn(&self, lease: Duration) -> Result<bool> {
        let key = format!("{}:collector", self.link.address().keys());
        let ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let mut take = redis::cmd("SET");
        take.arg(&key).arg(self.me).arg("NX").arg("PX").arg(ms);
        let mut holder = redis::cmd("GET");
        holder.arg(&key);
        let _: Option<String> = self.link.ask(&take, "collector").await?;
        let holder: Option<i64> = self.link.ask(&holder, "collector").await?;
        if holder != Some(self.me) {
            return Ok(false);
        }
        let mut keep = redis::cmd("PEXPIRE");
        let _: i64 = self.link.ask(keep.arg(&key).arg(ms), "collector").await?;
        Ok(true)
    }

    async fn reports(&self, most: usize, wait: Duration) -> Result<Vec<Report>> {
        let (mut reports, mut dropped) = (Vec::new(), Forgotten::default());
        let (mut after, mut wait) = ((0, 0), wait);
        for most_groups in PAGES.into_iter().chain(std::iter::repeat(PAGES[3])) {
            let (groups, redis_now) = self.read(after, most_groups, wait).await?;
            if after == (0, 0) {
                let first = groups.first().map(|group| group.id);
                self.seen(|seen| seen.forget_before(first));
            }
            let is_last = groups.len() < most_groups;
            for group in groups {
                after = group.id;
                let given = before(self.clock.now(), redis_now.saturating_sub(after.0));
                reports.extend(self.seen(|seen| seen.reports(&group, given, &mut dropped)));
            }
            if is_last || reports.len() >= most {
                break;
            }
            wait = Duration::ZERO;
        }
        if !dropped.is_empty() {
            self.forget_there(&dropped).await?;
        }
        reports.truncate(most);
        Ok(reports)
    }

    async fn forget(&self, jobs: &[(JobId, Token)]) -> Result<()> {
        for some in jobs.chunks(JOBS) {
            let forgotten = self.seen(|seen| seen.forget(some));
            if let Err(why) = self.forget_there(&forgotten).await {
                // What was forgotten here and not there is read again, as a whole.
                self.seen(|seen| *seen = Seen::default());
                return Err(why);
            }
        }
        Ok(())
    }

    async fn recall(&self, jobs: &[Recalled]) -> Result<()> {
        for some in jobs.chunks(JOBS) {
            let _: i64 = ASK
                .run(&self.link, |command| {
                    command.arg("recall");
                    for job in some {
                        let wanted = if job.cancel { "cancel" } else { "stop" };
                        command.arg(job.id.0).arg(job.token.get()).arg(wanted);
                    }
                })
                .await?;
        }
        Ok(())
    }

    async fn fill(&self) -> Result<Fill> {
        let (ready, taken, reports, workers, pushed, resent) = ASK
            .run(&self.link, |command| {
                command.arg("fill");
            })
            .await?;
        Ok(Fill {
            ready,
            taken,
            reports,
            workers,
            pushed,
            resent,
        })
    }

    async fn count_lost(&self, jobs: usize) -> Result<()> {
        let key = format!("{}:resent", self.link.address().keys());
        let mut count = redis::cmd("INCRBY");
        let _: i64 = self.link.ask(count.arg(&key).arg(jobs), "resent").await?;
        Ok(())
    }
}
