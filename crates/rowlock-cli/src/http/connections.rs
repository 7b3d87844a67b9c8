//! Who is connected: so many at once, and whoever says nothing is hung up on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rowlock::Clock;
use rowlock::run::task::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// What callers may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections there are at once. The next ones wait in the system's queue: each one costs a file, and a
    /// worker that has no file left can't reach its database.
    most: usize,
    /// How long the head of a request may take, and how long a connection is kept for the next one.
    head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: 256,
            head: Duration::from_secs(30),
        }
    }
}

/// Without a file to spare there is nothing to accept.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers until `end`, and to the end what was asked by then.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    (limits, clock): (Limits, &Clock),
    end: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(limits.most));
    let (going, gone) = watch::channel(());
    let mut tasks = Tasks::default();
    let accepting = async {
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(why) => {
                    tracing::warn!(%why, "can't accept a connection");
                    clock.sleep(PAUSE).await;
                    continue;
                }
            };
            let (routes, gone) = (routes.clone(), gone.clone());
            tasks.tidy();
            tasks.start("rowlock-http", async move {
                let _place = place;
                answer(stream, routes, limits.head, gone).await;
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = end => {}
    }
    drop(going);
    tasks.join().await;
}

async fn answer(stream: TcpStream, routes: Router, head: Duration, mut gone: watch::Receiver<()>) {
    // What comes back is small, and waited for.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(routes);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = gone.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(why) = ended {
        tracing::debug!(%why, "a connection has ended");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Longer than anything here takes.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// Serves while the test goes on: each answer is the number of the request.
    async fn served<T>(limits: Limits, test: impl AsyncFnOnce(std::net::SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let number = move || {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            async move { number.to_string() }
        };
        let routes = Router::new().route("/", get(number));
        let clock = Clock::system();
        let serving = serve(listener, routes, (limits, &clock), std::future::pending());
        let tested = clock.timeout(DEADLINE, test(address));
        tokio::select! {
            tested = tested => tested.expect("the deadline has passed"),
            () = serving => panic!("it has ended"),
        }
    }

    /// Asks on a connection that stays, and reads the number.
    async fn ask(stream: &mut TcpStream) -> usize {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut read = Vec::new();
        loop {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            let text = String::from_utf8(read.clone()).unwrap();
            if let Some((_, number)) = text.split_once("\r\n\r\n")
                && !number.is_empty()
            {
                return number.parse().unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_head_that_does_not_arrive_is_not_waited_for() {
        let limits = Limits {
            most: 4,
            head: Duration::from_millis(50),
        };
        served(limits, async |address| {
            for said in ["", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(said.as_bytes()).await.unwrap();
                let mut heard = Vec::new();
                // Hung up, with or without a word.
                let _ = stream.read_to_end(&mut heard).await;
            }
            // Neither is kept for a next request for ever.
            let mut stream = TcpStream::connect(address).await.unwrap();
            assert_eq!(ask(&mut stream).await, 1);
            let _ = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
    }

    #[tokio::test]
    async fn whoever_comes_when_there_is_no_room_waits_until_somebody_goes() {
        let limits = Limits {
            most: 2,
            ..Limits::default()
        };
        served(limits, async |address| {
            let mut all = Vec::new();
            for number in 1..=2 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                assert_eq!(ask(&mut stream).await, number);
                all.push(stream);
            }
            let mut late = TcpStream::connect(address).await.unwrap();
            let waits = ask(&mut late);
            let mut first = all.remove(0);
            let goes = async {
                for number in 3..=50 {
                    assert_eq!(ask(&mut first).await, number);
                }
                drop(first);
            };
            let (number, ()) = tokio::join!(waits, goes);
            assert_eq!(number, 51);
        })
        .await;
    }
}
