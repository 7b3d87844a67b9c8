//! `http`: a handler that is a server.
//!
//! It gets the payload as the body of a POST and the rest as headers, and answers with a status.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::TcpStream;

use super::target::Target;
use super::{Context, Handler};
use crate::clock::Clock;
use crate::error::Result;
use crate::settle::Outcome;

/// How long an address may take to answer to a connect.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a body may take once the status is known. The status decides, so this can be short.
const BODY: Duration = Duration::from_secs(5);
/// The most that is read of a body: it only explains an error.
const BODY_BYTES: usize = 2048;
/// The most that is read of a status line with its headers.
const HEAD_BYTES: usize = 64 * 1024;
/// Without an attempt to charge, a server that asks for no wait would be asked without end.
const SHORTEST_SNOOZE: Duration = Duration::from_secs(1);
/// A slip in a server's header shouldn't put a job away for years.
const LONGEST_SNOOZE: Duration = Duration::from_secs(24 * 60 * 60);

/// Sends each job to a server. Redirects aren't followed.
#[derive(Debug)]
pub struct Http {
    target: Target,
}

impl Http {
    /// A server, and the names, addresses and ranges (`10.0.0.0/8`) it may have.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] when one of them can't be read, when the list is empty, and for
    /// `https`, which this version lacks.
    pub fn new(url: &str, allow: &[String]) -> Result<Self> {
        let target = Target::parse(url, allow)?;
        Ok(Self { target })
    }

    /// Without the query, which may hold a secret.
    fn shown(&self) -> String {
        let Target { uri, .. } = &self.target;
        let place = uri.authority().map_or("", |all| all.as_str());
        format!("http://{place}{}", uri.path())
    }

    fn retry(&self, why: impl std::fmt::Display) -> Outcome {
        Outcome::Retry {
            error: format!("{} {why}", self.shown()),
            after: None,
        }
    }

    /// A connection to an address that was allowed: the very one that is then used.
    async fn connect(&self, clock: &Clock) -> Result<TcpStream, Outcome> {
        let host = &self.target.host;
        let found = match clock.timeout(CONNECT, self.target.resolve()).await {
            Some(Ok(found)) => found,
            Some(Err(why)) => return Err(self.retry(format!("can't be resolved: {why}"))),
            None => return Err(self.retry("can't be resolved in time")),
        };
        let (allowed, forbidden): (Vec<SocketAddr>, Vec<_>) = found
            .into_iter()
            .partition(|address| self.target.allows(address.ip()));
        if let (true, Some(address)) = (allowed.is_empty(), forbidden.first()) {
            return Err(Outcome::Fail(format!(
                "{} is forbidden: {host} is {}, which is not in its allow list",
                self.shown(),
                address.ip()
            )));
        }
        let mut last = self.retry("has no address");
        for address in allowed {
            match clock.timeout(CONNECT, TcpStream::connect(address)).await {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(why)) => last = self.retry(format!("can't be reached: {why}")),
                None => last = self.retry("can't be reached in time"),
            }
        }
        Err(last)
    }

    fn request(&self, cx: &Context) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let Target { uri, .. } = &self.target;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::post(path);
        if let Some(context) = &cx.trace_context {
            request = request.header("traceparent", context);
        }
        if let Ok(key) = cx.idempotency_key() {
            request = request.header("Idempotency-Key", key);
        }
        request
            .header(HOST, uri.authority().map_or("", |all| all.as_str()))
            .header(USER_AGENT, concat!("rowlock/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .header("Rowlock-Job-Id", cx.id.to_string())
            .header("Rowlock-Kind", cx.kind.as_str())
            .header("Rowlock-Queue", cx.queue.as_str())
            .header("Rowlock-Attempt", cx.attempt)
            .header("Rowlock-Max-Attempts", cx.max_attempts)
            .body(Full::from(cx.payload.as_str().to_owned()))
    }

    /// One request on one connection. Both live in this future: dropping it closes the socket.
    async fn ask(&self, cx: &Context, stream: TcpStream) -> Result<Outcome, hyper::Error> {
        let request = match self.request(cx) {
            Ok(request) => request,
            Err(why) => return Ok(Outcome::Fail(format!("{} {why}", self.shown()))),
        };
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        let answer = async {
            let response = sender.send_request(request).await?;
            Ok(self.outcome(response, cx.clock()).await)
        };
        tokio::pin!(answer, connection);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                // Its end reaches the answer too, as an error or as the end of the body.
                _ = &mut connection, if open => open = false,
            }
        }
    }

    async fn outcome(&self, response: Response<Incoming>, clock: &Clock) -> Outcome {
        let (head, body) = response.into_parts();
        // Before the body: one that is slow must not make a timeout of what is done.
        if head.status.is_success() {
            return Outcome::Done;
        }
        let said = read(body, clock).await;
        let mut error = format!("{} answered {}", self.shown(), head.status);
        if !said.is_empty() {
            error += &format!(": {said}");
        }
        match head.status {
            StatusCode::GONE | StatusCode::UNPROCESSABLE_ENTITY => Outcome::Fail(error),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                match retry_after(&head.headers, clock.now()) {
                    Some(wait) => Outcome::Snooze(wait),
                    None => Outcome::Retry { error, after: None },
                }
            }
            _ => Outcome::Retry { error, after: None },
        }
    }
}

/// The beginning of a body, as text; nothing when it doesn't come.
async fn read(mut body: Incoming, clock: &Clock) -> String {
    let mut said = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                let room = BODY_BYTES - said.len();
                said.extend_from_slice(&data[..data.len().min(room)]);
            }
            if said.len() == BODY_BYTES {
                return;
            }
        }
    };
    // What has come by then is all that is told.
    let _ = clock.timeout(BODY, reading).await;
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        // A number too large for us is as good as the longest.
        true => text.parse().map_or(LONGEST_SNOOZE, Duration::from_secs),
        false => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
            // A date that has passed means now.
            Duration::try_from(now.duration_until(date)).unwrap_or_default()
        }
    };
    Some(wait.clamp(SHORTEST_SNOOZE, LONGEST_SNOOZE))
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, cx: &Context) -> Outcome {
        let stream = match self.connect(cx.clock()).await {
            Ok(stream) => stream,
            Err(outcome) => return outcome,
        };
        match self.ask(cx, stream).await {
            Ok(outcome) => outcome,
            Err(why) => self.retry(format!("didn't answer: {}", chain(&why))),
        }
    }
}

/// hyper keeps the reason one level down.
fn chain(why: &dyn std::error::Error) -> String {
    match why.source() {
        Some(source) => format!("{why}: {}", chain(source)),
        None => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(text: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().unwrap());
        let now = "1994-11-06T08:49:07Z".parse().unwrap();
        retry_after(&headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_given_in_seconds_or_as_a_date_and_kept_within_bounds() {
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("0"), Some(1));
        assert_eq!(wait("99999999999999999999999"), Some(86_400));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Some(30));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(1));
        assert_eq!(wait("Fri, 06 Nov 2093 08:49:37 GMT"), Some(86_400));
        for nonsense in ["", "soon", "-5", "1.5"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }
}
