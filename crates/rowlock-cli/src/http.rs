//! What a worker or a drain tells over HTTP: whether it lives, whether it works, and its numbers.
//!
//! Nothing a job contains is among them, so they may be anywhere; numbers may be for those with a token only. What [`crate::web`] serves beside them has a door of
//! its own.

mod connections;
mod patient;
mod table;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rowlock::clock::Elapsed;
use rowlock::engine::PairRow;
use rowlock::run::Pulse;
use rowlock::{Clock, Error, Rowlock, event, reconcile};
use tokio::net::TcpListener;

use self::connections::Limits;
use crate::show;
use crate::web::{Site, Tokens};

/// How long a request waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often measurements are folded when nobody scrapes: they would pile up otherwise.
const FOLD_EVERY: Duration = Duration::from_secs(5);

/// A port that is ours, and the recorder that will be asked.
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    recorder: PrometheusHandle,
    /// Who may read the numbers; none: whoever asks.
    tokens: Option<Tokens>,
    /// What is served beside.
    site: Option<Site>,
}

struct Worker {
    /// Nothing for one that takes its jobs from a sink.
    store: Option<Rowlock>,
    clock: Clock,
    pulse: Pulse,
    recorder: PrometheusHandle,
    tokens: Option<Tokens>,
    queues: Mutex<event::Queues>,
    pairs: Mutex<event::Pairs>,
    /// When the last count was over; whoever counts holds it.
    counted: tokio::sync::Mutex<Option<Elapsed>>,
}

impl Http {
    /// Takes the port, and from here on everything is counted.
    pub async fn bind(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("can't listen on {address}"))?;
        let address = listener.local_addr()?;
        let mut builder = PrometheusBuilder::new();
        for metric in event::TABLE {
            let buckets = metric.of.buckets();
            if !buckets.is_empty() {
                let name = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(name, buckets)?;
            }
        }
        let recorder = builder.install_recorder()?;
        event::describe();
        Ok(Self {
            listener,
            address,
            recorder,
            tokens: None,
            site: None,
        })
    }

    /// Tells the numbers only to those with one of these tokens.
    pub fn numbers_for(mut self, tokens: Option<Tokens>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Serves this too.
    pub fn with(mut self, site: Site) -> Self {
        self.site = Some(site);
        self
    }

    /// The lines of a start block.
    pub fn line(&self) -> String {
        let address = self.address;
        let http = format!("  http       http://{address}/metrics  /livez  /readyz");
        let Some(Site { access, .. }) = &self.site else {
            return http;
        };
        let root = crate::web::ROOT;
        format!(
            "  dashboard  http://{address}\n{http}\n  api        http://{address}{root}  ({access})"
        )
    }

    /// Answers until `end`.
    pub async fn serve(
        self,
        store: Option<Rowlock>,
        clock: Clock,
        pulse: Pulse,
        end: impl Future<Output = ()> + Send + 'static,
    ) {
        let recorder = self.recorder.clone();
        let worker = Arc::new(Worker {
            store,
            clock: clock.clone(),
            pulse,
            recorder: self.recorder,
            tokens: self.tokens,
            queues: Mutex::default(),
            pairs: Mutex::default(),
            counted: tokio::sync::Mutex::default(),
        });
        let routes = Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(numbers))
            .with_state(worker);
        let (routes, looking) = match self.site {
            Some(site) => (routes.fallback_service(site.router), Some(site.looking)),
            None => {
                let there = "there are /livez, /readyz and /metrics\n";
                let routes = routes.fallback(async move || (StatusCode::NOT_FOUND, there));
                (routes, None)
            }
        };
        let looking = async {
            match looking {
                Some(looking) => looking.await,
                None => std::future::pending().await,
            }
        };
        let folding = async {
            loop {
                clock.sleep(FOLD_EVERY).await;
                recorder.run_upkeep();
            }
        };
        tokio::select! {
            () = connections::serve(self.listener, routes, (Limits::default(), &clock), end) => {}
            () = folding => {}
            () = looking => {}
        }
    }
}

