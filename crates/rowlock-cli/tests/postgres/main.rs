//! The binary on PostgreSQL: real servers, real sessions, real roles.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod api;
mod bench;
mod cron;
mod demo;
mod doctor;
mod doctor_horizon;
mod doctor_shortage;
mod drain;
mod guard;
mod journey;
mod metrics;
mod migrate;
mod pairs;
#[path = "../place/mod.rs"]
mod place;
#[path = "../../../rowlock/tests/postgres/replica.rs"]
mod replica;
mod roles;
#[path = "../served/mod.rs"]
mod served;
mod store;
mod top;
mod wait;
