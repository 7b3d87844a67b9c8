//! Wakes workers when the server says that something was enqueued while they slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, NoTls};

use super::connect::Address;
use super::statements::sql;
use crate::clock::Clock;
use crate::engine::Bell;
use crate::error::Result;
use crate::job::Token;

/// Whether notifications arrive, and how many answers in a row were empty.
#[derive(Debug, Default)]
pub(super) struct Listener {
    alive: Arc<AtomicBool>,
    started: AtomicBool,
    empty: AtomicU32,
}

/// How long the proof that notifications arrive may take.
const PROOF: Duration = Duration::from_secs(2);
/// The pause before another try: a pooler won't change its mind soon.
const PAUSE: Duration = Duration::from_secs(60);
/// The pause after a connection that had worked was lost.
const SOON: Duration = Duration::from_secs(1);

impl Listener {
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// The first who wants to be woken starts it.
    pub(super) fn start(&self, address: &Address, io: &super::io::Io, bell: &Bell) {
        if !address.notify || self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(starter) = io.starter() else { return };
        let (address, bell, alive) = (address.clone(), bell.clone(), Arc::clone(&self.alive));
        starter.start("rowlock-listen", async move {
            loop {
                let worked = listen(&address, &bell, &alive).await;
                alive.store(false, Ordering::Relaxed);
                let pause = if worked { SOON } else { PAUSE };
                Clock::system().sleep(pause).await;
                // What was enqueued in between was told to nobody.
                bell.ring();
            }
        });
    }

    /// Counts empty answers in a row.
    pub(super) fn answered(&self, empty: bool) -> u32 {
        match empty {
            true => self.empty.fetch_add(1, Ordering::Relaxed) + 1,
            false => {
                self.empty.store(0, Ordering::Relaxed);
                0
            }
        }
    }

    pub(super) fn empty_answers(&self) -> u32 {
        self.empty.load(Ordering::Relaxed)
    }
}

/// Listens until the connection is lost. Whether it had worked.
async fn listen(address: &Address, bell: &Bell, alive: &AtomicBool) -> bool {
    let Ok((client, mut connection)) = address.config().connect(NoTls).await else {
        return false;
    };
    let (sender, mut told) = mpsc::unbounded_channel();
    let drive = async move {
        loop {
            let message = std::future::poll_fn(|cx| connection.poll_message(cx)).await;
            match message {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    // The receiver lives as long as this.
                    let _ = sender.send(note.payload().to_owned());
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    };
    let attend = async {
        let proof = format!("proof {}", Token::random().map_or(0, Token::get));
        let text = sql!("listen").text(&address.schema);
        if client.batch_execute(&text).await.is_err() {
            return;
        }
        let heard = async {
            prove(address, &proof).await;
            while let Some(payload) = told.recv().await {
                if payload == proof {
                    return;
                }
            }
        };
        if Clock::system().timeout(PROOF, heard).await.is_none() {
            tracing::info!("notifications don't arrive, as behind a pooler: work is polled for");
            return;
        }
        alive.store(true, Ordering::Relaxed);
        bell.ring();
        while let Some(payload) = told.recv().await {
            if payload.is_empty() {
                bell.ring();
            }
        }
    };
    tokio::select! {
        () = drive => {}
        () = attend => {}
    }
    alive.load(Ordering::Relaxed)
}

/// Sends a proof over a connection of its own: in the transaction that listens, or over a connection
/// that a pooler has just had in use for it, it would arrive although nobody else's does.
async fn prove(address: &Address, proof: &str) {
    let Ok((client, connection)) = address.config().connect(NoTls).await else {
        return;
    };
    let text = sql!("listen_proof").text(&address.schema);
    let text = text.replace("{proof}", proof);
    tokio::select! {
        // Without it nothing is heard, and that is told.
        _ = connection => {}
        _ = client.batch_execute(&text) => {}
    }
}

/// Whether notifications arrive over this address. It takes two seconds to be sure that they don't.
///
/// # Errors
/// [`Error::Unreachable`](crate::Error::Unreachable) without a server.
pub async fn notifications_arrive(address: &Address) -> Result<bool> {
    let io = super::io::Io::start()?;
    // Silence from a server that isn't there says nothing.
    drop(super::connect::connect(address, &io).await?);
    let (bell, alive) = (Bell::default(), AtomicBool::new(false));
    let mut heard = bell.listen();
    Ok(tokio::select! {
        worked = listen(address, &bell, &alive) => worked,
        () = heard.next() => true,
    })
}
