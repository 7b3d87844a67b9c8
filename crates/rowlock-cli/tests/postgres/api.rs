//! The API and the dashboard over a server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rowlock_testbed::{Postgres, until};

use crate::place::Place;
use crate::served::browser::Browser;
use crate::served::{CONFIG, Home, Served, furnish, ok};
use crate::store::{CANARY, Store};

impl Home for Store {
    fn command(&self, args: &[&str]) -> Command {
        Store::command(self, args)
    }

    fn sql(&self, text: &str) {
        Store::sql(self, text);
    }

    fn secrets(&self) -> Vec<String> {
        vec![CANARY.to_owned()]
    }
}

crate::served! { Store::new(CONFIG);
    matrix:
        every_route_is_for_its_role_and_a_reader_changes_nothing,
        no_secret_is_in_any_answer_or_log;
    doors:
        foreign_names_and_other_sites_are_refused,
        a_port_that_strangers_could_reach_needs_a_token;
    hostile:
        hostile_input_is_the_senders_mistake;
    kept:
        whoever_changes_something_sees_it_in_the_next_answer,
        whoever_wants_a_new_look_sees_what_others_have_changed;
    pages:
        every_link_of_every_page_leads_to_a_page,
        every_page_is_for_its_role_and_a_reader_changes_nothing,
        markup_in_every_field_is_text_on_every_page,
        every_button_does_what_it_says;
    accessible:
        axe_finds_nothing_on_any_page;
    everybody:
        every_page_can_be_read_and_used_by_everybody,
        nothing_moves_once_a_page_is_drawn,
        a_phone_shows_what_can_be_done_and_on_which_store,
        pages_work_without_a_script;
    seen:
        a_job_is_added_by_keyboard_and_seen_to_run,
        failed_jobs_are_filtered_and_retried_by_keyboard_only,
        a_queue_is_paused_a_switch_set_and_a_running_job_cancelled,
        enter_pressed_once_too_often_deletes_nothing,
        only_whoever_rejects_is_asked_to_lose_jobs,
        markup_runs_on_no_page,
        a_page_goes_on_when_its_server_comes_back;
    told:
        an_open_page_hears_what_changes,
        a_page_hears_what_changed_while_it_was_on_its_way,
        a_page_says_what_it_has_read_when_it_begins_to_listen;
    verbs:
        a_job_is_added_seen_and_changed_as_on_the_command_line,
        many_jobs_are_counted_first_and_changed_when_confirmed,
        cursors_walk_every_job_once_while_jobs_are_added,
        queues_switches_crons_and_pairs_are_run_and_stopped,
        too_many_changes_at_once_have_to_wait;
}

#[test]
fn budgets_and_pins_are_shown_and_set() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let served = Served::open(&store);
    let put = crate::served::Ask::new("PUT", "/budgets/analytics");
    let body = r#"{"max":2,"match":{"application_name":"metabase"}}"#;
    let set = served.ask(&put.json(body)).ok();
    assert_eq!(set["max"], 2);
    assert_eq!(served.get("/budgets").ok()["items"][0], set);
    let session = store.session();
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    let pins = served.get("/pins").ok();
    let pins = pins["items"].as_array().unwrap().iter();
    assert!(
        pins.clone().any(|pin| pin["pid"] == session.pid()),
        "{pins:?}"
    );
    let gone = crate::served::Ask::new("DELETE", "/budgets/analytics");
    assert_eq!(served.ask(&gone).ok()["status"], "removed");
    assert_eq!(served.ask(&gone).status, 404);
}

#[test]
fn whoever_pins_the_horizon_is_named_on_the_page() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let served = Served::open(&store);
    let session = store.session();
    session
        .execute(
            "SET application_name = 'metabase'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
        )
        .unwrap();
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/health", served.address));
    let text = browser.text();
    let pid = session.pid().to_string();
    assert!(
        text.contains(&pid) && text.contains("metabase"),
        "{pid}: {text}"
    );
    crate::served::accessible::nothing_is_found(&mut browser);
}

#[test]
fn the_horizon_the_ring_dead_rows_and_the_log_are_on_the_health_page() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let session = store.session();
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    let served = Served::open(&store);
    // The first look has nothing to compare with; the page may be renewed at any time.
    let first = served.ask(&crate::served::Ask::new("GET", "//health")).body;
    assert!(first.contains("measuring …"), "{first}");
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/health", served.address));
    let value = "(name) => [...document.querySelectorAll('.numbers li')]\
                 .find((each) => each.querySelector('.label').textContent === name)\
                 ?.querySelector('.value').textContent";
    let mut number = |name: &str| {
        let told = browser.look(&format!("({value})({name:?})"));
        told.as_str().unwrap_or_default().to_owned()
    };
    assert!(number("Horizon held").ends_with('s'), "somebody holds it");
    for name in ["Transactions behind", "Dead rows"] {
        assert!(
            number(name).replace(',', "").parse::<u64>().is_ok(),
            "{name}"
        );
    }
    assert_eq!(number("WAL kept by slots"), "0 KiB");
    let segments = "document.querySelectorAll('.gauge').length";
    assert_eq!(browser.look(segments), 4);
    // A later look has.
    let told = format!("({value})('WAL written').endsWith('/s')");
    let again = format!("http://{}/health", served.address);
    until("a pace", || {
        browser.go(&again);
        (browser.look(&told) == true).then_some(())
    });
}

