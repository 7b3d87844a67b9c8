//! What pages are drawn with. The name of each has a hash of its content, so a browser may keep it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};

/// Something that is embedded.
pub struct Asset {
    /// Its whole path.
    pub path: String,
    kind: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let path = format!("/assets/{name}-{:016x}.{ending}", hasher.finish());
        Self { path, kind, text }
    }
}

pub static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("style.css");
    Asset::new("rowlock", "css", "text/css; charset=utf-8", text)
});
pub static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("script.js");
    Asset::new("rowlock", "js", "text/javascript; charset=utf-8", text)
});
pub static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("icon.svg");
    Asset::new("rowlock", "svg", "image/svg+xml", text)
});

/// The asset of a path.
pub fn find(path: &str) -> Option<Response<Body>> {
    let asset = [&STYLE, &SCRIPT, &ICON]
        .into_iter()
        .find(|asset| asset.path == path)?;
    let mut response = Response::new(Body::from(asset.text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    let keep = HeaderValue::from_static("private, max-age=31536000, immutable");
    headers.insert(CACHE_CONTROL, keep);
    Some(response)
}