/// Ready means: others see this worker or drain, it sees the store if it has one, and no pair is overdue.
async fn ready(State(worker): State<Arc<Worker>>) -> impl IntoResponse {
    match worker.check().await {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => {
            let line = why.replace(['\r', '\n'], " ");
            (StatusCode::SERVICE_UNAVAILABLE, format!("{line}\n"))
        }
    }
}

impl Worker {
    async fn check(&self) -> Result<(), String> {
        self.pulse.check(&self.clock)?;
        let Some(store) = &self.store else {
            return Ok(());
        };
        let schedule = store.schedule();
        let read = async {
            store.operate().workers().await?;
            schedule.pairs().await
        };
        let rows = match self.clock.timeout(PATIENCE, read).await {
            Some(Ok(rows)) => rows,
            Some(Err(why)) => return Err(why.to_string()),
            None => return Err(format!("the store didn't answer for {PATIENCE:?}")),
        };
        let overdue = rows.iter().filter(|row| row.switch.is_none());
        let overdue: Vec<String> = overdue.filter_map(overdue_by).collect();
        match overdue.is_empty() {
            true => Ok(()),
            false => Err(overdue.join("; ")),
        }
    }

    /// One scrape counts at a time: a count goes through every live job.
    async fn scrape(&self, store: &Rowlock) {
        let asked = self.clock.elapsed();
        // Whoever has waited so long tells what is known.
        let Some(mut last) = self.clock.timeout(PATIENCE, self.counted.lock()).await else {
            return;
        };
        // What was counted meanwhile, or couldn't be, is for everybody who waited.
        if last.is_some_and(|over| over >= asked) {
            return;
        }
        self.count(store).await;
        *last = Some(self.clock.elapsed());
    }

    /// Brings the gauges that are read from the store up to date.
    async fn count(&self, store: &Rowlock) {
        let schedule = store.schedule();
        let read = async {
            let stats = store.operate().stats().await?;
            let pairs = schedule.pairs().await?;
            Ok::<_, Error>((stats, pairs, schedule.switches().await?))
        };
        let found = match self.clock.timeout(PATIENCE, read).await {
            Some(Ok(found)) => Some(found),
            Some(Err(why)) => {
                tracing::warn!(%why, "can't count for a scrape");
                None
            }
            None => None,
        };
        // Numbers beside: a role that may not read them counts its queues all the same.
        let watch = store.watch();
        match self.clock.timeout(PATIENCE, watch.vitals()).await {
            Some(Ok(vitals)) => event::vitals(&vitals),
            Some(Err(why)) => tracing::debug!(%why, "can't read the numbers of the store"),
            None => {}
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.set(found.as_ref().map(|(stats, _, _)| stats));
        if let Some((_, pairs, switches)) = &found {
            let mut gauges = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
            gauges.set(pairs);
            gauges.switches(switches);
        }
    }
}

/// Why rows of a pair may wait unseen. The words of its error may be from a row: they aren't served.
fn overdue_by(row: &PairRow) -> Option<String> {
    let late = show::span(reconcile::stale(row)?);
    Some(format!("pair {} is overdue by {late}", row.pair.name))
}

async fn numbers(State(worker): State<Arc<Worker>>, headers: HeaderMap) -> Response {
    let tokens = worker.tokens.as_ref();
    #[cfg(feature = "test-hooks")]
    let tokens = tokens.filter(|_| !rowlock::hooks::switched_off("metrics.token"));
    if let Some(tokens) = tokens
        && let Err(unknown) = tokens.caller(&headers)
    {
        let mut answer = unknown.answer();
        let scheme = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return answer;
    }
    if let Some(store) = &worker.store {
        worker.scrape(store).await;
    }
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, worker.recorder.render()).into_response()
}
