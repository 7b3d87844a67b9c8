//! A producer that writes down what it was told: calls of the library's, and transactions of an
//! application's, some of them rolled back.

use rowlock::clock::Clock;
use rowlock::verify::{Answer, Op, Told};
use rowlock::{JobId, NewJob};

use crate::conformance::home_at;
use crate::conformance::world::job;

pub async fn produce(url: &str, told: &str, seed: u64, jobs: u64) {
    let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
    let told = Told::open(told).unwrap();
    let say = |id: Option<JobId>, ok| {
        let answer = Answer {
            t: Clock::system().now(),
            op: Op::Enqueue,
            id,
            unique_key: None,
            ok,
        };
        told.write(&[answer]).unwrap();
    };
    // The first is one that a worker can be killed in.
    let first = rowlock.enqueue(&job("naps").priority(9)).await.unwrap();
    say(first.id, true);
    let mut client = home_at(url).client();
    for n in 0..jobs {
        let dice = mix(seed, n);
        match dice % 4 {
            0 => {
                client.begin();
                client.stage(&job("ghost")).unwrap();
                client.rollback();
                // Its number may be given to the next one: a ghost is known by its kind.
                say(None, false);
            }
            1 => {
                client.begin();
                let kept = client.stage(&some(dice)).unwrap();
                client.commit();
                say(kept.id, true);
            }
            2 => {
                let both = vec![some(dice), some(dice / 2)];
                for kept in rowlock.enqueue_many(both).await.unwrap() {
                    say(kept.id, true);
                }
            }
            _ => say(rowlock.enqueue(&some(dice)).await.unwrap().id, true),
        }
    }
}

fn some(dice: u64) -> NewJob {
    match dice / 4 % 5 {
        0 => job("stumbles"),
        1 => job("quick").unique(format!("key {}", dice % 7)).unwrap(),
        _ => job("quick"),
    }
}

/// The same numbers for the same seed (splitmix64).
pub(super) fn mix(seed: u64, n: u64) -> u64 {
    let mut z = (seed << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
