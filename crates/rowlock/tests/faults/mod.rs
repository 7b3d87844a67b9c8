//! Faults: real processes and signals on every engine; the store is the judge.

mod clocks;
mod death;
mod lead;
mod silence;
mod stop;
mod takeover;

use std::process::Command;
use std::sync::Arc;

use libtest_mimic::Trial;
use rowlock::clock::Clock;
use rowlock::engine::Counts;
use rowlock::{JobId, JobState};
use rowlock_testbed::Process;

use crate::conformance::world::{Home, Site, World};

type Fault = fn(&Ground);

/// Where a fault happens: a store, a handle on it, and a runtime to ask questions with.
pub struct Ground {
    home: Arc<dyn Home>,
    site: Site,
    runtime: tokio::runtime::Runtime,
}

const FAULTS: &[(&str, Fault)] = &[
    (
        "a_poison_job_ends_failed_and_its_neighbours_are_charged_nothing",
        death::a_poison_job_ends_failed_and_its_neighbours_are_charged_nothing,
    ),
    (
        "panics_and_endless_jobs_hold_up_nobody",
        death::panics_and_endless_jobs_hold_up_nobody,
    ),
    (
        "a_worker_without_the_kind_leaves_it_to_the_one_that_has_it",
        death::a_worker_without_the_kind_leaves_it_to_the_one_that_has_it,
    ),
    (
        "a_handler_that_blocks_its_thread_for_three_leases_loses_nothing",
        silence::a_handler_that_blocks_its_thread_for_three_leases_loses_nothing,
    ),
    (
        "a_write_lock_held_for_three_leases_costs_nobody_anything",
        silence::a_write_lock_held_for_three_leases_costs_nobody_anything,
    ),
    (
        "a_store_that_is_gone_stops_handlers_before_the_lease_ends",
        silence::a_store_that_is_gone_stops_handlers_before_the_lease_ends,
    ),
    (
        "a_store_whose_log_is_gone_stops_handlers_before_the_lease_ends",
        silence::a_store_whose_log_is_gone_stops_handlers_before_the_lease_ends,
    ),
    (
        "a_lease_lost_while_stopping_ends_the_handlers",
        silence::a_lease_lost_while_stopping_ends_the_handlers,
    ),
    (
        "a_stopped_process_that_wakes_up_late_is_refused",
        silence::a_stopped_process_that_wakes_up_late_is_refused,
    ),
    (
        "a_holder_that_wakes_up_late_is_refused_whatever_it_reports",
        takeover::a_holder_that_wakes_up_late_is_refused_whatever_it_reports,
    ),
    (
        "a_rescuer_paused_between_finding_and_giving_back_undoes_nothing",
        takeover::a_rescuer_paused_between_finding_and_giving_back_undoes_nothing,
    ),
    (
        "a_process_stopped_in_the_middle_of_a_claim_costs_no_job_an_attempt",
        takeover::a_process_stopped_in_the_middle_of_a_claim_costs_no_job_an_attempt,
    ),
    (
        "a_leader_stopped_in_the_middle_of_a_tick_is_replaced_and_refused",
        lead::a_leader_stopped_in_the_middle_of_a_tick_is_replaced_and_refused,
    ),
    (
        "leaders_killed_again_and_again_lose_no_row",
        lead::leaders_killed_again_and_again_lose_no_row,
    ),
    (
        "a_process_an_hour_off_or_set_back_expires_nobody_alive",
        clocks::a_process_an_hour_off_or_set_back_expires_nobody_alive,
    ),
    (
        "a_first_signal_lets_running_jobs_finish",
        stop::a_first_signal_lets_running_jobs_finish,
    ),
    (
        "a_second_signal_gives_everything_back_uncharged",
        stop::a_second_signal_gives_everything_back_uncharged,
    ),
];

/// A server that can't be reached has cases of its own.
const IN_A_FILE_ONLY: [&str; 2] = [
    "a_store_that_is_gone_stops_handlers_before_the_lease_ends",
    "a_store_whose_log_is_gone_stops_handlers_before_the_lease_ends",
];

