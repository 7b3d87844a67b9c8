//! What a request may say. One table of fields checks what comes in and writes the document, so that
//! the two can't differ.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rowlock::config::nearest;
use rowlock::job::parse_duration;
use rowlock::{JobId, JobState, Name};
use serde_json::{Map, Value, json};

use super::cursor::Cursor;
use super::problem::Problem;

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
pub enum Is {
    /// A name, by the library's rule.
    Name,
    /// At most so many bytes, without NUL.
    Text(usize),
    /// A job's number.
    Id,
    /// A whole number within bounds.
    Int(i64, i64),
    Bool,
    /// RFC 3339.
    Time,
    /// Like `30m`.
    Duration,
    OneOf(&'static [&'static str]),
    /// Where a page before has ended.
    Cursor,
    /// At most so many of them.
    List(&'static Is, usize),
    Object(&'static [Field]),
    /// Whatever JSON a job may carry.
    Json,
}

/// A parameter, or a field of a body.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub is: Is,
    pub needed: bool,
    pub about: &'static str,
}

/// One that may be left out.
pub const fn may(name: &'static str, is: Is, about: &'static str) -> Field {
    Field {
        name,
        is,
        needed: false,
        about,
    }
}

/// One that must be there.
pub const fn must(name: &'static str, is: Is, about: &'static str) -> Field {
    Field {
        name,
        is,
        needed: true,
        about,
    }
}

pub const STATES: &[&str] = &["pending", "processing", "completed", "failed", "cancelled"];

impl Is {
    /// As the document says it.
    pub fn schema(self) -> Value {
        match self {
            Self::Name => {
                json!({ "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}$" })
            }
            Self::Text(most) => json!({ "type": "string", "maxLength": most }),
            Self::Id => json!({ "type": "integer", "format": "int64", "minimum": 1 }),
            Self::Int(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Bool => json!({ "type": "boolean" }),
            Self::Time => json!({ "type": "string", "format": "date-time" }),
            Self::Duration => json!({ "type": "string", "example": "30m" }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Cursor => json!({ "type": "string", "pattern": "^[an][0-9]{1,18}$" }),
            Self::List(each, most) => {
                json!({ "type": "array", "items": each.schema(), "maxItems": most })
            }
            Self::Object(fields) => object(fields),
            Self::Json => json!({ "description": "any JSON" }),
        }
    }

    fn check(self, name: &str, value: &Value) -> Result<(), Problem> {
        let bad = |wants: &str| Err(Problem::invalid(format!("{name} must be {wants}")));
        let text = value.as_str();
        match self {
            Self::Name => match text.map(Name::new) {
                Some(Ok(_)) => Ok(()),
                Some(Err(why)) => Err(Problem::invalid(format!("{name}: {why}"))),
                None => bad("a name"),
            },
            Self::Text(most) => match text {
                Some(text) if text.contains('\0') => bad("text without NUL"),
                Some(text) if text.len() > most => bad(&format!("at most {most} bytes long")),
                Some(_) => Ok(()),
                None => bad("text"),
            },
            Self::Id => match value.as_i64() {
                Some(1..) => Ok(()),
                _ => bad("a job's number"),
            },
            Self::Int(least, most) => match value.as_i64() {
                Some(n) if (least..=most).contains(&n) => Ok(()),
                _ => bad(&format!("a whole number from {least} to {most}")),
            },
            Self::Bool => match value {
                Value::Bool(_) => Ok(()),
                _ => bad("true or false"),
            },
            Self::Time => match text.map(str::parse::<Timestamp>) {
                Some(Ok(_)) => Ok(()),
                _ => bad("a time like 2030-01-31T09:00:00Z"),
            },
            Self::Duration => match text.map(parse_duration) {
                Some(Ok(_)) => Ok(()),
                _ => bad("a duration like 30s, 10m, 2h or 7d"),
            },
            Self::OneOf(words) => match text {
                Some(text) if words.contains(&text) => Ok(()),
                _ => bad(&format!("one of {}", words.join(", "))),
            },
            Self::Cursor => match text.and_then(Cursor::parse) {
                Some(_) => Ok(()),
                None => bad("a cursor that an answer gave as its next"),
            },
            Self::List(each, most) => match value.as_array() {
                Some(all) if all.len() > most => bad(&format!("a list of at most {most}")),
                Some(all) => all.iter().try_for_each(|value| each.check(name, value)),
                None => bad("a list"),
            },
            Self::Object(fields) => match value.as_object() {
                Some(object) => check(fields, object, &format!("{name}.")),
                None => bad("an object"),
            },
            Self::Json => Ok(()),
        }
    }

    /// What stands in a URL, as the JSON it stands for.
    fn spoken(self, text: &str) -> Value {
        match self {
            Self::Id | Self::Int(..) => match text.parse::<i64>() {
                // Not `007` and not `+7`: one number has one spelling.
                Ok(n) if n.to_string() == text => n.into(),
                _ => text.into(),
            },
            Self::Bool => match text {
                "true" => true.into(),
                "false" => false.into(),
                _ => text.into(),
            },
            _ => text.into(),
        }
    }
}

/// An object with these fields, as the document says it.
pub fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = field.is.schema();
            schema["description"] = field.about.into();
            (field.name.to_owned(), schema)
        })
        .collect();
    let needed = fields.iter().filter(|field| field.needed);
    let needed: Vec<&str> = needed.map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
    });
    if !needed.is_empty() {
        schema["required"] = needed.into();
    }
    schema
}

