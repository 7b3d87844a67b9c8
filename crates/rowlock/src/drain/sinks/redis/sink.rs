//! What a drain asks of Redis.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Value};

use super::address::Address;
use super::connect::{Link, field};
use super::envelope::{before, hear, label, open, seal};
use super::scripts::{ASK, PUSH};
use crate::claim::ClaimedJob;
use crate::clock::Clock;
use crate::drain::{Fill, Hold, Pushed, Report, Sink};
use crate::engine::{Recalled, SentJob};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::{JobId, Token};

/// The most that is sent at once, in bytes and in jobs: Redis does nothing else meanwhile.
const BYTES: usize = 4 << 20;
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

/// Groups of verdicts that were read and not forgotten as a whole.
#[derive(Debug, Default)]
struct Seen {
    /// In which one each verdict is.
    of: HashMap<(JobId, Token), EntryId>,
    /// How many verdicts are left in each.
    left: BTreeMap<EntryId, usize>,
}

/// A place in the stream: milliseconds of Redis' clock, and a number.
type EntryId = (u64, u64);

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
    async fn send(&self, jobs: &[(i64, String, String)], deadline: u64) -> Result<usize> {
        let store = self.store()?;
        let (said, with): (String, Option<String>) = {
            let mut answer: Vec<String> = PUSH
                .run(&self.link, |command| {
                    command.arg(deadline).arg(store);
                    for (id, label, body) in jobs {
                        command.arg(id).arg(label).arg(body);
                    }
                })
                .await?;
            let with = answer.get(1).cloned();
            (answer.drain(..).next().unwrap_or_default(), with)
        };
        match (said.as_str(), with.as_deref()) {
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
    async fn read(
        &self,
        after: EntryId,
        groups: usize,
        wait: Duration,
    ) -> Result<(Vec<Entry>, u64)> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(groups);
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
        let entries = entries(found).ok_or_else(|| Error::Bug("XREAD answers oddly".to_owned()))?;
        Ok((entries, seconds * 1000 + micros / 1000))
    }

    /// The verdicts of a group that are not forgotten yet, and whether it is empty. Jobs whose verdict can't
    /// be read are named.
    fn reports_of(
        &self,
        entry: Entry,
        redis_now: u64,
        unreadable: &mut Vec<String>,
    ) -> (Vec<Report>, bool) {
        let given = before(self.clock.now(), redis_now.saturating_sub(entry.id.0));
        let mut reports = Vec::with_capacity(entry.told.len());
        for (id, told) in &entry.told {
            match hear(id, told, given) {
                Ok(report) => reports.push(report),
                Err(why) => {
                    let job = String::from_utf8_lossy(id).into_owned();
                    tracing::error!(
                        job,
                        why,
                        "a verdict in Redis can't be read, the job runs again"
                    );
                    unreadable.push(job);
                }
            }
        }
        let name = |report: &Report| (report.settlement.id, report.settlement.token);
        self.seen(|seen| match seen.left.contains_key(&entry.id) {
            true => reports.retain(|report| seen.of.contains_key(&name(report))),
            false if reports.is_empty() => {}
            false => {
                seen.left.insert(entry.id, reports.len());
                seen.of
                    .extend(reports.iter().map(|report| (name(report), entry.id)));
            }
        });
        let is_empty = reports.is_empty();
        (reports, is_empty)
    }

    /// Verdicts that can't be read: their jobs are found lost, and run again.
    async fn drop_unreadable(&self, entries: &[EntryId], jobs: &[String]) -> Result<()> {
        if entries.is_empty() && jobs.is_empty() {
            return Ok(());
        }
        let _: i64 = ASK
            .run(&self.link, |command| {
                command.arg("drop").arg(entries.len());
                for (ms, number) in entries {
                    command.arg(format!("{ms}-{number}"));
                }
                for job in jobs {
                    command.arg(job);
                }
            })
            .await?;
        Ok(())
    }

    async fn forget_there(&self, entries: &[EntryId], jobs: &[(JobId, Token)]) -> Result<()> {
        let _: i64 = ASK
            .run(&self.link, |command| {
                command.arg("forget").arg(entries.len());
                for (ms, number) in entries {
                    command.arg(format!("{ms}-{number}"));
                }
                named(command, jobs);
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

/// A group of verdicts.
struct Entry {
    id: EntryId,
    /// The job's id, and what was said.
    told: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What XREAD has found in the one stream it was asked for.
fn entries(found: Value) -> Option<Vec<Entry>> {
    let Value::Array(mut streams) = found else {
        return Some(Vec::new());
    };
    let Some(Value::Array(stream)) = streams.pop() else {
        return None;
    };
    let Some(Value::Array(entries)) = stream.into_iter().nth(1) else {
        return None;
    };
    entries.into_iter().map(entry).collect()
}

fn entry(found: Value) -> Option<Entry> {
    let Value::Array(parts) = found else {
        return None;
    };
    let [Value::BulkString(id), Value::Array(fields)]: [Value; 2] = parts.try_into().ok()? else {
        return None;
    };
    let (ms, number) = std::str::from_utf8(&id).ok()?.split_once('-')?;
    let mut told = Vec::with_capacity(fields.len() / 2);
    let mut fields = fields.into_iter();
    while let (Some(Value::BulkString(id)), Some(Value::BulkString(said))) =
        (fields.next(), fields.next())
    {
        told.push((id, said));
    }
    Some(Entry {
        id: (ms.parse().ok()?, number.parse().ok()?),
        told,
    })
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
        let mut pushed = Pushed::default();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut batches = Vec::new();
        for job in jobs {
            match seal(job) {
                Ok(body) => {
                    bytes += body.len();
                    batch.push((job.id.0, label(job), body));
                }
                Err(why) => pushed.refused.push((job.id, why)),
            }
            if bytes >= BYTES || batch.len() >= JOBS {
                batches.push(std::mem::take(&mut batch));
                bytes = 0;
            }
        }
        batches.push(batch);
        // By Redis' clock as it was before now: never too late.
        let time = self.time().await?;
        let left = within.saturating_sub(self.clock.elapsed().saturating_sub(begun));
        let deadline = time + u64::try_from(left.as_millis()).unwrap_or(u64::MAX / 2);
        for batch in batches.iter().filter(|batch| !batch.is_empty()) {
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
        let mut answer: Vec<i64> = ASK
            .run(&self.link, |command| {
                command.arg("list").arg(from);
            })
            .await?;
        let next = if answer.is_empty() {
            0
        } else {
            answer.remove(0)
        };
        let jobs = answer.chunks_exact(2);
        let jobs = jobs.map(|job| (JobId(job[0]), Token::stored(job[1])));
        Ok((u64::try_from(next).unwrap_or(0), jobs.collect()))
    }

    async fn bereft(&self, most: usize) -> Result<Vec<SentJob>> {
        let found: Vec<(i64, i64, bool, Vec<u8>)> = ASK
            .run(&self.link, |command| {
                command.arg("bereft").arg(most);
            })
            .await?;
        let found = found.into_iter().map(|(id, token, begun, body)| {
            let (id, token) = (JobId(id), Token::stored(token));
            let mut sent = SentJob::new(id, token);
            // Without a body nothing says that it had begun.
            if let Ok(job) = open(&body, id, token) {
                sent.attempt = job.attempt;
                sent.max_attempts = job.max_attempts;
                sent.backoff = job.backoff;
                sent.suspect = begun;
            }
            sent
        });
        Ok(found.collect())
    }

    async fn reports(&self, most: usize, wait: Duration) -> Result<Vec<Report>> {
        let (mut reports, mut empty, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let (mut after, mut wait) = ((0, 0), wait);
        for groups in PAGES.into_iter().chain(std::iter::repeat(PAGES[3])) {
            let (entries, redis_now) = self.read(after, groups, wait).await?;
            if after == (0, 0) {
                let first = entries.first().map(|entry| entry.id);
                self.seen(|seen| seen.forget_before(first));
            }
            let is_last = entries.len() < groups;
            for entry in entries {
                after = entry.id;
                let (some, is_empty) = self.reports_of(entry, redis_now, &mut unreadable);
                reports.extend(some);
                empty.extend(is_empty.then_some(after));
            }
            if is_last || reports.len() >= most {
                break;
            }
            wait = Duration::ZERO;
        }
        self.drop_unreadable(&empty, &unreadable).await?;
        reports.truncate(most);
        Ok(reports)
    }

    async fn forget(&self, jobs: &[(JobId, Token)]) -> Result<()> {
        for some in jobs.chunks(JOBS) {
            let entries = self.seen(|seen| seen.forget(some));
            if let Err(why) = self.forget_there(&entries, some).await {
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

    async fn fill(&self) -> Result<Fill> {
        let (ready, taken, reports, workers, pushed) = ASK
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
        })
    }
}

impl Seen {
    /// Groups that have gone, because another drain was faster.
    fn forget_before(&mut self, first: Option<EntryId>) {
        let Some(first) = first else {
            *self = Self::default();
            return;
        };
        let kept = self.left.split_off(&first);
        if !self.left.is_empty() {
            self.of.retain(|_, entry| *entry >= first);
        }
        self.left = kept;
    }

    /// Forgets verdicts, and says which groups have none left. If that isn't told to Redis, the whole
    /// group is read again, which does no harm.
    fn forget(&mut self, jobs: &[(JobId, Token)]) -> Vec<EntryId> {
        let mut done = Vec::new();
        for job in jobs {
            let Some(entry) = self.of.remove(job) else {
                continue;
            };
            let Some(left) = self.left.get_mut(&entry) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                self.left.remove(&entry);
                done.push(entry);
            }
        }
        done
    }
}
