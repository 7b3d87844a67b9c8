//! One row for each thing that can be asked: the router, the checks, the document and the tests are
//! all made from it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::Method;
use serde_json::Value;

use super::Web;
use super::auth::{Caller, Role};
use super::problem::Problem;
use super::shape::{Field, Values, decode};

/// What a handler will have answered.
pub type Answering = Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send>>;
/// Answers what was checked.
pub type Handler = fn(Arc<Web>, Given) -> Answering;

/// `call!(jobs::list)` is a function as the table wants it.
macro_rules! call {
    ($handler:path) => {
        |web, given| Box::pin($handler(web, given))
    };
}
pub(super) use call;

/// A request that has passed every check.
#[derive(Debug)]
pub struct Given {
    pub path: Values,
    pub query: Values,
    pub body: Values,
    /// The body as it was written: numbers and the order of fields are the caller's.
    pub raw: Bytes,
    /// The W3C trace context it came in.
    pub traceparent: Option<String>,
    pub caller: Caller,
}

/// Something that can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// Below [`super::ROOT`]; `{name}` is a field of `path_fields`.
    pub path: &'static str,
    pub about: &'static str,
    /// The schema of its answer.
    pub gives: &'static str,
    pub status: u16,
    pub path_fields: &'static [Field],
    pub query: &'static [Field],
    pub body: Option<&'static [Field]>,
    /// Whether the handler reads the body as it was written.
    pub raw: bool,
    /// Whether an answer serves others too: it has no fields.
    pub kept: bool,
    pub call: Handler,
}

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        about: &'static str,
        gives: &'static str,
        call: Handler,
    ) -> Self {
        Self {
            method,
            path,
            about,
            gives,
            status: 200,
            path_fields: &[],
            query: &[],
            body: None,
            raw: false,
            kept: false,
            call,
        }
    }

    pub const fn get(
        path: &'static str,
        about: &'static str,
        gives: &'static str,
        call: Handler,
    ) -> Self {
        Self::new("GET", path, about, gives, call)
    }

    pub const fn post(
        path: &'static str,
        about: &'static str,
        gives: &'static str,
        call: Handler,
    ) -> Self {
        Self::new("POST", path, about, gives, call).body(&[])
    }

    pub const fn put(
        path: &'static str,
        about: &'static str,
        gives: &'static str,
        call: Handler,
    ) -> Self {
        Self::new("PUT", path, about, gives, call).body(&[])
    }

    pub const fn delete(
        path: &'static str,
        about: &'static str,
        gives: &'static str,
        call: Handler,
    ) -> Self {
        Self::new("DELETE", path, about, gives, call)
    }

    pub const fn at(mut self, fields: &'static [Field]) -> Self {
        self.path_fields = fields;
        self
    }

    pub const fn query(mut self, fields: &'static [Field]) -> Self {
        self.query = fields;
        self
    }

    pub const fn body(mut self, fields: &'static [Field]) -> Self {
        self.body = Some(fields);
        self
    }

    /// The same body, read by the handler itself.
    pub const fn written(mut self, fields: &'static [Field]) -> Self {
        self.body = Some(fields);
        self.raw = true;
        self
    }

    pub const fn creates(mut self) -> Self {
        self.status = 201;
        self
    }

    pub const fn kept(mut self) -> Self {
        self.kept = true;
        self
    }

    /// Whether it may change something.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Who may ask for it.
    pub fn role(&self) -> Role {
        match self.is_write() {
            true => Role::Operator,
            false => Role::Reader,
        }
    }

    /// The variable parts of a path that is this route's.
    fn matches(&self, parts: &[&str]) -> Option<BTreeMap<&'static str, String>> {
        let own: Vec<&'static str> = self.path.split('/').skip(1).collect();
        if own.len() != parts.len() {
            return None;
        }
        let mut found = BTreeMap::new();
        for (own, part) in own.into_iter().zip(parts) {
            match own.strip_prefix('{').and_then(|own| own.strip_suffix('}')) {
                Some(name) => {
                    found.insert(name, decode(part)?);
                }
                None if own == *part => {}
                None => return None,
            }
        }
        Some(found)
    }
}

/// What was found for a path.
pub enum Found {
    /// The route, and the variable parts of its path.
    Route(&'static Route, BTreeMap<&'static str, String>),
    /// Only by these methods.
    Otherwise(Vec<&'static str>),
    Nothing,
}

/// Finds the route of a path; one that spells a part out comes before one with a variable.
pub fn find(routes: &'static [Route], method: &Method, path: &str) -> Found {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let mut fitting: Vec<(&'static Route, BTreeMap<&'static str, String>)> = routes
        .iter()
        .filter_map(|route| Some((route, route.matches(&parts)?)))
        .collect();
    fitting.sort_by_key(|(_, found)| found.len());
    let fewest = fitting.first().map_or(0, |(_, found)| found.len());
    fitting.retain(|(_, found)| found.len() == fewest);
    let wanted = if method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    let methods: Vec<&'static str> = fitting.iter().map(|(route, _)| route.method).collect();
    match fitting
        .into_iter()
        .find(|(route, _)| route.method == wanted)
    {
        Some((route, found)) => Found::Route(route, found),
        None if methods.is_empty() => Found::Nothing,
        None => Found::Otherwise(methods),
    }
}
