//! What a worker asks of Redis.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use redis::{Cmd, Value};

use super::address::Address;
use super::connect::Link;
use super::envelope::{Origin, open, tell};
use super::listen::Listener;
use super::parcels::Parcels;
use super::scripts::{SETTLE, TAKE};
use crate::claim::{Claim, Claimed, Heartbeat, QueueOrder, WorkerId};
use crate::clock::{self, Clock};
use crate::engine::{Capabilities, Dispatch, Wakeups};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::{JobId, Token};
use crate::log;
use crate::settle::{Settled, Settlement, Verdict};

/// How long a job waits whose body can't be read: until then somebody has looked at the log.
const UNREADABLE: Duration = Duration::from_secs(30);

/// The most verdicts that are sent at once.
const MOST: usize = 2_000;

/// A Redis that hands out jobs.
#[derive(Debug)]
pub struct Redis {
    link: Link,
    clock: Clock,
    listener: Listener,
    parcels: Parcels,
    turn: AtomicUsize,
}

impl Redis {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that isn't one of a Redis.
    pub fn open(url: &str, clock: Clock) -> Result<Self> {
        Ok(Self {
            link: Link::new(Address::parse(url)?, Io::start("rowlock-redis")?),
            clock,
            listener: Listener::default(),
            parcels: Parcels::default(),
            turn: AtomicUsize::new(0),
        })
    }

    /// Sees whether the server answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) while it is away, loads or is busy, and what else it answers.
    pub async fn ping(&self) -> Result<()> {
        self.link.ask(&redis::cmd("PING"), "ping").await
    }

    /// Where it is; without a password.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.link.address()
    }

    async fn take(&self, arguments: impl Fn(&mut Cmd)) -> Result<Vec<Value>> {
        let mut answer: Vec<Value> = TAKE.run(&self.link, arguments).await?;
        match answer.first() {
            Some(Value::BulkString(said)) if said == b"ok" => Ok(answer.split_off(1)),
            Some(Value::BulkString(said)) if said == b"lost" => Err(Error::LeaseLost),
            other => Err(Error::Bug(format!("take.lua says {other:?}"))),
        }
    }

    async fn settle_some(&self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let now = self.clock.now();
        let mut takes: BTreeMap<Token, Take> = BTreeMap::new();
        let mut seen = HashSet::with_capacity(settlements.len());
        // Of two verdicts on the same claim the first one counts.
        let is_first = |(_, each): &(usize, &Settlement)| seen.insert((each.token, each.id));
        let first = settlements.iter().enumerate().filter(is_first);
        let elsewhere = self.parcels.look(|origins| {
            let mut elsewhere = Vec::new();
            for (at, each) in first {
                match origins.of(each.token, each.id) {
                    Some(origin) => add(&mut takes, at, each, origin, now)?,
                    None => elsewhere.push((at, each)),
                }
            }
            Ok::<_, Error>(elsewhere)
        })?;
        for (at, each) in elsewhere {
            if let Some(origin) = self.origin(each.token, each.id).await? {
                add(&mut takes, at, each, &origin, now)?;
            }
        }
        let mut settled = vec![Settled::LeaseLost; settlements.len()];
        if takes.is_empty() {
            return Ok(settled);
        }
        let answer: String = SETTLE
            .run(&self.link, |command| {
                takes
                    .iter()
                    .for_each(|(token, take)| take.write(*token, command));
            })
            .await?;
        let places = takes.values().flat_map(Take::places);
        if answer.len() != places.clone().count() {
            let why = "settle.lua has not answered for each verdict";
            return Err(Error::Bug(why.to_owned()));
        }
        for (accepted, (at, _)) in answer.bytes().zip(places) {
            if accepted == b'1' {
                settled[at] = Settled::Accepted;
            }
        }
        for (token, take) in &takes {
            self.parcels
                .settled(*token, take.places().map(|(_, id)| id));
        }
        Ok(settled)
    }

    /// Where a job comes from that another handle has taken; nothing when nobody has under this token.
    async fn origin(&self, take: Token, id: JobId) -> Result<Option<Origin>> {
        let mut get = redis::cmd("LRANGE");
        let key = format!("{}:parcel:{}", self.link.address().keys(), take.get());
        get.arg(key).arg(1).arg(-1);
        let entries: Vec<Vec<u8>> = self.link.ask(&get, "parcel").await?;
        let opened = entries.iter().filter_map(|entry| open(entry, take));
        let mut found = opened.filter(|opened| opened.id == id);
        Ok(found.next().map(|opened| opened.origin()))
    }

    /// What can't be read goes back for a while, and keeps nobody from the rest.
    async fn snooze(&self, unreadable: Vec<(JobId, Token)>) {
        if unreadable.is_empty() {
            return;
        }
        let later = clock::add(self.clock.now(), UNREADABLE);
        let settlements = unreadable.into_iter().map(|(id, token)| Settlement {
            id,
            token,
            verdict: Verdict::Snooze(later),
            started_at: None,
        });
        if let Err(why) = self.settle(settlements.collect()).await {
            // Nobody holds them: the next heartbeat releases them.
            log::warn!(%why, "jobs that can't be read are not put off yet");
        }
    }
}

/// Verdicts on jobs of one take, as the script wants them; each with its place among all of them.
#[derive(Default)]
struct Take {
    told: Vec<(usize, JobId)>,
    /// `ID TOKEN ID TOKEN ...`
    jobs: String,
    lines: String,
    released: Vec<(usize, JobId)>,
}

