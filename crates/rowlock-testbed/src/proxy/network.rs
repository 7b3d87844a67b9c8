//! The state of the network that all connections of a proxy share.

use super::link::Link;
use crate::deadline::DEADLINE;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Network {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) ended: bool,
    pub(super) silent: bool,
    /// How often everything was cut.
    pub(super) cuts: u64,
    /// Threads that pass something on at this moment.
    pub(super) passing: usize,
    pub(super) accepted: usize,
    /// The connections, by the order of their beginning; the receiver hears of the closed sockets.
    pub(super) links: HashMap<usize, (Arc<Link>, Receiver<()>)>,
    /// What a client must say, and on which side of it to cut.
    pub(super) plan: Option<(Vec<u8>, When)>,
    pub(super) plan_done: bool,
}

/// On which side of a message a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

impl Network {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets every waiting thread look again, after a change.
    pub(super) fn wake(&self) {
        // Whoever looks at this moment must be waiting before it is called.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Waits; false when the deadline has passed.
    pub(super) fn wait_while(&self, condition: impl Fn(&State) -> bool) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), DEADLINE, |state| condition(state));
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !waited.timed_out()
    }

    /// The life of one connection. Silence has no deadline.
    pub(super) fn carry(self: Arc<Self>, client: TcpStream, server: u16) {
        let (number, cuts) = {
            let mut state = self.lock();
            state.accepted += 1;
            (state.accepted, state.cuts)
        };
        let waits = |state: &mut State| state.silent && !state.ended && state.cuts == cuts;
        drop(self.changed.wait_while(self.lock(), waits));
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
            return;
        };
        let (gone, is_gone) = channel();
        let link = Arc::new(Link::new(client, server, gone));
        {
            let mut state = self.lock();
            if state.ended || state.cuts != cuts {
                return link.cut();
            }
            state.links.insert(number, (Arc::clone(&link), is_gone));
        }
        let threads = Arc::new(AtomicUsize::new(2));
        let network = Arc::clone(&self);
        let ended = move || {
            if threads.fetch_sub(1, Ordering::SeqCst) == 1 {
                drop(network.lock().links.remove(&number));
            }
        };
        let (up, network, up_ended) = (Arc::clone(&link), Arc::clone(&self), ended.clone());
        super::thread(move || {
            up.upstream(&network);
            up_ended();
        });
        link.downstream(&self);
        ended();
    }

    /// Waits for the end of a silence; false when the connection was cut in the meantime.
    pub(super) fn begin_passing(&self, link: &Link) -> bool {
        let state = self
            .changed
            .wait_while(self.lock(), |state| state.silent && !link.is_cut());
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let goes_on = !link.is_cut();
        state.passing += usize::from(goes_on);
        goes_on
    }

    pub(super) fn end_passing(&self) {
        self.lock().passing -= 1;
        self.wake();
    }

    /// Whether this message is the one of the plan, which then is carried out.
    pub(super) fn is_awaited(&self, message: &[u8]) -> Option<When> {
        let mut state = self.lock();
        let (bytes, when) = state.plan.as_ref()?;
        let when = *when;
        let found = message.windows(bytes.len()).any(|part| part == bytes);
        found.then(|| {
            state.plan = None;
            when
        })
    }

    /// The plan was carried out.
    pub(super) fn plan_done(&self) {
        self.lock().plan_done = true;
        self.wake();
    }
}
