//! The filter of the jobs page: what its URL says, as the API wants it and as links carry it on.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::form::{Form, query};
use crate::web::problem::Problem;

const TIMES: [&str; 2] = ["since", "until"];
const FIELDS: [&str; 7] = ["state", "queue", "kind", "key", "tag", "since", "until"];

/// Which jobs.
#[derive(Debug, Default, Clone)]
pub struct Filter(Vec<(&'static str, String)>);

impl Filter {
    pub fn of(form: &Form) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for field in FIELDS {
            let Some(said) = form.get(field) else {
                continue;
            };
            let said = match TIMES.contains(&field) {
                true => moment(field, said.trim())?,
                // A key may have blanks around it.
                false if field == "key" => said.to_owned(),
                false => said.trim().to_owned(),
            };
            all.push((field, said));
        }
        Ok(Self(all))
    }

    pub fn get(&self, field: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| *own == field);
        found.map(|(_, value)| value.as_str())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a look would have to count by more than the numbers that are known.
    pub fn is_narrow(&self) -> bool {
        self.0
            .iter()
            .any(|(field, _)| !["state", "queue"].contains(field))
    }

    /// The page of these jobs.
    pub fn link(&self) -> String {
        format!("/jobs{}", query(self.pairs()))
    }

    /// The same with one field set otherwise.
    pub fn with(&self, field: &'static str, value: Option<&str>) -> Self {
        let mut all: Vec<_> = self
            .0
            .iter()
            .filter(|(own, _)| *own != field)
            .cloned()
            .collect();
        if let Some(value) = value {
            all.push((field, value.to_owned()));
        }
        Self(all)
    }

    pub fn object(&self) -> Value {
        let fields = self
            .pairs()
            .map(|(name, value)| (name.to_owned(), value.into()));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// In words: `failed jobs of kind echo in queue mail`.
    pub fn words(&self) -> String {
        let mut words = match self.get("state") {
            Some(state) => format!("{state} jobs"),
            None => "jobs".to_owned(),
        };
        for (field, before) in [
            ("kind", " of kind "),
            ("queue", " in queue "),
            ("key", " with key "),
            ("tag", " with tag "),
            ("since", " added since "),
            ("until", " added before "),
        ] {
            if let Some(value) = self.get(field) {
                words.extend([before, value]);
            }
        }
        words
    }
}

/// What a browser's date field gives is taken as UTC.
fn moment(field: &str, said: &str) -> Result<String, Problem> {
    if let Ok(at) = said.parse::<Timestamp>() {
        return Ok(at.to_string());
    }
    let civil = said.parse::<DateTime>();
    let zoned = civil.and_then(|civil| civil.to_zoned(TimeZone::UTC));
    let at = zoned
        .map_err(|_| Problem::invalid(format!("{field} must be a time like 2030-01-31T09:00")))?;
    Ok(at.timestamp().to_string())
}

/// A number that was searched for leads to its job.
pub fn jump(path: &[&str], form: &Form) -> Option<String> {
    let id = form.word("id").filter(|_| path == ["jobs"])?;
    let id = id.trim_start_matches('#').parse::<u64>().ok()?;
    Some(format!("/jobs/{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_carried_on_by_its_links() {
        let form = Form::parse("state=failed&queue=&key=+a%26b&since=2030-01-31T09:00&page=2");
        let filter = Filter::of(&form.unwrap()).unwrap();
        assert_eq!(
            filter.link(),
            "/jobs?state=failed&key=%20a%26b&since=2030-01-31T09%3A00%3A00Z"
        );
        assert_eq!(
            filter.with("key", None).words(),
            "failed jobs added since 2030-01-31T09:00:00Z"
        );
        assert!(Filter::of(&Form::parse("since=noon").unwrap()).is_err());
    }
}
