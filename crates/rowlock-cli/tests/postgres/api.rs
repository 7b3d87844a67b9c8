//! The API and the dashboard over a server.

use std::process::Command;

use crate::served::{CONFIG, Home, Served, furnish};
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
    pages:
        every_link_of_every_page_leads_to_a_page,
        every_page_is_for_its_role_and_a_reader_changes_nothing,
        markup_in_every_field_is_text_on_every_page,
        every_button_does_what_it_says,
        an_open_page_hears_what_changes;
    seen:
        a_job_is_added_by_keyboard_and_seen_to_run,
        failed_jobs_are_filtered_and_retried_by_keyboard_only,
        a_queue_is_paused_a_switch_set_and_a_running_job_cancelled,
        markup_runs_on_no_page,
        a_page_goes_on_when_its_server_comes_back;
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
