//! Reconcile: what the rows say is made true again.
//!
//! In: time passing, and the user's own tables. Out: a job for every row that needs one, a job for
//! every tick of a cron, rows of dead workers given back, ended jobs pruned. Every step is one short
//! transaction; a crash between two of them leaves the rest for the next round, of this process or of
//! any other. Ticks are led: one process at a time runs a shard of a pair, fenced by its post's token.

mod cron;
mod expire;
mod lead;
mod pair;
mod query;
mod question;
mod sources;
mod tick;
mod turn;

pub use cron::{declare_crons, fire_due, resume_cron, run_cron_now};
pub use expire::upkeep;
pub(crate) use expire::upkeep_and_tell;
pub use pair::{Cadence, Pair, States};
pub use tick::{stale, tick_by_hand};

pub(crate) use lead::Scheduler;
pub(crate) use question::{Answers, Key, Questions};
pub use sources::Sources;
pub(crate) use sources::shown;