#[test]
fn a_redis_that_was_lost_is_seen_to_get_its_jobs_again() {
    let redis = rowlock_testbed::Redis::start();
    let store = Store::new(&crate::served::drained::config(&redis));
    crate::served::drained::a_redis_that_was_lost_is_seen_to_get_its_jobs_again(&store, &redis);
}

#[test]
fn markup_of_a_session_that_pins_the_horizon_is_text() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let session = store.session();
    session
        .execute(
            "SET application_name = '<img src=x onerror=alert(1)>';
             BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 AS \"<script>window.hit=1</script>\"",
        )
        .unwrap();
    let served = Served::open(&store);
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/health", served.address));
    let text = browser.text();
    assert!(text.contains("<img src=x onerror=alert(1)>"), "{text}");
    assert!(text.contains("<script>window.hit=1</script>"), "{text}");
    assert_eq!(browser.look("document.images.length"), 0);
    assert_eq!(browser.look("typeof window.hit"), "undefined");
    assert_eq!(browser.look("refused"), 0);
}

#[test]
fn jobs_run_in_dev_while_every_look_waits_for_the_server() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let mut dev = Served::of(&mut Store::command(
        &store,
        &["dev", "--listen", "127.0.0.1:0", "-v"],
    ));
    dev.process.line_with("settled job=");
    let lock = store.session();
    lock.execute("BEGIN; LOCK TABLE rowlock.budget IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let looks: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(&dev.address).unwrap();
            let request = format!(
                "GET /api/v1/budgets HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                dev.address
            );
            stream.write_all(request.as_bytes()).unwrap();
            let hears = move || {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                answer
            };
            std::thread::Builder::new().spawn(hears).unwrap()
        })
        .collect();
    let look = store.session();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("they wait in the server", || {
        (look.value(waiting) != "0").then_some(())
    });
    let added = ok(&store, &["enqueue", "echo", "--json"]);
    let added: serde_json::Value = serde_json::from_str(&added).unwrap();
    dev.process
        .line_with(&format!("settled job={}", added["id"]));
    assert!(!looks.iter().any(std::thread::JoinHandle::is_finished));
    lock.execute("ROLLBACK").unwrap();
    for look in looks {
        let answer = look.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_checkup_that_takes_longer_than_a_request_is_there_for_a_later_one() {
    let store = Store::new(CONFIG);
    furnish(&store);
    let served = Served::open(&store);
    let lock = store.session();
    lock.execute("BEGIN; LOCK TABLE rowlock.schema_part IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    // The one who begins it waits for a while, the next one doesn't.
    for _ in 0..2 {
        let told = served.get("/doctor");
        assert_eq!((told.status, told.code()), (503, "under_way".to_owned()));
        assert!(told.head.contains("retry-after: "), "{told:?}");
    }
    assert_eq!(served.get("/kinds").status, 200);
    lock.execute("ROLLBACK").unwrap();
    let made = until("the checkup is over", || {
        let told = served.get("/doctor");
        (told.status == 200).then(|| told.ok())
    });
    // It went on by itself: nobody has begun another.
    assert!(made["took_seconds"].as_f64() > Some(20.0), "{made}");
    assert_eq!(served.get("/doctor").ok(), made);
}

/// Seconds between two looks for open pages.
const EVERY: f64 = 3.0;
/// What begins every look.
const LOOK: &str = "FROM rowlock.tally";

#[test]
fn an_open_page_costs_fewer_than_two_queries_a_second() {
    let server = Postgres::start_own();
    server.set("log_statement = 'all'");
    let database = server.database_from(None);
    let place = Place::new();
    let url = database.url();
    place.ok(&["migrate", "up", "--url", url]);
    // It stays due, so that every look has something new to tell.
    place.ok(&["enqueue", "mail", "--url", url]);
    let served =
        Served::of(&mut place.command(&["dashboard", "--bind", "127.0.0.1:0", "--url", url]));
    let mut browser = Browser::open();
    for (page, most) in [
        ("/", 1.5),
        ("/jobs", 1.5),
        ("/queues", 1.5),
        ("/workers", 1.5),
        ("/pairs", 1.5),
        ("/drains", 1.5),
        ("/switches", 1.5),
        // A checkup asks two dozen times, every thirty seconds at most.
        ("/health", 2.0),
    ] {
        browser.go(&format!("http://{}{page}", served.address));
        browser.wait("document.querySelector('#pulse').textContent === 'live'");
        let before = server.log().len();
        let log = until("some looks", || {
            let log = server.log().split_off(before);
            (log.matches(LOOK).count() > 5).then_some(log)
        });
        // The first look may be about opening the page. What begins and ends a transaction asks for nothing.
        let rounds = log.split(LOOK).skip(1).take(4);
        let queries = |round: &str| round.matches("LOG:  execute ").count();
        let all: usize = rounds.map(queries).sum();
        let each = all as f64 / 4.0;
        assert!(each / EVERY < most, "{page}: {each} queries a look\n{log}");
    }
}
