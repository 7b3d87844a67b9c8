//! The loops of a line: two pumps, so that one claims while the other one pushes, a collector, and
//! somebody who looks after what was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Drained, Line, Options, Pumped};
use crate::clock::Elapsed;
use crate::engine::Wakeups;
use crate::error::Result;
use crate::event;
use crate::log;
use crate::run::Stop;
use crate::run::task::Tasks;

/// How many claims and pushes are under way at once.
const PUMPS: usize = 2;
/// How often a full sink is looked at.
const FULL_PAUSE: Duration = Duration::from_millis(50);
/// How long it is one process' turn to collect, and when others ask again.
const TURN: Duration = Duration::from_secs(3);
const OTHERS_TURN: Duration = Duration::from_millis(300);
/// How long a collector waits for a first verdict.
const COLLECT_WAIT: Duration = Duration::from_secs(1);
/// The waits between tries while something is away.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// How often it is counted how a route is doing.
const TELL: Duration = Duration::from_secs(30);
/// How often a sink is looked at, at the most.
const GLANCE: Duration = Duration::from_secs(1);

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sent: AtomicU64,
    settled: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    pub(super) fn told(&self) -> Drained {
        Drained {
            sent: self.sent.load(Ordering::Relaxed),
            settled: self.settled.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

fn add(to: &AtomicU64, n: usize) {
    to.fetch_add(u64::try_from(n).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// One line of a running drain.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) line: Arc<Line>,
    pub(super) tally: Arc<Tally>,
    pub(super) options: Options,
    pub(super) stop: Stop,
}

impl Serving {
    pub(super) fn start(self, tasks: &mut Tasks) {
        let pulse = self.options.pulse.clone();
        for _ in 0..PUMPS {
            let line = self.clone();
            tasks.keep("rowlock-drain", &pulse, move || line.clone().pumping());
        }
        let line = self.clone();
        tasks.keep("rowlock-collect", &pulse, move || line.clone().collecting());
        let line = self.clone();
        tasks.keep("rowlock-beat", &pulse, move || line.clone().beating());
        tasks.keep("rowlock-adopt", &pulse, move || self.clone().keeping());
    }

    /// Waits; whether it is time to stop.
    async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.stop.asked() => true,
            () = self.line.clock.sleep(time) => false,
        }
    }

    async fn until_up(&mut self) -> bool {
        let line = Arc::clone(&self.line);
        tokio::select! {
            biased;
            () = self.stop.asked() => false,
            () = line.is_up() => true,
        }
    }

    async fn pumping(mut self) {
        let mut wakeups = self.line.engine.wakeups();
        let mut wait = SHORTEST;
        while self.until_up().await {
            panic_point!("drain.pumps");
            wakeups.mark();
            match self.line.pump().await {
                Ok(pumped) => {
                    wait = SHORTEST;
                    add(&self.tally.sent, pumped.sent);
                    if self.rest(pumped, &mut wakeups).await {
                        return;
                    }
                }
                Err(why) => {
                    log::warn!(route = %self.line.route, %why, "draining waits");
                    if self.pause(wait).await {
                        return;
                    }
                    wait = (wait * 2).min(LONGEST);
                }
            }
        }
    }

    /// Waits for something to send; whether it is time to stop.
    async fn rest(&mut self, pumped: Pumped, wakeups: &mut Wakeups) -> bool {
        if pumped.more {
            return self.pause(Duration::ZERO).await;
        }
        if pumped.full {
            return self.pause(FULL_PAUSE).await;
        }
        let rest = pumped.rest.unwrap_or(self.options.poll);
        let wait = pumped.next_due.map_or(rest, |due| {
            let until = self.line.clock.now().duration_until(due);
            Duration::try_from(until).unwrap_or_default().min(rest)
        });
        tokio::select! {
            biased;
            () = self.stop.asked() => true,
            () = wakeups.next() => false,
            () = self.line.clock.sleep(wait) => false,
        }
    }

    async fn collecting(mut self) {
        let mut wait = SHORTEST;
        while self.until_up().await {
            let line = Arc::clone(&self.line);
            let reported = async {
                match line.sink.is_my_turn(TURN).await {
                    Ok(true) => line.reported(COLLECT_WAIT).await.map(Some),
                    Ok(false) => Ok(None),
                    Err(why) => Err(line.down(why)),
                }
            };
            // A stop ends the wait for reports; those that have come are applied to the end.
            let reported = tokio::select! {
                biased;
                () = self.stop.asked() => return,
                reported = reported => reported,
            };
            let collected = match reported {
                Ok(Some(reports)) => line.apply(&reports).await.map(Some),
                Ok(None) => Ok(None),
                Err(why) => Err(why),
            };
            match collected {
                Ok(None) => {
                    if self.pause(OTHERS_TURN).await {
                        return;
                    }
                }
                Ok(Some((accepted, _))) => {
                    wait = SHORTEST;
                    add(&self.tally.settled, accepted);
                }
                Err(why) => {
                    log::warn!(route = %self.line.route, %why, "collecting verdicts waits");
                    if self.pause(wait).await {
                        return;
                    }
                    wait = (wait * 2).min(LONGEST);
                }
            }
        }
    }

    async fn keeping(mut self) {
        let lease = self.options.lease;
        let (mut asked, mut told) = (Asked::default(), None);
        let mut wait = SHORTEST;
        loop {
            let now = self.line.clock.elapsed();
            let pause = match self.look_after(&mut asked).await {
                Ok(()) => {
                    wait = SHORTEST;
                    GLANCE.min(lease / 10)
                }
                Err(why) => {
                    log::debug!(route = %self.line.route, %why, "can't look after what was sent");
                    wait = (wait * 2).min(LONGEST).min(lease / 3);
                    wait
                }
            };
            if is_time(&mut told, now, TELL) {
                self.tell().await;
            }
            if self.pause(pause).await {
                return;
            }
        }
    }

    /// Beside everything else: whoever is late here is taken for dead.
    async fn beating(mut self) {
        loop {
            self.beat().await;
            if self.pause(self.options.lease / 3).await {
                return;
            }
        }
    }

    async fn beat(&self) {
        let pulse = &self.options.pulse;
        match self.line.beat().await {
            Ok(()) => pulse.answered(self.line.clock.elapsed(), self.options.lease),
            Err(why) => {
                event::heartbeat_failed();
                pulse.failed(&why.to_string());
                log::error!(route = %self.line.route, %why, "heartbeat failed");
            }
        }
    }

    async fn look_after(&self, asked: &mut Asked) -> Result<()> {
        self.line.open().await?;
        self.line.bury().await?;
        let now = self.line.clock.elapsed();
        let in_doubt = self.line.doubt.load(Ordering::Relaxed);
        let again = asked.again.take_if(|at| now >= *at).is_some();
        if in_doubt || again || is_time(&mut asked.last, now, self.options.lease) {
            let adopted = self.line.adopt().await?;
            add(&self.tally.lost, adopted.lost);
            // What was too young to be judged when the doubt arose is judged later.
            if in_doubt && adopted.young > 0 {
                asked.again = Some(now + self.line.certain_after());
            }
        }
        Ok(())
    }

    async fn tell(&self) {
        match self.line.routes.routes().await {
            Ok(rows) => rows
                .iter()
                .filter(|row| row.route == self.line.route)
                .for_each(event::route),
            Err(why) => log::debug!(%why, "can't tell how routes are doing"),
        }
    }
}

/// When the sink was last asked about everything, and when once more.
#[derive(Default)]
struct Asked {
    last: Option<Elapsed>,
    again: Option<Elapsed>,
}

/// Whether so much time has passed since it was last time; the first time it has.
fn is_time(last: &mut Option<Elapsed>, now: Elapsed, every: Duration) -> bool {
    let due = last.is_none_or(|at| now.saturating_sub(at) >= every);
    if due {
        *last = Some(now);
    }
    due
}
