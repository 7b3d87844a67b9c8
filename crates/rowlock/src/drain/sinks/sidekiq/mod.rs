//! Sidekiq as a sink: its own workers run the jobs, unmodified, and nothing comes back.
//!
//! A pushed job is Sidekiq's for good. Beside it lies a marker of the claim with the ids that were pushed,
//! written by the same script: a drain that died before it could remove the rows from the store leaves
//! rows that are found delivered, and not pushed again. When Redis has lost the marker, it has lost the
//! jobs as well: they are sent again, under the same jid.

mod format;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use redis::Cmd;

use super::redis::Address;
use super::redis::connect::Link;
use super::redis::scripts::edited;
use crate::claim::ClaimedJob;
use crate::clock::Clock;
use crate::drain::{Fill, Hold, Pushed, Report, Route, SidekiqJob, Sink};
use crate::engine::{Recalled, SentJob};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::{JobId, Name, Token};

/// How long a drain may be away between a push and the removal of the rows.
const MARKED: Duration = Duration::from_secs(24 * 3600);
/// How long the marker stays once the rows are gone: longer than a push may be under way.
const MARKED_STILL: Duration = Duration::from_secs(3600);
/// A script keeps everybody else waiting: larger batches are pushed in parts.
const MOST_BYTES: usize = 4 * 1024 * 1024;

pub(super) struct Sidekiq {
    link: Link,
    clock: Clock,
    /// What every key begins with: its namespace, if it has one.
    prefix: String,
    jobs: BTreeMap<Name, SidekiqJob>,
    /// Whose length counts as what waits: those of the route, and those that something was pushed to.
    queues: Mutex<BTreeSet<Name>>,
    deliver: (Cow<'static, str>, redis::Script),
}

/// Jobs of one claim and one queue, with their texts.
type Part<'a> = ((Token, &'a Name), Vec<(JobId, String)>);

impl Sidekiq {
    pub(super) fn new(route: &Route, clock: Clock) -> Result<Self> {
        let address = Address::parse(&route.to)?;
        let namespace = address.namespace();
        let prefix = namespace.map_or_else(String::new, |name| format!("{name}:"));
        let deliver = edited("deliver", include_str!("deliver.lua"));
        let script = redis::Script::new(&deliver);
        Ok(Self {
            link: Link::new(address, Io::start("rowlock-sidekiq")?),
            clock,
            prefix,
            jobs: route.sidekiq.clone(),
            queues: Mutex::new(route.queues.iter().cloned().collect()),
            deliver: (deliver, script),
        })
    }

    /// The texts of what can be sent, in parts of a bearable size; the others are refused.
    fn parts<'a>(
        &self,
        jobs: &'a [ClaimedJob],
        now: Timestamp,
        refused: &mut Vec<(JobId, String)>,
    ) -> Vec<Part<'a>> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        let mut open: BTreeMap<(Token, &Name), (usize, usize)> = BTreeMap::new();
        for job in jobs {
            let text = match format::write(job, self.jobs.get(&job.kind), now) {
                Ok(text) => text,
                Err(why) => {
                    refused.push((job.id, why));
                    continue;
                }
            };
            let key = (job.token, &job.queue);
            let size = text.len();
            let at = match open.get(&key) {
                Some((at, bytes)) if bytes + size <= MOST_BYTES => *at,
                _ => {
                    parts.push((key, Vec::new()));
                    open.insert(key, (parts.len() - 1, 0));
                    parts.len() - 1
                }
            };
            if let (Some((_, part)), Some((_, bytes))) = (parts.get_mut(at), open.get_mut(&key)) {
                part.push((job.id, text));
                *bytes += size;
            }
        }
        parts
    }

    async fn push_part(&self, part: &Part<'_>, deadline: i64) -> Result<()> {
        let ((token, queue), jobs) = part;
        let arguments = |command: &mut Cmd| {
            command
                .arg(3)
                .arg(self.marker(*token))
                .arg(format!("{}queues", self.prefix))
                .arg(self.list(queue))
                .arg(deadline)
                .arg(MARKED.as_secs())
                .arg(queue.as_str());
            for (id, text) in jobs {
                command.arg(id.0).arg(text);
            }
        };
        let (text, script) = &self.deliver;
        let pushed: i64 = self.link.run(script, text, arguments, "push").await?;
        match pushed {
            0.. => Ok(()),
            _ => Err(Error::Unavailable(format!(
                "jobs arrived too late at {} and were refused there: they are sent again",
                self.link.address()
            ))),
        }
    }

    /// How many jobs wait in the queues, whoever pushed them.
    async fn waiting(&self) -> Result<u64> {
        let queues = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.clone()
        };
        let mut waiting = 0;
        for queue in &queues {
            let length: u64 = self
                .link
                .ask(&Cmd::llen(self.list(queue)), "length")
                .await?;
            waiting += length;
        }
        Ok(waiting)
    }

    fn marker(&self, token: Token) -> String {
        format!("{}rowlock:sent:{}", self.prefix, token.get())
    }

    fn list(&self, queue: &Name) -> String {
        format!("{}queue:{queue}", self.prefix)
    }
}

