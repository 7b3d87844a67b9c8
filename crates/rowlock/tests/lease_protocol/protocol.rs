//! Processes that claim, beat, settle, die and come late, against one store.
//!
//! A process that takes no step for a while is a paused one: that needs no event of its own. It
//! may be given up at any moment, rightly or not: the fence must not depend on the observer.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

use super::store::{Claim, Fence, MOST, Row, State, Verdict, WorkerId};

pub const ENDS_ONCE: &str = "a job has one accepted end";
pub const ONLY_THE_HOLDER: &str = "only the holder of the current claim settles";
const ATTEMPTS_BOUNDED: &str = "attempts never pass the maximum";
const CHARGED_FOR_RUNS: &str = "only a run is charged";
pub const HELD_BY_THE_LIVING: &str = "what is claimed is held by somebody who can be given up";

/// What must be so in every state.
pub const ALWAYS: [&str; 5] = [
    ENDS_ONCE,
    ONLY_THE_HOLDER,
    ATTEMPTS_BOUNDED,
    CHARGED_FOR_RUNS,
    HELD_BY_THE_LIVING,
];

#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    pub workers: u8,
    pub jobs: usize,
    /// The most claims of one job: releases and expiries would let it go on for ever.
    pub claims: u8,
    pub fence: Fence,
    pub the_given_up_may_claim: bool,
}

/// A settle on its way to the store. It may arrive long after its sender is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    claim: Claim,
    verdict: Verdict,
}

/// Short, for stories.
impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Claim { worker, token, .. } = self.claim;
        write!(f, "{:?} by {worker:?} under claim {token}", self.verdict)
    }
}

/// A process and what it believes it holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    id: WorkerId,
    runs: bool,
    belief: Option<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    rows: Vec<Row>,
    /// The worker table, with the suspect whose start is recorded.
    workers: BTreeMap<WorkerId, Option<Claim>>,
    processes: Vec<Process>,
    on_its_way: BTreeSet<Message>,
    /// Only for judging.
    settled_by_another: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Claim {
        slot: usize,
        job: usize,
    },
    /// The claim is committed, and its answer never arrives.
    ClaimUnheard {
        slot: usize,
        job: usize,
    },
    /// Records that a suspect begins.
    Begin {
        slot: usize,
    },
    Beat {
        slot: usize,
    },
    Send {
        slot: usize,
        verdict: Verdict,
    },
    Arrive(Message),
    /// It was sent twice, because no answer came in time: the second is still on its way.
    ArriveTwice(Message),
    /// The store has decided, and the sender never hears it.
    ArriveUnheard(Message),
    GiveUp(WorkerId),
    Crash {
        slot: usize,
    },
}

