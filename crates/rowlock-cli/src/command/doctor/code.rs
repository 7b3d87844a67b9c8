//! The codes, and what a checkup says of each when all is well.

use super::{Finding, Level};
use crate::open::{Setup, Store};

/// Which stores a code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    All,
    File,
    Server,
    /// Stores with routes.
    Route,
}

/// Every code, and what a checkup without it says. docs/findings has a page for each.
pub const CODES: [(&str, Of, &str); 39] = [
    ("R001", Of::File, "the file is whole"),
    ("R002", Of::All, "the schema is the one this rowlock made"),
    (
        "R003",
        Of::File,
        "the write-ahead log is copied back in time",
    ),
    ("R004", Of::All, "every waiting job has a known kind"),
    ("R005", Of::All, "every worker was heard lately"),
    (
        "R006",
        Of::All,
        "kinds, pairs and routes are as the configuration says",
    ),
    (
        "R007",
        Of::File,
        "a commit that was answered survives a power cut",
    ),
    ("R008", Of::All, "no queue is paused and no switch is on"),
    ("R009", Of::All, "whatever is due has a worker"),
    ("R010", Of::Server, "the server's clock agrees with ours"),
    ("R011", Of::Server, "this role may do what a worker does"),
    (
        "R012",
        Of::Server,
        "nobody keeps a segment from being emptied",
    ),
    ("R013", Of::Server, "new numbers are ahead of stored ones"),
    (
        "R014",
        Of::Server,
        "transactions are READ COMMITTED by default",
    ),
    ("R015", Of::Server, "notifications arrive"),
    ("R016", Of::All, "every cron is declared and fires"),
    ("R017", Of::All, "every pair ticks in time"),
    ("R018", Of::All, "no switch keeps a pair from its rows"),
    ("R019", Of::All, "every state of the rows has an owner"),
    ("R020", Of::All, "no key is held back"),
    ("R021", Of::All, "every pair is in the configuration"),
    ("R022", Of::Route, "Redis throws no key away"),
    ("R023", Of::Route, "Redis keeps what it holds on disk"),
    ("R024", Of::Route, "every sink can be used"),
    ("R025", Of::Route, "every route has a drain"),
    ("R026", Of::Route, "what is due is sent at once"),
    (
        "R027",
        Of::Route,
        "whatever is sent comes back or is derived again",
    ),
    ("R028", Of::Route, "every route is in the configuration"),
    ("R029", Of::Route, "Redis has room for what is sent"),
    ("R030", Of::Server, "nothing pins the horizon for long"),
    ("R031", Of::Server, "autovacuum keeps up with our tables"),
    ("R032", Of::Server, "autovacuum is on for our tables"),
    ("R033", Of::All, "every pair's query has an index"),
    ("R034", Of::All, "every kind that is due is run by somebody"),
    ("R035", Of::Server, "no publication has the ring"),
    ("R036", Of::Server, "every unique key belongs to a live job"),
    (
        "R037",
        Of::File,
        "only its owner and its group may read the file",
    ),
    (
        "R038",
        Of::All,
        "what handlers say of their jobs is written",
    ),
    (
        "R039",
        Of::Server,
        "places, notifications and connections are left",
    ),
];

/// What was looked at and is well.
pub fn well(setup: &Setup, found: &[Finding], drains: bool) -> Vec<Finding> {
    let unknown = |code: &str| found.iter().all(|each| each.code != code);
    let here = match &setup.store {
        Store::Sqlite(_) => Of::File,
        Store::Postgres(_) => Of::Server,
    };
    CODES
        .into_iter()
        .filter(|(_, of, _)| match of {
            Of::All => true,
            Of::Route => drains,
            of => *of == here,
        })
        .filter(|(code, _, _)| unknown(code))
        .map(|(code, _, what)| Finding {
            code,
            level: Level::Ok,
            what: what.to_owned(),
            remedy: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings");
        let mut pages: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|page| page.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        pages.sort();
        let codes = super::CODES.map(|(code, _, _)| format!("{code}.md"));
        assert_eq!(pages, codes);
        for page in codes {
            let text = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
            for part in ["## What", "## Why it matters", "## Remedy"] {
                assert!(text.contains(part), "{page} has no {part}");
            }
        }
    }
}
