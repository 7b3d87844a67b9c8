//! Layers: what happens around every attempt, whatever its handler.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Context, Handler};
use crate::settle::Outcome;

/// Wraps attempts: for logs, measurements, limits, or a look at the outcome.
///
/// ```
/// use rowlock::run::{Layer, Next};
/// use rowlock::{Context, Outcome};
///
/// struct Log;
///
/// #[rowlock::async_trait]
/// impl Layer for Log {
///     async fn around(&self, cx: &Context, next: Next<'_>) -> Outcome {
///         let outcome = next.run(cx).await;
///         println!("job {} of kind {}: {outcome:?}", cx.id, cx.kind);
///         outcome
///     }
/// }
/// ```
#[async_trait]
pub trait Layer: Send + Sync + 'static {
    /// Runs around one attempt; not calling `next` means that the handler doesn't run.
    async fn around(&self, cx: &Context, next: Next<'_>) -> Outcome;
}

/// The rest of the way: further layers, then the handler.
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    handler: &'a dyn Handler,
}

impl Next<'_> {
    /// Goes on.
    pub async fn run(self, cx: &Context) -> Outcome {
        match self.layers.split_first() {
            Some((layer, layers)) => {
                let handler = self.handler;
                layer.around(cx, Next { layers, handler }).await
            }
            None => self.handler.run(cx).await,
        }
    }
}

impl std::fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Next({} more layers)", self.layers.len())
    }
}

/// A handler with layers around it; the first one added is the outermost.
pub(super) struct Layered {
    pub(super) layers: Arc<[Arc<dyn Layer>]>,
    pub(super) handler: Arc<dyn Handler>,
}

#[async_trait]
impl Handler for Layered {
    async fn run(&self, cx: &Context) -> Outcome {
        let next = Next {
            layers: &self.layers,
            handler: &*self.handler,
        };
        next.run(cx).await
    }

    async fn close(&self) {
        self.handler.close().await;
    }
}
