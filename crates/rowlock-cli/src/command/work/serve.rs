//! A worker and whatever runs beside it, until all have ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rowlock::drain::Drain;
use rowlock::engine::Dispatch;
use rowlock::guard::Guard;
use rowlock::job::Kind;
use rowlock::run::task::Tasks;
use rowlock::run::{Options, Pulse, Runner, Signals, Stopper, Tally};
use rowlock::{Clock, Cron, Pair, Rowlock, Worker};
use tokio::sync::oneshot;

use crate::http::Http;
use crate::open::Setup;
use crate::show;
use crate::web::Tokens;

/// How long answers that are under way may take when a worker ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Where a worker's jobs come from.
pub enum From {
    Store(Rowlock),
    /// A drain brings them there.
    Sink(Arc<dyn Dispatch>, Clock),
}

/// What the configuration has a worker do.
pub struct Declared {
    pub handlers: Vec<(Kind, Runner)>,
    pub pairs: Vec<Pair>,
    pub crons: Vec<Cron>,
}

/// What runs beside a worker or a drain.
pub struct Beside {
    pub http: Option<Http>,
    pub drain: Option<Drain>,
    pub guard: Option<Guard>,
    signals: Signals,
}

/// Answers over HTTP until it is told to end.
pub struct Answering {
    side: Tasks,
    clock: Clock,
    ending: oneshot::Sender<()>,
}

impl Beside {
    /// Takes the port, if there is one; from here on signals no longer end the process by themselves.
    pub async fn listen(setup: &Setup, address: Option<SocketAddr>) -> Result<Self> {
        let http = match address {
            Some(address) => {
                let tokens = Tokens::of_metrics(&setup.config.metrics())?;
                Some(Http::bind(address).await?.numbers_for(tokens))
            }
            None => None,
        };
        Self::with(http)
    }

    /// The same with a port that is taken already.
    pub fn with(http: Option<Http>) -> Result<Self> {
        Ok(Self {
            http,
            drain: None,
            guard: None,
            signals: Signals::listen()?,
        })
    }

    /// Begins to answer over HTTP.
    pub fn answer(&mut self, store: Option<Rowlock>, clock: Clock, pulse: Pulse) -> Answering {
        let mut side = Tasks::default();
        let (ending, end) = oneshot::channel::<()>();
        if let Some(http) = self.http.take() {
            let end = async { end.await.unwrap_or(()) };
            side.start("rowlock-http", http.serve(store, clock.clone(), pulse, end));
        }
        Answering {
            side,
            clock,
            ending,
        }
    }

    /// Waits until a signal asks to stop.
    pub async fn asked(&mut self) {
        self.signals.next().await;
    }

    /// Waits for `work`, and asks it to stop at every signal; `words` are logged at the first and at any
    /// later one.
    pub async fn see_to<T>(
        &mut self,
        work: impl Future<Output = T>,
        stopper: &Stopper,
        words: [&str; 2],
    ) -> T {
        tokio::pin!(work);
        let mut asked = false;
        loop {
            tokio::select! {
                worked = &mut work => return worked,
                () = self.signals.next() => {}
            }
            stopper.ask();
            tracing::info!("{}", words[usize::from(asked)]);
            asked = true;
        }
    }
}

impl Answering {
    /// Whoever reads slowly doesn't keep a worker from ending.
    pub async fn end(mut self) {
        drop(self.ending);
        self.clock.timeout(LAST_ANSWERS, self.side.join()).await;
    }
}

/// Works until a signal asks to stop, or until nothing is due with `once`.
pub async fn serve(
    from: From,
    declared: Declared,
    options: Options,
    mut beside: Beside,
) -> Result<Tally> {
    let finish = format!(
        "stopping, running jobs have {} (again: at once)",
        show::span(options.grace)
    );
    let (store, clock) = match &from {
        From::Store(rowlock) => (Some(rowlock.clone()), rowlock.clock().clone()),
        From::Sink(_, clock) => (None, clock.clone()),
    };
    let answering = beside.answer(store, clock, options.pulse.clone());
    let mut worker = match from {
        From::Store(rowlock) => Worker::new(rowlock, ()),
        From::Sink(sink, clock) => Worker::from_dispatcher(sink, clock, ()),
    };
    worker = worker.options(options);
    for (kind, runner) in declared.handlers {
        worker = worker.handle_kind(kind, runner);
    }
    worker = declared.pairs.into_iter().fold(worker, Worker::pair);
    worker = declared.crons.into_iter().fold(worker, Worker::cron);
    let stopper = Stopper::default();
    let (work, drain) = (worker.run_until(stopper.stop()), beside.drain.take());
    let drained = async {
        match drain {
            Some(drain) => drain.run_until(stopper.stop()).await.map(|_| ()),
            None => Ok(()),
        }
    };
    let guard = beside.guard.take();
    let watched = async {
        match guard {
            Some(guard) => guard.run_until(stopper.stop()).await,
            None => std::future::pending().await,
        }
    };
    // The end of one by an error is like a crash of the other, which is safe.
    let both = async {
        let both = async { tokio::try_join!(work, drained) };
        tokio::pin!(both);
        tokio::select! {
            done = &mut both => done,
            () = watched => both.await,
        }
    };
    let words = [&*finish, "stopping at once, running jobs go back"];
    let (tally, ()) = beside.see_to(both, &stopper, words).await?;
    answering.end().await;
    let (settled, lost) = (tally.settled, tally.lost);
    tracing::info!(settled, lost, "stopped");
    Ok(tally)
}
