//! A shift: one worker identity from join to leave, and the loop that keeps its slots busy.

mod beat;
mod claim;
mod derived;
mod finish;
mod left_out;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use self::derived::Derived;
use self::left_out::LeftOut;
use super::attempt::Ended;
use super::fetch::{Claims, Look, wait};
use super::heartbeat::{Beat, Beating};
use super::registry::Registry;
use super::slot::{Bench, Slot};
use super::task::Tasks;
use super::{From, Handler, Options, Stop, Tally};
use crate::claim::{Ahead, ClaimedJob, WorkerId};
use crate::clock::{Clock, Elapsed};
use crate::engine::Dispatch;
use crate::error::{Error, Result};
use crate::event;
use crate::job::Name;
use crate::log;
use crate::reconcile::{self, Pair, Scheduler};
use crate::settle::{Answer, Group, Settled, Settlement, Verdict};
use crate::store::Rowlock;
use crate::verify::Asked;

/// How often to ask for a suspect, at the most.
const SUSPECT_PAUSE: Duration = Duration::from_millis(20);
/// A claim of so many jobs is a large one, and none is larger than that.
const LARGE: usize = 1_000;
const LARGEST: usize = 2_000;
/// So many claims are under way at once.
const AT_A_TIME: usize = 2;
/// So many times what may lie ready or run is held at most, with what waits for its verdict's answer.
const UNSETTLED: usize = 4;
/// As many ends are looked at in one go.
const AT_ONCE: usize = 500;
/// How long the last verdicts of a stopping worker may take to be written.
const LAST_ACKS: Duration = Duration::from_secs(5);
/// How long handlers may take to end what dropped attempts have left behind.
const LAST_HANDLERS: Duration = Duration::from_secs(10);

pub(super) struct Shift {
    engine: Arc<dyn Dispatch>,
    /// None when something else looks after the store.
    store: Option<Rowlock>,
    clock: Clock,
    options: Options,
    worker: WorkerId,
    beating: Option<Beating>,
    beats: mpsc::UnboundedReceiver<Beat>,
    registry: Arc<Registry>,
    ahead: Ahead,
    bench: Arc<Bench>,
    slots: Tasks,
    suspect_asked: Option<Elapsed>,
    /// Whether more lay ready at the last heartbeat than can start soon.
    too_many: bool,
    left_out: LeftOut,
    /// When the last heartbeat was answered.
    beaten: Elapsed,
    tally: Tally,
    derived: Derived,
}

impl Shift {
    pub(super) async fn begin(
        from: From,
        handlers: BTreeMap<Name, Arc<dyn Handler>>,
        pairs: &[Pair],
        options: Options,
    ) -> Result<Self> {
        let (_, beats) = mpsc::unbounded_channel();
        let worker = WorkerId::random(&host())?;
        let limits = options.queue_concurrency.clone();
        let registry = Arc::new(Registry::new(worker.clone(), limits));
        let mut shift = Self {
            bench: Arc::new(Bench {
                registry: Arc::clone(&registry),
                handlers,
                engine: from.dispatch(),
                clock: from.clock().clone(),
                ran: options.ran.clone(),
            }),
            ahead: Ahead::new(options.concurrency),
            derived: match &from {
                From::Store(rowlock) => Derived::new(rowlock, pairs, &worker, options.lease)?,
                From::Dispatcher(..) => Derived::none(),
            },
            worker,
            engine: from.dispatch(),
            clock: from.clock().clone(),
            store: from.store(),
            options,
            beating: None,
            beats,
            registry,
            slots: Tasks::default(),
            suspect_asked: None,
            too_many: false,
            left_out: LeftOut::default(),
            beaten: Elapsed::ZERO,
            tally: Tally::default(),
        };
        shift.join().await?;
        Ok(shift)
    }

    async fn join(&mut self) -> Result<()> {
        self.engine.join(&self.worker, self.options.lease).await?;
        let (beating, beats) = Beating::start(
            Arc::clone(&self.engine),
            self.clock.clone(),
            self.worker.clone(),
            &self.options,
            Arc::clone(&self.registry),
        )?;
        self.beating = Some(beating);
        self.beats = beats;
        self.beaten = self.clock.elapsed();
        Ok(())
    }

