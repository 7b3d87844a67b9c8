//! No finding without a page, and none that wasn't provoked for real and mended by its own remedy.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

use std::collections::BTreeSet;
use std::path::Path;

use rowlock_testbed::repository;

/// Every text below a folder whose name fits.
fn texts(folder: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path, wanted));
        } else if wanted(&path.file_name().unwrap().to_string_lossy()) {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

/// Words like "R012", in quotes as code has them.
fn codes(text: &str) -> BTreeSet<String> {
    let from_quotes = text.split('"').map(|rest| rest.get(..4).unwrap_or(rest));
    let is_code = |word: &&str| {
        let digits = word.strip_prefix('R').unwrap_or_default();
        digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    from_quotes.filter(is_code).map(str::to_owned).collect()
}

fn told() -> BTreeSet<String> {
    let folder = repository().join("crates/rowlock-cli/src/command/doctor");
    let all = texts(&folder, |name| name.ends_with(".rs"));
    all.iter().flat_map(|text| codes(text)).collect()
}

#[test]
fn every_finding_is_provoked_and_mended_in_a_case() {
    let folder = repository().join("crates/rowlock-cli/tests");
    let is_ours = |name: &str| name.starts_with("doctor") && name != "doctor_codes.rs";
    let mut mended = BTreeSet::new();
    for text in texts(&folder, is_ours) {
        for case in text.split("#[test]\n").skip(1) {
            // Where the remedy isn't a command for this machine, a comment says so, and the case mends by hand.
            let mends = [
                "mend(",
                "remedy(",
                "remedy_as(",
                "exec {remedy}",
                "// By hand: ",
            ];
            if mends.iter().any(|words| case.contains(words)) {
                mended.extend(codes(case));
            }
        }
    }
    let told = told();
    assert!(told.len() >= 35, "{told:?}");
    let never: Vec<_> = told.difference(&mended).collect();
    assert!(never.is_empty(), "no case provokes and mends {never:?}");
}

#[test]
fn every_finding_has_a_page_that_shows_its_remedy() {
    for code in told() {
        let page = repository().join(format!("docs/findings/{code}.md"));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|why| panic!("{code}: {why}"));
        assert!(text.starts_with(&format!("# {code}: ")), "{code}");
        let (_, remedy) = text.split_once("\n## Remedy\n").unwrap();
        assert!(remedy.contains('`'), "{code} shows no command");
    }
}
