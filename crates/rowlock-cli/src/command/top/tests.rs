//! The screen without a terminal: what is drawn of a real store, at any size and after any keys.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use rowlock::config::Config;
use rowlock::reconcile::declare_crons;
use rowlock::testing::TestStore;

use super::keys::{Intent, press};
use super::look::{Link, Plan, read};
use super::panel::{Panel, job_page};
use super::state::{Mode, State, View};
use super::{draw, panel};
use crate::command::doctor::{Finding, Level};

const CONFIG: &str = r#"
[[pair]]
kind = "make"
every = "1m"
query = "SELECT id FROM things"
key = ["id"]
[[cron]]
name = "nightly"
kind = "report"
cron = "0 3 * * *"
"#;

/// A store with one of everything, written past the library by somebody who means ill.
const ROWS: &str = r#"
INSERT INTO rowlock_worker (id, lease_ms, joined_at, seen_at) VALUES ('host:1', 30000, 0, 0);
INSERT INTO rowlock_queue (queue, switch, switch_reason) VALUES ('held', 'pause', char(27) || '[2J');
INSERT INTO rowlock_job (kind, queue, priority, state, max_attempts, scheduled_at, created_at,
    started_at, unique_until, locked_by, token, payload)
VALUES ('mail' || char(27) || '[31m', 'default', 0, 'processing', 5, 0, 0, 0, 'finished', 'host:1', 7,
        '{"to":"' || char(155) || '2J' || char(8238) || '","n":1.10}');
INSERT INTO rowlock_history (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at,
    created_at, started_at, finished_at, expires_at, unique_until, tags, errors, payload)
VALUES (500, 'bill', 'money', 0, 'failed', 5, 5, 0, 0, 0, 0, 0, 'finished', '[]',
        '[{"attempt":5,"at":"2030-01-31T09:00:00Z","kind":"error","message":"no \u001b]0;pwned\u0007 route"}]', '{}');
"#;

/// What one look at everything has brought.
async fn state() -> (TestStore, State) {
    let store = TestStore::new().unwrap();
    let file = rusqlite::Connection::open(store.path()).unwrap();
    file.execute_batch("CREATE TABLE things (id INTEGER PRIMARY KEY)")
        .unwrap();
    let (config, schedule) = (
        Config::parse(CONFIG, "x").unwrap(),
        store.rowlock().schedule(),
    );
    let kinds = config.kinds().unwrap();
    store.rowlock().operate().apply(&kinds).await.unwrap();
    let pairs = config.pairs().unwrap();
    schedule.declare_pairs(&pairs, true).await.unwrap();
    let crons = config.crons().unwrap();
    declare_crons(&*schedule, &crons, true).await.unwrap();
    file.execute_batch(ROWS).unwrap();
    let link = Link::to(store.rowlock().clone()).await.unwrap();
    let mut state = State::new("./test.db".to_owned(), Duration::from_secs(2), true);
    for panel in Panel::ALL {
        for view in [View::Running, View::Failed] {
            let plan = Plan::of(panel, view, 0);
            state.seen.take(read(&link, plan).await.unwrap());
            assert!(panel == Panel::Health || !state.seen.lacks(panel, view));
        }
    }
    state.seen.health = Some(vec![Finding {
        code: "R008",
        level: Level::Warn,
        what: "queue:held is set to pause: \u{1b}[2J".to_owned(),
        remedy: Some("rowlock switch clear queue:held".to_owned()),
    }]);
    (store, state)
}

/// What a terminal of this size shows.
fn shown(state: &mut State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::frame(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content();
    let hostile = |cell: &ratatui::buffer::Cell| cell.symbol().contains(char::is_control);
    assert!(!cells.iter().any(hostile));
    if !state.colours {
        let plain =
            |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
        assert!(cells.iter().all(plain));
    }
    let lines = cells.chunks(usize::from(width).max(1));
    let text = |line: &[ratatui::buffer::Cell]| line.iter().map(|cell| cell.symbol()).collect();
    lines
        .map(|line| -> String { text(line) })
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn type_in(state: &mut State, code: KeyCode) -> Option<Intent> {
    press(state, KeyEvent::new(code, KeyModifiers::NONE))
}

fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|line| line.contains(text))
}

