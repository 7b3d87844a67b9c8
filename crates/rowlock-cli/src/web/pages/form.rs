//! What a page's URL or form says: names and values in their order, as a browser writes them.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;

use crate::web::problem::Problem;
use crate::web::shape::decode;

/// Names and values. Fields that were left empty aren't there.
#[derive(Debug, Default, Clone)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a query, or the body of a form.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let spell = |text: &str| {
                let text = decode(&text.replace('+', " "));
                text.filter(|text| !text.contains('\0'))
                    .ok_or_else(|| Problem::invalid("what was sent is no text"))
            };
            let (name, value) = (spell(name)?, spell(value)?);
            if !value.trim().is_empty() {
                all.push((name, value));
            }
        }
        Ok(Self(all))
    }

    /// The body of a request that must be a form.
    pub fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind
            .and_then(|kind| kind.split(';').next())
            .unwrap_or_default();
        let text = std::str::from_utf8(body).ok();
        match text {
            Some(text) if kind.trim() == "application/x-www-form-urlencoded" => Self::parse(text),
            _ => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content_type",
                "a page's change is asked for by its form",
                "use the page, or /api/v1 with Content-Type: application/json",
            )),
        }
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same without blanks around it.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim)
    }

    /// Every value of a name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.0.iter().filter(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str()).collect()
    }
}

/// A value as it stands in a URL.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `?a=1&b=2`, or nothing.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter();
    let parts = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    match parts.collect::<Vec<_>>().join("&") {
        none if none.is_empty() => none,
        some => format!("?{some}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_what_is_empty_is_not_there() {
        let odd = "a b&c=d+é%<";
        let text = query([("key", odd), ("id", "1"), ("id", "2"), ("none", " ")]);
        let form = Form::parse(text.trim_start_matches('?')).unwrap();
        assert_eq!(form.get("key"), Some(odd));
        assert_eq!(form.all("id"), ["1", "2"]);
        assert_eq!(form.get("none"), None);
        assert!(Form::parse("a=%00").is_err() && Form::parse("a=%ff").is_err());
    }
}
