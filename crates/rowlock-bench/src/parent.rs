//! Processes of a measurement end with the one that started them: it holds their stdin.

use std::io::Read;
use std::sync::Arc;

use anyhow::Result;
use rowlock::run::Stopper;
use rowlock::run::task::Thread;

/// Asks for a stop once stdin is closed.
pub(crate) fn until_it_is_done() -> Result<(Arc<Stopper>, Thread)> {
    let stopper = Arc::new(Stopper::default());
    let asks = Arc::clone(&stopper);
    let watching = Thread::start("stdin", move || {
        // Whatever ends it, the process that started this one is done with it.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        asks.ask();
    })?;
    Ok((stopper, watching))
}
