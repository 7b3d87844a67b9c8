//! What a worker asks of Redis.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Value};

use super::address::Address;
use super::connect::Link;
use super::envelope::{open, tell};
use super::listen::Listener;
use super::scripts::{SETTLE, TAKE};
use crate::claim::{Claim, Claimed, Heartbeat, QueueOrder, WorkerId};
use crate::clock::{self, Clock};
use crate::engine::{Capabilities, Dispatch, Wakeups};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::{JobId, Token};
use crate::settle::{Settled, Settlement, Verdict};

/// How long a job waits whose body can't be read: until then somebody has looked at the log.
const UNREADABLE: Duration = Duration::from_secs(30);

/// A Redis that hands out jobs.
#[derive(Debug)]
pub struct Redis {
    link: Link,
    clock: Clock,
    listener: Listener,
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
            turn: AtomicUsize::new(0),
        })
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
            tracing::warn!(%why, "jobs that can't be read are not put off yet");
        }
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
        let (ids, bodies): (Vec<i64>, Vec<Option<Vec<u8>>>) = read(answer)?;
        let mut answer = Claimed::default();
        let mut unreadable = Vec::new();
        for (id, body) in ids.into_iter().map(JobId).zip(bodies) {
            let body = body.ok_or_else(|| "it is missing".to_owned());
            match body.and_then(|body| open(&body, id, claim.token)) {
                Ok(job) => answer.jobs.push(job),
                Err(why) => {
                    tracing::error!(job = %id, why, "the body of a job in Redis can't be read");
                    unreadable.push((id, claim.token));
                }
            }
        }
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
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let said = settlements.iter().map(|each| match each.verdict {
            Verdict::Release => Ok("release".to_owned()),
            _ => tell(each, now),
        });
        let said: Vec<String> = said.collect::<Result<_>>()?;
        let answer: String = SETTLE
            .run(&self.link, |command| {
                for (each, said) in settlements.iter().zip(&said) {
                    command.arg(each.id.0).arg(each.token.get()).arg(said);
                }
            })
            .await?;
        if answer.len() != settlements.len() {
            let why = "settle.lua has not answered for each verdict";
            return Err(Error::Bug(why.to_owned()));
        }
        let settled = answer.bytes().map(|accepted| match accepted {
            b'1' => Settled::Accepted,
            _ => Settled::LeaseLost,
        });
        Ok(settled.collect())
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        let left = self
            .take(|command| {
                command.arg("leave").arg(word(worker));
            })
            .await;
        match left {
            // It was given up before: a drain takes care of what it held.
            Ok(_) | Err(Error::LeaseLost) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn wakeups(&self) -> Wakeups {
        self.listener.wakeups(&self.link)
    }
}

fn read<T: redis::FromRedisValue>(answer: Vec<Value>) -> Result<T> {
    redis::from_redis_value(Value::Array(answer))
        .map_err(|why| Error::Bug(format!("take.lua answers oddly: {why}")))
}