/// Every field is known and as it must be, and none is missing.
pub fn check(fields: &[Field], given: &Map<String, Value>, within: &str) -> Result<(), Problem> {
    for (name, value) in given {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known = fields.iter().map(|field| field.name);
            let hint = match nearest(name, known) {
                Some(known) => format!("did you mean {within}{known}?"),
                None => "there are none here".to_owned(),
            };
            let name: String = name.chars().take(40).collect();
            return Err(Problem::invalid(format!(
                "unknown field {within}{name:?}: {hint}"
            )));
        };
        field.is.check(&format!("{within}{}", field.name), value)?;
    }
    for field in fields.iter().filter(|field| field.needed) {
        if !given.contains_key(field.name) {
            return Err(Problem::invalid(format!(
                "{within}{} is missing",
                field.name
            )));
        }
    }
    Ok(())
}

/// The parameters of a URL, each given once.
pub fn query(fields: &[Field], text: &str) -> Result<Map<String, Value>, Problem> {
    let mut given = Map::new();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let spell = |text: &str| {
            decode(&text.replace('+', " ")).ok_or_else(|| Problem::invalid("the URL is not UTF-8"))
        };
        let (name, value) = (spell(name)?, spell(value)?);
        let field = fields.iter().find(|field| field.name == name);
        let value = field.map_or(Value::Null, |field| field.is.spoken(&value));
        if given.insert(name.clone(), value).is_some() {
            return Err(Problem::invalid("a parameter is given twice"));
        }
    }
    check(fields, &given, "")?;
    Ok(given)
}

/// The variable parts of a path.
pub fn path(
    fields: &[Field],
    found: &BTreeMap<&'static str, String>,
) -> Result<Map<String, Value>, Problem> {
    let mut given = Map::new();
    for field in fields {
        if let Some(text) = found.get(field.name) {
            given.insert(field.name.to_owned(), field.is.spoken(text));
        }
    }
    check(fields, &given, "")?;
    Ok(given)
}

/// Percent signs undone; nothing when that is no text.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Checked values, by name.
#[derive(Debug, Default)]
pub struct Values(pub Map<String, Value>);

impl Values {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub fn name(&self, name: &str) -> Option<Name> {
        Name::new(self.text(name)?).ok()
    }

    /// A name that the table says is there.
    pub fn the_name(&self, name: &str) -> Result<Name, Problem> {
        self.name(name)
            .ok_or_else(|| Problem::invalid(format!("{name} is missing")))
    }

    pub fn id(&self, name: &str) -> Option<JobId> {
        self.0.get(name)?.as_i64().map(JobId)
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }

    pub fn state(&self, name: &str) -> Option<JobState> {
        self.text(name)?.parse().ok()
    }

    pub fn object(&self, name: &str) -> Option<Self> {
        self.0.get(name)?.as_object().cloned().map(Self)
    }

    pub fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.0.get(name)?.as_array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        must("kind", Is::Name, ""),
        may("limit", Is::Int(1, 200), ""),
        may("dry_run", Is::Bool, ""),
        may("key", Is::Text(8), ""),
    ];

    #[test]
    fn what_a_url_says_is_checked_by_the_table() {
        let given = query(FIELDS, "kind=a%2Eb&limit=7&dry_run=true&key=a+b").unwrap();
        assert_eq!(
            Value::Object(given),
            json!({ "kind": "a.b", "limit": 7, "dry_run": true, "key": "a b" })
        );
        for bad in [
            "",
            "kind=",
            "kind=a&kind=b",
            "kind=a&limit=0",
            "kind=a&limit=201",
            "kind=a&limit=07",
            "kind=a&limit=99999999999999999999",
            "kind=a&dry_run=yes",
            "kind=a&key=123456789",
            "kind=a&key=%00",
            "kind=a&key=%ff",
            "kind=a&key=%4",
            "kind=a&colour=red",
        ] {
            assert_eq!(query(FIELDS, bad).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn an_unknown_field_is_told_with_the_nearest() {
        let why = query(FIELDS, "kind=a&limmit=1").unwrap_err();
        assert!(why.sentence.ends_with("did you mean limit?"), "{why:?}");
    }
}
