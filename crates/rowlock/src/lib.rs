//! Durable background jobs whose truth is a row in your own database.
//!
//! # Layout, in the order of a job's journey
//!
//! | step | folder | what happens |
//! |---|---|---|
//! | what a job is | [`job`] | names, payloads, the one table of moves, retry policies |
//! | stage | [`stage`] | a job comes in, in a transaction of ours or of the caller's |
//! | drain | [`drain`] | due jobs go on to Redis or Sidekiq, and verdicts come back |
//! | claim | [`claim`] | a worker takes due jobs under a fresh fence |
//! | run | [`run`] | the handler runs, the lease is renewed |
//! | settle | [`settle`] | the outcome becomes the next state, if the claim still holds |
//! | reconcile | [`reconcile`] | rows that need work get their jobs, what the dead held is given back |
//!
//! Below all of them: [`engine`] (the only folder with SQL), [`clock`] (the one door for time),
//! [`error`] (sorted by remedy), [`event`] (what is counted and measured) and [`config`]
//! (rowlock.toml). Beside them: [`switch`], what an operator can stop, [`guard`], what keeps the database
//! from cleaning up behind itself, and [`verify`], the checker of what must always hold.

/// Marks a step of the journey, at which this repository's tests can end or stop a process.
macro_rules! crash_point {
    ($name:literal) => {{
        #[cfg(feature = "test-hooks")]
        $crate::hooks::crash_point($name);
    }};
}

/// Marks a place at which this repository's tests can have a task panic.
macro_rules! panic_point {
    ($name:literal) => {{
        #[cfg(feature = "test-hooks")]
        $crate::hooks::panic_point($name);
    }};
}

pub mod claim;
pub mod clock;
pub mod config;
pub mod drain;
pub mod engine;
pub mod error;
pub mod event;
pub mod guard;
#[cfg(feature = "test-hooks")]
pub mod hooks;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod io;
pub mod job;
mod log;
pub mod reconcile;
pub mod run;
pub mod settle;
pub mod stage;
mod store;
pub mod switch;
#[cfg(feature = "sqlite")]
pub mod testing;
pub mod verify;

pub use async_trait::async_trait;
pub use clock::Clock;
pub use error::Error;
#[cfg(feature = "postgres")]
pub use guard::Budget;
pub use job::{Cron, Enqueueable, Job, JobId, JobState, Kind, Name, NewJob, Payload, Record};
pub use reconcile::Pair;
pub use run::{Context, Cx, Failure, Handler, Worker};
pub use settle::Outcome::{self, Cancel, Done, Fail, NotNeeded, Retry, Snooze};
pub use stage::{Enqueued, Stage, StageBlocking, Status};
pub use stage::{enqueue, enqueue_blocking, enqueue_many, enqueue_many_blocking};
pub use store::Rowlock;

/// As in `every(MINUTE)`.
pub const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);
/// As in `every(5 * SECOND)`.
pub const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// What a handler returns: an [`Outcome`], or any error, which means "try again later".
pub type Result<T = Outcome, E = Failure> = std::result::Result<T, E>;
