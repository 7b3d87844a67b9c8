//! Keeps how long claims took, and no other metric.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Times in ms.
pub(crate) type Times = Arc<Mutex<Vec<f64>>>;

/// Those that have come since they were last taken.
pub(crate) fn take(times: &Times) -> Vec<f64> {
    std::mem::take(&mut times.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From here on the claims of this process are kept.
pub(crate) fn install() -> Result<Times> {
    let times = Times::default();
    let taken = metrics::set_global_recorder(Claims(Arc::clone(&times)));
    ensure!(taken.is_ok(), "somebody else records metrics");
    Ok(times)
}

struct Claims(Times);

struct Kept(Times);

impl HistogramFn for Kept {
    fn record(&self, seconds: f64) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(seconds * 1_000.0);
    }
}

impl Recorder for Claims {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match key.name() == rowlock::event::CLAIM {
            true => Histogram::from_arc(Arc::new(Kept(Arc::clone(&self.0)))),
            false => Histogram::noop(),
        }
    }
}
