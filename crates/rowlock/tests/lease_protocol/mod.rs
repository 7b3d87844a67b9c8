//! The lease protocol in a model checker: every order of events, with fences that hold and fences
//! that don't.

mod protocol;
mod store;

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use stateright::{Checker, HasDiscoveries, Model};

use self::protocol::{ALWAYS, ENDS_ONCE, HELD_BY_THE_LIVING, ONLY_THE_HOLDER, Protocol};
use self::store::Fence;
use crate::plain;

pub fn trials() -> Vec<Trial> {
    vec![
        plain(
            "lease_protocol::a_fence_of_id_and_token_holds_in_every_state",
            a_fence_of_id_and_token_holds_in_every_state,
        ),
        plain("lease_protocol::the_id_alone_is_no_fence", || {
            is_broken(Fence::Id, &[ENDS_ONCE, ONLY_THE_HOLDER]);
        }),
        plain("lease_protocol::id_and_state_are_no_fence", || {
            is_broken(Fence::IdAndState, &[ONLY_THE_HOLDER]);
        }),
        plain("lease_protocol::id_and_worker_are_no_fence", || {
            is_broken(Fence::IdAndWorker, &[ONLY_THE_HOLDER]);
        }),
        plain("lease_protocol::id_and_attempt_are_no_fence", || {
            is_broken(Fence::IdAndAttempt, &[ONLY_THE_HOLDER]);
        }),
        plain(
            "lease_protocol::a_worker_that_claims_after_it_was_given_up_strands_its_jobs",
            a_worker_that_claims_after_it_was_given_up_strands_its_jobs,
        ),
    ]
}

/// Workers, jobs, and claims of each job.
const SIZES: [(u8, usize, u8); 3] = [(2, 1, 3), (3, 1, 2), (2, 2, 1)];
/// Minutes, and two million states more: `ROWLOCK_DEEP=1`.
const DEEP: (u8, usize, u8) = (3, 1, 3);

fn a_fence_of_id_and_token_holds_in_every_state() {
    let mut sizes = SIZES.to_vec();
    if std::env::var_os("ROWLOCK_DEEP").is_some() {
        sizes.push(DEEP);
    }
    for (workers, jobs, claims) in sizes {
        let protocol = Protocol {
            workers,
            jobs,
            claims,
            fence: Fence::IdAndToken,
            the_given_up_may_claim: false,
        };
        let checked = protocol.checker().spawn_bfs().join();
        for property in ALWAYS {
            checked.assert_no_discovery(property);
        }
        println!(
            "{workers} workers, {jobs} jobs, {claims} claims each: holds in all {} states",
            checked.unique_state_count()
        );
        // Enough claims for everything that must be possible too.
        if claims == 3 {
            checked.assert_properties();
        }
    }
}

/// The checker must find the story in which a late settle is taken for the holder's.
fn is_broken(fence: Fence, broken: &[&'static str]) {
    let protocol = Protocol {
        workers: 2,
        jobs: 1,
        claims: 3,
        fence,
        the_given_up_may_claim: false,
    };
    for property in broken {
        shows(protocol, property);
    }
}

fn shows(protocol: Protocol, property: &'static str) {
    let enough = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checked = protocol.checker().finish_when(enough).spawn_bfs().join();
    let found = checked.discovery(property);
    let story = found.unwrap_or_else(|| panic!("{protocol:?} keeps {property:?}"));
    let steps: Vec<String> = story
        .into_actions()
        .iter()
        .map(|step| format!("{step:?}"))
        .collect();
    println!(
        "{:?} breaks {property:?}: {}",
        protocol.fence,
        steps.join(", ")
    );
}

fn a_worker_that_claims_after_it_was_given_up_strands_its_jobs() {
    let protocol = Protocol {
        workers: 2,
        jobs: 1,
        claims: 2,
        fence: Fence::IdAndToken,
        the_given_up_may_claim: true,
    };
    shows(protocol, HELD_BY_THE_LIVING);
    let careful = Protocol {
        the_given_up_may_claim: false,
        ..protocol
    };
    let checked = careful.checker().spawn_bfs().join();
    checked.assert_no_discovery(HELD_BY_THE_LIVING);
}
