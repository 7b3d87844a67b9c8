//! Who is connected: so many at once, and a client that says or reads nothing is hung up on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rowlock::Clock;
use rowlock::run::task::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::patient::Patient;
use super::table::{Place, Table, Watched};

/// What callers may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections there are at once. Each one costs a file, and a worker that has no file left can't reach
    /// its database. The next one takes the place of another.
    most: usize,
    /// How long the head of a request may take, and how long a connection is kept for the next one.
    head: Duration,
    /// How long a client may take to read a part of its answer.
    write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: most(),
            head: Duration::from_secs(30),
            write: Duration::from_secs(30),
        }
    }
}

/// 256, or a quarter of the files that this process may have.
fn most() -> usize {
    use rustix::process::{Resource, getrlimit};
    let files = getrlimit(Resource::Nofile).current;
    let quarter = files.and_then(|files| usize::try_from(files / 4).ok());
    quarter.map_or(256, |quarter| quarter.clamp(4, 256))
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
    let table = Arc::new(Table::default());
    let (going, gone) = watch::channel(());
    let mut tasks = Tasks::default();
    let accepting = async {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(why) => {
                    tracing::warn!(%why, "can't accept a connection");
                    // One of ours that has nothing to do gives its file back; the pause keeps this from spinning.
                    let room = async {
                        if table.make_room() {
                            table.gone.notified().await;
                        } else {
                            std::future::pending().await
                        }
                    };
                    clock.timeout(PAUSE, room).await;
                    continue;
                }
            };
            let place = table.enter(limits.most);
            let (routes, gone, clock) = (routes.clone(), gone.clone(), clock.clone());
            tasks.tidy();
            tasks.start("rowlock-http", async move {
                let entry = Arc::clone(&place.entry);
                tokio::select! {
                    () = answer(stream, routes, &place, (limits, clock), gone) => {}
                    () = entry.told_to_go() => {}
                }
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

async fn answer(
    stream: TcpStream,
    routes: Router,
    place: &Place,
    (limits, clock): (Limits, Clock),
    mut gone: watch::Receiver<()>,
) {
    // What comes back is small, and waited for.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(routes);
    let entry = &place.entry;
    let service = service_fn(|request: Request<Incoming>| {
        let request = request.map(|body| Watched::request(body, Arc::clone(entry)));
        let answer = service.call(request);
        async move {
            let answer = answer.await?;
            Ok::<_, std::convert::Infallible>(
                answer.map(|body| Watched::answer(body, Arc::clone(entry))),
            )
        }
    });
    let stream = Patient::new(stream, clock, limits.write);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
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
        let held = Arc::new(tokio::sync::Notify::new());
        let release = Arc::clone(&held);
        let hold = async move || {
            held.notified().await;
            "held"
        };
        let routes = Router::new()
            .route("/", get(number))
            .route("/held", get(hold))
            .route("/release", get(async move || release.notify_one()))
            .route("/large", get(async || vec![0_u8; 4 * 1024 * 1024]));
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
            ..Limits::default()
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
    async fn a_connection_that_comes_takes_the_place_of_the_oldest_that_only_waits() {
        let limits = Limits {
            most: 2,
            ..Limits::default()
        };
        served(limits, async |address| {
            let mut all = Vec::new();
            for number in 1..=3 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                assert_eq!(ask(&mut stream).await, number);
                all.push(stream);
            }
            let _ = all[0].read_to_end(&mut Vec::new()).await;
            for (stream, number) in all[1..].iter_mut().zip(4..) {
                assert_eq!(ask(stream).await, number);
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_probe_is_answered_however_many_connections_say_nothing() {
        let limits = Limits {
            most: 4,
            // Nothing here may be waited for.
            head: DEADLINE * 10,
            write: DEADLINE * 10,
        };
        served(limits, async |address| {
            let mut slow = Vec::new();
            for (number, said) in ["", "GET / HTTP/1.1\r\nX-Slow: ", "POST / HTTP/1.1\r\n"]
                .into_iter()
                .cycle()
                .take(300)
                .enumerate()
            {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(said.as_bytes()).await.unwrap();
                slow.push(stream);
                if number % 50 == 0 {
                    let mut probe = TcpStream::connect(address).await.unwrap();
                    ask(&mut probe).await;
                }
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_request_that_is_being_answered_keeps_its_place() {
        let limits = Limits {
            most: 2,
            ..Limits::default()
        };
        served(limits, async |address| {
            let mut busy = TcpStream::connect(address).await.unwrap();
            busy.write_all(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
            let mut others = Vec::new();
            for number in 1..=20 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                assert_eq!(ask(&mut stream).await, number);
                others.push(stream);
            }
            let mut release = TcpStream::connect(address).await.unwrap();
            release
                .write_all(b"GET /release HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"held") {
                assert!(busy.read_buf(&mut heard).await.unwrap() > 0);
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_that_never_reads_is_hung_up_on() {
        let limits = Limits {
            write: Duration::from_millis(50),
            ..Limits::default()
        };
        served(limits, async |address| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
            // More than both ends keep: at some time the server's writes wait, and then ours fail.
            while stream.write_all(&request.repeat(100)).await.is_ok() {}
        })
        .await;
    }
}
