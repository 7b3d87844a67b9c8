//! A network that fails on demand, between a client and a PostgreSQL server.

mod link;
mod network;
mod wire;

use crate::deadline::DEADLINE;
use network::{Network, When};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;

/// A proxy on a port of its own. It understands PostgreSQL's messages, unencrypted. Dropped, it resets
/// every connection and takes no further one.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    network: Arc<Network>,
    acceptor: Option<JoinHandle<()>>,
}

#[expect(
    clippy::expect_used,
    reason = "a test whose network fails by itself has failed"
)]
impl Proxy {
    /// A proxy in front of a port of 127.0.0.1.
    ///
    /// # Panics
    /// When there is no port or no thread left.
    #[must_use]
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let network = Arc::<Network>::default();
        let accepting = Arc::clone(&network);
        let acceptor = thread(move || {
            for client in listener.incoming() {
                if accepting.lock().ended {
                    return;
                }
                let network = Arc::clone(&accepting);
                if let Ok(client) = client {
                    thread(move || network.carry(client, server));
                }
            }
        });
        Self {
            port,
            network,
            acceptor: Some(acceptor),
        }
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database of the server behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The connections that reach the server through it at this moment.
    #[must_use]
    pub fn count(&self) -> usize {
        self.network.lock().links.len()
    }

    /// The connections that clients have ever made, those that hang included.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.network.lock().accepted
    }

    /// Resets every connection, on both sides, and waits until that is done.
    ///
    /// # Panics
    /// When a connection stays open.
    pub fn cut(&self) {
        let links: Vec<_> = {
            let mut state = self.network.lock();
            state.cuts += 1;
            state.links.drain().collect()
        };
        let closing: Vec<_> = links
            .into_iter()
            .map(|(_, (link, gone))| {
                link.cut();
                gone
            })
            .collect();
        self.network.wake();
        for gone in closing {
            let closed = gone.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Disconnected);
            assert!(closed, "a connection doesn't close");
        }
    }

    /// The next time that a client's message contains these bytes, the server gets it and answers it in
    /// full, and the client hears nothing of that: its connection is reset instead. What the server
    /// did (a commit, say) has happened. Cuts once.
    pub fn cut_when_client_sends(&self, bytes: &[u8]) {
        self.plan(bytes, When::After);
    }

    /// The next time that a client's message contains these bytes, its connection is reset and the
    /// server gets nothing of the message. Cuts once.
    pub fn cut_before_client_sends(&self, bytes: &[u8]) {
        self.plan(bytes, When::Before);
    }

    fn plan(&self, bytes: &[u8], when: When) {
        assert!(!bytes.is_empty(), "every message contains nothing");
        let mut state = self.network.lock();
        state.plan = Some((bytes.to_vec(), when));
        state.plan_done = false;
    }

    /// Waits until the cut has happened that `cut_when_client_sends` or `cut_before_client_sends` has
    /// announced.
    ///
    /// # Panics
    /// When it doesn't happen in time.
    pub fn wait_for_cut(&self) {
        let done = self.network.wait_while(|state| !state.plan_done);
        assert!(done, "no client has sent what was awaited");
    }

    /// Silence: connections stay open, and nothing goes through, neither bytes nor ends; new connections
    /// hang. When it ends, everything that was held back goes its way.
    ///
    /// # Panics
    /// When what is under way doesn't get through.
    pub fn drop_packets(&self, silent: bool) {
        self.network.lock().silent = silent;
        self.network.wake();
        let calm = self
            .network
            .wait_while(|state| state.silent && state.passing > 0);
        assert!(calm, "somebody doesn't read what is sent");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.lock().ended = true;
        self.network.wake();
        // Wakes the acceptor, which owns the port.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.cut();
    }
}

#[expect(clippy::expect_used, reason = "a test without a thread has failed")]
fn thread(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name("proxy".to_owned())
        .spawn(work)
        .expect("a thread")
}
