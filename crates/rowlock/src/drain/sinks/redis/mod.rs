//! Redis as a dispatcher: a drain fills it, workers take from it without a connection to the database.
//!
//! Redis only dispatches. What is held there, and by whom, is in `P:held` below a prefix of the URL's;
//! four scripts change it, each as a whole. Delays, retries, attempts and keys stay in the store, which
//! also finds out what Redis has lost.

mod address;
pub(super) mod connect;
mod dispatch;
mod envelope;
mod error;
mod examine;
mod listen;
mod scripts;
mod sink;

pub use address::Address;
pub use dispatch::Redis;
pub use examine::{Concern, Examination, Worry, examine};
pub use sink::RedisSink;
