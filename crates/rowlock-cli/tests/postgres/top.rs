//! `rowlock top` on a server: what it shows, what it may do, and what it costs.

use rowlock_testbed::{Postgres, Stop, Terminal, until};

use crate::place::Place;
use crate::roles::Roles;
use crate::store::{CANARY, Store};

const KINDS: &str = "[handlers.flaky]\nbuiltin = \"flaky\"\nmax_attempts = 1\nqueue = \"mail\"\n";

const TOP: &str = concat!(env!("CARGO_BIN_EXE_rowlock"), " top --every 200ms");

/// A terminal in which it runs with a URL that has a password.
fn top(place: &Place, url: &str) -> Terminal {
    let variables = [("ROWLOCK_URL", url)];
    let terminal = Terminal::start(place.folder.path(), (80, 24), &variables);
    terminal.run(TOP);
    terminal.wait("PENDING");
    terminal
}

#[test]
fn a_screen_shows_a_database_and_changes_it() {
    let store = Store::new(KINDS);
    store.ok(&["apply"]);
    store.ok(&["enqueue", "flaky"]);
    store.ok(&["work", "--once", "-q"]);
    store.ok(&["enqueue", "flaky"]);
    let top = top(&store.place, store.url());
    let screen = top.wait("mail");
    assert!(
        screen.contains("postgres://") && !screen.contains(CANARY),
        "{screen}"
    );
    top.press("p");
    top.wait("pause queue mail? what runs goes on y/n");
    top.press("y");
    top.wait("paused queue mail");
    assert_eq!(store.json(&["queue", "list", "--json"])["paused"], true);
    top.press("3");
    top.press("s");
    top.wait("fails on purpose");
    top.press("r");
    top.wait("give job 1 all its attempts again? y/n");
    top.press("y");
    top.wait("job 1 waits for its next attempt");
    let job = store.json(&["job", "show", "1", "--json"]);
    assert_eq!(job["state"], "pending", "{job}");
    for (key, text) in [
        ("2", "no worker has joined"),
        ("5", "every job goes directly"),
        ("6", "R015"),
    ] {
        top.press(key);
        let screen = top.wait(text);
        assert!(!screen.contains(CANARY), "{screen}");
    }
}

#[test]
fn whoever_may_only_read_sees_everything_and_is_told_what_it_may_not() {
    let roles = Roles::new();
    let store = roles.store();
    store.ok(&["enqueue", "flaky", "--queue", "mail"]);
    let top = top(&store.place, &store.url_of(&roles.of("reader")));
    top.wait("mail");
    for (key, text) in [
        ("2", "no worker"),
        ("3", "nothing runs"),
        ("4", "no pair"),
        ("5", "directly"),
        ("1", "mail"),
    ] {
        top.press(key);
        let screen = top.wait(text);
        assert!(!screen.contains("error:"), "{screen}");
    }
    top.press("p");
    top.wait("y/n");
    top.press("y");
    top.wait("permission denied");
    assert_eq!(store.json(&["queue", "list", "--json"])["paused"], false);
}

#[test]
fn a_server_that_is_away_is_told_and_tried_again() {
    let server = Postgres::start_own();
    let database = server.database_from(None);
    let place = Place::new();
    place.ok(&["migrate", "up", "--url", database.url()]);
    place.ok(&[
        "enqueue",
        "mail",
        "--queue",
        "post",
        "--url",
        database.url(),
    ]);
    let login = format!("postgres:{CANARY}@");
    let top = top(&place, &database.url().replace("postgres@", &login));
    top.wait("post ");
    server.stop(Stop::Fast);
    // It goes on at the line's end.
    let words = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let screen = top.wait_for("the error and its remedy", |screen| {
        let told = words(screen);
        told.contains("error: can't reach postgres://127.0.0.1:")
            && told.contains("Check that the server runs, and the URL (trying again every 200 ms)")
    });
    assert!(!screen.contains(CANARY), "{screen}");
    assert!(screen.contains("post "), "{screen}");
    server.start();
    top.wait_for("the end of it", |screen| !screen.contains("error:"));
}

/// What begins every other look, and every one at queues.
const COUNTS: &str = "FROM rowlock.tally GROUP BY queue, state";

#[test]
fn a_look_every_two_seconds_costs_fewer_than_two_statements_a_second() {
    let server = Postgres::start_own();
    server.set("log_statement = 'all'");
    let database = server.database_from(None);
    let place = Place::new();
    place.ok(&["migrate", "up", "--url", database.url()]);
    place.ok(&[
        "enqueue",
        "mail",
        "--queue",
        "post",
        "--url",
        database.url(),
    ]);
    let top = top(&place, database.url());
    top.wait("post ");
    for (key, looks) in [("1", 1), ("2", 2), ("3", 2), ("4", 2), ("5", 2)] {
        top.press(key);
        let before = server.log().len();
        // The first ones may still be of the panel before, or read all of the new one at once.
        let log = until("some looks", || {
            let log = server.log().split_off(before);
            (log.matches(COUNTS).count() > 6).then_some(log)
        });
        let rounds: Vec<&str> = log.split(COUNTS).skip(3).take(4).collect();
        let statements = |round: &&str| {
            round.matches("LOG:  execute ").count() + round.matches("LOG:  statement: ").count()
        };
        let all: usize = rounds.iter().map(statements).sum();
        let per_look = all as f64 / (rounds.len() * looks) as f64;
        assert!(per_look > 0.9, "panel {key}: {per_look}\n{log}");
        assert!(per_look < 4.0, "panel {key}: {per_look}\n{log}");
    }
}
