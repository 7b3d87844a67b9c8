//! One look at the store for everybody who looks: the numbers of the overview, their last minutes, and
//! the word to open pages that something has changed.
//!
//! It looks often while a page is open and seldom otherwise, so that there is something to see for
//! whoever comes because something is wrong.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use futures_util::stream;
use rowlock::clock::Elapsed;
use rowlock::engine::browse::{Capped, Glance, Run};
use rowlock::engine::{Counts, PairRow, RouteRow, WorkerRow};
use rowlock::switch::{Mode, Switch, Target};
use rowlock::{Error, Name};
use tokio::sync::{Mutex, MutexGuard, Notify, Semaphore, watch};

use super::Cx;
use super::runs::{READ, Runs, Spread};
use super::vitals::Log;
use crate::web::Web;
use crate::web::problem::Problem;

/// Between two looks while a page is open: with what a page reads itself at most 1.5 queries a second.
const OFTEN: Duration = Duration::from_secs(3);
/// Between two looks while none is.
const SELDOM: Duration = Duration::from_secs(15);
/// What changes seldom is read with every so many looks only.
const SLOW: u64 = 5;
/// Run times are read with every so many: a line has a point for several looks.
const RUNS: u64 = 3;
/// Between two points of the charts.
const APART: Duration = Duration::from_millis(1_500);
/// How far back the charts go.
pub const WINDOW: Duration = Duration::from_secs(600);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many pages may be open at once.
const OPEN: usize = 64;
/// So long after somebody has asked for a page we look as if one were open: whoever asks next needn't wait.
const LINGER: Duration = Duration::from_secs(10);
/// A sign of life for whatever stands between us and the browser.
const BEAT: Duration = Duration::from_secs(15);

/// A point of the charts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub at: Elapsed,
    /// What ended in a second since the look before.
    pub completed: f64,
    pub failed: f64,
    pub waiting: u64,
    /// How long the job that is due longest has been waiting, in seconds.
    pub oldest: f64,
    /// How long jobs ran that ended since the look before, if any did.
    pub run: Option<Spread>,
}

/// What was seen last.
#[derive(Debug, Default)]
pub struct Seen {
    pub at: Elapsed,
    pub samples: VecDeque<Sample>,
    pub queues: Glance,
    pub total: Counts,
    pub workers: Vec<WorkerRow>,
    pub switches: Vec<Switch>,
    pub pairs: Vec<PairRow>,
    /// Read while somebody looks at them.
    pub routes: Option<Vec<RouteRow>>,
    /// Why the last look failed, if it did.
    pub problem: Option<String>,
    looks: u64,
    /// Completed and failed at the last sample.
    before: (u64, u64),
    runs: Runs,
    /// What ended in a queue between two looks, where anything did.
    ended_in: VecDeque<Ended>,
    /// Since when every look has found something due in a queue.
    due_since: BTreeMap<Name, Elapsed>,
}

/// What ended in a queue since the look before.
#[derive(Debug)]
struct Ended {
    at: Elapsed,
    queue: Name,
    completed: u64,
    failed: u64,
}

/// Jobs that could be taken now.
pub fn due(counts: &Counts) -> u64 {
    counts
        .pending
        .saturating_sub(counts.scheduled + counts.held)
}

#[derive(Debug)]
pub struct Live {
    seen: Mutex<Seen>,
    changes: watch::Sender<u64>,
    wake: Notify,
    open: Arc<Semaphore>,
    /// When somebody last asked for what was seen, and for routes.
    asked: Asked,
    asked_routes: Asked,
    /// How fast the server's log grows.
    pub log: Log,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            changes: watch::Sender::new(0),
            wake: Notify::new(),
            open: Arc::new(Semaphore::new(OPEN)),
            asked: Asked::default(),
            asked_routes: Asked::default(),
            log: Log::default(),
        }
    }
}

/// When it was last asked for; 0 for never.
#[derive(Debug, Default)]
struct Asked(AtomicU64);

impl Asked {
    /// Whether nobody has asked for a while.
    fn mark(&self, now: Elapsed) -> bool {
        let ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).max(1);
        let before = self.0.swap(ms, Ordering::Relaxed);
        before == 0 || now.saturating_sub(Duration::from_millis(before)) > LINGER
    }

    fn is_recent(&self, now: Elapsed) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        before > 0 && now.saturating_sub(Duration::from_millis(before)) <= LINGER
    }
}

