//! The one state machine: every move a job can make, and nothing else.
//!
//! The headers of the engines' .sql files and the diagram in docs/journey.md are compared with this
//! table by a test, so a statement can't make a move that isn't here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where a job stands. "scheduled", "retrying" and "held" are views of `Pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits to be claimed.
    Pending,
    /// Claimed by a worker.
    Processing,
    /// Done, or found to be no longer needed.
    Completed,
    /// Given up: its attempts are used up, or its handler said so.
    Failed,
    /// Called off.
    Cancelled,
}

use JobState::{Cancelled, Completed, Failed, Pending, Processing};

impl JobState {
    /// All states, in the order of the journey.
    pub const ALL: [Self; 5] = [Pending, Processing, Completed, Failed, Cancelled];

    /// The word that is stored and shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Pending => "pending",
            Processing => "processing",
            Completed => "completed",
            Failed => "failed",
            Cancelled => "cancelled",
        }
    }

    /// Whether the job has ended (until somebody redrives it).
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Completed | Failed | Cancelled)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{text:?} is not a state: use pending, processing, completed, failed or cancelled"
                ))
            })
    }
}

/// One allowed change of state. `None` stands for "not in the store".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// What the statement, the method and the log line are called.
    pub verb: &'static str,
    /// Where the job was.
    pub from: Option<JobState>,
    /// Where it is afterwards.
    pub to: Option<JobState>,
}

const fn moves(verb: &'static str, from: Option<JobState>, to: Option<JobState>) -> Move {
    Move { verb, from, to }
}

/// The table of moves, in the order of the journey.
pub const MOVES: &[Move] = &[
    moves("stage", None, Some(Pending)),
    moves("claim", Some(Pending), Some(Processing)),
    moves("settle_done", Some(Processing), Some(Completed)),
    moves("settle_not_needed", Some(Processing), Some(Completed)),
    moves("settle_retry", Some(Processing), Some(Pending)),
    moves("settle_snooze", Some(Processing), Some(Pending)),
    moves("settle_fail", Some(Processing), Some(Failed)),
    moves("settle_cancelled", Some(Processing), Some(Cancelled)),
    moves("release", Some(Processing), Some(Pending)),
    moves("expire", Some(Processing), Some(Pending)),
    moves("expire", Some(Processing), Some(Failed)),
    moves("expire", Some(Processing), Some(Cancelled)),
    moves("send", Some(Processing), None),
    moves("cancel", Some(Pending), Some(Cancelled)),
    moves("redrive", Some(Failed), Some(Pending)),
    moves("redrive", Some(Cancelled), Some(Pending)),
    moves("redrive", Some(Completed), Some(Pending)),
    moves("delete", Some(Pending), None),
    moves("prune", Some(Completed), None),
    moves("prune", Some(Failed), None),
    moves("prune", Some(Cancelled), None),
];

/// The table as a Mermaid state diagram: what docs/journey.md shows.
#[must_use]
pub fn diagram() -> String {
    let mut lines = vec!["stateDiagram-v2".to_owned()];
    let name = |state: Option<JobState>| state.map_or("[*]", JobState::as_str);
    let mut edges: Vec<(Option<JobState>, Option<JobState>, Vec<&str>)> = Vec::new();
    for step in MOVES {
        match edges
            .iter_mut()
            .find(|(from, to, _)| (*from, *to) == (step.from, step.to))
        {
            Some((_, _, verbs)) => verbs.push(step.verb),
            None => edges.push((step.from, step.to, vec![step.verb])),
        }
    }
    for (from, to, verbs) in edges {
        let (from, to, verbs) = (name(from), name(to), verbs.join(", "));
        lines.push(format!("    {from} --> {to}: {verbs}"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_state_is_left_only_by_redrive_and_prune() {
        for step in MOVES {
            if step.from.is_some_and(JobState::is_terminal) {
                assert!(matches!(step.verb, "redrive" | "prune"), "{step:?}");
            }
        }
    }

    #[test]
    fn every_state_can_be_reached_and_left() {
        for state in JobState::ALL {
            assert!(MOVES.iter().any(|step| step.to == Some(state)), "{state}");
            assert!(MOVES.iter().any(|step| step.from == Some(state)), "{state}");
        }
    }

    #[test]
    fn words_and_states_are_the_same_thing() {
        for state in JobState::ALL {
            assert_eq!(state.as_str().parse::<JobState>().unwrap(), state);
        }
        assert!("done".parse::<JobState>().is_err());
    }
}
