//! Redis as a dispatcher: a drain fills it, workers take from it without a connection to the database.
//!
//! Redis only dispatches. What is held there is in `P:held` below a prefix of the URL's; four scripts
//! change it, each as a whole (scripts/back.lua names the keys). Delays, retries, attempts and keys stay
//! in the store, which also finds out what Redis has lost.

mod address;
mod batch;
pub(super) mod connect;
mod dispatch;
mod envelope;
mod error;
mod examine;
mod group;
mod listen;
mod parcels;
pub(super) mod scripts;
mod sink;

pub use address::Address;
pub use dispatch::Redis;
pub use examine::{Concern, Examination, Worry, examine};
pub use sink::RedisSink;
