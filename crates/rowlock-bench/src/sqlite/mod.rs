//! The embedded engine: every load against a bare loop and against the textbook's queue.
//!
//! All files are in a folder of the run's own, in WAL mode with `synchronous=FULL` on every side.

mod connect;
mod drain;
mod enqueue;
mod history;
mod idle;
mod latency;
mod limit;
mod ours;
mod part;
mod textbook;

use anyhow::Result;

use self::latency::Start;
use crate::{Measurement, Place, Progress, Size};

pub use part::Part;

pub(crate) use connect::open as connect;
pub(crate) use history::fill;
pub(crate) use ours::create;

/// What every job of a throughput load carries.
const PAYLOAD: &str = r#"{"to":"ada@example.com","subject":"hello"}"#;
const KIND: &str = "noop";
const QUEUE: &str = "default";

/// Measures everything, in the order of a job's journey.
///
/// # Errors
/// When a store can't be written, or a load didn't handle exactly the jobs it should.
pub async fn run(size: &Size, place: &Place, say: Progress<'_>) -> Result<Vec<Measurement>> {
    let mut all = enqueue::measure(size, place, say).await?;
    all.extend(drain::measure(size, place, say).await?);
    let store = place.file("empty.db");
    drop(ours::create(&store)?);
    for start in [
        Start::InProcess("start_in_process"),
        Start::Across("start_across_processes"),
        Start::Rare("start_across_processes_idle"),
    ] {
        all.push(start.measure(size, place, &store, say).await?);
    }
    place.remove(&store);
    all.push(idle::measure(size, place, say).await?);
    all.extend(history::measure(size, place, say).await?);
    Ok(all)
}
