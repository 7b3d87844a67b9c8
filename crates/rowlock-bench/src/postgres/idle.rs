//! What a worker asks of the server that has nothing to do.

use anyhow::Result;
use rowlock::run::{Builtin, Runner, Stopper};
use rowlock::{Clock, Kind, Worker};

use super::{KIND, Size};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// Autovacuum's transactions count as well, when it comes by: the median is without it.
const ROUNDS: usize = 3;

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Measurement> {
    say("idle worker");
    server.fresh().await?;
    let rowlock = server.open().await?;
    let worker =
        Worker::new(rowlock, ()).handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop));
    let stopper = Stopper::default();
    let clock = Clock::system();
    let watching = async {
        // The looks for work grow rarer first.
        clock.sleep(size.idle / 4).await;
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let (before, watch) = (server.transactions().await?, Stopwatch::start());
            clock.sleep(size.idle).await;
            let after = server.transactions().await?;
            let time = watch.elapsed().as_secs_f64();
            // The second look itself.
            rates.push(as_f64(after.saturating_sub(before + 1)) / time);
        }
        stopper.ask();
        anyhow::Ok(rates)
    };
    let (worked, rates) = tokio::join!(worker.run_until(stopper.stop()), watching);
    worked?;
    Ok(Measurement::new("idle_worker", "transactions/s", 0)
        .ours(&rates?)
        .goal("ours", Bound::AtMost(1.0)))
}
