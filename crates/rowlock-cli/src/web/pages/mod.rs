//! The dashboard: pages for people, made of links and forms, so that they work without a script.
//!
//! A page asks the API's own routes, in this process: whatever holds there for roles and for what may
//! be said holds here too. In: a request that [`super::checked`] has let in. Out: HTML in one frame
//! ([`layout`]), or, after a change, the way to a page that tells what was done ([`note`]). Everything
//! a job contains is text: nothing here writes markup that isn't in this folder.

mod asset;
mod bulk;
mod bulk_count;
mod chart;
mod drains;
mod filter;
mod form;
mod health;
mod job;
mod job_act;
mod job_new;
mod jobs;
mod layout;
mod live;
mod note;
mod overview;
mod pairs;
mod pairs_act;
mod payload;
mod queues;
mod runs;
mod seal;
mod switches;
mod verdict;
mod vitals;
mod words;
mod workers;

pub use live::Live;
pub use note::Notes;
pub use seal::Seals;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use self::form::{Form, encode};
use self::layout::Frame;
use self::note::Note;
use super::auth::{Caller, Role};
use super::problem::Problem;
use super::{Web, guard, nothing};
use crate::open::Store;
use crate::show;

/// What a browser may load and do: our own files, our own forms, nothing that stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Who asks for a page, and with what.
pub struct Cx {
    pub web: Arc<Web>,
    pub caller: Caller,
    pub query: Form,
    /// The last change that anybody was told of before this was read.
    pub told: u64,
}

/// A page within its frame.
pub struct Page {
    title: String,
    here: &'static str,
    main: Markup,
}

impl Page {
    pub fn new(title: impl Into<String>, here: &'static str, main: Markup) -> Self {
        let title = title.into();
        Self { title, here, main }
    }
}

/// What comes of a form.
pub enum Done {
    /// Go there, and be told this.
    Go(String, Note),
    /// There is more to say first.
    More(Page),
}

impl Cx {
    pub fn now(&self) -> Timestamp {
        self.web.rowlock.clock().now()
    }

    /// Whether there is anything to press.
    pub fn may_change(&self) -> bool {
        self.caller.role >= Role::Operator
    }

    /// A command line for this store.
    pub fn command(&self, verb: &str) -> String {
        self.web.setup.line(verb)
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.web.setup.store, Store::Postgres(_))
    }

    /// For what is read without the API: no more at once than it would.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let turn = self.web.busy.acquire().await;
        turn.map_err(|_| Problem::too_slow())
    }

    /// Asks the API.
    pub async fn get(&self, path: &str) -> Result<Value, Problem> {
        super::ask(&self.web, self.caller, &Method::GET, path, Bytes::new()).await
    }

    /// Changes something by the API.
    pub async fn change(&self, method: Method, path: &str, body: &Value) -> Result<Value, Problem> {
        let body = match method == Method::DELETE {
            true => Bytes::new(),
            false => Bytes::from(body.to_string()),
        };
        self.send(method, path, body).await
    }

    /// The same with a body as it was written.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, Problem> {
        super::ask(&self.web, self.caller, &method, path, body).await
    }

    /// A form that changes something.
    pub fn form(&self, action: &str, inside: &Markup) -> Markup {
        html! {
            form method="post" action=(action) {
                (self.web.seals.field(self.caller))
                (inside)
            }
        }
    }

    /// One button that changes something.
    pub fn button(&self, action: &str, word: &str, class: &str) -> Markup {
        self.form(action, &html! { button class=(class) { (word) } })
    }

    /// The same after a second thought.
    pub fn sure(&self, action: &str, word: &str, really: &str) -> Markup {
        html! {
            details.sure {
                summary.button.danger { (word) }
                (self.button(action, really, "danger"))
            }
        }
    }

    fn frame(&self, page: &Page) -> Markup {
        let store = match &self.web.setup.store {
            Store::Sqlite(address) => format!("sqlite {}", show::path(&address.path)),
            Store::Postgres(address) => address.to_string(),
        };
        let note = self.query.get("note");
        let frame = Frame {
            title: &page.title,
            here: page.here,
            store: &store,
            role: self.caller.role.as_str(),
            now: self.now().to_string(),
            told: self.told,
            note: note.and_then(|id| self.web.notes.find(id)),
        };
        frame.around(&page.main)
    }
}

/// What anybody may have before we know who it is: it says nothing.
pub fn open(method: &Method, path: &str) -> Option<Response<Body>> {
    matches!(*method, Method::GET | Method::HEAD)
        .then(|| asset::find(path))
        .flatten()
}

