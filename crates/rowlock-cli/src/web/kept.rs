//! Answers that many ask for: whoever asks while somebody looks gets the same, and for a while so do the next. A
//! program that asks two hundred times a second must not count two hundred times.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rowlock::Clock;
use rowlock::clock::Elapsed;
use serde_json::Value;

use super::problem::Problem;
use super::taken_out;

/// How long an answer is good, at least and at most.
const FRESH: Duration = Duration::from_secs(1);
const OLDEST: Duration = Duration::from_secs(10);
/// What takes long, as under an old snapshot, is looked at less often.
const REST: u32 = 20;

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// As old as it is good.
    Good,
    /// Looked at since it was asked for.
    New,
}

/// What was answered last, by path.
#[derive(Debug)]
pub struct Kept {
    clock: Clock,
    /// How many changes this process has made.
    changes: AtomicU64,
    answers: Mutex<HashMap<&'static str, Arc<Shelf>>>,
}

/// Whoever looks holds the lock; the others wait for it, and for the answer with it.
type Shelf = tokio::sync::Mutex<Option<Answer>>;

#[derive(Debug)]
struct Answer {
    began: Elapsed,
    ended: Elapsed,
    changes: u64,
    said: Result<Value, Problem>,
}

impl Answer {
    /// Whether it is one for somebody who asked then, after so many changes.
    fn is_for(&self, asked: Elapsed, changes: u64, age: Age) -> bool {
        if self.changes < changes && !taken_out("web.kept") {
            return false;
        }
        let good = (self.ended.saturating_sub(self.began) * REST).clamp(FRESH, OLDEST);
        match &self.said {
            _ if self.began >= asked => true,
            // Everybody who waited hears of it; whoever comes later may be luckier.
            Err(_) => asked <= self.ended,
            Ok(_) => age == Age::Good && asked.saturating_sub(self.began) < good,
        }
    }
}

/// While it lives something is being changed. However that ends, what was seen before isn't true any more.
pub struct Changing<'a>(&'a Kept);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_add(1, Ordering::SeqCst);
    }
}

impl Kept {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            changes: AtomicU64::new(0),
            answers: Mutex::default(),
        }
    }

    pub fn changing(&self) -> Changing<'_> {
        Changing(self)
    }

    /// The answer of a path, from whoever has looked, or from a look of one's own.
    pub async fn answer(
        &self,
        path: &'static str,
        age: Age,
        look: impl Future<Output = Result<Value, Problem>>,
    ) -> Result<Value, Problem> {
        let changes = || self.changes.load(Ordering::SeqCst);
        let (asked, before) = (self.clock.elapsed(), changes());
        let shelf = {
            let mut all = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(path).or_default())
        };
        let mut last = shelf.lock().await;
        if let Some(answer) = &*last
            && answer.is_for(asked, before, age)
        {
            return answer.said.clone();
        }
        let (began, changes) = (self.clock.elapsed(), changes());
        let said = look.await;
        let ended = self.clock.elapsed();
        let answer = Answer {
            began,
            ended,
            changes,
            said: said.clone(),
        };
        *last = Some(answer);
        said
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    struct Counting {
        kept: Kept,
        clock: Clock,
        looks: AtomicU64,
    }

    impl Counting {
        fn new() -> Self {
            let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
            Self {
                kept: Kept::new(clock.clone()),
                clock,
                looks: AtomicU64::new(0),
            }
        }

        /// Which look the answer is of; a look takes as long.
        async fn ask(&self, age: Age, takes: Duration) -> Value {
            let look = async {
                self.clock.advance(takes).unwrap();
                Ok(json!(self.looks.fetch_add(1, Ordering::SeqCst) + 1))
            };
            self.kept.answer("/stats", age, look).await.unwrap()
        }

        fn pass(&self, time: Duration) {
            self.clock.advance(time).unwrap();
        }
    }

    const NOW: Duration = Duration::ZERO;

    #[tokio::test]
    async fn an_answer_is_good_for_a_second_and_longer_where_looking_takes_long() {
        let all = Counting::new();
        for (takes, good) in [(0, 1_000), (200, 4_000), (3_000, 10_000)] {
            let takes = Duration::from_millis(takes);
            all.pass(OLDEST);
            let first = all.ask(Age::Good, takes).await;
            all.pass(Duration::from_millis(good) - takes - Duration::from_millis(1));
            assert_eq!(all.ask(Age::Good, NOW).await, first);
            all.pass(Duration::from_millis(1));
            assert_ne!(all.ask(Age::Good, NOW).await, first);
        }
    }

    #[tokio::test]
    async fn whoever_wants_a_new_one_or_has_changed_something_gets_a_new_one() {
        let all = Counting::new();
        assert_eq!(all.ask(Age::Good, NOW).await, 1);
        all.pass(Duration::from_millis(1));
        assert_eq!(all.ask(Age::New, NOW).await, 2);
        drop(all.kept.changing());
        assert_eq!(all.ask(Age::Good, NOW).await, 3);
        assert_eq!(all.ask(Age::Good, NOW).await, 3);
    }

    #[tokio::test]
    async fn a_look_from_before_a_change_is_no_answer_after_it() {
        let all = Counting::new();
        let (change, changed) = oneshot::channel::<()>();
        let look = async {
            let _ = changed.await;
            Ok(json!("before"))
        };
        let first = all.kept.answer("/stats", Age::Good, look);
        let second = async {
            drop(all.kept.changing());
            change.send(()).unwrap();
            all.ask(Age::Good, NOW).await
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap(), second), (json!("before"), json!(1)));
    }

    #[tokio::test]
    async fn everybody_who_waits_hears_of_a_failure_and_the_next_one_tries_again() {
        let all = Counting::new();
        let down = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", "x", "y");
        let look = async {
            all.pass(Duration::from_secs(5));
            Err(down())
        };
        let waits = all.kept.answer("/stats", Age::New, async { Ok(json!(0)) });
        let fails = all.kept.answer("/stats", Age::Good, look);
        let (failed, heard) = tokio::join!(biased; fails, waits);
        assert_eq!(failed.unwrap_err().code, "unreachable");
        assert_eq!(heard.unwrap_err().code, "unreachable");
        all.pass(Duration::from_millis(1));
        assert_eq!(all.ask(Age::Good, NOW).await, 1);
    }
}