/// The names of the faults, without an engine.
pub fn names() -> impl Iterator<Item = String> {
    FAULTS.iter().map(|(name, _)| format!("faults::{name}"))
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (engine, home) in crate::conformance::engines() {
        for (name, fault) in FAULTS {
            if engine != "sqlite" && IN_A_FILE_ONLY.contains(name) {
                continue;
            }
            trials.push(Trial::test(
                format!("{engine}::faults::{name}"),
                move || {
                    let world = World::real(home());
                    fault(&Ground {
                        site: world.open_with(Clock::system()),
                        home: world.home,
                        runtime: tokio::runtime::Runtime::new()?,
                    });
                    Ok(())
                },
            ));
        }
    }
    trials
}

impl Ground {
    /// A worker process with the handlers of `rival::run`.
    fn worker(&self, lease_ms: u32, slots: u32, kinds: &str) -> Process {
        self.worker_with(&[], lease_ms, slots, kinds)
    }

    /// The same, with words of its own in its environment.
    fn worker_with(
        &self,
        environment: &[(&str, &str)],
        lease_ms: u32,
        slots: u32,
        kinds: &str,
    ) -> Process {
        let (lease, slots) = (lease_ms.to_string(), slots.to_string());
        let role = ["work", &self.home.url(), &lease, &slots, kinds];
        let mut worker = Process::start(rival(&role).envs(environment.iter().copied()));
        worker.line_with("ready");
        worker
    }

    /// A holder that stops itself once it has claimed, and reports when it is woken.
    fn late(&self, lease_ms: u32) -> Process {
        let role = ["late", &self.home.url(), &lease_ms.to_string()];
        Process::start(rival(&role).env("ROWLOCK_PAUSE_AT", "claim.committed"))
    }

    /// A worker that is stopped at the start of a nap and holds no lock: others can give it up.
    fn sleeper(&self, lease_ms: u32) -> Process {
        let pause = [("ROWLOCK_PAUSE_AT", "run.began")];
        let mut sleeper = self.worker_with(&pause, lease_ms, 1, "naps");
        sleeper.line_with("paused at run.began");
        sleeper.wait_until_stopped();
        // A heartbeat may have been under way.
        while !self.home.client().can_write() {
            sleeper.signal("CONT");
            sleeper.signal("STOP");
            sleeper.wait_until_stopped();
        }
        sleeper
    }

    /// Whether the server's time rules.
    fn server_clock(&self) -> bool {
        self.site.engine().capabilities().server_clock
    }

    fn ask<T>(&self, question: impl Future<Output = T>) -> T {
        self.runtime.block_on(question)
    }

    /// Every one of these was completed by its first attempt, and charged for nothing else.
    fn all_done_at_once(&self, ids: &[JobId]) {
        for id in ids {
            let found = self.ask(self.site.job(*id));
            let end = (found.state, found.attempt);
            assert_eq!(end, (JobState::Completed, 1), "job {id}");
            assert!(found.errors.is_empty(), "job {id}: {:?}", found.errors);
        }
    }

    /// Waits until so many workers have joined: a process says that it is ready before it joins.
    fn until_workers(&self, workers: usize) {
        let operate = self.site.rowlock.operate();
        self.eventually(async || {
            let living = operate.workers().await.unwrap().len();
            (living == workers).then_some(())
        });
    }

    /// Waits until `enough` says so.
    fn until(&self, enough: impl Fn(&Counts) -> bool) -> Counts {
        let operate = self.site.rowlock.operate();
        self.eventually(async || {
            let counts = operate.stats().await.unwrap().total;
            enough(&counts).then_some(counts)
        })
    }

    /// Looks again whenever somebody commits.
    fn eventually<T>(&self, look: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            let mut wakeups = self.site.engine().wakeups();
            loop {
                wakeups.mark();
                if let Some(found) = look().await {
                    return found;
                }
                crate::conformance::world::a_moment(&mut wakeups).await;
            }
        };
        let patience = std::time::Duration::from_secs(120);
        let found = self.ask(Clock::system().timeout(patience, looking));
        found.unwrap_or_else(|| {
            let counts = self.ask(self.site.rowlock.operate().stats()).unwrap().total;
            panic!("it doesn't happen: {counts:?}")
        })
    }
}

fn rival(role: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("rival").args(role);
    command
}

/// Lets real time pass, as the end of a process.
pub fn pass(seconds: &str) {
    assert!(
        Command::new("sleep")
            .arg(seconds)
            .status()
            .unwrap()
            .success()
    );
}
