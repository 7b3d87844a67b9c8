//! A payload as a tree that folds, written as it is stored: numbers and the order of fields are the
//! sender's.

use std::fmt;

use maud::{Markup, html};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::show;

/// Deeper or longer than this it is folded.
const OPEN_DEPTH: usize = 2;
const OPEN_ENTRIES: usize = 20;
/// Deeper than this, and where there are more values than this, it is text.
const DEEPEST: usize = 8;
const VALUES: usize = 400;
/// Text that is longer is folded.
const LONG: usize = 240;

/// An object's fields in their order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        from.deserialize_map(InOrder).map(Self)
    }
}

/// The tree of a text that is JSON.
pub fn tree(text: &str) -> Markup {
    let mut left = VALUES;
    html! { div.tree { (value(None, text, 0, &mut left)) } }
}

/// What a value consists of, if it has parts.
fn parts(text: &str) -> Option<Vec<(Option<String>, &str)>> {
    match text.as_bytes().first() {
        Some(b'{') => {
            let Fields(fields) = serde_json::from_str(text).ok()?;
            let named = fields.into_iter();
            Some(
                named
                    .map(|(name, value)| (Some(name), value.get()))
                    .collect(),
            )
        }
        Some(b'[') => {
            let all: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            Some(all.into_iter().map(|value| (None, value.get())).collect())
        }
        _ => None,
    }
}

/// A value, behind its name if it has one.
fn value(name: Option<&str>, text: &str, depth: usize, left: &mut usize) -> Markup {
    let text = text.trim();
    let named = html! { @if let Some(name) = name { span.name { (show::text(name)) } } };
    let parts = match depth > DEEPEST {
        true => None,
        false => parts(text),
    };
    match parts {
        Some(none) if none.is_empty() => html! { (named) span.atom { (text) } },
        Some(parts) if parts.len() <= *left => {
            *left -= parts.len();
            branch(&named, &parts, depth, text, left)
        }
        _ => html! { (named) (leaf(text)) },
    }
}

fn leaf(text: &str) -> Markup {
    match serde_json::from_str::<String>(text) {
        Ok(said) if said.chars().count() > LONG => folded(&said),
        Ok(said) => html! { span.string { "\"" (show::text(&said)) "\"" } },
        Err(_) => folded(text),
    }
}

fn branch(
    named: &Markup,
    parts: &[(Option<String>, &str)],
    depth: usize,
    text: &str,
    left: &mut usize,
) -> Markup {
    let n = parts.len();
    let open = depth < OPEN_DEPTH && n <= OPEN_ENTRIES;
    let (begin, end, word) = match text.starts_with('{') {
        true => ("{", "}", "field"),
        false => ("[", "]", "item"),
    };
    let many = if n == 1 { "" } else { "s" };
    html! {
        details open[open] {
            summary { (named) (begin) span.fold { " " (n) " " (word) (many) " " (end) } }
            ul { @for (name, inner) in parts {
                li { (value(name.as_deref(), inner, depth + 1, left)) }
            } }
            (end)
        }
    }
}

/// Text behind its beginning.
pub fn folded(text: &str) -> Markup {
    let first: String = text.chars().take(LONG / 2).collect();
    if first.len() == text.len() {
        return html! { span.atom { (show::text(text)) } };
    }
    html! {
        details.long {
            summary { (show::text(&first)) " … " span.fold { "all " (show::count(text.len() as u64)) " bytes" } }
            pre { (text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_shown_as_it_is_written_and_as_text() {
        let text =
            r#"{"z":1e400,"a":[12345678901234567890123],"m":"<img src=x onerror=alert(1)>"}"#;
        let shown = tree(text).into_string();
        assert!(shown.find("1e400").unwrap() < shown.find("12345678901234567890123").unwrap());
        assert!(!shown.contains("<img"), "{shown}");
    }

    #[test]
    fn a_deep_or_wide_payload_is_folded_and_bounded() {
        let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
        assert!(tree(&deep).into_string().len() < 4_000);
        let wide = format!("[{}1]", "1,".repeat(100_000));
        let shown = tree(&wide).into_string();
        assert!(shown.matches("<li>").count() == 0 && shown.contains("all 200,003 bytes"));
    }
}
