//! What can be done with a store, in random order.

use proptest::collection::vec;
use proptest::prelude::*;

pub const KINDS: [&str; 3] = ["mail", "report", FLEETING];
/// A kind that keeps nothing of what went well.
pub const FLEETING: &str = "fleeting";
pub const QUEUES: [&str; 2] = ["default", "night"];
pub const KEYS: [&str; 2] = ["ada", "bob"];
pub const WORKERS: usize = 3;

/// A job to stage.
#[derive(Debug, Clone)]
pub struct Order {
    pub kind: usize,
    pub queue: usize,
    pub priority: i16,
    pub delay: u64,
    pub key: Option<usize>,
    pub key_until_start: bool,
    pub max_attempts: u32,
}

/// What is said about a claimed job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Word {
    Done,
    NotNeeded,
    /// After so many seconds, or as the policy says.
    Retry(Option<u64>),
    Snooze(u64),
    Fail,
    Cancelled,
    Release,
    Sent,
}

/// A settle of the claim that was made `claim` claims ago, under its own token or another's.
#[derive(Debug, Clone)]
pub struct Say {
    /// Counted among the claims, old ones too, of jobs that somebody holds now.
    pub of_held: bool,
    pub claim: usize,
    pub token_of: Option<usize>,
    pub word: Word,
}

/// Which tokens a worker names with its heartbeat.
#[derive(Debug, Clone, Copy)]
pub enum Held {
    All,
    /// The answer to its last claim never arrived.
    AllButTheLast,
    Nothing,
}

/// Jobs and claims are counted back from the newest.
#[derive(Debug, Clone)]
pub enum Operation {
    Stage(Vec<Order>),
    Claim {
        worker: usize,
        kinds: Vec<usize>,
        queue: Option<usize>,
        limit: usize,
    },
    ClaimSuspect {
        worker: usize,
        starts: bool,
    },
    /// Of the last suspect that was claimed, or one before it.
    StartSuspect {
        claim: usize,
    },
    Settle(Vec<Say>),
    Heartbeat {
        worker: usize,
        held: Held,
    },
    Leave {
        worker: usize,
    },
    /// The process is gone, without a word; another one begins.
    Replace {
        worker: usize,
    },
    /// A whole lease passes; these workers don't beat. They come back with what they believe they
    /// hold, or as new processes.
    Silence {
        silent: Vec<usize>,
        replaced: bool,
    },
    /// The observer looks once, after so many seconds.
    Sample {
        after: u64,
    },
    Cancel(Vec<usize>),
    Redrive(Vec<usize>),
    Delete(Vec<usize>),
    Prune {
        limit: usize,
    },
    Pause(usize),
    Resume(usize),
    Wait {
        seconds: u64,
    },
}

fn order() -> impl Strategy<Value = Order> {
    (
        0..KINDS.len(),
        prop_oneof![3 => Just(0), 1 => Just(1_usize)],
        -1..=1_i16,
        prop_oneof![4 => Just(0), 1 => Just(10), 1 => Just(60_u64)],
        proptest::option::weighted(0.5, 0..KEYS.len()),
        any::<bool>(),
        1..=3_u32,
    )
        .prop_map(
            |(kind, queue, priority, delay, key, key_until_start, max_attempts)| Order {
                kind,
                queue,
                priority,
                delay,
                key,
                key_until_start,
                max_attempts,
            },
        )
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        3 => Just(Word::Done),
        1 => Just(Word::NotNeeded),
        2 => Just(Word::Retry(Some(0))),
        1 => Just(Word::Retry(None)),
        2 => Just(Word::Snooze(0)),
        1 => Just(Word::Snooze(20)),
        1 => Just(Word::Fail),
        1 => Just(Word::Cancelled),
        4 => Just(Word::Release),
        1 => Just(Word::Sent),
    ]
}

fn say() -> impl Strategy<Value = Say> {
    let token_of = proptest::option::weighted(0.2, recent());
    let of_held = proptest::bool::weighted(0.7);
    (of_held, recent(), token_of, word()).prop_map(|(of_held, claim, token_of, word)| Say {
        of_held,
        claim,
        token_of,
        word,
    })
}

/// Mostly the newest, so that most of what is done makes sense.
fn recent() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..4_usize, 1 => 4..16_usize]
}

fn worker() -> impl Strategy<Value = usize> {
    0..WORKERS
}

fn some_jobs() -> impl Strategy<Value = Vec<usize>> {
    vec(recent(), 1..=3)
}

fn claim() -> impl Strategy<Value = Operation> {
    let kinds = prop_oneof![
        3 => Just(vec![0, 1, 2]),
        1 => proptest::sample::subsequence(vec![0, 1, 2], 1..=2),
    ];
    let queue = proptest::option::weighted(0.2, 0..QUEUES.len());
    (worker(), kinds, queue, 1..=4_usize).prop_map(|(worker, kinds, queue, limit)| {
        Operation::Claim {
            worker,
            kinds,
            queue,
            limit,
        }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let held = prop_oneof![
        3 => Just(Held::All),
        2 => Just(Held::AllButTheLast),
        1 => Just(Held::Nothing),
    ];
    let silent = proptest::sample::subsequence(vec![0, 1, 2], 0..WORKERS);
    let seconds = prop_oneof![
        4 => Just(10),
        3 => Just(90),
        1 => Just(86_400),
        1 => Just(8 * 86_400_u64),
    ];
    prop_oneof![
        6 => vec(order(), 1..=3).prop_map(Stage),
        11 => claim(),
        5 => (worker(), any::<bool>())
            .prop_map(|(worker, starts)| ClaimSuspect { worker, starts }),
        2 => (0..3_usize).prop_map(|claim| StartSuspect { claim }),
        11 => vec(say(), 1..=3).prop_map(Settle),
        3 => (worker(), held).prop_map(|(worker, held)| Heartbeat { worker, held }),
        1 => worker().prop_map(|worker| Leave { worker }),
        5 => worker().prop_map(|worker| Replace { worker }),
        4 => (silent, any::<bool>())
            .prop_map(|(silent, replaced)| Silence { silent, replaced }),
        2 => (1..=16_u64).prop_map(|after| Sample { after }),
        4 => some_jobs().prop_map(Cancel),
        2 => some_jobs().prop_map(Redrive),
        1 => some_jobs().prop_map(Delete),
        1 => prop_oneof![Just(1), Just(100)].prop_map(|limit| Prune { limit }),
        1 => (0..QUEUES.len()).prop_map(Pause),
        2 => (0..QUEUES.len()).prop_map(Resume),
        3 => seconds.prop_map(|seconds| Wait { seconds }),
    ]
}

/// A life of a store.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 1..=80)
}

/// What every life ends with: everything that can be claimed is, so that whatever a claim depends
/// on has been compared too.
pub fn finale() -> Vec<Operation> {
    let mut last = vec![Operation::Resume(0), Operation::Resume(1)];
    last.push(Operation::Replace { worker: 0 });
    last.push(Operation::Wait { seconds: 3600 });
    last.extend(vec![
        Operation::ClaimSuspect {
            worker: 0,
            starts: false,
        };
        3
    ]);
    last.push(Operation::Claim {
        worker: 0,
        kinds: vec![0, 1, 2],
        queue: None,
        limit: 500,
    });
    last
}
