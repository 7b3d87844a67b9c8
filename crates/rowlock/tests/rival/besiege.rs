//! An application that makes it hard: transactions that stay open, are rolled back as a whole or in part, jobs
//! with keys, delays and retries, and jobs that are called off again. It writes down what it was told.

use std::time::Duration;

use rowlock::clock::{Clock, Elapsed};
use rowlock::verify::{Answer, Op, Told};
use rowlock::{Enqueued, JobId, NewJob, Rowlock};

use super::produce::mix;
use crate::conformance::home_at;
use crate::conformance::world::{Client, job};

/// Transactions that are open at a time.
const OPEN: usize = 6;

/// One that was begun: when it ends, and how.
struct Open {
    client: Box<dyn Client>,
    ends: Elapsed,
    commits: bool,
    staged: Vec<(NewJob, Enqueued)>,
}

struct Siege {
    clock: Clock,
    told: Told,
    rowlock: Rowlock,
    /// Jobs that may be called off.
    known: Vec<JobId>,
}

pub async fn besiege(url: &str, told: &str, seed: u64, transactions: u64) {
    let clock = Clock::system();
    let mut siege = Siege {
        told: Told::open(told).unwrap(),
        rowlock: home_at(url).open(clock.clone()),
        clock: clock.clone(),
        known: Vec::new(),
    };
    let mut idle: Vec<Box<dyn Client>> = (0..OPEN).map(|_| home_at(url).client()).collect();
    let mut open: Vec<Open> = Vec::new();
    for n in 0..transactions {
        let dice = mix(seed, n);
        match dice % 8 {
            0 => siege.calls_off(dice).await,
            1 => siege.enqueues(&some(dice, true)).await,
            _ => {
                if idle.is_empty() {
                    let ended = siege.ends_one(&mut open).await;
                    idle.push(ended);
                }
                let client = idle.pop().unwrap();
                open.push(begin(client, dice, clock.elapsed()));
            }
        }
    }
    while !open.is_empty() {
        siege.ends_one(&mut open).await;
    }
    println!("told {transactions}");
}

/// A few jobs, some of them in a savepoint that is rolled back.
fn begin(mut client: Box<dyn Client>, dice: u64, now: Elapsed) -> Open {
    let late = match dice >> 4 & 15 {
        0 => dice >> 16 & 2047,
        _ => dice >> 16 & 63,
    };
    match dice >> 8 & 7 {
        0 => client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ"),
        _ => client.begin(),
    }
    let commits = dice >> 11 & 3 != 0;
    let mut staged = Vec::new();
    for each in 0..dice >> 32 & 7 {
        let dice = mix(dice, each);
        if dice.is_multiple_of(4) {
            client.execute("SAVEPOINT part");
            client.stage(&job("ghost")).unwrap();
            client.execute("ROLLBACK TO part");
        }
        let wanted = match commits {
            true => some(dice, false),
            false => job("ghost"),
        };
        let answer = client.stage(&wanted).unwrap();
        staged.push((wanted, answer));
    }
    Open {
        client,
        ends: now + Duration::from_millis(late),
        commits,
        staged,
    }
}

impl Siege {
    /// Ends the one whose time comes first.
    async fn ends_one(&mut self, open: &mut Vec<Open>) -> Box<dyn Client> {
        let first = (0..open.len()).min_by_key(|n| open[*n].ends).unwrap();
        let mut ended = open.swap_remove(first);
        let wait = ended.ends.saturating_sub(self.clock.elapsed());
        self.clock.sleep(wait).await;
        if !ended.commits {
            ended.client.rollback();
            return ended.client;
        }
        ended.client.commit();
        for (wanted, answer) in &ended.staged {
            self.say(wanted, answer);
        }
        ended.client
    }

    /// In a transaction of its own: one that waits for a key here would wait for this very process.
    async fn enqueues(&mut self, wanted: &NewJob) {
        let answer = self.rowlock.enqueue(wanted).await.unwrap();
        self.say(wanted, &answer);
    }

    fn say(&mut self, wanted: &NewJob, answer: &Enqueued) {
        let now = self.clock.now();
        let answer = Answer::enqueue(now, wanted, Some(answer));
        self.known.extend(answer.id);
        self.told.write(&[answer]).unwrap();
    }

    async fn calls_off(&mut self, dice: u64) {
        let Some(last) = self.known.len().checked_sub(1) else {
            return;
        };
        let at = last - usize::try_from(dice >> 8 & 31).unwrap().min(last);
        let id = self.known[at];
        let cancelled = self.rowlock.engine().cancel(vec![id]).await.unwrap();
        let answer = Answer {
            t: self.clock.now(),
            op: Op::Cancel,
            id: Some(id),
            unique_key: None,
            ok: cancelled[0].is_ok(),
        };
        self.told.write(&[answer]).unwrap();
    }
}

fn some(dice: u64, keyed: bool) -> NewJob {
    let kind = match dice >> 40 & 63 {
        0 => "naps",
        1..12 => "stumbles",
        _ => "quick",
    };
    let wanted = match dice >> 48 & 7 {
        0 => job(kind).delay(Duration::from_millis(dice >> 51 & 1023)),
        _ => job(kind),
    };
    match keyed {
        true => wanted.unique(format!("key {}", dice >> 20 & 7)).unwrap(),
        false => wanted,
    }
}
