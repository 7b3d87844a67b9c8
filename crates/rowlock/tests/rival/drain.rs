//! A drain of one route.

use std::time::Duration;

use rowlock::drain::{Drain, Options, Route, SidekiqJob};
use rowlock::run::{Signals, Stopper};
use rowlock::verify::Ran;
use rowlock::{Clock, Name};

/// Drains these kinds to a sink until a signal.
pub async fn drain(url: &str, sink: &str, lease: &str, kinds: &str, ran: Option<&str>) {
    let rowlock = crate::conformance::home_at(url).open(Clock::system());
    let mut route = Route::to(sink).unwrap();
    route.lossy = true;
    for kind in kinds.split(',') {
        let name = Name::new(kind).unwrap();
        if !route.reports_back() {
            let job = SidekiqJob {
                class: "Noted".to_owned(),
                args: ["number", "words"]
                    .map(|field| Name::new(field).unwrap())
                    .to_vec(),
            };
            route.sidekiq.insert(name, job);
        }
        route = route.kind(kind).unwrap();
    }
    let options = Options {
        lease: Duration::from_millis(lease.parse().unwrap()),
        poll: Duration::from_millis(50),
        ran: ran.map(|path| Ran::open(path).unwrap()),
        ..Options::default()
    };
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    println!("ready");
    let drain = Drain::new(rowlock).route(route).options(options);
    let drained = tokio::select! {
        drained = drain.run_until(stopper.stop()) => drained.unwrap(),
        never = signals.ask(&stopper) => match never {},
    };
    println!(
        "sent {} settled {} lost {}",
        drained.sent, drained.settled, drained.lost
    );
}
