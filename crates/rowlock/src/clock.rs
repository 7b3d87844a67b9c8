//! The one door for time.
//!
//! Wall time says when a job is due. Elapsed time says how long somebody was silent; it goes on
//! while the machine sleeps and never jumps. Both come from here, so that a test can move them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// Time since an arbitrary start, for measuring silence. Not comparable between processes.
pub type Elapsed = Duration;

/// A source of time: the system's, or one that a test moves by hand.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System(Arc<Mutex<Timestamp>>),
    Manual(Arc<Manual>, jiff::SignedDuration),
}

#[derive(Debug)]
struct Manual {
    start: Timestamp,
    elapsed: watch::Sender<Duration>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The system's clock. Within a process its wall time never goes backwards.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System(Arc::new(Mutex::new(Timestamp::MIN))))
    }

    /// A clock that stands still until [`Clock::advance`] is called.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        let (elapsed, _) = watch::channel(Duration::ZERO);
        Self(Source::Manual(
            Arc::new(Manual { start, elapsed }),
            jiff::SignedDuration::ZERO,
        ))
    }

    /// The same manual clock seen by a process whose wall time is off by `offset`.
    ///
    /// # Errors
    /// The system's clock can't be shifted.
    pub fn shifted(&self, offset: jiff::SignedDuration) -> Result<Self> {
        match &self.0 {
            Source::Manual(clock, old) => {
                Ok(Self(Source::Manual(Arc::clone(clock), *old + offset)))
            }
            Source::System(_) => Err(Error::invalid("only a manual clock can be shifted")),
        }
    }

    /// Moves a manual clock, and with it every sleeper whose time has come.
    ///
    /// # Errors
    /// The system's clock can't be moved.
    pub fn advance(&self, by: Duration) -> Result<()> {
        match &self.0 {
            Source::Manual(clock, _) => {
                clock.elapsed.send_modify(|elapsed| *elapsed += by);
                Ok(())
            }
            Source::System(_) => Err(Error::invalid("only a manual clock can be advanced")),
        }
    }

    /// Wall time, in whole milliseconds: what the engines store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(latest) => {
                #[expect(clippy::disallowed_methods, reason = "this is the door")]
                let read = whole_ms(Timestamp::now());
                let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                *latest = read.max(*latest);
                *latest
            }
            Source::Manual(clock, offset) => {
                let elapsed = *clock.elapsed.borrow();
                whole_ms(add(add_signed(clock.start, *offset), elapsed))
            }
        }
    }

    /// Time that has passed, also while the machine was asleep; unaffected by changes of wall time.
    #[must_use]
    pub fn elapsed(&self) -> Elapsed {
        match &self.0 {
            Source::System(_) => since_boot(),
            Source::Manual(clock, _) => *clock.elapsed.borrow(),
        }
    }

    /// Waits. On a manual clock: until it was advanced far enough.
    pub async fn sleep(&self, time: Duration) {
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the door")]
            Source::System(_) => tokio::time::sleep(time).await,
            Source::Manual(clock, _) => {
                let mut elapsed = clock.elapsed.subscribe();
                let until = *elapsed.borrow() + time;
                // The sender lives in `clock`, so this can't fail while we wait.
                let _ = elapsed.wait_for(|now| *now >= until).await;
            }
        }
    }

    /// The future's answer, or `None` once `limit` has passed.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.sleep(limit) => None,
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    duration_of(time)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    duration_of(time)
}

fn duration_of(time: rustix::time::Timespec) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// `time + by`, held at the end of the calendar instead of failing.
#[must_use]
pub fn add(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn add_signed(time: Timestamp, by: jiff::SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn whole_ms(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_manual_clock_has_been_moved_far_enough() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = clock.sleep(Duration::from_secs(10));
        tokio::pin!(sleeper);
        assert!(futures_now(&mut sleeper).await.is_none());
        clock.advance(Duration::from_secs(9)).unwrap();
        assert!(futures_now(&mut sleeper).await.is_none());
        clock.advance(Duration::from_secs(1)).unwrap();
        sleeper.await;
    }

    async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! { biased; out = future => Some(out), () = tokio::task::yield_now() => None }
    }

    #[test]
    fn a_shifted_clock_differs_in_wall_time_only() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let off = clock.shifted(jiff::SignedDuration::from_hours(-1)).unwrap();
        clock.advance(Duration::from_secs(5)).unwrap();
        assert_eq!(off.elapsed(), clock.elapsed());
        assert_eq!(
            off.now().duration_until(clock.now()),
            jiff::SignedDuration::from_hours(1)
        );
    }
}
