//! `demo crash` at a small size: that nothing is lost, that its checks can fail, and that it cleans up.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::process::Command;

use place::Place;
use rowlock_testbed::{Finished, Process};
use serde_json::Value;

/// The demonstration, with its folder in a place of the test's own.
fn demo(place: &Place, flags: &[&str]) -> Command {
    let mut command = place.command(&[&["demo", "crash"], flags].concat());
    command.env("TMPDIR", place.folder.path());
    command
}

fn run(place: &Place, command: &mut Command) -> Finished {
    let finished = Process::run(command, "");
    assert!(is_empty(place), "something is left behind: {finished:?}");
    finished
}

fn is_empty(place: &Place) -> bool {
    std::fs::read_dir(place.folder.path())
        .unwrap()
        .next()
        .is_none()
}

#[test]
fn every_fault_hits_a_running_job_and_nothing_is_lost() {
    let place = Place::new();
    let flags = ["--jobs", "300", "--kills", "8", "--seed", "7341", "--json"];
    let finished = run(&place, &mut demo(&place, &flags));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stderr, "");
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    for (field, value) in [
        ("jobs", 300),
        ("kills", 4),
        ("stops", 4),
        ("lost", 0),
        ("accepted", 300),
        ("late_accepted", 0),
        ("seed", 7341),
    ] {
        assert_eq!(told[field], value, "{field}: {told}");
    }
    assert!(told["late_refused"].as_u64() > Some(0), "{told}");
    assert!(told["run_more_than_once"].as_u64() > Some(0), "{told}");
    assert_eq!(told["clean"], true, "{told}");
}

#[test]
fn without_faults_every_job_runs_once() {
    let place = Place::new();
    let finished = run(&place, &mut demo(&place, &["--jobs", "50", "--kills", "0"]));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let line = finished.stdout.lines().nth(1).unwrap();
    let all =
        "lost 0 · run more than once 0 · late answers refused 0 · accepted outcomes 50 of 50   (";
    assert!(line.starts_with(all), "{finished:?}");
}

#[test]
fn too_few_jobs_for_the_faults_is_a_failure_that_says_so() {
    let place = Place::new();
    let finished = run(&place, &mut demo(&place, &["--jobs", "1", "--kills", "50"]));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains("give it more --jobs"),
        "{finished:?}"
    );
}

#[cfg(feature = "test-hooks")]
#[test]
fn a_fence_that_was_taken_out_is_noticed() {
    let place = Place::new();
    let mutants = rowlock_testbed::repository().join("crates/rowlock/tests/mutants");
    let mut command = demo(&place, &["--jobs", "100", "--kills", "16", "--seed", "7"]);
    command.env("ROWLOCK_MUTANT", mutants.join("fence_dropped.toml"));
    let finished = run(&place, &mut command);
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let said = "answers of workers that had been given up were accepted";
    assert!(finished.stderr.contains(said), "{finished:?}");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let place = Place::new();
    let mut demo = Process::start(&mut demo(&place, &["--jobs", "100000", "--kills", "10000"]));
    demo.line_with("100,000 jobs");
    demo.signal("INT");
    let (code, lines) = demo.wait();
    assert_eq!(code, Some(1), "{lines:#?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("nothing is left behind"))
    );
    assert!(is_empty(&place));
}

#[test]
fn a_worker_that_ends_by_itself_is_quoted() {
    let place = Place::new();
    let mut demo = Process::start(&mut demo(&place, &["--jobs", "1000", "--kills", "1000"]));
    demo.line_with("1,000 jobs");
    let folder = std::fs::read_dir(place.folder.path()).unwrap().next();
    let config = folder.unwrap().unwrap().path().join("rowlock.toml");
    // From here on, or from the first that is started after a fault.
    place.write("nonsense", "[nonsense]\n");
    std::fs::rename(place.path("nonsense"), config).unwrap();
    let said = demo.line_with("error: a worker ended by itself: exit status: 2; its last words: ");
    assert!(said.contains("nonsense"), "{said}");
    assert_eq!(demo.wait().0, Some(1));
    assert!(is_empty(&place));
}

/// Also those that stand still, which can't see that their pipe is closed; and also where somebody of
/// the same session adopts them, so that the system doesn't end them as orphans.
#[cfg(target_os = "linux")]
#[test]
fn workers_do_not_outlive_a_demonstration_that_is_killed() {
    use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

    set_child_subreaper(Some(getpid())).unwrap();
    let place = Place::new();
    let demo = Process::start(&mut demo(&place, &["--jobs", "1000", "--kills", "10000"]));
    let parent = demo.id();
    // The shell is what looks again and again.
    let stopped = format!(
        "until kids=$(cat /proc/{parent}/task/{parent}/children) && [ -n \"$kids\" ] \
         && grep -lq '^State:.*stopped' $(printf '/proc/%s/status ' $kids); do sleep 0.02; done 2>/dev/null; \
         echo $kids"
    );
    let found = Process::run(
        Command::new("timeout").args(["60", "bash", "-c", &stopped]),
        "",
    );
    assert_eq!(found.code, Some(0), "{found:?}");
    demo.signal("KILL");
    assert_eq!(demo.wait().0, None);
    let children: Vec<i32> = found
        .stdout
        .split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect();
    let (gone, ends) = std::sync::mpsc::channel();
    // They are ours now, so their ends are told to us.
    std::thread::Builder::new()
        .name("ends".to_owned())
        .spawn({
            let children = children.clone();
            move || {
                for child in children {
                    // One that had been killed before was waited for by the demonstration.
                    let _ = waitpid(Pid::from_raw(child), WaitOptions::empty());
                    let _ = gone.send(child);
                }
            }
        })
        .unwrap();
    for child in children {
        let end = ends.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(end, Ok(child), "worker {child} lives on");
    }
}
