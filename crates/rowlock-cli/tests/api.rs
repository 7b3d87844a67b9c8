//! The API and the dashboard over a file.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;
mod served;

use std::process::Command;

use place::Place;
use served::{CONFIG, Home};

impl Home for Place {
    fn command(&self, args: &[&str]) -> Command {
        Place::command(self, args)
    }

    fn sql(&self, text: &str) {
        Place::sql(self, text);
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

crate::served! { Place::with_config(CONFIG);
    matrix:
        every_route_is_for_its_role_and_a_reader_changes_nothing,
        no_secret_is_in_any_answer_or_log;
    doors:
        foreign_names_and_other_sites_are_refused,
        each_safeguard_that_is_taken_out_is_missed,
        a_port_that_strangers_could_reach_needs_a_token,
        every_answer_forbids_a_browser_to_do_anything_with_it;
    hostile:
        hostile_input_is_the_senders_mistake;
    kept:
        whoever_changes_something_sees_it_in_the_next_answer,
        whoever_wants_a_new_look_sees_what_others_have_changed;
    pages:
        every_link_of_every_page_leads_to_a_page,
        every_page_is_for_its_role_and_a_reader_changes_nothing,
        markup_in_every_field_is_text_on_every_page,
        every_button_does_what_it_says,
        a_form_without_its_seal_would_be_missed;
    accessible:
        axe_finds_nothing_on_any_page;
    everybody:
        every_page_can_be_read_and_used_by_everybody,
        nothing_moves_once_a_page_is_drawn,
        a_phone_shows_what_can_be_done_and_on_which_store,
        pages_work_without_a_script;
    seen:
        a_page_that_is_left_before_it_has_answered_is_followed,
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
fn tokens_are_read_from_a_file_and_never_shown() {
    let place = Place::with_config("[dashboard]\ntoken_file = \"tokens\"\n");
    place.ok(&["migrate", "up"]);
    for (text, words) in [
        ("", "has no token"),
        ("# nothing\n", "has no token"),
        ("operator c4nary\n", "line 1: the token is too short"),
        (
            "c4nary-one c4nary-two-0123456789\n",
            "line 1: write reader TOKEN",
        ),
    ] {
        place.write("tokens", text);
        let refused = place.run(&["dashboard", "--bind", "127.0.0.1:0"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
        assert!(!refused.stderr.contains("c4nary"), "{refused:?}");
    }
    let text = format!("# two\nreader {}\n{}\n", served::READER, served::OPERATOR);
    place.write("tokens", text);
    let served = served::Served::of(&mut place.command(&["dashboard", "--bind", "127.0.0.1:0"]));
    let ask = |token: &str| {
        let ask = served::Ask::new("POST", "/jobs").json(r#"{"kind":"echo"}"#);
        served.ask(&ask.bearer(token)).status
    };
    assert_eq!(
        [ask("x"), ask(served::READER), ask(served::OPERATOR)],
        [401, 403, 201]
    );
}

#[test]
fn dev_serves_the_api_beside_its_worker() {
    let place = Place::new();
    let mut dev = served::Served::of(&mut place.command(&["dev", "--listen", "127.0.0.1:0", "-v"]));
    let trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    let ask = served::Ask::new("POST", "/jobs").json(r#"{"kind":"echo"}"#);
    let added = dev.ask(&ask.with("traceparent", trace)).ok();
    dev.process.line_with("settled job=");
    let shown = dev.get(&format!("/jobs/{}", added["id"])).ok();
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["trace_context"], trace);
    assert_eq!(
        dev.get("/workers").ok()["items"].as_array().unwrap().len(),
        1
    );
    dev.end();
}

#[test]
fn a_redis_that_was_lost_is_seen_to_get_its_jobs_again() {
    let redis = rowlock_testbed::Redis::start();
    let place = Place::with_config(&served::drained::config(&redis));
    served::drained::a_redis_that_was_lost_is_seen_to_get_its_jobs_again(&place, &redis);
}
