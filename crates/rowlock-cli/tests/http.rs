//! Handlers that are servers: what they get, what their answer means, and where jobs may go.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use place::Place;
use rowlock_testbed::ClosedPort;

/// It only ever fails a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// A request as it came over the wire.
struct Request {
    head: Vec<String>,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut request = Self {
            head,
            body: String::new(),
        };
        let length = request.header("content-length").parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        request.body = String::from_utf8(body).unwrap();
        request
    }

    fn header(&self, name: &str) -> &str {
        let found = self.head.iter().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        found.unwrap_or_else(|| panic!("no {name} in {:?}", self.head))
    }
}

/// A server that answers each connection's one request by `answer`, and tells of it.
struct Server {
    address: SocketAddr,
    requests: Receiver<Request>,
}

impl Server {
    fn start(answer: impl Fn(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    let request = Request::read(&stream);
                    if sender.send(request).is_err() {
                        return;
                    }
                    answer(&mut stream);
                }
            })
            .unwrap();
        Self { address, requests }
    }

    /// Answers with a fixed text.
    fn saying(text: &str) -> Self {
        let text = text.to_owned();
        // A client that has heard enough may hang up.
        Self::start(move |stream| stream.write_all(text.as_bytes()).unwrap_or(()))
    }

    fn place(&self, settings: &str) -> Place {
        place(
            &format!("http://{}/jobs?key=1", self.address),
            "127.0.0.1",
            settings,
        )
    }
}

fn place(url: &str, allow: &str, settings: &str) -> Place {
    Place::with_config(&format!(
        "[handlers.it]\nhttp = \"{url}\"\nallow = [\"{allow}\"]\n{settings}\n"
    ))
}

