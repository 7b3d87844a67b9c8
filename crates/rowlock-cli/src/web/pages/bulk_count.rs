//! How many jobs a change is about, told before it is made: from numbers that are known, or by one look.
//! Nothing is counted for it, so a page that asks is there at once however many they are.

use rowlock::engine::Counts;
use serde_json::Value;

use super::Cx;
use super::filter::Filter;
use super::form::query;
use super::words::{count, items, text};
use crate::show;
use crate::web::problem::Problem;
use crate::web::shape::STATES;

/// The most jobs of one look.
const LOOK: &str = "200";

/// So many, or more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Many {
    pub jobs: u64,
    pub more: bool,
}

impl Many {
    pub fn none(self) -> bool {
        self.jobs == 0 && !self.more
    }

    pub fn words(self) -> String {
        match (self.jobs, self.more) {
            (0, true) => "whatever there is of".to_owned(),
            (some, true) => format!("{}+", count(some).trim_end_matches('+')),
            (some, false) => show::count(some),
        }
    }
}

/// Those that a filter finds and the action has a meaning for.
pub async fn found(cx: &Cx, action: &str, filter: &Filter) -> Result<Many, Problem> {
    match filter.is_narrow() {
        false => known(cx, action, filter).await,
        true => looked(cx, action, filter).await,
    }
}

/// Whether the action has a meaning for jobs in a state. A retry means failed ones unless somebody says others.
fn is_meant(action: &str, wanted: Option<&str>, state: &str) -> bool {
    let fits = wanted.is_none_or(|wanted| wanted == state);
    match action {
        "retry" => wanted.unwrap_or("failed") == state,
        "cancel" => fits && ["pending", "processing"].contains(&state),
        _ => fits,
    }
}

async fn known(cx: &Cx, action: &str, filter: &Filter) -> Result<Many, Problem> {
    let wanted = filter.get("state");
    if let Some(other) = wanted.filter(|wanted| !STATES.contains(wanted)) {
        return Err(Problem::invalid(format!("there is no state {other}")));
    }
    let seen = cx.web.live.seen(&cx.web).await;
    let queue = filter.get("queue");
    let queues = seen
        .queues
        .iter()
        .filter(|(name, _)| queue.is_none_or(|queue| name.as_str() == queue));
    let mut many = Many {
        jobs: 0,
        more: false,
    };
    for (_, of) in queues {
        for state in STATES
            .iter()
            .filter(|state| is_meant(action, wanted, state))
        {
            many.jobs += in_state(&of.counts, state);
            many.more |= of.capped && ["pending", "processing"].contains(state);
        }
    }
    Ok(many)
}

fn in_state(counts: &Counts, state: &str) -> u64 {
    match state {
        "pending" => counts.pending,
        "processing" => counts.processing,
        "completed" => counts.completed,
        "failed" => counts.failed,
        _ => counts.cancelled,
    }
}

async fn looked(cx: &Cx, action: &str, filter: &Filter) -> Result<Many, Problem> {
    let wanted = filter.get("state");
    let failed = (action == "retry" && wanted.is_none()).then_some(("state", "failed"));
    let pairs = filter.pairs().chain(failed).chain([("limit", LOOK)]);
    let found = cx.get(&format!("/jobs{}", query(pairs))).await?;
    let is_meant = |job: &&Value| is_meant(action, wanted, text(job, "state"));
    Ok(Many {
        jobs: items(&found).iter().filter(is_meant).count() as u64,
        more: found["next"].is_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_about_the_states_it_has_a_meaning_for() {
        let of = |action, wanted| {
            let meant = STATES
                .iter()
                .filter(|state| is_meant(action, wanted, state));
            meant.copied().collect::<Vec<_>>()
        };
        assert_eq!(of("retry", None), ["failed"]);
        assert_eq!(of("retry", Some("cancelled")), ["cancelled"]);
        assert_eq!(of("cancel", None), ["pending", "processing"]);
        assert_eq!(of("cancel", Some("completed")), [""; 0]);
        assert_eq!(of("delete", None).len(), STATES.len());
    }

    #[test]
    fn what_was_not_counted_to_the_end_says_so() {
        let words = |jobs, more| Many { jobs, more }.words();
        assert_eq!(
            [words(12_345, false), words(10_000, true)],
            ["12,345", "10,000+"]
        );
        assert_eq!([words(200, true), words(0, false)], ["200+", "0"]);
    }
}
