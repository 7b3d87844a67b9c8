//! Loads the statements. One statement or function, one file; each speaks of the schema `rowlock`,
//! which stands for whatever schema the store is in.

use std::borrow::Cow;

use super::connect::Schema;

/// A statement: its name, and the text of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// `sql!("settle")` is what is in `sql/settle.sql`.
macro_rules! sql {
    ($name:literal) => {
        $crate::engine::postgres::statements::Sql {
            name: $name,
            text: include_str!(concat!("sql/", $name, ".sql")),
        }
    };
}
pub(crate) use sql;

/// Segments of the ring: what a file says of `{s}` is said of each.
pub(super) const SEGMENTS: i16 = 4;

impl Sql {
    /// The text, or what a test has put in its place.
    pub(crate) fn raw(self) -> Cow<'static, str> {
        #[cfg(feature = "test-hooks")]
        if let Some(mutated) = crate::hooks::statement("postgres", self.name, self.text) {
            return Cow::Owned(mutated);
        }
        Cow::Borrowed(self.text)
    }

    /// The statement for one schema, without the lines that are for readers.
    pub(crate) fn text(self, schema: &Schema) -> String {
        schema.put(&without_header(&self.raw()))
    }

    /// A function's definition; one for each segment if it speaks of one.
    pub(crate) fn definitions(self, schema: &Schema) -> Vec<String> {
        let text = schema.put(&without_header(&self.raw()));
        let text = text.replacen("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1);
        if !text.contains("{s}") {
            return vec![text];
        }
        (0..SEGMENTS)
            .map(|segment| text.replace("{s}", &segment.to_string()))
            .collect()
    }
}

fn without_header(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| line.starts_with("--"))
        .collect();
    lines.join("\n")
}

/// `SELECT * FROM rowlock.claim($1, $2)`: the call of a function.
pub(crate) fn call(function: &str, arguments: usize, schema: &Schema) -> String {
    let marks: Vec<String> = (1..=arguments).map(|n| format!("${n}")).collect();
    sql!("call")
        .text(schema)
        .replace("{function}", function)
        .replace("{arguments}", &marks.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_its_schema_and_its_arguments() {
        let schema = Schema::new("jobs").unwrap();
        assert_eq!(
            call("claim", 2, &schema),
            "SELECT * FROM jobs.claim($1, $2)"
        );
    }

    #[test]
    fn what_speaks_of_a_segment_is_said_of_each() {
        let schema = Schema::default();
        let four = sql!("claim_from").definitions(&schema);
        assert_eq!(four.len(), 4);
        assert!(four[3].contains("rowlock.claim_3("), "{}", four[3]);
        assert_eq!(sql!("claim_in_levels").definitions(&schema).len(), 1);
    }
}
