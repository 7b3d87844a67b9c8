//! What runs a kind that rowlock.toml declares: one of the handlers that need no Rust.

use async_trait::async_trait;

use super::{Builtin, Context, Handler};
use crate::settle::Outcome;

/// Which of them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Runner {
    /// One that comes with rowlock.
    Builtin(Builtin),
    /// A program.
    #[cfg(feature = "exec")]
    Exec(super::Exec),
    /// A server.
    #[cfg(feature = "http")]
    Http(super::Http),
}

#[async_trait]
impl Handler for Runner {
    async fn run(&self, cx: &Context) -> Outcome {
        match self {
            Self::Builtin(builtin) => builtin.handler().run(cx).await,
            #[cfg(feature = "exec")]
            Self::Exec(exec) => exec.run(cx).await,
            #[cfg(feature = "http")]
            Self::Http(http) => http.run(cx).await,
        }
    }

    async fn close(&self) {
        match self {
            Self::Builtin(_) => {}
            #[cfg(feature = "exec")]
            Self::Exec(exec) => exec.close().await,
            #[cfg(feature = "http")]
            Self::Http(http) => http.close().await,
        }
    }
}