/// Runs one job; the answer is the job with its errors.
fn once(place: &Place) -> serde_json::Value {
    place.ok(&["enqueue", "it", r#"{"to":"ada ö"}"#]);
    place.ok(&["work", "--once", "--quiet"]);
    place.json(&["job", "show", "1", "--json"])
}

fn error(job: &serde_json::Value) -> &str {
    job["errors"][0]["message"].as_str().unwrap()
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

#[test]
fn a_server_gets_the_payload_as_the_body_and_the_rest_as_headers() {
    let server = Server::saying(&answer("200 OK", "", "thanks"));
    let place = server.place("queue = \"mail\"\nmax_attempts = 3");
    let job = once(&place);
    assert_eq!(job["state"], "completed", "{job}");
    let request = server.requests.recv_timeout(DEADLINE).unwrap();
    assert_eq!(request.head[0], "POST /jobs?key=1 HTTP/1.1");
    assert_eq!(request.body, r#"{"to":"ada ö"}"#);
    for (name, value) in [
        ("content-type", "application/json"),
        ("host", &server.address.to_string()),
        ("rowlock-job-id", "1"),
        ("rowlock-kind", "it"),
        ("rowlock-queue", "mail"),
        ("rowlock-attempt", "1"),
        ("rowlock-max-attempts", "3"),
        ("idempotency-key", job["idempotency_key"].as_str().unwrap()),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
}

#[test]
fn each_class_of_status_has_its_meaning() {
    for (status, state) in [
        ("200 OK", "completed"),
        ("204 No Content", "completed"),
        ("299 Fine", "completed"),
        ("400 Bad Request", "pending"),
        ("404 Not Found", "pending"),
        ("410 Gone", "failed"),
        ("422 Unprocessable Entity", "failed"),
        ("429 Too Many Requests", "pending"),
        ("500 Internal Server Error", "pending"),
        ("503 Service Unavailable", "pending"),
    ] {
        let body = if status.starts_with("204") {
            ""
        } else {
            "the reason"
        };
        let server = Server::saying(&answer(status, "", body));
        let job = once(&server.place(""));
        assert_eq!(job["state"], state, "{status}: {job}");
        assert_eq!(job["attempt"], 1, "{status}: {job}");
        if state == "completed" {
            continue;
        }
        let said = format!(
            "http://{}/jobs answered {status}: the reason",
            server.address
        );
        assert_eq!(error(&job), said);
    }
}

#[test]
fn a_server_that_names_a_wait_gets_it_and_no_attempt_is_charged() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        for wait in ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"] {
            let headers = format!("Retry-After: {wait}\r\n");
            let server = Server::saying(&answer(status, &headers, ""));
            let job = once(&server.place(""));
            assert_eq!(job["state"], "pending", "{status}: {job}");
            assert_eq!(job["attempt"], 0, "{status}: {job}");
            assert_eq!(job["errors"], serde_json::json!([]), "{status}: {job}");
            let time =
                |field: &str| -> jiff::Timestamp { job[field].as_str().unwrap().parse().unwrap() };
            let waits = time("scheduled_at").duration_since(time("created_at"));
            assert!(waits.as_secs() >= 3600, "{status} {wait}: {job}");
        }
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::saying(&answer("200 OK", "", ""));
    let to = format!("Location: http://{}/\r\n", other.address);
    for status in ["301 Moved Permanently", "307 Temporary Redirect"] {
        let server = Server::saying(&answer(status, &to, ""));
        let job = once(&server.place(""));
        assert_eq!(job["state"], "pending", "{job}");
        assert!(
            error(&job).ends_with(&format!("answered {status}")),
            "{job}"
        );
    }
    assert!(other.requests.try_recv().is_err());
}

#[test]
fn a_slow_server_meets_the_timeout() {
    // It holds the connection until the client hangs up.
    let server = Server::start(|stream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap_or(0);
    });
    let job = once(&server.place("timeout = \"300ms\""));
    assert_eq!(job["state"], "pending", "{job}");
    assert_eq!(job["errors"][0]["kind"], "timeout", "{job}");
}

#[test]
fn of_an_endless_body_only_the_beginning_is_read() {
    for (status, state) in [("200 OK", "completed"), ("500 Oops", "pending")] {
        let head = format!("HTTP/1.1 {status}\r\n\r\n");
        let server = Server::start(move |stream| {
            stream.write_all(head.as_bytes()).unwrap();
            // Ends only when the client has hung up.
            while stream.write_all(&[b'x'; 65_536]).is_ok() {}
        });
        let job = once(&server.place(""));
        assert_eq!(job["state"], state, "{}", job["state"]);
        if state == "pending" {
            assert!(error(&job).contains("answered 500"), "{}", error(&job));
            assert!(error(&job).len() < 4096);
        }
    }
}

#[test]
fn an_endless_head_is_an_error() {
    let server = Server::start(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    let job = once(&server.place(""));
    assert_eq!(job["state"], "pending", "{job}");
    assert!(error(&job).contains("didn't answer: "), "{job}");
}

#[test]
fn an_answer_that_is_not_http_or_none_at_all_is_tried_again() {
    for text in ["hello\r\n\r\n", ""] {
        let server = Server::saying(text);
        let job = once(&server.place(""));
        assert_eq!(job["state"], "pending", "{job}");
        assert!(error(&job).contains("didn't answer: "), "{job}");
    }
}

#[test]
fn a_server_that_is_not_there_is_tried_again() {
    let closed = ClosedPort::take();
    let url = format!("http://{}/", closed.address());
    let job = once(&place(&url, "127.0.0.1", ""));
    assert_eq!(job["state"], "pending", "{job}");
    assert!(error(&job).contains("can't be reached: "), "{job}");
}

#[test]
fn a_name_that_resolves_to_a_forbidden_address_is_never_connected_to() {
    let server = Server::saying(&answer("200 OK", "", ""));
    let url = format!("http://localhost:{}/", server.address.port());
    let job = once(&place(&url, "10.0.0.0/8", ""));
    assert_eq!(job["state"], "failed", "{job}");
    let why = error(&job);
    assert!(why.contains("is forbidden: localhost is "), "{why}");
    assert!(why.ends_with("which is not in its allow list"), "{why}");
    assert!(server.requests.try_recv().is_err());
    // The same name, with its address or itself on the list.
    for allow in ["127.0.0.0/8", "localhost"] {
        let job = once(&place(&url, allow, ""));
        assert_eq!(job["state"], "completed", "{allow}: {job}");
    }
}