impl Model for Protocol {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        let process = |slot| Process {
            id: WorkerId(slot),
            runs: true,
            belief: None,
        };
        vec![World {
            rows: vec![Row::new(); self.jobs],
            workers: (0..self.workers)
                .map(|slot| (WorkerId(slot), None))
                .collect(),
            processes: (0..self.workers).map(process).collect(),
            on_its_way: BTreeSet::new(),
            settled_by_another: false,
        }]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        for (slot, process) in world.processes.iter().enumerate() {
            if !process.runs {
                continue;
            }
            events.push(Event::Beat { slot });
            // The death of a process that has nothing concerns nobody.
            if world.holds(process.id) {
                events.push(Event::Crash { slot });
            }
            match process.belief {
                Some(claim) => {
                    if claim.suspect {
                        events.push(Event::Begin { slot });
                    }
                    for verdict in [Verdict::Done, Verdict::Retry, Verdict::Release] {
                        events.push(Event::Send { slot, verdict });
                    }
                }
                None => {
                    for job in 0..self.jobs {
                        events.push(Event::Claim { slot, job });
                        events.push(Event::ClaimUnheard { slot, job });
                    }
                }
            }
        }
        for message in &world.on_its_way {
            events.push(Event::Arrive(*message));
            events.push(Event::ArriveTwice(*message));
            events.push(Event::ArriveUnheard(*message));
        }
        let holders = world.workers.keys().filter(|worker| world.holds(**worker));
        events.extend(holders.copied().map(Event::GiveUp));
    }

    /// `None`: it can't happen now, or changes nothing.
    fn next_state(&self, before: &World, event: Event) -> Option<World> {
        let mut world = before.clone();
        match event {
            Event::Claim { slot, job } => {
                let claim = self.claim(&mut world, slot, job)?;
                world.processes[slot].belief = Some(claim);
            }
            Event::ClaimUnheard { slot, job } => {
                self.claim(&mut world, slot, job)?;
            }
            Event::Begin { slot } => {
                let claim = world.processes[slot].belief?;
                let recorded = world.workers.get_mut(&claim.worker)?;
                if world.rows[claim.job].is_held_under(claim) {
                    *recorded = Some(claim);
                }
            }
            Event::Beat { slot } => beat(&mut world, slot),
            Event::Send { slot, verdict } => {
                let claim = world.processes[slot].belief?;
                // One at a time from each claim; another may follow when this one has arrived.
                if world.on_its_way.iter().any(|sent| sent.claim == claim) {
                    return None;
                }
                world.on_its_way.insert(Message { claim, verdict });
            }
            Event::Arrive(message) => {
                self.arrive(&mut world, message);
                hear(&mut world, message);
            }
            Event::ArriveTwice(message) => {
                self.arrive(&mut world, message);
                hear(&mut world, message);
                world.on_its_way.insert(message);
            }
            Event::ArriveUnheard(message) => self.arrive(&mut world, message),
            Event::GiveUp(worker) => {
                let begun = world.workers.remove(&worker)?;
                for (job, row) in world.rows.iter_mut().enumerate() {
                    let held = row.holder.is_some_and(|(holder, _)| holder == worker);
                    let pays = begun.is_some_and(|it| it.job == job && row.is_held_under(it));
                    if held {
                        row.expire(pays);
                    }
                }
            }
            Event::Crash { slot } => {
                world.processes[slot].runs = false;
                world.processes[slot].belief = None;
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ENDS_ONCE, |_, world: &World| {
                world.rows.iter().all(|row| row.ends <= 1)
            }),
            Property::always(ONLY_THE_HOLDER, |_, world: &World| {
                !world.settled_by_another
            }),
            Property::always(ATTEMPTS_BOUNDED, |_, world: &World| {
                world.rows.iter().all(|row| row.attempt <= MOST)
            }),
            Property::always(CHARGED_FOR_RUNS, |_, world: &World| {
                world.rows.iter().all(charged_for_runs)
            }),
            Property::always(HELD_BY_THE_LIVING, |_, world: &World| {
                let mut holders = world.rows.iter().filter_map(|row| row.holder);
                holders.all(|(worker, _)| world.workers.contains_key(&worker))
            }),
            Property::sometimes("every job completes", |_, world: &World| {
                world.rows.iter().all(|row| row.state == State::Completed)
            }),
            Property::sometimes("a poison job fails by itself", |_, world: &World| {
                let died = |row: &Row| row.state == State::Failed && row.suspect;
                world.rows.iter().any(died)
            }),
            Property::sometimes("a settle comes late", |_, world: &World| {
                let late = |sent: &Message| !world.rows[sent.claim.job].is_held_under(sent.claim);
                world.on_its_way.iter().any(late)
            }),
            Property::sometimes("a dead worker's job completes", |_, world: &World| {
                let again = |row: &Row| row.state == State::Completed && row.suspect;
                world.rows.iter().any(again)
            }),
        ]
    }
}

/// The number of attempts is the number of runs that failed, and the one that runs now.
fn charged_for_runs(row: &Row) -> bool {
    match row.state {
        State::Pending | State::Failed => row.attempt == row.paid,
        State::Processing | State::Completed => row.attempt == row.paid + 1,
    }
}

impl World {
    /// Whether the store, or the worker itself, has something to lose.
    fn holds(&self, worker: WorkerId) -> bool {
        let rows = self.rows.iter().filter_map(|row| row.holder);
        let believes = |process: &Process| process.id == worker && process.belief.is_some();
        rows.into_iter().any(|(holder, _)| holder == worker) || self.processes.iter().any(believes)
    }
}

impl Protocol {
    fn claim(&self, world: &mut World, slot: usize, job: usize) -> Option<Claim> {
        let worker = world.processes[slot].id;
        let lives = world.workers.contains_key(&worker) || self.the_given_up_may_claim;
        let row = &mut world.rows[job];
        let due = row.state == State::Pending && row.claims < self.claims;
        (lives && due).then(|| row.claim(worker, job))
    }

    fn arrive(&self, world: &mut World, message: Message) {
        world.on_its_way.remove(&message);
        let row = &mut world.rows[message.claim.job];
        if !row.accepts(message.claim, self.fence) {
            return;
        }
        world.settled_by_another |= !row.is_held_under(message.claim);
        row.settle(message.verdict);
    }
}

/// Accepted or refused, the sender drops what it had.
fn hear(world: &mut World, message: Message) {
    let slot = usize::from(message.claim.worker.0);
    if world.processes[slot].belief == Some(message.claim) {
        world.processes[slot].belief = None;
    }
}

/// A living worker's rows whose token it doesn't hold go back; one that was given up drops what it
/// believes. It would begin again under a new name: that is another worker, and there are others.
fn beat(world: &mut World, slot: usize) {
    let Process { id, belief, .. } = world.processes[slot].clone();
    if !world.workers.contains_key(&id) {
        world.processes[slot].belief = None;
        world.processes[slot].runs = false;
        return;
    }
    for (job, row) in world.rows.iter_mut().enumerate() {
        let mine = row.holder.is_some_and(|(holder, _)| holder == id);
        let known = belief.is_some_and(|claim| claim.job == job && row.is_held_under(claim));
        if mine && !known {
            row.settle(Verdict::Release);
        }
    }
}
