//! What a job is. Everything here is pure: no clock, no database, no tasks.
//!
//! In: what a caller wants done. Out: validated names and payloads, the table of moves, and the
//! arithmetic of attempts that every engine and the worker share. Nothing here can crash half-way.

mod backoff;
mod calendar;
mod cron;
mod key;
mod kind;
mod name;
mod new;
mod payload;
mod record;
pub(crate) mod spoken;
mod state;
mod token;
mod typed;

pub use backoff::Backoff;
pub use calendar::Calendar;
pub use cron::{Cron, DueTicks, LATE, MOST_TICKS, Missed, due};
pub(crate) use key::{KeySource, idempotency_key};
pub use kind::{Kind, Retention, UniqueUntil};
pub(crate) use kind::{differences, spelled};
pub use name::Name;
#[cfg(feature = "postgres")]
pub(crate) use new::Due;
pub use new::NewJob;
pub use payload::{MAX_DEPTH, Payload};
pub use record::{ErrorKind, JobError, JobId, Record};
pub use spoken::parse_duration;
pub use state::{JobState, MOVES, Move, diagram};
pub(crate) use token::random_share;
pub use token::{Token, jitter};
pub use typed::{Enqueueable, Job};
