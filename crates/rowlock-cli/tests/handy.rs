//! What makes the binary at home in a shell, a manual and a log collector.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::Process;
use serde_json::Value;

#[test]
fn completions_are_what_the_shell_understands() {
    let place = Place::with_config("this is = not [a configuration");
    let script = place.ok(&["completions", "bash"]);
    let test = "complete -p rowlock && COMP_WORDS=(rowlock doc) COMP_CWORD=1 \
                && _rowlock rowlock doc rowlock && echo \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["--norc", "-s"]);
    // Longer than an argument may be.
    let finished = Process::run(&mut bash, &format!("{script}\n{test}\n"));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.ends_with("\ndoctor\n"), "{finished:?}");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = place.ok(&["completions", shell]);
        for word in ["doctor", "reconcile", "drill", "lose-jobs", "recall"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(place.run(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn the_manual_has_a_page_for_every_verb() {
    let place = Place::new();
    let page = place.ok(&["man"]);
    assert!(page.contains(".TH rowlock 1"), "{page}");
    assert!(page.contains("Exit codes"), "{page}");
    assert_eq!(place.ok(&["man", "a/man1"]), "");
    for name in [
        "rowlock",
        "rowlock-work",
        "rowlock-job-show",
        "rowlock-doctor",
        "rowlock-top",
        "rowlock-switch-set",
        "rowlock-reconcile-drill",
        "rowlock-drain-run",
    ] {
        let text = std::fs::read_to_string(place.path(&format!("a/man1/{name}.1")));
        assert!(text.unwrap().contains(".SH NAME"), "{name}");
    }
    place.write("file", "");
    let refused = place.run(&["man", "file"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("./file"), "{refused:?}");
}

#[test]
fn with_json_logs_every_line_on_stderr_is_an_object() {
    let place = Place::with_config("[handlers.flaky]\nbuiltin = \"flaky\"\n");
    place.ok(&["enqueue", "flaky"]);
    let finished = place.run(&["work", "--once", "-v", "--log", "json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines: Vec<Value> = finished
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect();
    for line in &lines {
        assert!(line["timestamp"].is_string(), "{line}");
        assert!(line["level"].is_string(), "{line}");
    }
    let find = |text: &str| {
        let mut found = lines.iter().filter(|line| line["message"] == text);
        found
            .next()
            .unwrap_or_else(|| panic!("no {text}: {lines:#?}"))
    };
    assert_eq!(find("attempt failed")["kind"], "flaky");
    assert_eq!(find("attempt failed")["level"], "WARN");
    assert_eq!(find("settled")["job"], "1");
    assert_eq!(find("stopped")["settled"], 1);
    let started = lines[0]["message"].as_str().unwrap();
    assert!(started.starts_with("rowlock "), "{started}");
}

#[test]
fn with_json_logs_an_error_is_an_object_too() {
    let place = Place::new();
    let refused = place.run(&["stats", "--log", "json"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let line: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(line["level"], "ERROR");
    let text = line["message"].as_str().unwrap();
    assert!(text.starts_with("./rowlock.db doesn't exist"), "{text}");
    assert_eq!(place.run(&["stats", "--log", "xml"]).code, Some(2));
}
