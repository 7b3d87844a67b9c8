//! One connection through the proxy: two threads that pass messages on.

use super::network::{Network, When};
use super::wire::{self, Messages, Opening};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The sockets of a connection. They close when the last holder has let go of it.
#[derive(Debug)]
pub(super) struct Link {
    client: TcpStream,
    server: TcpStream,
    cut: AtomicBool,
    talk: Mutex<Talk>,
    /// Must come last: its drop says that the sockets are closed.
    _gone: Sender<()>,
}

/// How far the conversation has come.
#[derive(Debug, Default)]
struct Talk {
    /// Answers of one letter that the server owes.
    letters: u32,
    /// Groups of messages, each of which the server ends by being ready, that the client has ended.
    asked: u64,
    answered: u64,
    /// The group whose answer the client must not hear.
    hidden: Option<u64>,
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Withhold,
    Cut,
}

impl Link {
    pub(super) fn new(client: TcpStream, server: TcpStream, gone: Sender<()>) -> Self {
        // A delay would only make the tests slower.
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        Self {
            client,
            server,
            cut: AtomicBool::new(false),
            talk: Mutex::default(),
            _gone: gone,
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Lets both threads end, whereupon the sockets close with a reset.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for socket in [&self.client, &self.server] {
            // Without lingering, a close is a reset. Only the reading ends here: the other direction
            // would say an orderly goodbye.
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
            let _ = socket.shutdown(Shutdown::Read);
        }
    }

    /// Passes on what the client says, until its end.
    pub(super) fn upstream(self: Arc<Self>, network: &Network) {
        let mut messages = Messages::default();
        let mut open = false;
        self.pump(network, &self.client, &self.server, |bytes| {
            messages.add(bytes);
            let mut passed = Vec::new();
            loop {
                let message = if open {
                    messages.next()
                } else {
                    messages.next_of_startup()
                };
                let Some(message) = message else {
                    return (passed, Fate::Pass);
                };
                if self.client_says(network, &message, &mut open) == Fate::Cut {
                    return (passed, Fate::Cut);
                }
                passed.extend(message);
            }
        });
    }

    /// Passes on what the server says, until its end.
    pub(super) fn downstream(self: Arc<Self>, network: &Network) {
        let mut messages = Messages::default();
        self.pump(network, &self.server, &self.client, |bytes| {
            messages.add(bytes);
            let mut passed = Vec::new();
            loop {
                match self.server_says(&mut messages) {
                    Some((message, Fate::Pass)) => passed.extend(message),
                    Some((_, Fate::Withhold)) => {}
                    Some((_, Fate::Cut)) => return (passed, Fate::Cut),
                    None => return (passed, Fate::Pass),
                }
            }
        });
    }

    fn client_says(&self, network: &Network, message: &[u8], open: &mut bool) -> Fate {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        if !*open {
            match wire::opening(message) {
                Opening::Encryption => talk.letters += 1,
                Opening::Cancel => {}
                Opening::Session => {
                    *open = true;
                    talk.asked += 1;
                }
            }
            return Fate::Pass;
        }
        match network.is_awaited(message) {
            Some(When::Before) => return Fate::Cut,
            Some(When::After) => talk.hidden = Some(talk.asked + 1),
            None => {}
        }
        talk.asked += u64::from(wire::ends_a_group(message));
        Fate::Pass
    }

    fn server_says(&self, messages: &mut Messages) -> Option<(Vec<u8>, Fate)> {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        if talk.letters > 0 {
            let letter = messages.next_letter()?;
            talk.letters -= 1;
            return Some((letter, Fate::Pass));
        }
        let message = messages.next()?;
        let group = talk.answered + 1;
        let ready = wire::is_ready(&message);
        talk.answered += u64::from(ready);
        let fate = match talk.hidden {
            Some(hidden) if group >= hidden && ready => Fate::Cut,
            Some(hidden) if group >= hidden => Fate::Withhold,
            _ => Fate::Pass,
        };
        Some((message, fate))
    }

    fn pump(
        &self,
        network: &Network,
        from: &TcpStream,
        to: &TcpStream,
        mut judge: impl FnMut(&[u8]) -> (Vec<u8>, Fate),
    ) {
        let (mut from, mut to) = (from, to);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer);
            // A silent network is silent about ends too.
            if !network.begin_passing(self) {
                return;
            }
            let (goes_on, planned) = match read {
                Ok(0) => {
                    let _ = to.shutdown(Shutdown::Write);
                    network.end_passing();
                    return;
                }
                Ok(count) => {
                    let (passed, fate) = judge(buffer.get(..count).unwrap_or_default());
                    let written = to.write_all(&passed).is_ok();
                    (written && fate != Fate::Cut, fate == Fate::Cut)
                }
                Err(_) => (false, false),
            };
            network.end_passing();
            if !goes_on {
                self.cut();
                network.wake();
                if planned {
                    network.plan_done();
                }
                return;
            }
        }
    }
}