    /// Works until asked to stop, or until idle with `once`.
    pub(super) async fn work(mut self, mut stop: Stop) -> Result<Tally> {
        let mut side = Tasks::default();
        let (settling, mut settled) =
            Group::start(&mut side, Arc::clone(&self.engine), self.clock.clone());
        let (ended, mut endings) = mpsc::unbounded_channel();
        // Until the first look nobody knows.
        let (doubted, mut watched) = watch::channel(self.store.is_some());
        let lease = self.options.lease;
        let upkeep = upkeep(self.store.clone(), self.clock.clone(), lease, doubted);
        let mut scheduler = self.derived.scheduler.take();
        let once = self.options.once;
        if once && let Some(scheduler) = &mut scheduler {
            tokio::select! {
                () = stop.asked() => {}
                () = scheduler.pass() => {}
            }
        }
        let worked = tokio::select! {
            worked = self.serve(
                &settling,
                &mut settled,
                (&ended, &mut endings),
                (&mut stop, &mut watched),
            ) => worked,
            () = upkeep => Ok(()),
            () = lead(scheduler.as_mut(), once) => Ok(()),
        };
        let leaving = leave(scheduler, self.clock.clone());
        tokio::join!(
            leaving,
            self.finish(&settling, &mut settled, &mut endings, &mut stop)
        );
        drop(settling);
        // What has finished is worth a wait, but not for ever: without the store it runs again.
        if self.clock.timeout(LAST_ACKS, side.join()).await.is_none() {
            log::error!(
                jobs = self.registry.held(),
                "verdicts could not be written, these jobs run again"
            );
        }
        while let Ok(answers) = settled.try_recv() {
            self.count(&answers);
        }
        if !self.derived.finish(&self.clock, LAST_ACKS).await {
            log::warn!("not every done job was asked whether it had an effect");
        }
        self.beating = None;
        let left = self.engine.leave(&self.worker).await;
        self.close_handlers().await;
        worked.and(left).map(|()| self.tally)
    }

    async fn serve(
        &mut self,
        settling: &Group,
        settled: &mut mpsc::UnboundedReceiver<Vec<Answer>>,
        (ended, endings): (
            &mpsc::UnboundedSender<Ended>,
            &mut mpsc::UnboundedReceiver<Ended>,
        ),
        (stop, watched): (&mut Stop, &mut watch::Receiver<bool>),
    ) -> Result<()> {
        let mut wakeups = self.engine.wakeups();
        let mut look = Look::Now;
        // Jobs go on while claims are under way. One that is dropped half-way is released when the
        // worker leaves, or is given up.
        let mut claiming = Claims::default();
        // Something has come up that a claim under way may not have seen.
        let mut meanwhile = false;
        let mut reported = Vec::new();
        loop {
            while self.registry.wants_slot(self.options.concurrency) {
                let slot = Arc::new(Slot {
                    bench: Arc::clone(&self.bench),
                    reports: ended.clone(),
                    replaced: AtomicBool::new(false),
                });
                let serve = move || Arc::clone(&slot).serve();
                self.slots.keep("rowlock-slot", &self.options.pulse, serve);
            }
            settling.expect(self.registry.under_way());
            while let Some(room) = self.wanted_room(look, &claiming, settling.stuck()) {
                wakeups.mark();
                meanwhile = false;
                let alone = claiming.is_empty();
                let idle = self.registry.held() <= settling.stuck();
                let without = settling.stuck_kinds();
                claiming.begin(room, self.ask(room, &without, alone, idle)?);
            }
            tokio::select! {
                biased;
                () = stop.asked() => return Ok(()),
                (asked, kinds, haul) = claiming.answer() => {
                    let thorough = haul.as_ref().is_ok_and(|haul| haul.thorough);
                    look = match self.take(settling, &kinds, haul) {
                        Err(Error::LeaseLost) => {
                            self.start_again(&mut claiming, stop).await?;
                            Look::Now
                        }
                        Ok(Look::At(_)) if meanwhile => Look::Now,
                        other => other?,
                    };
                    drop(asked);
                    // What the store refuses whatever is said of it is left to the next run.
                    let idle = claiming.is_empty() && self.registry.held() <= settling.stuck();
                    if matches!(look, Look::At(_)) && self.options.once && idle {
                        // What a worker holds that seems to be dead is due as soon as that is certain.
                        let waits = *watched.borrow();
                        #[cfg(feature = "test-hooks")]
                        let waits = waits && !crate::hooks::switched_off("once.waits_for_the_doubted");
                        match (thorough, waits) {
                            (true, false) => return Ok(()),
                            (true, true) => {}
                            (false, _) => look = Look::Now,
                        }
                    }
                }
                some = endings.recv_many(&mut reported, AT_ONCE) => {
                    self.ahead.finished(self.clock.elapsed(), some);
                    self.registry.reported(&reported);
                    for ended in reported.drain(..) {
                        if self.makes_room(&ended.job) {
                            (look, meanwhile) = (Look::Now, true);
                        }
                        self.end(settling, ended);
                    }
                }
                answers = settled.recv() => {
                    let Some(answers) = answers else {
                        // What it had is given back when the worker leaves.
                        return Err(Error::Bug("verdicts are not written any more".to_owned()));
                    };
                    self.count(&answers);
                    if self.options.once && self.registry.held() == 0 {
                        (look, meanwhile) = (Look::Now, true);
                    }
                }
                beat = self.beats.recv() => {
                    // A heartbeat that has ended, as by a panic, keeps no lease.
                    #[cfg(feature = "test-hooks")]
                    if beat.is_none() && crate::hooks::switched_off("beat.missed") {
                        std::future::pending::<()>().await;
                    }
                    if beat.is_none_or(|beat| self.beat(settling, beat)) {
                        self.start_again(&mut claiming, stop).await?;
                        look = Look::Now;
                    }
                }
                // The sender lives as long as this.
                _ = watched.changed(), if self.options.once => (look, meanwhile) = (Look::Now, true),
                () = wait(&self.clock, &mut wakeups, look), if claiming.is_empty() => look = Look::Now,
            }
        }
    }

