//! What the library says of itself, through `tracing`.
//!
//! A subscriber belongs to the application, and it may panic: a log that can't be written, a bug of its own. That costs a
//! line, or a span, and nothing else: no task ends because something was to be said about it. A tidy test holds the
//! library to these macros.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Span;
use tracing::span::Entered;

use crate::run::task;

/// Does something that calls the application's subscriber. Nothing if that panicked.
pub(crate) fn shielded<T>(say: impl FnOnce() -> T) -> Option<T> {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("log.shielded") {
        return Some(say());
    }
    catch_unwind(AssertUnwindSafe(say))
        .map_err(task::words)
        .ok()
}

/// Logs an event.
pub(crate) fn say(event: impl FnOnce()) {
    shielded(event);
}

macro_rules! error_ {
    ($($event:tt)*) => { $crate::log::say(|| ::tracing::error!($($event)*)) };
}
macro_rules! warn_ {
    ($($event:tt)*) => { $crate::log::say(|| ::tracing::warn!($($event)*)) };
}
macro_rules! info_ {
    ($($event:tt)*) => { $crate::log::say(|| ::tracing::info!($($event)*)) };
}
macro_rules! debug_ {
    ($($event:tt)*) => { $crate::log::say(|| ::tracing::debug!($($event)*)) };
}
macro_rules! info_span_ {
    ($($span:tt)*) => {
        $crate::log::shielded(|| ::tracing::info_span!($($span)*)).unwrap_or_else(::tracing::Span::none)
    };
}
pub(crate) use {
    debug_ as debug, error_ as error, info_ as info, info_span_ as info_span, warn_ as warn,
};

/// A future inside a span: entered whenever it is polled, and when it is dropped.
pub(crate) struct InSpan<'a, T> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    span: Span,
}

impl<'a, T> InSpan<'a, T> {
    pub(crate) fn new(span: Span, work: Pin<Box<dyn Future<Output = T> + Send + 'a>>) -> Self {
        Self {
            work: Some(work),
            span,
        }
    }
}

impl<T> Future for InSpan<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        let _inside = Inside::enter(&this.span);
        match &mut this.work {
            Some(work) => work.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for InSpan<'_, T> {
    fn drop(&mut self) {
        let inside = Inside::enter(&self.span);
        drop(self.work.take());
        drop(inside);
        let span = std::mem::replace(&mut self.span, Span::none());
        shielded(|| drop(span));
    }
}

/// An entered span.
struct Inside<'a>(Option<Entered<'a>>);

impl<'a> Inside<'a> {
    fn enter(span: &'a Span) -> Self {
        Self(shielded(|| span.enter()))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let entered = self.0.take();
        shielded(|| drop(entered));
    }
}
