//! What keeps a database in order, whoever does it: ending it costs more than it pins.

use super::Pin;

/// Programs that read a whole database on purpose.
const PROGRAMS: [&str; 4] = ["pg_dump", "pg_dumpall", "pg_basebackup", "pg_restore"];
/// The first words of statements that keep a database in order: whoever may run one at all owns the table, and one
/// that is ended leaves work half done (an invalid index) that has to be done again.
const ANYBODYS: [&[&str]; 4] = [
    &["vacuum"],
    &["reindex"],
    &["create", "index"],
    &["create", "unique", "index"],
];
/// The same, if a superuser runs them.
const SUPERUSERS: [&[&str]; 4] = [
    &["analyze"],
    &["cluster"],
    &["alter", "table"],
    &["refresh", "materialized", "view"],
];

pub(super) fn maintains(pin: &Pin) -> bool {
    let query = pin.query.as_deref().unwrap_or_default();
    if pin.superuser {
        let application = pin.application.as_deref().unwrap_or_default();
        return PROGRAMS.contains(&application)
            || begins_with(query, &ANYBODYS)
            || begins_with(query, &SUPERUSERS);
    }
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("guard.maintenance") {
        return false;
    }
    // Of anybody else's it must be all that runs: neither the last statement of a transaction that is idle, nor the
    // first of several.
    !pin.is_idle() && is_alone(query) && begins_with(query, &ANYBODYS)
}

fn begins_with(query: &str, statements: &[&[&str]]) -> bool {
    let mut words = without_comments(query).split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.by_ref().filter(|word| !word.is_empty()).take(3);
    let first: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let is_it = |words: &&[&str]| first.len() >= words.len() && first[..words.len()] == **words;
    statements.iter().any(is_it)
}

fn is_alone(query: &str) -> bool {
    let rest = query.split_once(';').map_or("", |(_, rest)| rest);
    without_comments(rest).is_empty()
}

/// A statement from where it begins.
pub(super) fn without_comments(query: &str) -> &str {
    let mut rest = query.trim_start();
    loop {
        let after = match (rest.strip_prefix("/*"), rest.strip_prefix("--")) {
            (Some(comment), _) => comment.split_once("*/"),
            (_, Some(comment)) => comment.split_once('\n'),
            _ => return rest,
        };
        rest = after.map_or("", |(_, after)| after.trim_start());
    }
}
