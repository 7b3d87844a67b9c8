//! Payloads: JSON that every engine stores and gives back unchanged in meaning.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

/// A checked JSON text without needless white space; numbers and field order stay as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload(String);

impl Default for Payload {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl Payload {
    /// The largest payload, unless the configuration says otherwise.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// Checks size, syntax, depth, NUL characters and repeated fields.
    ///
    /// The rules are ours and not a database's, so that every engine refuses the same texts.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says which rule is broken, and where.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_within(text, Self::MAX_BYTES)
    }

    /// Like [`Payload::parse`] with a size limit of the caller's.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says which rule is broken, and where.
    pub fn parse_within(text: &str, max_bytes: usize) -> Result<Self> {
        // The depth is looked at first: the parser below recurses once per level.
        let Some(compact) = compact(text) else {
            return Err(Error::invalid(format!(
                "the payload nests deeper than {MAX_DEPTH} levels"
            )));
        };
        if compact.len() > max_bytes {
            return Err(Error::invalid(format!(
                "the payload has {} bytes, the limit is {max_bytes}: store large data elsewhere \
                 and pass a reference",
                compact.len()
            )));
        }
        let mut parser = serde_json::Deserializer::from_str(text);
        parser.disable_recursion_limit();
        Checked
            .deserialize(&mut parser)
            .and_then(|()| parser.end())
            .map_err(|why| Error::invalid(format!("the payload is not valid JSON: {why}")))?;
        Ok(Self(compact))
    }

    /// The payload of a Rust value.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the value can't be written as JSON or breaks a rule of `parse`.
    pub fn of<T: Serialize>(value: &T) -> Result<Self> {
        let text = serde_json::to_string(value).map_err(|why| {
            Error::invalid(format!("the payload can't be written as JSON: {why}"))
        })?;
        Self::parse(&text)
    }

    /// What the store holds; it was checked on the way in.
    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The payload as a Rust value.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the JSON doesn't fit the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        let mut parser = serde_json::Deserializer::from_str(&self.0);
        parser.disable_recursion_limit();
        T::deserialize(&mut parser)
            .map_err(|why| Error::invalid(format!("the payload doesn't fit its type: {why}")))
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::of(&value).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A text that got past the checks is still shown, as a string.
        match self.to::<serde_json::Value>() {
            Ok(value) => value.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

/// The text without white space between tokens; `None` when it nests too deep.
fn compact(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else {
            match c {
                ' ' | '\n' | '\r' | '\t' => continue,
                '"' => in_string = true,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return None;
            }
        }
        out.push(c);
    }
    Some(out)
}

/// Walks a value without keeping it, and refuses what an engine would refuse or read differently.
struct Checked;

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if text.contains('\0') {
            return Err(E::custom("a NUL character (\\u0000) can't be stored"));
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Checked)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(field) = fields.next_key::<String>()? {
            Checked.visit_str(&field)?;
            fields.next_value_seed(Checked)?;
            if let Some(field) = seen.replace(field) {
                let why = format!("the field {field:?} appears twice");
                return Err(serde::de::Error::custom(why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_the_text_stays() {
        let text = " { \"b\" : [ 1 , 2.50 ,\n12345678901234567890123 ] , \"a\":\"x \\\" y\" } ";
        assert_eq!(
            Payload::parse(text).unwrap().as_str(),
            r#"{"b":[1,2.50,12345678901234567890123],"a":"x \" y"}"#
        );
    }

    #[test]
    fn depth_ends_exactly_at_the_limit_and_the_deepest_can_be_read_back() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let deepest = Payload::parse(&nested(MAX_DEPTH)).unwrap();
        deepest.to::<serde_json::Value>().unwrap();
        assert!(Payload::parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(Payload::parse(&nested(1_000_000)).is_err());
    }

    #[test]
    fn nul_and_repeated_fields_and_torn_texts_are_refused() {
        for bad in [
            r#"{"a":"\u0000"}"#,
            r#"{"\u0000":1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":"#,
            "",
            "{} {}",
            "1 2",
            "nul",
            "NaN",
            r#""\ud800""#,
        ] {
            assert!(Payload::parse(bad).is_err(), "{bad}");
        }
        assert!(Payload::parse(r#"{"a":"\\u0000"}"#).is_ok());
    }

    #[test]
    fn size_is_what_would_be_stored() {
        assert!(Payload::parse_within("[1,   2]", 5).is_ok());
        assert!(Payload::parse_within("[1,   23]", 5).is_err());
    }
}
