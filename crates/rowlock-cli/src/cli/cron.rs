//! `rowlock cron`.

use clap::Subcommand;
use rowlock::Name;

#[derive(Debug, Subcommand)]
pub enum Cron {
    /// List the crons of the database, with their next and last tick
    #[command(after_help = "Example:\n  rowlock cron list --json | jq -r .next_at")]
    List,
    /// Make a cron's job now, beside its ticks
    #[command(after_help = "Example:\n  rowlock cron run nightly")]
    Run {
        /// The cron
        name: Name,
    },
    /// Stop a cron; what it has enqueued stays
    #[command(after_help = "Example:\n  rowlock cron pause nightly")]
    Pause {
        /// The cron
        name: Name,
    },
    /// Let a paused cron go on with its next tick; the ones meanwhile are left out
    #[command(after_help = "Example:\n  rowlock cron resume nightly")]
    Resume {
        /// The cron
        name: Name,
    },
    /// Take a cron out of the database; what it has enqueued stays
    #[command(after_help = "\
Take it out of rowlock.toml too, otherwise the next `apply` or `work` brings it back.

Example:
  rowlock cron remove nightly")]
    Remove {
        /// The cron
        name: Name,
    },
}
