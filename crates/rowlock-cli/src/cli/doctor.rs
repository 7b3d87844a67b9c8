//! How `rowlock doctor` looks, and what it mends itself.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when all is well, 6 with a warning or an error. Every code has a page in docs/findings.
--mend shows what it would remove and asks; without a terminal it needs --yes, and ends with exit code 2.

Examples:
  rowlock doctor
  rowlock doctor --json | jq -r 'select(.level != \"ok\") | .remedy'
  rowlock doctor --mend keys")]
pub struct Doctor {
    /// Mend this instead: `keys` removes unique keys whose jobs are gone (R036)
    #[arg(long, value_name = "WHAT")]
    pub mend: Option<Mend>,
    /// Don't ask before mending
    #[arg(long, requires = "mend")]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mend {
    /// Unique keys whose jobs are gone
    Keys,
}