    /// How many jobs to claim, if it is time to.
    fn wanted_room(&mut self, look: Look, claiming: &Claims, stuck: usize) -> Option<usize> {
        let room = self.room(stuck).saturating_sub(claiming.asked());
        let is_time = match look {
            // While one waits for its commit or is read, another is computed. Neither knows what the other
            // brings, so a queue with a limit of its own is asked by one.
            _ if !claiming.is_empty() => {
                look == Look::WithRoom
                    && claiming.len() < AT_A_TIME
                    && room >= LARGE
                    && self.options.queue_concurrency.is_empty()
            }
            Look::Now => true,
            // A few large claims are cheaper than many small ones; but one that is asked for early is
            // there before the last jobs have run.
            Look::WithRoom => {
                let half = self.ahead.allowed(self.clock.elapsed()).div_ceil(2);
                let all_run = self.registry.under_way() <= self.options.concurrency;
                let dry = all_run && self.registry.settling() == 0;
                room >= half.min(LARGE) || dry
            }
            Look::At(_) | Look::Again(_) => false,
        };
        (is_time && room > 0).then_some(room.min(LARGEST))
    }

    /// How many more may lie ready or run. Those that have run don't count, unless their verdicts pile up; those whose
    /// verdicts the store refuses for good are no pile.
    fn room(&mut self, stuck: usize) -> usize {
        #[cfg(feature = "test-hooks")]
        let stuck = match crate::hooks::switched_off("room.leaves_out_the_stuck") {
            true => 0,
            false => stuck,
        };
        let allowed = self.ahead.allowed(self.clock.elapsed());
        let ahead = allowed.saturating_sub(self.registry.under_way());
        let all = (allowed * UNSETTLED).min(self.ahead.most());
        let held = self.registry.held().saturating_sub(stuck);
        ahead.min(all.saturating_sub(held))
    }

    /// What was taken after quick jobs, and won't start soon behind slow ones: others may have a slot for it.
    fn surplus(&mut self) -> Vec<Arc<ClaimedJob>> {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("beat.gives_back") {
            return Vec::new();
        }
        let now = self.clock.elapsed();
        let allowed = self.ahead.allowed(now);
        // Speed varies, and what goes back is claimed again.
        let most = match self.ahead.stands_still(now) {
            true => allowed,
            false => allowed * 2,
        };
        let too_many = self.registry.under_way() > most;
        // A short stall is none.
        match std::mem::replace(&mut self.too_many, too_many) && too_many {
            true => {
                let surplus = self.registry.under_way().saturating_sub(allowed);
                self.registry.take_last_ready(surplus)
            }
            false => Vec::new(),
        }
    }