#[tokio::test]
async fn every_panel_shows_what_the_store_has() {
    let (_store, mut state) = state().await;
    for (key, words) in [
        ('1', ["QUEUE", "held", "paused: \\u{1", "money"]),
        ('2', ["WORKER", "host:1", "30s", "1 mail\\u{1b}[31m"]),
        ('3', ["ID", "mail\\u{1b}[31m", "0 of 5", "host:1"]),
        ('4', ["NAME", "make", "nightly", "next in"]),
        ('5', ["ROUTE", "UNSENT", "DRAIN", "every job goes directly"]),
        (
            '6',
            [
                "LEVEL",
                "warn",
                "R008",
                "queue:held is set to pause: \\u{1b}[2J",
            ],
        ),
    ] {
        assert_eq!(type_in(&mut state, KeyCode::Char(key)), Some(Intent::Look));
        let lines = shown(&mut state, 80, 24);
        assert_eq!(lines.len(), 24);
        for word in words {
            assert!(has(&lines, word), "{key} {word}: {lines:#?}");
        }
    }
    type_in(&mut state, KeyCode::Char('3'));
    type_in(&mut state, KeyCode::Char('s'));
    let lines = shown(&mut state, 80, 24);
    assert!(has(&lines, "no \\u{1b}]0;pwned\\u{7} route"), "{lines:#?}");
}

#[tokio::test]
async fn a_job_is_shown_with_all_it_contains_as_text() {
    let (store, mut state) = state().await;
    for (id, words) in [
        (
            1,
            [
                "mail\\u{1b}[31m",
                "\"to\": \"\\u{9b}2J\\u{202e}\",",
                "\"n\": 1.10",
                "worker     host:1",
            ],
        ),
        (
            500,
            [
                "job 500  bill  failed",
                "no \\u{1b}]0;pwned\\u{7} route",
                "attempt 5",
                "payload    {}",
            ],
        ),
    ] {
        let job = store
            .rowlock()
            .operate()
            .job(rowlock::JobId(id))
            .await
            .unwrap();
        state.mode = Mode::Page(job_page(&job.unwrap(), state.seen.now));
        let lines = shown(&mut state, 80, 24);
        for word in words {
            assert!(has(&lines, word), "{word}: {lines:#?}");
        }
    }
    assert_eq!(type_in(&mut state, KeyCode::Esc), None);
    assert!(matches!(state.mode, Mode::Browse));
}

#[tokio::test]
async fn nothing_is_changed_before_somebody_says_y() {
    let (_store, mut state) = state().await;
    type_in(&mut state, KeyCode::Char('p'));
    let lines = shown(&mut state, 80, 24);
    assert!(
        has(&lines, "pause queue default? what runs goes on y/n"),
        "{lines:#?}"
    );
    assert_eq!(type_in(&mut state, KeyCode::Char('x')), None);
    assert!(matches!(state.mode, Mode::Ask(_)));
    assert_eq!(type_in(&mut state, KeyCode::Char('n')), None);
    assert!(has(&shown(&mut state, 80, 24), "nothing was changed"));
    // It follows the row that is selected.
    type_in(&mut state, KeyCode::Char('j'));
    type_in(&mut state, KeyCode::Char('p'));
    let lines = shown(&mut state, 80, 24);
    assert!(has(&lines, "resume queue held? y/n"), "{lines:#?}");
    let answer = type_in(&mut state, KeyCode::Char('y'));
    let queue = rowlock::Name::new("held").unwrap();
    assert_eq!(answer, Some(Intent::Do(super::act::Action::Resume(queue))));
    // Keys of another panel say where they belong.
    type_in(&mut state, KeyCode::Char('r'));
    assert!(has(
        &shown(&mut state, 80, 24),
        "r and c are for jobs: 3 shows them"
    ));
}

