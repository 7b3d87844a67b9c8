//! What `rowlock bench` measures, and against what.
//!
//! In one run, interleaved: ours (the library as an application or `rowlock work` uses it), the
//! limit (a bare loop of the same statements at the same durability), and the canonical queue (the
//! one that textbooks teach, with prepared statements and kept connections; and beside it the same
//! with the index it lacks). `sqlite/`, `postgres/` and `redis/` have one file per load,
//! [`report`] turns the answers into a table, JSON and a chart.

pub mod api;
mod between;
mod dashboard;
mod databases;
pub mod horizon;
mod machine;
mod measurement;
pub mod pages;
pub mod pairs;
mod parent;
mod pin;
mod place;
pub mod postgres;
mod recorder;
pub mod redis;
pub mod report;
mod run;
mod server;
mod size;
pub mod soak;
pub mod sqlite;
mod starts;
mod stopwatch;

pub use machine::Machine;
pub use measurement::{Bound, Goal, Measurement};
pub use place::Place;
pub use run::{Run, clean};
pub use size::Size;
pub use starts::Pace;

/// Where a run tells how far it is.
pub type Progress<'a> = &'a dyn Fn(&str);