    /// Whether the end of a job allows a claim that wasn't allowed before: its queue was perhaps at
    /// its limit, and another suspect may run.
    fn makes_room(&self, job: &ClaimedJob) -> bool {
        job.suspect || self.options.queue_concurrency.contains_key(&job.queue)
    }

    fn end(&mut self, settling: &Group, ended: Ended) {
        self.derived.ended(&ended);
        if let Some(ran) = &self.options.ran {
            let asked = ended.settlement.as_ref().map(|settlement| Asked {
                ending: (&settlement.verdict).into(),
                completed: ended.by_itself,
            });
            ran.ended(&ended.job, asked, self.clock.now());
        }
        if let Some(settlement) = ended.settlement {
            settling.push(settlement, ended.job);
        }
    }

    fn count(&mut self, answers: &[Answer]) {
        let by_handlers = self.registry.settled(answers);
        for (id, token, settled) in answers {
            let completed = by_handlers.contains(&(*id, *token));
            let accepted = completed || *settled == Settled::Accepted;
            self.derived.settled(*id, *token, accepted);
            if let Some(ran) = &self.options.ran {
                match self.engine.capabilities().drained {
                    // Not the store's answer yet: the drain writes it down.
                    true => ran.handed_on(*id, *token),
                    false => ran.answered(*id, *token, *settled, self.clock.now()),
                }
            }
            match settled {
                Settled::LeaseLost if completed => {
                    self.tally.settled += 1;
                    log::debug!(job = %id, "settled in a transaction of its handler");
                }
                Settled::Accepted => {
                    self.tally.settled += 1;
                    log::debug!(job = %id, "settled");
                }
                Settled::LeaseLost => {
                    self.tally.lost += 1;
                    log::warn!(job = %id, "lease lost, the result is dropped");
                }
            }
        }
    }

    /// Others have taken over what this worker held: it drops all of it and joins anew.
    async fn start_again(&mut self, claiming: &mut Claims, stop: &mut Stop) -> Result<()> {
        // What these bring belongs to whoever took over.
        #[cfg(feature = "test-hooks")]
        let kept = crate::hooks::switched_off("claims.given_up");
        #[cfg(not(feature = "test-hooks"))]
        let kept = false;
        if !kept {
            *claiming = Claims::default();
        }
        let jobs = self.registry.held();
        self.registry.forget();
        self.beating = None;
        self.engine.forget(&self.worker);
        event::lease_lost();
        log::warn!(worker = %self.worker, jobs, "lease lost, starting again");
        self.worker = WorkerId::random(&host())?;
        self.registry.begin_as(&self.worker);
        while let Err(why) = self.join().await {
            if matches!(why, Error::Schema(_) | Error::Bug(_) | Error::Invalid(_)) {
                return Err(why);
            }
            log::error!(%why, "joining waits for the store");
            tokio::select! {
                () = stop.asked() => return Ok(()),
                () = self.clock.sleep(self.options.poll) => {}
            }
        }
        Ok(())
    }
}

/// Looks after the store beside the work, if there is one.
async fn upkeep(
    store: Option<Rowlock>,
    clock: Clock,
    lease: Duration,
    doubted: watch::Sender<bool>,
) {
    match store {
        Some(store) => reconcile::upkeep_and_tell(store.engine(), clock, lease, doubted).await,
        None => std::future::pending().await,
    }
}

/// Leads beside the work; with `once` the ticks that are due come before it.
async fn lead(scheduler: Option<&mut Scheduler>, once: bool) {
    match scheduler {
        Some(scheduler) if !once => scheduler.run().await,
        _ => std::future::pending().await,
    }
}

/// Gives posts up, if the store answers soon: others would wait for the lease otherwise.
async fn leave(scheduler: Option<Scheduler>, clock: Clock) {
    if let Some(mut scheduler) = scheduler
        && clock.timeout(LAST_ACKS, scheduler.leave()).await.is_none()
    {
        log::warn!("posts were not given up, others wait for the lease");
    }
}

fn settlement(job: &ClaimedJob, verdict: Verdict) -> Settlement {
    Settlement::unbegun(job.id, job.token, verdict)
}

pub(crate) fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
