//! `reconcile`: the pairs, which turn rows that need work into jobs.

use clap::{Args, Subcommand};
use rowlock::Name;

#[derive(Debug, Subcommand)]
pub enum Reconcile {
    /// List the pairs and how they are doing, or one of them with the keys that are held back
    #[command(after_help = "\
LOST is how many rows only ticks have found: their enqueue was lost, or never made.

Examples:
  rowlock reconcile list
  rowlock reconcile list create_database
  rowlock reconcile list --json | jq 'select(.age_seconds > 300) | .name'")]
    List {
        /// This pair
        pair: Option<Name>,
    },
    /// Look for rows that need a job now, beside whoever leads
    #[command(after_help = "\
Examples:
  rowlock reconcile run --dry-run
  rowlock reconcile run create_database")]
    Run {
        /// These pairs [default: all]
        #[arg(value_name = "PAIR")]
        pairs: Vec<Name>,
        /// Count only, and enqueue nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Check the queries: do they have an index, and does every state of the rows have an owner?
    #[command(after_help = "\
Exit code 0 when all is well, 6 when something was found. What nobody claims is also noted for
`rowlock doctor` and the metrics.

Example:
  rowlock reconcile check create_database")]
    Check {
        /// These pairs [default: all]
        #[arg(value_name = "PAIR")]
        pairs: Vec<Name>,
    },
    /// Throw a pair's queue away and see it come back
    #[command(after_help = "\
Deletes the waiting jobs that rows of the pair ask for, ticks, and says how long that took. Jobs that
no row asks for stay, and so does what runs. The new jobs have all their attempts again. The drill
counts among the pair's lost enqueues, because that is what it plays.

Example:
  rowlock reconcile drill create_database")]
    Drill {
        /// The pair
        pair: Name,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// Let ticks have keys again that are held back after a failure, a cancel or a run without effect
    Lift(Lift),
    /// Remove a pair; its jobs stay
    #[command(after_help = "\
Take it out of rowlock.toml as well: the next worker with that file declares it again.

Example:
  rowlock reconcile remove create_database")]
    Remove {
        /// The pair
        pair: Name,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
A key is written as `reconcile list PAIR` shows it; for a single column its value is enough.

Examples:
  rowlock reconcile lift create_database 7
  rowlock reconcile lift copy_row '[\"eu\",7]'
  rowlock reconcile lift create_database --all")]
pub struct Lift {
    /// The pair
    pub pair: Name,
    /// These keys
    #[arg(
        value_name = "KEY",
        required_unless_present = "all",
        conflicts_with = "all",
        allow_negative_numbers = true
    )]
    pub keys: Vec<String>,
    /// All keys of the pair
    #[arg(long)]
    pub all: bool,
}
