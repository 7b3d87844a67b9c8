//! Wakes workers when a drain has sent something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{ProtocolVersion, PushInfo, PushKind};
use tokio::sync::mpsc;

use super::address::Address;
use super::connect::{Link, config, open};
use crate::clock::Clock;
use crate::engine::{Bell, Wakeups};

/// The pause after a connection was lost, or not to be had.
const SOON: Duration = Duration::from_secs(1);
/// How often a silent connection is asked whether it lives.
const OFTEN: Duration = Duration::from_secs(15);

/// Listens from the first who wants to be woken on.
#[derive(Debug, Default)]
pub(super) struct Listener {
    bell: Bell,
    started: AtomicBool,
}

impl Listener {
    pub(super) fn wakeups(&self, link: &Link) -> Wakeups {
        let wakeups = self.bell.listen();
        if self.started.swap(true, Ordering::Relaxed) {
            return wakeups;
        }
        let (address, bell) = (link.address().clone(), self.bell.clone());
        // Without a thread the store is being closed.
        if let Ok(starter) = link.io().starter() {
            starter.start("rowlock-redis-listen", async move {
                loop {
                    listen(&address, &bell).await;
                    Clock::system().sleep(SOON).await;
                }
            });
        }
        wakeups
    }
}

/// Listens until the connection is lost; nothing when there was none.
async fn listen(address: &Address, bell: &Bell) -> Option<()> {
    let (pushes, mut told) = mpsc::unbounded_channel::<PushInfo>();
    let config = config().set_push_sender(pushes);
    let opened = open(address, ProtocolVersion::RESP3, &config).await;
    let (mut connection, _) = opened.ok()?;
    let channel = format!("{}:bell", address.keys());
    connection.subscribe(&channel).await.ok()?;
    // What was sent before was told to nobody.
    bell.ring();
    let clock = Clock::system();
    loop {
        match clock.timeout(OFTEN, told.recv()).await {
            Some(Some(push)) if push.kind == PushKind::Message => bell.ring(),
            Some(Some(push)) if push.kind != PushKind::Disconnection => {}
            Some(_) => return Some(()),
            None => redis::cmd("PING").exec_async(&mut connection).await.ok()?,
        }
    }
}
