//! Cancel requests: a server goes on with a statement whose client has gone, unless it is told.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::config::Host;
use tokio_postgres::{CancelToken, Config, NoTls};

use crate::clock::Clock;
use crate::log;

/// How long a server may take to hear that a statement isn't wanted any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the one server is that a connection goes to, if it is plain from its settings.
pub(super) type Door = Option<(String, u16)>;

pub(super) fn door(config: &Config) -> Door {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match (config.get_hostaddrs(), config.get_hosts()) {
        ([address], _) => Some((address.to_string(), port)),
        ([], [Host::Tcp(name)]) => Some((name.clone(), port)),
        _ => None,
    }
}

/// Tells a server that a statement isn't wanted any more.
pub(super) async fn cancel(token: CancelToken, door: Door) {
    let telling = async {
        match door {
            Some((host, port)) => match TcpStream::connect((host.as_str(), port)).await {
                Ok(stream) => token.cancel_query_raw(Last(stream), NoTls).await,
                Err(why) => return log::debug!(%why, "a statement can't be cancelled"),
            },
            None => token.cancel_query(NoTls).await,
        }
        .unwrap_or_else(|why| log::debug!(%why, "a statement can't be cancelled"));
    };
    if Clock::system().timeout(PATIENCE, telling).await.is_none() {
        log::debug!("the server doesn't answer a cancel request");
    }
}

/// A connection that is closed by the other side first. PgBouncer 1.18 may end, and everybody's connections with it, if
/// whoever sent a cancel request hangs up while it is passed on.
struct Last<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Last<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Last<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [0; 64];
        loop {
            let mut said = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut self.0).poll_read(cx, &mut said));
            if read.is_err() || said.filled().is_empty() {
                return Pin::new(&mut self.0).poll_shutdown(cx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn nobody_hangs_up_before_the_server_does() {
        let (ours, theirs) = tokio::io::duplex(64);
        let mut last = Last(ours);
        let mut close =
            async || poll_fn(|cx| Poll::Ready(Pin::new(&mut last).poll_shutdown(cx))).await;
        assert!(close().await.is_pending());
        drop(theirs);
        assert!(close().await.is_ready());
    }
}