#[tokio::test]
async fn what_is_selected_stays_selected_when_rows_come_and_go() {
    let (_store, mut state) = state().await;
    type_in(&mut state, KeyCode::End);
    let last = state.selected();
    let money = panel::Key::Queue(rowlock::Name::new("money").unwrap());
    assert_eq!(last, Some(money.clone()));
    let rows = state.seen.queues.take().unwrap();
    state.seen.queues = Some(rows.into_iter().skip(1).collect());
    assert_eq!(state.selected(), Some(money));
    type_in(&mut state, KeyCode::Char('/'));
    for c in "HEL".chars() {
        type_in(&mut state, KeyCode::Char(c));
    }
    type_in(&mut state, KeyCode::Enter);
    let held = panel::Key::Queue(rowlock::Name::new("held").unwrap());
    assert_eq!(state.selected(), Some(held));
    let lines = shown(&mut state, 80, 24);
    assert!(
        !has(&lines, "money") && has(&lines, "filter: HEL"),
        "{lines:#?}"
    );
    type_in(&mut state, KeyCode::Esc);
    assert!(has(&shown(&mut state, 80, 24), "money"));
}

#[tokio::test]
async fn what_is_wrong_stays_in_sight_with_its_remedy() {
    let (_store, mut state) = state().await;
    state.trouble = Some("./test.db doesn't exist: check --url".to_owned());
    state.colours = false;
    for height in [3, 10, 24] {
        let lines = shown(&mut state, 80, height);
        let told = "error: ./test.db doesn't exist: check --url (trying again every 2 s)";
        assert_eq!(has(&lines, told), height > 3, "{lines:#?}");
    }
}

/// Keys that people press, and some that they don't.
fn any_key() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        Just(KeyCode::Enter),
        Just(KeyCode::Esc),
        Just(KeyCode::Tab),
        Just(KeyCode::Home),
        Just(KeyCode::End),
        Just(KeyCode::PageDown),
        prop::sample::select("123456jkgGsprcyn/?+- q".chars().collect::<Vec<_>>())
            .prop_map(KeyCode::Char),
        any::<char>().prop_map(KeyCode::Char),
    ]
}

#[test]
fn no_size_and_no_keys_bring_the_screen_down() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let (_store, state) = runtime.unwrap().block_on(state());
    let state = std::cell::RefCell::new(state);
    for width in 0..14 {
        for height in 0..8 {
            shown(&mut state.borrow_mut(), width, height);
        }
    }
    let sizes = prop::collection::vec((0_u16..160, 0_u16..50), 1..4);
    let keys = prop::collection::vec(any_key(), 0..12);
    proptest!(ProptestConfig::with_cases(200), |(sizes in sizes, keys in keys, sick in any::<bool>())| {
        let mut state = state.borrow_mut();
        state.mode = Mode::Browse;
        state.trouble = sick.then(|| "the store didn't answer".repeat(9));
        for key in keys {
            type_in(&mut state, key);
            for (width, height) in &sizes {
                shown(&mut state, *width, *height);
            }
        }
    });
}

#[test]
fn the_page_about_top_has_every_key_of_the_help() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/top.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (keys, _) in draw::HELP {
        for key in keys
            .split("  ")
            .filter(|key| !key.is_empty() && *key != "1 ... 6")
        {
            assert!(
                page.contains(&format!("`{key}`")) || page.contains(key),
                "{key}"
            );
        }
    }
}

#[test]
fn a_slow_store_is_left_in_peace_for_as_long_as_it_took() {
    let seconds = Duration::from_secs;
    let next = |took: u64| super::rest(seconds(10), seconds(10 + took), seconds(2));
    assert_eq!(next(0), seconds(12));
    assert_eq!(next(1), seconds(13));
    assert_eq!(next(30), seconds(70));
}