impl Live {
    /// Looks again and again.
    pub async fn run(web: Arc<Web>) {
        let clock = web.rowlock.clock().clone();
        loop {
            let changed = web.live.look(&web, false).await;
            if changed {
                web.live.changes.send_modify(|n| *n += 1);
            }
            let asked = web.live.asked.is_recent(clock.elapsed());
            let open = asked || web.live.changes.receiver_count() > 0;
            let pause = clock.sleep(if open { OFTEN } else { SELDOM });
            tokio::select! {
                () = pause => {}
                () = web.live.wake.notified() => {}
            }
        }
    }

    /// What was seen, about as old as open pages have it.
    pub async fn seen(&self, web: &Web) -> MutexGuard<'_, Seen> {
        let now = web.rowlock.clock().elapsed();
        if self.asked.mark(now) {
            self.wake.notify_one();
        }
        let is_stale = |seen: &Seen| seen.looks == 0 || now.saturating_sub(seen.at) > OFTEN * 2;
        let seen = self.seen.lock().await;
        if !is_stale(&seen) {
            return seen;
        }
        drop(seen);
        if self.look(web, false).await {
            self.changes.send_modify(|n| *n += 1);
        }
        self.seen.lock().await
    }

    /// The same with the routes: what waits for a sink is counted once for everybody who looks.
    pub async fn routes(&self, web: &Web) -> Result<Vec<RouteRow>, Error> {
        let begun = self.asked_routes.mark(web.rowlock.clock().elapsed());
        if let Some(routes) = self.seen(web).await.routes.clone().filter(|_| !begun) {
            return Ok(routes);
        }
        let routes = web.rowlock.routes().routes().await?;
        self.seen.lock().await.routes = Some(routes.clone());
        Ok(routes)
    }

    /// Somebody has changed something here: everything is read anew.
    pub async fn changed(&self, web: &Web) {
        self.look(web, true).await;
        self.changes.send_modify(|n| *n += 1);
    }

    /// Whether anything is new.
    async fn look(&self, web: &Web, all: bool) -> bool {
        let clock = web.rowlock.clock();
        let mut seen = self.seen.lock().await;
        let slow = all || seen.looks.is_multiple_of(SLOW) || seen.problem.is_some();
        let with_runs = seen.looks.is_multiple_of(RUNS);
        seen.looks += 1;
        let schedule = web.rowlock.schedule();
        let read = async {
            let queues = web.rowlock.browse().glance().await?;
            let runs = match with_runs {
                true => Some(web.rowlock.browse().runs(READ).await?),
                false => None,
            };
            let rest = match slow {
                true => Some((
                    web.rowlock.browse().hands().await?,
                    schedule.switches().await?,
                    schedule.pairs().await?,
                )),
                false => None,
            };
            let routes = match self.asked_routes.is_recent(clock.elapsed()) {
                true => Some(web.rowlock.routes().routes().await?),
                false => None,
            };
            Ok::<_, Error>((queues, runs, rest, routes))
        };
        let problem = match clock.timeout(PATIENCE, read).await {
            Some(Ok((queues, runs, rest, routes))) => {
                seen.routes = routes;
                let mut changed = seen.take(clock.elapsed(), queues, runs.as_deref());
                if let Some((workers, switches, pairs)) = rest {
                    changed |= seen.switches != switches || seen.workers.len() != workers.len();
                    (seen.workers, seen.switches, seen.pairs) = (workers, switches, pairs);
                }
                return changed | seen.problem.take().is_some();
            }
            Some(Err(why)) => why.to_string(),
            None => "it didn't answer in time".to_owned(),
        };
        seen.at = clock.elapsed();
        let new = seen.problem.as_ref() != Some(&problem);
        seen.problem = Some(problem);
        new
    }

    /// The last change that pages were told of.
    pub fn told(&self) -> u64 {
        *self.changes.borrow()
    }

    /// A stream that says when to look again: at once, if anything was new since the page was read.
    pub fn events(cx: &Cx) -> Result<Response<Body>, Problem> {
        let web = &cx.web;
        let permit = Arc::clone(&web.live.open).try_acquire_owned();
        let permit = permit.map_err(|_| Problem {
            retry_after: Some(30),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "too many pages are open",
                "close some; pages also work without live updates",
            )
        })?;
        let mut changes = web.live.changes.subscribe();
        let read = cx.query.get("told").and_then(|told| told.parse().ok());
        if read.is_some_and(|read: u64| read != *changes.borrow()) {
            changes.mark_changed();
        }
        web.live.wake.notify_one();
        let clock = web.rowlock.clock().clone();
        let first = true;
        let state = (changes, clock, permit, first);
        let stream = stream::unfold(state, |(mut changes, clock, permit, first)| async move {
            if first {
                let hello = Bytes::from_static(b"retry: 2000\n\n");
                return Some((Ok::<_, Infallible>(hello), (changes, clock, permit, false)));
            }
            let text = match clock.timeout(BEAT, changes.changed()).await {
                Some(Ok(())) => format!("data: {}\n\n", *changes.borrow_and_update()),
                Some(Err(_)) => return None,
                None => ": still here\n\n".to_owned(),
            };
            Some((Ok(Bytes::from(text)), (changes, clock, permit, false)))
        });
        let mut response = Response::new(Body::from_stream(stream));
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }
}

