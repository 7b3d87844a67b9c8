//! Wakes workers when the server says that something was enqueued while they slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{Address, Schema, connect_with_settings};
use super::statements::sql;
use crate::clock::{Clock, Elapsed};
use crate::engine::Bell;
use crate::error::Result;
use crate::job::Token;
use crate::log;

/// Whether notifications arrive.
#[derive(Debug, Default)]
pub(super) struct Listener {
    hears: Arc<Hears>,
    started: AtomicBool,
}

/// What is known about it.
#[derive(Debug, Default)]
struct Hears {
    known: AtomicU8,
    /// When something was last heard, by the system's clock.
    last: Mutex<Option<Elapsed>>,
}

impl Hears {
    fn heard(&self) {
        let now = Clock::system().elapsed();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

/// When to look again after a notification. For a moment after it no enqueue notifies; those looks find what was
/// enqueued then and committed a little later.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(100)];

const YES: u8 = 1;
const NO: u8 = 2;

/// How long the proof that notifications arrive may take.
const PROOF: Duration = Duration::from_secs(2);
/// How long the questions before it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before another try: a pooler won't change its mind soon.
const PAUSE: Duration = Duration::from_secs(60);
/// The pause after a connection was lost, or not to be had.
const SOON: Duration = Duration::from_secs(1);

/// How listening ended.
enum Ended {
    /// The server or the connection is gone, or never was there.
    Lost,
    /// Behind a pooler that hands out a connection per transaction nobody hears anything.
    Deaf,
}

impl Listener {
    pub(super) fn hears(&self) -> Option<bool> {
        match self.hears.known.load(Ordering::Relaxed) {
            YES => Some(true),
            NO => Some(false),
            _ => None,
        }
    }

    /// How long until the next look that a notification asks for.
    pub(super) fn look_again(&self) -> Option<Duration> {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("listen.look_again") {
            return None;
        }
        let last = *self
            .hears
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = Clock::system().elapsed().saturating_sub(last?);
        let next = LOOK_AGAIN.into_iter().find(|at| *at > since)?;
        Some(next - since)
    }

    /// The first who wants to be woken starts it.
    pub(super) fn start(&self, address: &Address, io: &crate::io::Io, bell: &Bell) {
        if !address.notify || self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(starter) = io.starter() else { return };
        let (address, bell, hears) = (address.clone(), bell.clone(), Arc::clone(&self.hears));
        starter.start("rowlock-listen", async move {
            loop {
                let pause = match listen(&address, &bell, &hears).await {
                    Ended::Lost => SOON,
                    Ended::Deaf => {
                        log::info!(
                            "notifications don't arrive, as behind a pooler: work is polled for"
                        );
                        PAUSE
                    }
                };
                hears.known.store(NO, Ordering::Relaxed);
                Clock::system().sleep(pause).await;
                // What was enqueued in between was told to nobody.
                bell.ring();
            }
        });
    }
}

/// Listens until the connection is lost.
async fn listen(address: &Address, bell: &Bell, hears: &Hears) -> Ended {
    let Ok((client, mut connection)) = connect_with_settings(address).await else {
        return Ended::Lost;
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
                Some(Err(_)) | None => return Ended::Lost,
            }
        }
    };
    let attend = async {
        match prove(address, &client, &mut told).await {
            None => return Ended::Lost,
            Some(false) => return Ended::Deaf,
            Some(true) => hears.known.store(YES, Ordering::Relaxed),
        }
        bell.ring();
        let heard = sql!("heard").text(&address.schema);
        while let Some(payload) = told.recv().await {
            if !payload.is_empty() {
                continue;
            }
            hears.heard();
            // Others that have come meanwhile say the same. One by one they would fall behind where the server is far.
            while told.try_recv().is_ok() {}
            bell.ring();
            // Without it, as with a role that may not, enqueues notify more often than they need to.
            let _ = client.batch_execute(&heard).await;
        }
        Ended::Lost
    };
    tokio::select! {
        ended = drive => ended,
        ended = attend => ended,
    }
}

/// Begins to listen, and whether somebody else is heard; nothing when there is no answer.
async fn prove(
    address: &Address,
    client: &Client,
    told: &mut mpsc::UnboundedReceiver<String>,
) -> Option<bool> {
    let (other, connection) = connect_with_settings(address).await.ok()?;
    let proving = async {
        // Whoever listens on a session that isn't its own leaves that to the next who gets it.
        let own = has_its_session(client, &other).await?;
        #[cfg(feature = "test-hooks")]
        let own = own || crate::hooks::switched_off("listen.own_session");
        if !own {
            return Some(false);
        }
        let text = sql!("listen").text(&address.schema);
        let settings = sql!("listen_settings").text(&address.schema);
        client.batch_execute(&settings).await.ok()?;
        client.batch_execute(&text).await.ok()?;
        let proof = format!("proof {}", Token::random().map_or(0, Token::get));
        let text = sql!("listen_proof").text(&address.schema);
        let text = text.replace("{proof}", &proof);
        other.batch_execute(&text).await.ok()?;
        let heard = async {
            while let Some(payload) = told.recv().await {
                if payload == proof {
                    return;
                }
            }
        };
        Some(Clock::system().timeout(PROOF, heard).await.is_some())
    };
    let clock = Clock::system();
    tokio::select! {
        proven = clock.timeout(PATIENCE, proving) => proven?,
        _ = connection => None,
    }
}

/// How often two clients are asked who serves them.
const QUESTIONS: usize = 5;

/// Whether one process serves a client, and no other one. A pooler gives whoever asks the session that
/// was used last.
async fn has_its_session(client: &Client, other: &Client) -> Option<bool> {
    let text = sql!("session").text(&Schema::default());
    let served_by = async |client: &Client| -> Option<i32> {
        let rows = client.query_typed(&text, &[]).await.ok()?;
        rows.first()?.try_get(0).ok()
    };
    let ours = served_by(client).await?;
    for _ in 0..QUESTIONS {
        if served_by(other).await? == ours || served_by(client).await? != ours {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether every connection to this address has a session of its own: not behind a pooler that hands one out per
/// transaction.
pub(super) async fn has_own_sessions(address: &Address) -> Result<bool> {
    let io = crate::io::Io::start("rowlock-postgres")?;
    let one = super::connect::connect(address, &io).await?;
    let other = super::connect::connect(address, &io).await?;
    // Without an answer it is safer to take none for ours.
    Ok(has_its_session(&one, &other).await.unwrap_or(false))
}

/// Whether notifications arrive over this address. It takes two seconds to be sure that they don't.
///
/// # Errors
/// [`Error::Unreachable`](crate::Error::Unreachable) without a server.
pub async fn notifications_arrive(address: &Address) -> Result<bool> {
    let io = crate::io::Io::start("rowlock-postgres")?;
    // Silence from a server that isn't there says nothing.
    drop(super::connect::connect(address, &io).await?);
    let (bell, hears) = (Bell::default(), Hears::default());
    let mut heard = bell.listen();
    Ok(tokio::select! {
        _ = listen(address, &bell, &hears) => false,
        () = heard.next() => true,
    })
}
