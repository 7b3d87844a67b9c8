//! Fetching jobs: both claims of a round, and when to look again.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;

use super::registry::Asked;
use crate::claim::{Claim, ClaimedJob};
use crate::clock::{Clock, Elapsed};
use crate::engine::{Dispatch, Wakeups};
use crate::error::Error;
use crate::event;
use crate::job::Name;

/// What a claim brought: jobs, and when to look again.
pub(crate) struct Haul {
    pub(crate) jobs: Vec<ClaimedJob>,
    /// Claimed, and their rows need nothing any more.
    pub(crate) not_needed: Vec<ClaimedJob>,
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) rest: Option<Duration>,
    pub(crate) full: bool,
    /// If it is empty, nothing is due.
    pub(crate) thorough: bool,
}

/// What a claim brought.
pub(crate) type Hauled = Result<Haul, Error>;

/// An answer to a claim: its tokens, which are held until what it brought is, and the kinds that it was for.
pub(super) type Answered = (Asked, Vec<Name>, Hauled);

/// A claim under way.
pub(super) type Claiming = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// The claims under way, each with how many jobs it may bring.
#[derive(Default)]
pub(super) struct Claims(Vec<(usize, Claiming)>);

impl Claims {
    pub(super) fn begin(&mut self, room: usize, claiming: Claiming) {
        self.0.push((room, claiming));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many jobs they may bring.
    pub(super) fn asked(&self) -> usize {
        self.0.iter().map(|(room, _)| room).sum()
    }

    /// Whichever is answered first; without one, never.
    pub(super) async fn answer(&mut self) -> Answered {
        poll_fn(|cx| {
            for n in 0..self.0.len() {
                if let Poll::Ready(haul) = self.0[n].1.as_mut().poll(cx) {
                    drop(self.0.remove(n));
                    return Poll::Ready(haul);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether to look for jobs, and if not, when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Look {
    Now,
    /// More may be waiting; there was no room for it.
    WithRoom,
    /// At this time: whatever happens meanwhile must not put it off.
    At(Elapsed),
    /// The store didn't answer.
    Again(Elapsed),
}

/// Both claims at once: they share a transaction where the engine groups commits.
pub(crate) async fn fetch(
    engine: &dyn Dispatch,
    ordinary: Claim,
    suspect: Option<Claim>,
) -> Hauled {
    let (limit, thorough) = (ordinary.limit, ordinary.thorough);
    let ask_suspect = async {
        match suspect {
            Some(claim) => engine.claim(claim).await,
            None => Ok(Default::default()),
        }
    };
    // Real time, also under a manual clock: it is about how the store is doing.
    let began = Clock::system().elapsed();
    let (ordinary, suspect) = tokio::join!(engine.claim(ordinary), ask_suspect);
    let took = Clock::system().elapsed().saturating_sub(began);
    match (ordinary, suspect) {
        (Ok(mut ordinary), Ok(suspect)) => {
            let full = ordinary.jobs.len() >= limit || !suspect.jobs.is_empty();
            ordinary.jobs.extend(suspect.jobs);
            event::claimed(ordinary.jobs.len(), took);
            Ok(Haul {
                jobs: ordinary.jobs,
                not_needed: Vec::new(),
                next_due: earliest(ordinary.next_due, suspect.next_due),
                rest: ordinary.rest,
                full,
                thorough,
            })
        }
        // What the other one brought is released by the next heartbeat.
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

pub(super) async fn wait(clock: &Clock, wakeups: &mut Wakeups, look: Look) {
    let at = match look {
        Look::At(at) | Look::Again(at) => at,
        _ => return wakeups.next().await,
    };
    tokio::select! {
        () = wakeups.next() => {}
        () = clock.sleep(at.saturating_sub(clock.elapsed())) => {}
    }
}