impl Seen {
    /// Takes the counts of a look; whether they are new.
    pub(super) fn take(&mut self, at: Elapsed, queues: Glance, runs: Option<&[Run]>) -> bool {
        let total = Counts::sum(queues.values().map(|queue| &queue.counts));
        self.due_since
            .retain(|name, _| queues.get(name).is_some_and(|queue| due(&queue.counts) > 0));
        for (name, _) in queues.iter().filter(|(_, queue)| due(&queue.counts) > 0) {
            self.due_since.entry(name.clone()).or_insert(at);
        }
        self.count_ended(at, &queues);
        self.at = at;
        let last = self
            .samples
            .back()
            .map(|last| (last.at, last.completed + last.failed));
        let since = last.map(|(then, _)| at.saturating_sub(then));
        let changed = queues != self.queues || last.is_none_or(|(_, moving)| moving > 0.0);
        // Two looks at almost the same moment would make a rate of chance.
        if since.is_none_or(|since| since >= APART) {
            // What was pruned or retried in between makes a count smaller: that is no rate.
            let rate = |now: u64, then: u64| {
                since.map_or(0.0, |since| {
                    now.saturating_sub(then) as f64 / since.as_secs_f64()
                })
            };
            self.samples.push_back(Sample {
                at,
                completed: rate(total.completed, self.before.0),
                failed: rate(total.failed, self.before.1),
                waiting: total.pending,
                oldest: self.oldest(&queues),
                run: runs.and_then(|runs| self.runs.take(runs)),
            });
            self.before = (total.completed, total.failed);
        }
        while self
            .samples
            .front()
            .is_some_and(|first| at.saturating_sub(first.at) > WINDOW)
        {
            self.samples.pop_front();
        }
        (self.at, self.queues, self.total) = (at, queues, total);
        changed
    }

    /// Notes what ended in each queue since the look before. What was pruned or retried is no end.
    fn count_ended(&mut self, at: Elapsed, queues: &Glance) {
        for (name, queue) in queues {
            let Some(before) = self.queues.get(name).map(|before| &before.counts) else {
                continue;
            };
            let ended = Ended {
                at,
                queue: name.clone(),
                completed: queue.counts.completed.saturating_sub(before.completed),
                failed: queue.counts.failed.saturating_sub(before.failed),
            };
            if ended.completed + ended.failed > 0 {
                self.ended_in.push_back(ended);
            }
        }
        let is_old = |first: &Ended| at.saturating_sub(first.at) > WINDOW;
        while self.ended_in.front().is_some_and(is_old) {
            self.ended_in.pop_front();
        }
    }

    /// How many jobs of a queue were completed and given up in the last while.
    pub fn ended_in(&self, queue: &Name, within: Duration) -> (u64, u64) {
        let lately = |ended: &&Ended| self.at.saturating_sub(ended.at) <= within;
        let own = self.ended_in.iter().filter(|ended| ended.queue == *queue);
        own.filter(lately).fold((0, 0), |sum, ended| {
            (sum.0 + ended.completed, sum.1 + ended.failed)
        })
    }

    /// The numbers of all queues, and whether any of them were not counted to their end.
    pub fn all(&self) -> Capped {
        Capped {
            counts: self.total.clone(),
            capped: self.queues.values().any(|queue| queue.capped),
        }
    }

    /// Whether somebody has stopped a queue.
    pub fn is_stopped(&self, queue: &Name) -> bool {
        let mut on = self.switches.iter();
        on.any(|on| on.target == Target::Queue && on.mode != Mode::Reject && on.name == *queue)
    }

