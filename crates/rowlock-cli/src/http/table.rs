//! Which connections there are, and which one goes when there is no room for the next.
//!
//! A probe that isn't answered gets a worker killed, so the next connection is always taken in. The one that it
//! replaces is the oldest of those that have the least to lose.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

/// What a connection is about, beginning with those that go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// The head of a request hasn't arrived.
    Waits,
    /// The rest of a request hasn't.
    Reads,
    /// An answer is being sent.
    Answers,
    /// An answer is being made.
    Works,
}

const ALL: [Doing; 4] = [Doing::Waits, Doing::Reads, Doing::Answers, Doing::Works];

/// One connection, as its task and the table see it.
#[derive(Debug)]
pub struct Entry {
    number: u64,
    doing: AtomicU8,
    /// Rings when it has to go.
    go: Notify,
}

impl Entry {
    fn is(&self, doing: Doing) {
        self.doing.store(doing as u8, Ordering::Relaxed);
    }

    fn doing(&self) -> Doing {
        let number = usize::from(self.doing.load(Ordering::Relaxed));
        ALL.get(number).copied().unwrap_or(Doing::Works)
    }

    /// Ends when it has to make room.
    pub async fn told_to_go(&self) {
        self.go.notified().await;
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Table {
    entries: Mutex<(u64, BTreeMap<u64, Arc<Entry>>)>,
    /// Rings when one has gone.
    pub gone: Notify,
}

impl Table {
    /// Adds one; with `most` already there, another one goes.
    pub fn enter(self: &Arc<Self>, most: usize) -> Place {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, all) = &mut *entries;
        while all.len() >= most.max(1) && Self::drop_one(all) {}
        *next += 1;
        let entry = Arc::new(Entry {
            number: *next,
            doing: AtomicU8::new(Doing::Waits as u8),
            go: Notify::new(),
        });
        all.insert(*next, Arc::clone(&entry));
        Place {
            table: Arc::clone(self),
            entry,
        }
    }

    /// Lets one go that only waits. Whether there was one.
    pub fn make_room(&self) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Self::drop_one(&mut entries.1)
    }

    fn drop_one(all: &mut BTreeMap<u64, Arc<Entry>>) -> bool {
        let first = all.values().min_by_key(|each| (each.doing(), each.number));
        let Some(number) = first.map(|each| each.number) else {
            return false;
        };
        #[cfg(feature = "test-hooks")]
        if rowlock::hooks::switched_off("http.room") {
            return false;
        }
        // It is counted no longer: its task ends as soon as it runs.
        if let Some(entry) = all.remove(&number) {
            entry.go.notify_one();
        }
        true
    }
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    table: Arc<Table>,
    pub entry: Arc<Entry>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let entries = self.table.entries.lock();
        let mut entries = entries.unwrap_or_else(PoisonError::into_inner);
        entries.1.remove(&self.entry.number);
        drop(entries);
        self.table.gone.notify_one();
    }
}

/// The body of a request or of an answer, which says what its connection is about.
pub struct Watched<B> {
    body: B,
    entry: Arc<Entry>,
    answer: bool,
}

impl<B> Watched<B> {
    /// The body of a request that has just arrived.
    pub fn request(body: B, entry: Arc<Entry>) -> Self {
        entry.is(Doing::Works);
        Self {
            body,
            entry,
            answer: false,
        }
    }

    /// The body of its answer.
    pub fn answer(body: B, entry: Arc<Entry>) -> Self {
        entry.is(Doing::Answers);
        Self {
            body,
            entry,
            answer: true,
        }
    }
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if !self.answer {
            self.entry.is(match polled {
                Poll::Pending => Doing::Reads,
                Poll::Ready(_) => Doing::Works,
            });
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        if self.answer {
            self.entry.is(Doing::Waits);
        }
    }
}
