//! Drain: due rows are claimed in bulk and sent to a sink; what its workers say comes back.
//!
//! In: rows that are due, of the kinds and queues of a [`Route`]. Out: the same jobs in a [`Sink`], and
//! their verdicts in the store. A sent row stays `processing`, held by its route and not by the process
//! that sent it; so any drain goes on where another one died. A crash before a push leaves rows that
//! the sink doesn't hold: they go back. A crash after it leaves nothing to do. What a sink has lost is
//! found by asking, and is sent again under a new token.

mod adopt;
mod beat;
mod collect;
mod line;
mod pump;
mod route;
mod run;
mod serve;
mod sink;
pub mod sinks;

pub use adopt::Adopted;
pub use line::Line;
pub use pump::Pumped;
pub use route::{Route, SidekiqJob};
pub use run::{Drain, Drained, Options};
pub use sink::{Fill, Hold, Pushed, Report, Sink};
