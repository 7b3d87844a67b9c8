//! One attempt: the handler under its timeout, with panics and cancels turned into verdicts.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::registry::Taken;
use super::{Context, Handler, task};
use crate::claim::{ClaimedJob, WorkerId};
use crate::clock::Clock;
use crate::engine::Dispatch;
use crate::event;
use crate::job::{ErrorKind, JobError};
use crate::log::{self, InSpan};
use crate::settle::{Outcome, Settlement, Verdict, after_error, verdict};
use crate::verify::Ran;
use jiff::Timestamp;

/// Ends an attempt from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Somebody wants it cancelled.
    Cancel,
    /// The worker stops: as if it had never been claimed.
    Release,
    /// The lease is lost: the result is nobody's business.
    Drop,
}

/// An attempt's end.
pub(super) struct Ended {
    pub(super) job: Arc<ClaimedJob>,
    /// The verdict, or nothing when the lease is lost.
    pub(super) settlement: Option<Settlement>,
    /// Whether the handler completed the job in a transaction of its own: if that was committed, the
    /// verdict will be refused, and nothing is lost.
    pub(super) completed: bool,
    /// Whether the handler says, besides, that the work is done.
    pub(super) by_itself: bool,
    /// How long its handler ran; as long as can be if nobody knows.
    pub(super) took: Duration,
}

/// What counts when a transaction with the completion was not committed after all.
const NOT_COMMITTED: &str = "the transaction of complete_in was not committed";

pub(super) struct Attempt<'a> {
    pub(super) taken: Taken,
    pub(super) handler: &'a dyn Handler,
    pub(super) engine: &'a dyn Dispatch,
    pub(super) clock: &'a Clock,
    pub(super) ran: Option<&'a Ran>,
    /// Whether jobs come by a route.
    pub(super) drained: bool,
}

impl Attempt<'_> {
    pub(super) async fn run(self) -> Ended {
        let Taken {
            job,
            worker,
            mut orders,
        } = self.taken;
        let completed = Arc::new(AtomicBool::new(false));
        let mut took = Duration::MAX;
        let verdict = {
            let cx = || {
                Context::new(
                    Arc::clone(&job),
                    self.clock.clone(),
                    Arc::clone(&completed),
                    self.drained,
                )
            };
            // Where it stands: moving what is large costs more than a quick job.
            let attempt = pin!(attempt(
                &job,
                self.handler,
                &worker,
                self.engine,
                self.ran,
                cx
            ));
            tokio::select! {
                biased;
                (verdict, ran) = attempt => {
                    let (started_at, time) = ran.unzip();
                    took = time.unwrap_or_default();
                    Some((verdict, started_at))
                }
                // A sender that is gone means that the worker itself is gone.
                order = &mut orders => match order.unwrap_or(Order::Drop) {
                    Order::Cancel => Some((Verdict::Cancelled, None)),
                    Order::Release => Some((Verdict::Release, None)),
                    Order::Drop => None,
                },
            }
        };
        let settlement = verdict.map(|(verdict, started_at)| Settlement {
            id: job.id,
            token: job.token,
            verdict,
            started_at,
        });
        let completed = completed.load(Ordering::Relaxed);
        let by_itself = completed && settlement.as_ref().is_some_and(is_not_committed);
        event::ended(&job, settlement.as_ref(), by_itself);
        Ended {
            job,
            settlement,
            completed,
            by_itself,
            took,
        }
    }
}

/// The end of a job that nobody has begun.
pub(super) fn release(job: Arc<ClaimedJob>) -> Ended {
    Ended {
        settlement: Some(Settlement::unbegun(job.id, job.token, Verdict::Release)),
        job,
        completed: false,
        by_itself: false,
        took: Duration::MAX,
    }
}

/// The end of a job around which something has panicked.
pub(super) fn panicked(job: Arc<ClaimedJob>, panic: &str, now: Timestamp) -> Ended {
    let error = JobError::new(job.attempt, now, ErrorKind::Panic, panic);
    let verdict = after_error(&job, error, None, now);
    log::error!(job = %job.id, kind = %job.kind, attempt = job.attempt, panic, "an attempt panicked");
    Ended {
        settlement: Some(Settlement::unbegun(job.id, job.token, verdict)),
        job,
        completed: false,
        by_itself: false,
        took: Duration::MAX,
    }
}

/// Whether the verdict is the one that a committed `complete_in` makes void.
fn is_not_committed(settlement: &Settlement) -> bool {
    let (Verdict::Retry { error, .. } | Verdict::Fail(error)) = &settlement.verdict else {
        return false;
    };
    error.message == NOT_COMMITTED
}

async fn attempt(
    job: &Arc<ClaimedJob>,
    handler: &dyn Handler,
    worker: &WorkerId,
    engine: &dyn Dispatch,
    ran: Option<&Ran>,
    context: impl FnOnce() -> Context,
) -> (Verdict, Option<(Timestamp, Duration)>) {
    if job.suspect
        && let Err(why) = engine.start_suspect(worker, job.id, job.token).await
    {
        log::warn!(job = %job.id, %why, "a suspect job was not started");
        return (Verdict::Release, None);
    }
    let cx = context();
    let clock = cx.clock();
    let (started_at, since) = (cx.started_at(), clock.elapsed());
    event::began(job, started_at);
    if let Some(ran) = ran {
        ran.start(job, worker, started_at);
    }
    crash_point!("run.began");
    let span = log::info_span!(
        "rowlock.run",
        job = %job.id,
        kind = %job.kind,
        queue = %job.queue,
        attempt = job.attempt,
        %worker,
        trace = job.trace_context.as_deref(),
    );
    let failed = |kind, message: &str| {
        let now = clock.now();
        after_error(
            job,
            JobError::new(job.attempt, now, kind, message),
            None,
            now,
        )
    };
    let ran = {
        let run = pin!(task::catch(InSpan::new(span, handler.run(&cx))));
        clock.timeout(job.timeout, run).await
    };
    let took = clock.elapsed().saturating_sub(since);
    event::ran(job, took);
    crash_point!("run.ended");
    let verdict = match ran {
        Some(Ok(outcome)) => {
            if let Outcome::Retry { error, .. } | Outcome::Fail(error) = &outcome {
                log::warn!(job = %job.id, kind = %job.kind, attempt = job.attempt, error, "attempt failed");
            }
            match outcome {
                // Refused if the transaction was committed: then the job has ended already.
                Outcome::Done | Outcome::NotNeeded if cx.completed() => {
                    failed(ErrorKind::Error, NOT_COMMITTED)
                }
                outcome => verdict(job, outcome, || clock.now()),
            }
        }
        Some(Err(panic)) => {
            log::error!(job = %job.id, kind = %job.kind, attempt = job.attempt, panic, "handler panicked");
            failed(ErrorKind::Panic, &panic)
        }
        None => {
            log::warn!(job = %job.id, kind = %job.kind, attempt = job.attempt, "handler timed out");
            let limit = humantime::format_duration(job.timeout);
            failed(ErrorKind::Timeout, &format!("ran longer than {limit}"))
        }
    };
    (verdict, Some((started_at, took)))
}
