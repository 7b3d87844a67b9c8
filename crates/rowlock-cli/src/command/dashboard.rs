//! `rowlock dashboard`: the store over HTTP, without a worker.

use anyhow::Result;
use rowlock::run::Pulse;

use super::work::{Beside, block, store_line};
use crate::cli::Dashboard;
use crate::exit;
use crate::http::Http;
use crate::open::{Access, Setup, Wait, Waited};
use crate::web::{self, Door, Tokens};

pub async fn run(setup: &Setup, how: &Dashboard) -> Result<u8> {
    let bind = how.bind.unwrap_or(setup.config.dashboard().bind);
    // Before anything is opened: a door that must not be open isn't.
    let door = Door::new(setup, bind, how.read_only)?;
    let tokens = Tokens::of_metrics(&setup.config.metrics())?;
    let mut wait = Wait::new(setup, how.wait, false);
    let open = async || setup.open(Access::Read).await;
    let rowlock = wait.until(&Waited::Store(&setup.store), open).await?;
    let served = web::site(setup, &rowlock, door)?;
    let http = Http::bind(bind).await?.numbers_for(tokens).with(served);
    let mut beside = Beside::with(Some(http))?;
    drop(wait);
    block(&[store_line(setup, false)], beside.http.as_ref());
    let clock = rowlock.clock().clone();
    let answering = beside.answer(Some(rowlock), clock, Pulse::of_nobody());
    beside.asked().await;
    answering.end().await;
    Ok(exit::OK)
}
