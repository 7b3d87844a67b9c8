//! What a worker asks of the server that has nothing to do.

use anyhow::{Result, ensure};
use rowlock::run::{Builtin, Runner, Stopper};
use rowlock::{Clock, Kind, Worker};

use super::{KIND, Size};
use crate::between::Between;
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Measurement> {
    say("idle worker");
    server.fresh().await?;
    let between = Between::start(server).await?;
    let rowlock = Server::at(&between.url, &server.schema)?.open().await?;
    let worker =
        Worker::new(rowlock, ()).handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop));
    let stopper = Stopper::default();
    let clock = Clock::system();
    let watching = async {
        // The looks for work grow rarer first.
        clock.sleep(size.idle / 4).await;
        let (before, watch) = (between.asked(), Stopwatch::start());
        clock.sleep(size.idle).await;
        let rate = as_f64(between.asked() - before) / watch.elapsed().as_secs_f64();
        stopper.ask();
        rate
    };
    let (worked, rate) = tokio::join!(worker.run_until(stopper.stop()), watching);
    worked?;
    ensure!(between.asked() > 0, "nothing was asked through what counts");
    Ok(Measurement::new("idle_worker", "queries/s", 0)
        .ours(&[rate])
        .goal("ours", Bound::AtMost(1.0)))
}