#[async_trait]
impl Sink for Sidekiq {
    fn reports_back(&self) -> bool {
        false
    }

    /// Any number of stores may send to one Sidekiq: their jids tell them apart.
    async fn open(&self, _store: u64) -> Result<bool> {
        let (): () = self.link.ask(&redis::cmd("PING"), "open").await?;
        Ok(false)
    }

    async fn push(&self, jobs: &[ClaimedJob], within: Duration) -> Result<Pushed> {
        let began = self.clock.elapsed();
        let (seconds, micros): (i64, i64) = self.link.ask(&redis::cmd("TIME"), "time").await?;
        // It was this time there after we had begun: what has passed since then comes off.
        let left = within.saturating_sub(self.clock.elapsed().saturating_sub(began));
        let now = seconds * 1000 + micros / 1000;
        let deadline = now.saturating_add(i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
        let now = Timestamp::from_millisecond(now)
            .map_err(|why| Error::Unavailable(format!("the time of Redis can't be read: {why}")))?;

        let mut refused = Vec::new();
        for part in self.parts(jobs, now, &mut refused) {
            self.push_part(&part, deadline).await?;
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            let ((_, queue), _) = part;
            if !queues.contains(queue) {
                queues.insert(queue.clone());
            }
        }
        let ready = usize::try_from(self.waiting().await?).unwrap_or(usize::MAX);
        Ok(Pushed { ready, refused })
    }

    async fn holds(&self, jobs: &[(JobId, Token)]) -> Result<Vec<Hold>> {
        let tokens: BTreeSet<Token> = jobs.iter().map(|(_, token)| *token).collect();
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let mut ask = redis::cmd("MGET");
        for token in &tokens {
            ask.arg(self.marker(*token));
        }
        let markers: Vec<Option<String>> = self.link.ask(&ask, "holds").await?;
        let delivered: BTreeMap<Token, BTreeSet<JobId>> = tokens
            .into_iter()
            .zip(markers)
            .map(|(token, marker)| (token, ids(marker.as_deref().unwrap_or_default())))
            .collect();
        let hold = |(id, token): &(JobId, Token)| match delivered.get(token) {
            Some(ids) if ids.contains(id) => Hold::Delivered,
            _ => Hold::Gone,
        };
        Ok(jobs.iter().map(hold).collect())
    }

    async fn waiting(&self, _from: u64) -> Result<(u64, Vec<(JobId, Token)>)> {
        Ok((0, Vec::new()))
    }

    async fn bereft(&self, _most: usize) -> Result<Vec<SentJob>> {
        Ok(Vec::new())
    }

    async fn is_my_turn(&self, _lease: Duration) -> Result<bool> {
        // There is nothing to be had.
        Ok(false)
    }

    async fn reports(&self, _most: usize, wait: Duration) -> Result<Vec<Report>> {
        self.clock.sleep(wait).await;
        Ok(Vec::new())
    }

    /// The rows are gone, so nobody will ask for the marker again. It stays for a push that is still on
    /// its way, but not for a day.
    async fn forget(&self, jobs: &[(JobId, Token)]) -> Result<()> {
        let tokens: BTreeSet<Token> = jobs.iter().map(|(_, token)| *token).collect();
        let life = i64::try_from(MARKED_STILL.as_secs()).unwrap_or(i64::MAX);
        for token in tokens {
            let shorten = Cmd::expire(self.marker(token), life);
            let (): () = self.link.ask(&shorten, "forget").await?;
        }
        Ok(())
    }

    async fn recall(&self, _jobs: &[Recalled]) -> Result<()> {
        Ok(())
    }

    async fn fill(&self) -> Result<Fill> {
        Ok(Fill {
            ready: self.waiting().await?,
            ..Fill::default()
        })
    }
}

/// What a marker says.
fn ids(marker: &str) -> BTreeSet<JobId> {
    let id = |text: &str| text.parse().ok().map(JobId);
    marker.split(',').filter_map(id).collect()
}
