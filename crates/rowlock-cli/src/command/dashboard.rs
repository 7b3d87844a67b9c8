//! `rowlock dashboard`: the store over HTTP, without a worker.

use anyhow::Result;
use rowlock::run::Pulse;

use super::work::{Beside, block, store_line};
use crate::cli::Dashboard;
use crate::exit;
use crate::http::Http;
use crate::open::{Access, Setup};
use crate::web::{self, Door};

pub async fn run(setup: &Setup, how: &Dashboard) -> Result<u8> {
    let bind = how.bind.unwrap_or(setup.config.dashboard().bind);
    // Before anything is opened: a door that must not be open isn't.
    let door = Door::new(setup, bind, how.read_only)?;
    let rowlock = setup.open(Access::Read).await?;
    let served = web::site(setup, &rowlock, door)?;
    let http = Http::bind(bind).await?.with(served);
    let mut beside = Beside::with(Some(http))?;
    block(&[store_line(setup, false)], beside.http.as_ref());
    let clock = rowlock.clock().clone();
    let answering = beside.answer(Some(rowlock), clock, Pulse::of_nobody());
    beside.asked().await;
    answering.end().await;
    Ok(exit::OK)
}
