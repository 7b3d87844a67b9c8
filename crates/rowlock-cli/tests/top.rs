//! `rowlock top` in a real terminal: what a person sees and types.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::{Process, Terminal, until};

/// A job that waits until somebody writes to the gate, and one that fails for good.
const KINDS: &str = "[handlers.wait]\nexec = [\"sh\", \"-c\", \"read x <gate\"]\nqueue = \"slow\"\n\
                     [handlers.flaky]\nbuiltin = \"flaky\"\nmax_attempts = 1\nqueue = \"mail\"\n";

fn place() -> Place {
    let place = Place::with_config(KINDS);
    let made = Process::run(
        std::process::Command::new("mkfifo").arg(place.path("gate")),
        "",
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    place.ok(&["migrate", "up"]);
    place.ok(&["apply"]);
    place
}

const TOP: &str = concat!(env!("CARGO_BIN_EXE_rowlock"), " top --every 200ms");

fn terminal(place: &Place, size: (u16, u16), variables: &[(&str, &str)]) -> Terminal {
    Terminal::start(place.folder.path(), size, variables)
}

/// A terminal in which it runs, and has looked at the store.
fn top(place: &Place) -> Terminal {
    let terminal = terminal(place, (80, 24), &[]);
    terminal.run(TOP);
    terminal.wait("PENDING");
    terminal.wait_for("an answer", |screen| !screen.contains("reading ..."));
    terminal
}

/// Whether a line has all of these words.
fn row(screen: &str, words: &[&str]) -> bool {
    let has = |line: &str| {
        words
            .iter()
            .all(|word| line.split_whitespace().any(|at| at == *word))
    };
    screen.lines().any(has)
}

#[test]
fn a_queue_appears_and_a_job_runs_and_disappears() {
    let place = place();
    let top = top(&place);
    top.wait("no queue has a job yet");
    place.ok(&["enqueue", "wait", r#"{"who":"ada"}"#]);
    top.wait_for("the queue", |screen| row(screen, &["slow", "1", "open"]));
    let worker = place.start(&["work", "-q"]);
    top.press("3");
    top.wait_for("the job", |screen| row(screen, &["1", "wait", "slow"]));
    top.press("2");
    let pid = format!(":{}:", worker.id());
    top.wait_for("the worker", |screen| {
        screen.contains(&pid) && screen.contains("1 wait")
    });
    top.press("3");
    top.press("Enter");
    let page = top.wait("\"who\": \"ada\"");
    assert!(page.contains("job 1  wait  processing"), "{page}");
    top.press("Escape");
    std::fs::write(place.path("gate"), "go\n").unwrap();
    top.wait("nothing runs");
    top.press("1");
    top.wait("kept 1 done, 0 failed");
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn a_queue_is_paused_and_resumed_with_p() {
    let place = place();
    place.ok(&["enqueue", "wait"]);
    let top = top(&place);
    let paused = |paused: bool| {
        let queue = place.json(&["queue", "list", "--json"]);
        assert_eq!(queue["paused"], paused, "{queue}");
    };
    top.wait_for("the queue", |screen| row(screen, &["slow", "open"]));
    top.press("p");
    top.wait("pause queue slow? what runs goes on y/n");
    top.press("n");
    top.wait("nothing was changed");
    paused(false);
    top.press("p");
    top.wait("y/n");
    top.press("y");
    top.wait("paused queue slow");
    top.wait_for("the pause", |screen| row(screen, &["slow", "paused"]));
    paused(true);
    top.press("p");
    top.wait("resume queue slow? y/n");
    top.press("y");
    top.wait_for("the end of it", |screen| row(screen, &["slow", "open"]));
    paused(false);
    // A pause would take the place of another switch.
    place.ok(&["switch", "set", "queue:slow", "hold", "--reason", "audit"]);
    top.wait("hold: audit");
    top.press("p");
    top.wait("queue slow is set to hold: `rowlock switch clear queue:slow` ends that");
}

#[test]
fn a_failed_job_is_retried_with_r_and_a_waiting_worker_is_asked_to_stop_with_c() {
    let place = place();
    place.ok(&["enqueue", "flaky"]);
    place.ok(&["work", "--once", "-q"]);
    place.ok(&["enqueue", "wait"]);
    let top = top(&place);
    top.press("3");
    top.wait("nothing runs; s shows what failed");
    top.press("s");
    top.wait_for("the failed job", |screen| {
        row(screen, &["1", "flaky", "mail"])
    });
    top.press("r");
    top.wait("give job 1 all its attempts again? y/n");
    top.press("y");
    top.wait("job 1 waits for its next attempt");
    top.wait("nothing failed lately");
    assert_eq!(
        place.json(&["job", "show", "1", "--json"])["state"],
        "pending"
    );
    place.ok(&["job", "cancel", "1"]);
    let _worker = place.start(&["work", "-q"]);
    top.press("s");
    top.wait_for("the other job", |screen| {
        row(screen, &["2", "wait", "slow"])
    });
    top.press("c");
    top.wait("cancel job 2? one that runs is asked to stop y/n");
    top.press("y");
    top.wait("asked the worker of job 2 to stop");
    until("the end of job 2", || {
        let job = place.json(&["job", "show", "2", "--json"]);
        (job["state"] == "cancelled").then_some(())
    });
}

#[test]
fn rows_are_filtered_by_a_text_and_help_names_the_keys() {
    let place = place();
    for queue in ["apples", "pears"] {
        place.ok(&["enqueue", "wait", "--queue", queue]);
    }
    let top = top(&place);
    top.wait_for("both", |screen| {
        screen.contains("apples") && screen.contains("pears")
    });
    top.write("/PEA");
    top.wait_for("one", |screen| {
        !screen.contains("apples") && screen.contains("/PEA_")
    });
    top.press("Enter");
    top.wait("filter: PEA (Esc ends it)");
    top.press("Escape");
    top.wait("apples");
    top.press("?");
    let help = top.wait("pause or resume the selected queue");
    assert!(help.contains("freeze, and go on"), "{help}");
    top.press("x");
    top.wait("apples");
    // What is frozen stays; what goes on is new.
    top.press("Space");
    top.wait("FROZEN");
    place.ok(&["enqueue", "wait", "--queue", "plums"]);
    top.press("j");
    assert!(!top.screen().contains("plums"));
    top.press("Space");
    top.wait("plums");
    top.press("-");
    top.wait("every 500 ms");
}

#[test]
fn it_fits_whatever_size_the_terminal_gets() {
    let place = place();
    place.ok(&["enqueue", "wait"]);
    let top = top(&place);
    for (columns, rows) in [(160, 50), (20, 4), (80, 24), (40, 10), (80, 24)] {
        top.resize(columns, rows);
        top.wait_for("a screen of that size", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let fits = lines
                .iter()
                .all(|line| line.chars().count() <= usize::from(columns));
            let head = rows < 8 || screen.starts_with("rowlock ");
            let last = lines.last().is_some_and(|last| last.starts_with("p pause"));
            // tmux cuts a screen that hasn't been drawn anew.
            let row = screen.contains("slow");
            lines.len() == usize::from(rows) && fits && head && last && row
        });
    }
    let screen = top.screen();
    let heading = screen
        .lines()
        .find(|line| line.starts_with("QUEUE"))
        .unwrap();
    assert!(
        heading.ends_with("STATE") && heading.contains("FAIL/S"),
        "{screen}"
    );
}

/// The shell has its terminal back: its screen, its cursor, its echo and its line breaks.
fn is_given_back(terminal: &Terminal, code: &str) {
    terminal.run("echo \"code $?\"; stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo -e opost");
    let screen = terminal.wait_for("the shell", |screen| screen.contains("\necho\nready>"));
    assert!(screen.contains("before it ran"), "{screen}");
    assert!(screen.contains(&format!("\ncode {code}\n")), "{screen}");
    assert!(
        screen.contains("\nicanon\n") && screen.contains("\necho\n"),
        "{screen}"
    );
    assert!(!terminal.is_taken() && terminal.has_cursor());
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let place = place();
    for how in ["q", "C-c", "TERM", "HUP"] {
        let terminal = terminal(&place, (80, 24), &[]);
        terminal.run("echo before it ran");
        terminal.run(&format!("sh -c 'echo $$ >pid; exec {TOP}'"));
        terminal.wait("PENDING");
        // The cursor goes once everything is drawn.
        until("the screen is its own", || {
            (terminal.is_taken() && !terminal.has_cursor()).then_some(())
        });
        match how {
            "TERM" | "HUP" => {
                let pid = std::fs::read_to_string(place.path("pid")).unwrap();
                let kill = ["-s", how, pid.trim()];
                let sent = Process::run(std::process::Command::new("kill").args(kill), "");
                assert_eq!(sent.code, Some(0), "{sent:?}");
            }
            key => terminal.press(key),
        }
        terminal.wait_for("the prompt", |screen| screen.trim_end().ends_with("ready>"));
        is_given_back(&terminal, "0");
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let place = place();
    let terminal = terminal(&place, (80, 24), &[]);
    terminal.run(&format!("sh -c 'echo $$ >pid; exec {TOP}'"));
    terminal.wait("PENDING");
    let pid = std::fs::read_to_string(place.path("pid")).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    drop(terminal);
    until("the end of it", || (!process.exists()).then_some(()));
}

#[cfg(feature = "test-hooks")]
#[test]
fn the_terminal_is_given_back_after_a_panic_and_its_message_stays() {
    let place = place();
    // A backtrace would fill the screen.
    let terminal = terminal(&place, (80, 24), &[("RUST_BACKTRACE", "0")]);
    terminal.run("echo before it ran");
    terminal.run(TOP);
    terminal.wait("PENDING");
    terminal.press("F12");
    terminal.wait("F12 is for a test");
    // What is typed before it has ended is for nobody.
    terminal.wait_for("the shell", |screen| {
        screen.trim_end().ends_with("\nready>")
    });
    is_given_back(&terminal, "101");
}

#[test]
fn a_store_that_is_away_is_told_with_its_remedy_and_tried_again() {
    let place = Place::new();
    let terminal = terminal(&place, (80, 24), &[]);
    terminal.run(TOP);
    let screen = terminal.wait("trying again every 200 ms");
    assert!(
        screen.contains("error: ./rowlock.db doesn't exist"),
        "{screen}"
    );
    assert!(
        screen.replace('\n', " ").contains("`rowlock migrate up`"),
        "{screen}"
    );
    place.ok(&["enqueue", "mail"]);
    terminal.wait_for("the queue", |screen| row(screen, &["default", "1", "open"]));
    assert!(!terminal.screen().contains("error:"));
    std::fs::rename(place.path("rowlock.db"), place.path("away.db")).unwrap();
    let screen = terminal.wait("trying again every 200 ms");
    assert!(row(&screen, &["default", "1", "open"]), "{screen}");
    std::fs::rename(place.path("away.db"), place.path("rowlock.db")).unwrap();
    terminal.wait_for("the end of it", |screen| !screen.contains("trying again"));
}

#[test]
fn what_a_job_contains_is_only_text() {
    let place = place();
    place.ok(&["enqueue", "flaky", "{\"to\":\"\u{9b}2J\u{7f} \\u001b[2J\"}"]);
    place.ok(&["work", "--once", "-q"]);
    place.sql(
        "UPDATE rowlock_history SET kind = char(27) || '[8mhidden', \
         errors = '[{\"attempt\":1,\"at\":\"2030-01-31T09:00:00Z\",\"kind\":\"error\",\
         \"message\":\"\\u001b]0;title\\u0007 gone\"}]'",
    );
    let top = top(&place);
    top.press("3");
    top.press("s");
    let screen = top.wait("\\u{1b}[8mhidden");
    assert!(screen.contains("\\u{1b}]0;title\\u{7} gone"), "{screen}");
    top.press("Enter");
    let screen = top.wait("\"to\":");
    assert!(
        screen.contains("\"\\u{9b}2J\\u{7f} \\u001b[2J\""),
        "{screen}"
    );
    assert!(screen.contains("\\u{1b}[8mhidden"), "{screen}");
}

#[test]
fn no_color_means_no_colours() {
    let place = place();
    place.ok(&["enqueue", "wait"]);
    place.ok(&["queue", "pause", "slow"]);
    // 3x and 4x of an SGR sequence are colours; 1 and 7 are bold and reversed.
    let colours = |screen: &str| {
        let codes = screen
            .split("\u{1b}[")
            .skip(1)
            .filter_map(|rest| rest.split('m').next());
        let mut codes = codes.flat_map(|codes| codes.split(';'));
        codes.any(|code| {
            code.len() == 2 && code.starts_with(['3', '4']) && code != "39" && code != "49"
        })
    };
    for (variables, has) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let terminal = terminal(&place, (80, 24), variables);
        terminal.run(TOP);
        terminal.wait_for("the queue", |screen| row(screen, &["slow", "paused"]));
        let screen = terminal.coloured();
        assert_eq!(colours(&screen), has, "{screen:?}");
        assert!(
            screen.contains("\u{1b}[7m") || screen.contains(";7m"),
            "{screen:?}"
        );
    }
}

#[test]
fn without_a_terminal_it_says_what_programs_use() {
    let place = place();
    for args in [&["top"][..], &["top", "--json"]] {
        let refused = place.run(args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert_eq!(refused.stdout, "");
        assert!(
            refused.stderr.contains("`rowlock stats --json`"),
            "{refused:?}"
        );
    }
    let refused = place.run(&["top", "--every", "1ms"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("too often"), "{refused:?}");
}