fn add(
    takes: &mut BTreeMap<Token, Take>,
    at: usize,
    each: &Settlement,
    origin: &Origin,
    now: Timestamp,
) -> Result<()> {
    let take = takes.entry(each.token).or_default();
    match each.verdict {
        Verdict::Release => take.released.push((at, each.id)),
        _ => take.add(at, each.id, origin.sent, &tell(each, origin, now)?),
    }
    Ok(())
}

impl Take {
    fn add(&mut self, at: usize, id: JobId, sent: Token, told: &str) {
        if !self.told.is_empty() {
            self.jobs.push(' ');
            self.lines.push('\n');
        }
        self.told.push((at, id));
        // Writing to a text can't fail.
        let _ = write!(self.jobs, "{id} {}", sent.get());
        self.lines.push_str(told);
    }

    fn write(&self, token: Token, command: &mut Cmd) {
        command.arg(token.get()).arg(self.told.len());
        self.told.iter().for_each(|(_, id)| _ = command.arg(id.0));
        command.arg(&self.jobs).arg(&self.lines);
        command.arg(self.released.len());
        self.released
            .iter()
            .for_each(|(_, id)| _ = command.arg(id.0));
    }

    fn places(&self) -> impl Iterator<Item = (usize, JobId)> + Clone + '_ {
        self.told.iter().chain(&self.released).copied()
    }
}

/// A worker as the scripts name it: one word.
fn word(worker: &WorkerId) -> String {
    worker.as_str().replace(char::is_whitespace, "_")
}

fn wants(command: &mut Cmd, claim: &Claim, turn: usize) {
    let order = match claim.order {
        QueueOrder::Strict => "strict",
        QueueOrder::Fair | QueueOrder::Weighted(_) => "shared",
    };
    command
        .arg("take")
        .arg(word(&claim.worker))
        .arg(claim.token.get())
        .arg(claim.limit)
        .arg(u8::from(claim.suspect))
        .arg(turn)
        .arg(order);
    for names in [&claim.queues, &claim.kinds] {
        command.arg(names.len());
        for name in names {
            command.arg(name.as_str());
        }
    }
    command.arg(claim.caps.len());
    for (queue, cap) in &claim.caps {
        command.arg(queue.as_str()).arg(cap);
    }
    match &claim.order {
        QueueOrder::Weighted(weights) => {
            command.arg(weights.len());
            for (queue, weight) in weights {
                command.arg(queue.as_str()).arg((*weight).max(1));
            }
        }
        QueueOrder::Fair | QueueOrder::Strict => {
            command.arg(0);
        }
    }
}

#[async_trait]
impl Dispatch for Redis {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "redis",
            server_clock: true,
            prunes_by_day: false,
            drained: true,
        }
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        let ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1);
        self.take(|command| {
            command.arg("join").arg(word(worker)).arg(ms);
        })
        .await?;
        Ok(())
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        let answer = self
            .take(|command| {
                command.arg("beat").arg(word(worker));
                for token in &held {
                    command.arg(token.get());
                }
            })
            .await?;
        self.parcels.keep(worker, &held);
        let (released, cancel, stopped): (usize, Vec<i64>, Vec<i64>) = read(answer)?;
        let ids = |ids: Vec<i64>| ids.into_iter().map(JobId).collect();
        Ok(Heartbeat {
            cancel_requested: ids(cancel),
            stopped: ids(stopped),
            released,
        })
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % (1 << 30);
        let answer = self.take(|command| wants(command, &claim, turn)).await?;
        let (entries,): (Vec<Vec<u8>>,) = read(answer)?;
        let mut answer = Claimed::default();
        let (mut origins, mut unreadable) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(opened) = open(&entry, claim.token) else {
                // It is dropped when it goes back.
                log::error!("something in Redis that is no job was taken");
                continue;
            };
            origins.push((opened.id, opened.origin()));
            match opened.job {
                Ok(job) => answer.jobs.push(job),
                Err(why) => {
                    log::error!(job = %opened.id, why, "a job in Redis can't be read");
                    unreadable.push((opened.id, claim.token));
                }
            }
        }
        self.parcels.add(claim.token, Some(claim.worker), origins);
        self.snooze(unreadable).await;
        Ok(answer)
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.take(|command| {
            let command = command.arg("begin").arg(word(worker));
            command.arg(id.0).arg(token.get());
        })
        .await?;
        Ok(())
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        let mut settled = Vec::with_capacity(settlements.len());
        for some in settlements.chunks(MOST) {
            settled.extend(self.settle_some(some).await?);
        }
        Ok(settled)
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        let left = self
            .take(|command| {
                command.arg("leave").arg(word(worker));
            })
            .await;
        self.parcels.keep(worker, &[]);
        match left {
            // It was given up before: a drain takes care of what it held.
            Ok(_) | Err(Error::LeaseLost) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn forget(&self, worker: &WorkerId) {
        self.parcels.keep(worker, &[]);
    }

    fn wakeups(&self) -> Wakeups {
        self.listener.wakeups(&self.link)
    }
}

fn read<T: redis::FromRedisValue>(answer: Vec<Value>) -> Result<T> {
    redis::from_redis_value(Value::Array(answer))
        .map_err(|why| Error::Bug(format!("take.lua answers oddly: {why}")))
}
