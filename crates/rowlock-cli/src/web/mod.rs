//! What people and programs ask and change over HTTP: the dashboard's pages, and `/api/v1`.
//!
//! In: a request. It passes, in this order: the name it was called by ([`guard`]), who it is from
//! ([`auth`]), where it leads ([`route`]), what its sender may do, whether a page of another site sent
//! it, how often ([`limits`]), and what it says ([`shape`]). Out: JSON, or one shape of error
//! ([`problem`]). Pages ([`pages`]) go the same way, and ask the same routes. Nothing here speaks SQL, and
//! nothing a job contains is anything but text.

mod api;
mod auth;
mod checkup;
mod cursor;
mod document;
mod guard;
mod kept;
mod limits;
mod pages;
mod problem;
mod route;
mod shape;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use rowlock::config::Dashboard;
use rowlock::{Kind, Rowlock};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

pub use self::auth::Tokens;
use self::auth::{Caller, Role};
use self::checkup::Checkup;
use self::guard::Hosts;
use self::kept::{Age, Kept};
use self::limits::Rate;
use self::pages::{Live, Notes, Seals};
use self::problem::Problem;
use self::route::{Found, Given, Route};
use self::shape::Values;
use crate::open::{Setup, Store};

/// Where the API is.
pub const ROOT: &str = "/api/v1";

/// Who may come in, decided before a port is taken.
#[derive(Debug)]
pub struct Door {
    tokens: Tokens,
    settings: Dashboard,
    bind: SocketAddr,
}

impl Door {
    /// Reads the tokens; refuses a port that strangers could reach.
    pub fn new(setup: &Setup, bind: SocketAddr, read_only: bool) -> Result<Self> {
        let settings = setup.config.dashboard();
        let tokens = Tokens::read(&settings, read_only)?;
        tokens.allow(bind)?;
        Ok(Self {
            tokens,
            settings,
            bind,
        })
    }

    /// How one gets in, for a start block.
    pub fn line(&self) -> String {
        let who = match self.tokens.count() {
            0 => "anybody on this machine".to_owned(),
            1 => "1 token".to_owned(),
            many => format!("{many} tokens"),
        };
        match self.tokens.is_read_only() {
            true => format!("{who}, read-only"),
            false => who,
        }
    }
}

/// What answers.
#[derive(Debug)]
pub struct Web {
    setup: Setup,
    rowlock: Rowlock,
    declared: Vec<Kind>,
    tokens: Tokens,
    hosts: Hosts,
    rate: Rate,
    busy: Semaphore,
    kept: Kept,
    checkup: Checkup,
    live: Live,
    notes: Notes,
    seals: Seals,
}

/// What is served beside a worker's own paths, and what keeps its pages up to date.
pub struct Site {
    pub router: Router,
    pub looking: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Who may come in.
    pub access: String,
}

/// Everything that is served beside a worker's own paths.
pub fn site(setup: &Setup, rowlock: &Rowlock, door: Door) -> Result<Site> {
    let access = door.line();
    let clock = rowlock.clock().clone();
    let callers = door.tokens.count() + 1;
    let connections = match &setup.store {
        Store::Postgres(address) => Some(address.connections),
        Store::Sqlite(_) => None,
    };
    let web = Arc::new(Web {
        setup: setup.clone(),
        rowlock: rowlock.clone(),
        declared: setup.config.kinds()?,
        hosts: Hosts::new(&door.settings.hosts, door.bind),
        rate: Rate::new(clock.clone(), door.settings.writes_per_second, callers),
        tokens: door.tokens,
        busy: Semaphore::new(limits::at_once(connections)),
        kept: Kept::new(clock),
        checkup: Checkup::default(),
        live: Live::default(),
        notes: Notes::default(),
        seals: Seals::new(callers)?,
    });
    let looking = Box::pin(Live::run(Arc::clone(&web)));
    let router = Router::new().fallback(move |request| {
        let web = Arc::clone(&web);
        async move { answer(web, request).await }
    });
    Ok(Site {
        router,
        looking,
        access,
    })
}

/// Whether a test has taken this safeguard out.
fn taken_out(safeguard: &str) -> bool {
    #[cfg(feature = "test-hooks")]
    return rowlock::hooks::switched_off(safeguard);
    #[cfg(not(feature = "test-hooks"))]
    {
        let _ = safeguard;
        false
    }
}

async fn answer(web: Arc<Web>, request: Request) -> Response<Body> {
    let clock = web.rowlock.clock().clone();
    let path = request.uri().path().to_owned();
    let known = web.known(&request);
    let answered = clock
        .timeout(limits::REQUEST, checked(Arc::clone(&web), request))
        .await;
    let mut response = match answered.unwrap_or_else(|| Err(Problem::too_slow())) {
        Ok(response) => response,
        Err(problem) => {
            let unknown = problem.status == StatusCode::UNAUTHORIZED;
            let mut response = match is_api(&path) {
                true => problem.answer(),
                false => pages::problem(&web, known, &path, &problem),
            };
            if unknown {
                let headers = response.headers_mut();
                for way in ["Basic realm=\"rowlock\", charset=\"UTF-8\"", "Bearer"] {
                    headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(way));
                }
            }
            response
        }
    };
    protect(response.headers_mut());
    response
}

/// Whether a program asks, and not a person.
fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

impl Web {
    /// Who asks, if that may be told: an error has a frame only for somebody who was let in.
    fn known(&self, request: &Request) -> Option<Caller> {
        self.hosts.check(request.uri(), request.headers()).ok()?;
        self.tokens.caller(request.headers()).ok()
    }
}