    /// How long the job of a queue that is due longest has been waiting, where any may be taken: what a switch
    /// holds isn't late. Beside such jobs nobody knows whose the oldest is, but not for how long others have been
    /// seen to wait.
    pub fn late(&self, queue: &Name, counts: &Counts) -> Option<f64> {
        let oldest = counts.oldest_pending_seconds.filter(|_| due(counts) > 0)?;
        if counts.held == 0 {
            return Some(oldest);
        }
        let since = self.due_since.get(queue).copied().unwrap_or(self.at);
        Some(oldest.min(self.at.saturating_sub(since).as_secs_f64()))
    }

    /// How long a job has been due that somebody should have taken.
    fn oldest(&self, queues: &Glance) -> f64 {
        let going = queues.iter().filter(|(name, _)| !self.is_stopped(name));
        let waits = going.filter_map(|(name, queue)| self.late(name, &queue.counts));
        waits.fold(0.0, f64::max)
    }

    /// What ended in the last while, and how much of it failed.
    pub fn ended(&self, within: Duration) -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        let mut pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        while let Some((before, sample)) = pairs.next_back() {
            if self.at.saturating_sub(sample.at) > within {
                break;
            }
            let seconds = sample.at.saturating_sub(before.at).as_secs_f64();
            sum.0 += sample.completed * seconds;
            sum.1 += sample.failed * seconds;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use rowlock::engine::browse::Capped;

    use super::*;

    fn glance(completed: u64, failed: u64) -> Glance {
        let mut capped = Capped::default();
        (capped.counts.completed, capped.counts.failed) = (completed, failed);
        [(Name::new("mail").unwrap(), capped)].into()
    }

    #[test]
    fn what_a_switch_holds_is_not_late() {
        let (mail, at) = (Name::new("mail").unwrap(), Duration::from_secs);
        let queue = |pending, held| {
            let mut queue = Capped::default();
            (queue.counts.pending, queue.counts.held) = (pending, held);
            queue.counts.oldest_pending_seconds = Some(90.0);
            queue
        };
        let mut seen = Seen::default();
        let mut late = |seconds, queue: Capped| {
            seen.take(at(seconds), [(mail.clone(), queue.clone())].into(), None);
            seen.late(&mail, &queue.counts)
        };
        assert_eq!(late(10, queue(3, 0)), Some(90.0));
        assert_eq!(late(13, queue(3, 3)), None, "all of them are held");
        assert_eq!(late(16, queue(5, 3)), Some(0.0), "others have just come");
        assert_eq!(late(26, queue(5, 3)), Some(10.0), "and are still there");
    }

    #[test]
    fn what_ends_is_counted_by_queue_and_forgotten() {
        let (mail, at) = (Name::new("mail").unwrap(), Duration::from_secs);
        let mut seen = Seen::default();
        seen.take(at(10), glance(100, 3), None);
        assert_eq!(seen.ended_in(&mail, at(60)), (0, 0), "that was before");
        seen.take(at(13), glance(104, 5), None);
        seen.take(at(16), glance(90, 6), None);
        assert_eq!(seen.ended_in(&mail, at(60)), (4, 3));
        assert_eq!(seen.ended_in(&mail, at(2)), (0, 1));
        seen.take(at(700), glance(90, 6), None);
        assert!(seen.ended_in.is_empty());
    }

    #[test]
    fn rates_are_differences_and_a_page_hears_when_they_end() {
        let mut seen = Seen::default();
        let at = Duration::from_secs;
        assert!(seen.take(at(10), glance(100, 3), None));
        assert_eq!(seen.samples[0].completed, 0.0);
        assert!(seen.take(at(12), glance(124, 4), None));
        let last = seen.samples[1];
        assert_eq!((last.completed, last.failed), (12.0, 0.5));
        assert_eq!(seen.ended(at(60)), (24.0, 1.0));
        assert!(
            seen.take(at(14), glance(124, 4), None),
            "the rate has fallen"
        );
        assert!(!seen.take(at(16), glance(124, 4), None));
        assert!(
            seen.take(at(18), glance(100, 4), None),
            "pruned is new, and no rate"
        );
        assert_eq!(seen.samples[4].completed, 0.0);
        seen.take(at(617), glance(100, 4), None);
        assert_eq!(seen.samples.len(), 2);
    }
}
