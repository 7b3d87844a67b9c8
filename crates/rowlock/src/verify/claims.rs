//! A ran log by job: its claims, and what came of each.

use std::collections::HashMap;
use std::path::Path;

use super::lines;
use super::ran::{Ending, Event, Phase};
use crate::error::Result;
use crate::job::{JobId, Token};

/// What a ran log says about each job.
#[derive(Debug, Default)]
pub struct RanLog {
    pub(super) jobs: HashMap<JobId, Vec<Claim>>,
    /// Workers by their place in the order of their first lines: the names are long.
    workers: HashMap<String, u32>,
    /// Who used a token first.
    tokens: HashMap<Token, u32>,
    lines: u64,
}

/// What happened to one job under one token.
#[derive(Debug)]
pub(super) struct Claim {
    token: Token,
    /// The first line about it. Lines of several processes are in the order of their writing.
    since: u64,
    pub(super) starts: u32,
    pub(super) attempt: u32,
    /// Whether another worker has used this token too.
    pub(super) shared: bool,
    pub(super) accepted: Vec<Ending>,
    pub(super) refused: u32,
}

impl RanLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with the line that isn't one.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut log = Self::default();
        lines::read(path.as_ref(), |event: Event<'static>| log.add(&event))?;
        Ok(log)
    }

    /// Takes a line into account.
    pub fn add(&mut self, event: &Event<'_>) {
        self.lines += 1;
        let worker = self.worker(&event.worker);
        let owner = *self.tokens.entry(event.token).or_insert(worker);
        let claims = self.jobs.entry(event.id).or_default();
        let at = claims.iter().position(|claim| claim.token == event.token);
        let at = at.unwrap_or_else(|| {
            claims.push(Claim {
                token: event.token,
                since: self.lines,
                starts: 0,
                attempt: event.attempt,
                shared: false,
                accepted: Vec::new(),
                refused: 0,
            });
            claims.len() - 1
        });
        let claim = &mut claims[at];
        claim.shared |= owner != worker;
        claim.attempt = claim.attempt.max(event.attempt);
        match (event.event, event.outcome, event.accepted) {
            (Phase::Start, ..) => claim.starts += 1,
            (Phase::End, Some(ending), Some(true)) => claim.accepted.push(ending),
            (Phase::End, Some(ending), _) if ending != Ending::Dropped => claim.refused += 1,
            (Phase::End, ..) => {}
        }
    }

    fn worker(&mut self, name: &str) -> u32 {
        match self.workers.get(name) {
            Some(worker) => *worker,
            None => {
                let next = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
                self.workers.insert(name.to_owned(), next);
                next
            }
        }
    }

    /// How many jobs were begun more than once.
    #[must_use]
    pub fn run_more_than_once(&self) -> usize {
        let starts = |claims: &[Claim]| claims.iter().map(|claim| claim.starts).sum::<u32>();
        let often = self.jobs.values().filter(|claims| starts(claims) > 1);
        often.count()
    }

    /// How many answers came too late and were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let claims = self.jobs.values().flatten();
        claims.map(|claim| u64::from(claim.refused)).sum()
    }

    /// What the store has taken about a job, in the order in which it was claimed.
    ///
    /// A line about an end may be late: a process can be stopped between the commit and the line.
    /// A line about a start can't, for a claim that was accepted: it was written before the commit that
    /// allowed the next claim.
    pub(super) fn accepted(&self, id: JobId) -> Vec<Ending> {
        let mut claims: Vec<&Claim> = self.jobs.get(&id).into_iter().flatten().collect();
        claims.sort_by_key(|claim| claim.since);
        let endings = claims.into_iter().flat_map(|claim| &claim.accepted);
        endings.copied().collect()
    }

    /// Whether the store has taken an end of this job.
    pub(super) fn has_ended(&self, id: JobId) -> bool {
        let claims = self.jobs.get(&id).into_iter().flatten();
        let mut endings = claims.flat_map(|claim| &claim.accepted);
        endings.any(|ending| ending.is_terminal())
    }
}