/// What a browser must not do with any answer.
fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        // A page says more exactly what it needs, and an asset that it may be kept.
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// Every check in turn, then the answer.
async fn checked(web: Arc<Web>, request: Request) -> Result<Response<Body>, Problem> {
    let (head, sent) = request.into_parts();
    web.hosts.check(&head.uri, &head.headers)?;
    if let Some(asset) = pages::open(&head.method, head.uri.path()) {
        return Ok(asset);
    }
    let caller = web.tokens.caller(&head.headers)?;
    let body = |body| async { to_bytes(body, limits::BODY).await.map_err(|_| too_large()) };
    let path = head.uri.path();
    let rest = path.strip_prefix(ROOT);
    let Some(rest) = rest.filter(|rest| rest.starts_with('/')) else {
        if is_api(path) {
            return Err(nothing());
        }
        let sent = body(sent).await?;
        return pages::answer(&web, caller, &head.method, &head.uri, &head.headers, sent).await;
    };
    let (route, found) = match route::find(api::ROUTES, &head.method, rest) {
        Found::Route(route, found) => (route, found),
        Found::Otherwise(methods) => return Ok(otherwise(&methods)),
        Found::Nothing => return Err(nothing()),
    };
    if route.is_write() {
        guard::same_site(&head.headers)?;
        // No page can send this one without asking first.
        if head.method != Method::DELETE {
            guard::is_json(&head.headers)?;
        }
        operator(caller)?;
        web.rate.take(caller)?;
    }
    let traceparent = head.headers.get("traceparent");
    let traceparent = traceparent.and_then(|context| context.to_str().ok());
    let given = given(
        route,
        &found,
        head.uri.query().unwrap_or(""),
        body(sent).await?,
        caller,
    )?;
    let given = Given {
        traceparent: traceparent.map(str::to_owned),
        ..given
    };
    let value = call(&web, route, given, wanted(&head.headers)).await?;
    Ok(json(route.status, &value))
}

/// What was said to a route, if it is as the table wants it.
fn given(
    route: &Route,
    found: &BTreeMap<&'static str, String>,
    query: &str,
    raw: Bytes,
    caller: Caller,
) -> Result<Given, Problem> {
    Ok(Given {
        path: Values(shape::path(route.path_fields, found)?),
        query: Values(shape::query(route.query, query)?),
        body: Values(said(route, &raw)?),
        raw,
        traceparent: None,
        caller,
    })
}

/// `no-cache` asks for a look of one's own.
fn wanted(headers: &HeaderMap) -> Age {
    let says = |value: &HeaderValue| value.as_bytes().to_ascii_lowercase();
    let mut all = headers.get_all(CACHE_CONTROL).iter().map(says);
    match all.any(|value| value.windows(8).any(|part| part == b"no-cache")) {
        true => Age::New,
        false => Age::Good,
    }
}

async fn call(web: &Arc<Web>, route: &Route, given: Given, age: Age) -> Result<Value, Problem> {
    let _changing = route.is_write().then(|| web.kept.changing());
    // Only whoever looks is worked on: the others wait without keeping anybody.
    let work = async {
        let _turn = web.busy.acquire().await.map_err(|_| Problem::too_slow())?;
        (route.call)(Arc::clone(web), given).await
    };
    match route.kept {
        true => web.kept.answer(route.path, age, work).await,
        false => work.await,
    }
}

/// A page asks the API; where its request came from was checked when it came in.
async fn ask(
    web: &Arc<Web>,
    caller: Caller,
    method: &Method,
    target: &str,
    body: Bytes,
) -> Result<Value, Problem> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Found::Route(route, found) = route::find(api::ROUTES, method, path) else {
        return Err(nothing());
    };
    if route.is_write() {
        operator(caller)?;
    }
    // A page is asked for when something has changed, and only then.
    let given = given(route, &found, query, body, caller)?;
    call(web, route, given, Age::New).await
}

/// Only an operator changes anything.
fn operator(caller: Caller) -> Result<(), Problem> {
    match caller.role >= Role::Operator || taken_out("web.role") {
        true => Ok(()),
        false => Err(Problem::forbidden(
            "role",
            "this needs the role operator",
            "use an operator's token; where read_only is set nobody may change anything",
        )),
    }
}

/// The fields of a body, unless the handler reads it itself.
fn said(route: &Route, raw: &Bytes) -> Result<Map<String, Value>, Problem> {
    let fields = match route.body {
        Some(_) if route.raw => return Ok(Map::new()),
        Some(fields) => fields,
        None if raw.iter().all(u8::is_ascii_whitespace) => return Ok(Map::new()),
        None => return Err(Problem::invalid("there is nothing to say in a body here")),
    };
    let object = match raw.iter().all(u8::is_ascii_whitespace) {
        true => Map::new(),
        false => match serde_json::from_slice(raw) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(Problem::invalid("the body must be an object")),
            Err(why) => return Err(Problem::invalid(format!("the body is not JSON: {why}"))),
        },
    };
    shape::check(fields, &object, "")?;
    Ok(object)
}

fn json(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn nothing() -> Problem {
    Problem::not_found(
        "there is nothing here",
        "GET /api/v1/openapi.json says what there is",
    )
}

fn too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!(
            "the body has more than {} bytes, or didn't arrive",
            limits::BODY
        ),
        "send less at once",
    )
}

fn otherwise(methods: &[&str]) -> Response<Body> {
    let mut response = Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "this can't be asked that way",
        format!("use {}", methods.join(" or ")),
    )
    .answer();
    if let Ok(allowed) = HeaderValue::from_str(&methods.join(", ")) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}