/// Answers a request for a page, or of one.
pub async fn answer(
    web: &Arc<Web>,
    caller: Caller,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, Problem> {
    let path: Vec<String> = uri
        .path()
        .split('/')
        .skip(1)
        .map(super::shape::decode)
        .collect::<Option<_>>()
        .ok_or_else(nothing)?;
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let cx = Cx {
        web: Arc::clone(web),
        caller,
        query: Form::parse(uri.query().unwrap_or_default())?,
        told: web.live.told(),
    };
    match *method {
        Method::GET | Method::HEAD if path == ["events"] => Live::events(&cx),
        Method::GET | Method::HEAD => {
            if let Some(to) = filter::jump(&path, &cx.query) {
                return Ok(go(&to));
            }
            let page = show_page(&cx, &path).await?;
            Ok(html(StatusCode::OK, cx.frame(&page)))
        }
        Method::POST => {
            guard::same_site(headers)?;
            let form = Form::read(headers, &body)?;
            web.seals.check(caller, form.get("seal"))?;
            super::operator(caller)?;
            web.rate.take(caller)?;
            let done = change(&cx, &path, &form).await?;
            web.live.changed(web).await;
            Ok(match done {
                Done::More(page) => html(StatusCode::OK, cx.frame(&page)),
                Done::Go(to, note) => {
                    let id = web.notes.keep(note);
                    let sign = if to.contains('?') { '&' } else { '?' };
                    go(&format!("{to}{sign}note={}", encode(&id)))
                }
            })
        }
        _ => Ok(super::otherwise(&["GET", "POST"])),
    }
}

async fn show_page(cx: &Cx, path: &[&str]) -> Result<Page, Problem> {
    match *path {
        [""] => Ok(overview::show(cx).await),
        ["jobs"] => jobs::show(cx).await,
        ["jobs", "new"] => job_new::show(cx).await,
        ["jobs", "bulk"] => bulk::ask(cx).await,
        ["jobs", id] => job::show(cx, id).await,
        ["queues"] => queues::show(cx).await,
        ["workers"] => workers::show(cx).await,
        ["pairs"] => pairs::show(cx).await,
        ["pairs", name] => pairs::one(cx, name).await,
        ["drains"] => drains::show(cx).await,
        ["switches"] => switches::show(cx).await,
        ["health"] => health::show(cx).await,
        _ => Err(nothing()),
    }
}

async fn change(cx: &Cx, path: &[&str], form: &Form) -> Result<Done, Problem> {
    match *path {
        ["jobs", "new"] => job_new::add(cx, form).await,
        ["jobs", "bulk"] => bulk::run(cx, form).await,
        ["jobs", id, verb @ ("retry" | "cancel" | "delete")] => job_act::act(cx, id, verb).await,
        ["jobs", id, "again"] => job_act::again(cx, id, form).await,
        ["queues", name, verb @ ("pause" | "resume")] => queues::act(cx, name, verb, form).await,
        [
            "pairs",
            name,
            verb @ ("run" | "dry" | "pause" | "resume" | "lift"),
        ] => pairs_act::pair(cx, name, verb, form).await,
        ["crons", name, verb @ ("run" | "pause" | "resume")] => {
            pairs_act::cron(cx, name, verb).await
        }
        ["switches", "set"] => switches::set(cx, form).await,
        ["switches", target, name, "clear"] => switches::clear(cx, target, name).await,
        _ => Err(nothing()),
    }
}

/// Something that went wrong, for somebody who may be known.
pub fn problem(
    web: &Arc<Web>,
    caller: Option<Caller>,
    path: &str,
    why: &Problem,
) -> Response<Body> {
    let first = path.split('/').nth(1).unwrap_or_default();
    let here = match first {
        "crons" => "/pairs".to_owned(),
        first => format!("/{first}"),
    };
    let main = layout::problem(why, &here);
    let page = match caller {
        None => layout::bare(&main),
        Some(caller) => {
            let place = layout::PLACES.iter().find(|(path, ..)| *path == here);
            let here = place.map_or("", |(path, ..)| *path);
            let cx = Cx {
                web: Arc::clone(web),
                caller,
                query: Form::default(),
                told: web.live.told(),
            };
            cx.frame(&Page::new("Not done", here, main))
        }
    };
    let mut response = html(why.status, page);
    if let Some(seconds) = why.retry_after {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn html(status: StatusCode, page: Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(page.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Without a referrer a browser says `Origin: null` with our own forms too.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// After a change a browser goes on with a GET: loading it again changes nothing.
fn go(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}
