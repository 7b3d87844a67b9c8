//! The page at `/`: where things are.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};

const START: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>rowlock</title>
<h1>rowlock</h1>
<ul>
<li><a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a>: what can be asked and changed
<li><a href=\"/api/v1/stats\">/api/v1/stats</a>: how many jobs stand where
<li><a href=\"/api/v1/doctor\">/api/v1/doctor</a>: what is wrong or about to go wrong
<li><a href=\"/metrics\">/metrics</a>: numbers for Prometheus
</ul>
</html>
";

/// Nothing in it is from a job.
pub fn start() -> Response<Body> {
    let mut response = Response::new(Body::from(START));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
